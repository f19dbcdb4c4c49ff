/* NumPy's archives of columns: ZIP directories, stored and deflated members, .npy headers. */
#include "support/fuzz_rows.h"

static struct fuzz_schema schemas[] = {
    {.yaml = "data:\n"
             "  format: npy\n"
             "  encoding: hash\n"
             "  rows: 100\n"
             "  fields:\n"
             "    - {name: y, kind: label}\n"
             "    - {name: 'd*', kind: dense}\n"
             "    - {name: t, kind: id, list: true}\n"
             "    - {name: '*', kind: id}\n"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (size == 0)
        return 0;
    fuzz_folder_path("columns.npz", path);
    fuzz_put(path, data + 1, size - 1);
    fuzz_rows_of(schemas, sizeof schemas / sizeof schemas[0], data[0], path);
    return 0;
}
