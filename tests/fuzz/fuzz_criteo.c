/* Criteo's files: tabs, no header, 13 numbers and 26 ids. */
#include "support/fuzz_rows.h"

static struct fuzz_schema schemas[] = {
    {.yaml = "data: {format: criteo, encoding: hash, rows: 1000}\n"},
    {.yaml = "data: {format: criteo, min_count: 2}\n"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_rows(schemas, sizeof schemas / sizeof schemas[0], data, size);
    return 0;
}
