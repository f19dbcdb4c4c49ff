/* MLPerf's layout of Criteo in .npy files. An input is a choice (fuzz_rows.h), the sizes of the labels' and
 * the dense array's files (2 bytes each), these two files, and the sparse array's; an empty file is a missing
 * one. */
#include <unistd.h>

#include "support/fuzz_rows.h"

#define HEAD_BYTES 5

static struct fuzz_schema schemas[] = {
    {.yaml = "data: {format: npy, encoding: hash, rows: 100, fields: [{name: label, kind: label}, "
             "{name: 'I*', kind: dense}, {name: 'C*', kind: id}]}\n"},
    {.yaml = "data: {format: npy, encoding: raw, rows: 100, max_bad_rows: 1, fields: [{name: label, kind: "
             "label}, "
             "{name: 'I*', kind: dense, transform: log1p}, {name: 'C*', kind: id}]}\n"},
};

static void put(const char *name, const uint8_t *bytes, size_t size)
{
    char path[64];
    fuzz_folder_path(name, path);
    if (size == 0)
        unlink(path);
    else
        fuzz_put(path, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (size < HEAD_BYTES)
        return 0;
    const uint8_t *bytes = data + HEAD_BYTES;
    const size_t left = size - HEAD_BYTES;
    const size_t labels = (data[1] + (size_t)data[2] * 256) % (left + 1);
    const size_t dense = (data[3] + (size_t)data[4] * 256) % (left - labels + 1);
    put("p_labels.npy", bytes, labels);
    put("p_dense.npy", bytes + labels, dense);
    put("p_sparse.npy", bytes + labels + dense, left - labels - dense);
    fuzz_folder_path("p", path);
    fuzz_rows_of(schemas, sizeof schemas / sizeof schemas[0], data[0], path);
    return 0;
}
