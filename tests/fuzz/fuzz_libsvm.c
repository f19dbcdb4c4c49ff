/* libsvm's and libffm's lines: a label, then pairs or triples of numbers. */
#include "support/fuzz_rows.h"

static struct fuzz_schema schemas[] = {
    {.yaml = "data: {format: libsvm, encoding: hash, rows: 100, max_bad_rows: 1}\n"},
    {.yaml = "data: {format: libsvm, min_count: 2}\n"},
    {.yaml = "data: {format: libffm}\n"},
    {.yaml = "data: {format: libffm, num_fields: 3, encoding: hash, rows: 100, max_bad_rows: 2}\n"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_rows(schemas, sizeof schemas / sizeof schemas[0], data, size);
    return 0;
}
