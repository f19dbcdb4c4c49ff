/* Criteo's files: tabs, no header, 13 numbers and 26 ids. */
#include "support/fuzz_rows.h"

#define TRAIN                                                                                         \
    "1\t0\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t68fd1e00\t68fd1e01\t68fd1e02\t68fd1e03\t68fd1e04\t" \
    "68fd1e05\t68fd1e06\t68fd1e07\t68fd1e08\t68fd1e09\t68fd1e0a\t68fd1e0b\t68fd1e0c\t68fd1e0d\t"      \
    "68fd1e0e\t68fd1e0f\t68fd1e10\t68fd1e11\t68fd1e12\t68fd1e13\t68fd1e14\t68fd1e15\t68fd1e16\t"      \
    "68fd1e17\t68fd1e18\t68fd1e19\n"

static struct fuzz_schema schemas[] = {
    {.yaml = "data: {format: criteo, encoding: hash, rows: 1000}\n", .train = TRAIN},
    {.yaml = "data: {format: criteo, max_bad_rows: 1}\n", .train = TRAIN},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_rows(schemas, sizeof schemas / sizeof schemas[0], data, size);
    return 0;
}
