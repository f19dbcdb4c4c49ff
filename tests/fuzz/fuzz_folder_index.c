/* Indices of checkpoints in folders: edits of one that fits the files beside it, with fitting seals. What is
 * accepted can be read to its last byte, summed up and loaded in parts. */
#include <stdlib.h>
#include <string.h>

#include "store/checkpoint_folder.h"
#include "support/fuzz_support.h"

enum { ROWS = 6, COLUMNS = 8, CUT = 4, WRITERS = 2 };

/* The matrix "t" in two runs of rows, a whole vector "b", and a vector "s" in two runs. */
static char *make_folder(const char *folder, const char *index, size_t *size_out)
{
    static ph_real numbers[ROWS * COLUMNS];
    const struct ph_shape matrix = {2, {ROWS, COLUMNS}}, vector = {1, {ROWS}};
    const struct ph_tensor tensors[] = {
        {.name = "t", .shape = {2, {CUT, COLUMNS}}, .data = numbers, .whole = matrix},
        {.name = "s", .shape = {1, {CUT}}, .data = numbers, .whole = vector},
        {.name = "t",
            .shape = {2, {ROWS - CUT, COLUMNS}},
            .data = numbers + CUT * COLUMNS,
            .first_row = CUT,
            .whole = matrix},
        {.name = "s", .shape = {1, {ROWS - CUT}}, .data = numbers, .first_row = CUT, .whole = vector},
        {.name = "b", .shape = {1, {3}}, .data = numbers}};
    char *descriptions[WRITERS];
    fuzz_require(ph__folder_write_part(folder, 0, WRITERS, 2, tensors, &descriptions[0]) == PH_OK);
    fuzz_require(ph__folder_write_part(folder, 1, WRITERS, 3, tensors + 2, &descriptions[1]) == PH_OK);
    fuzz_require(
        ph__folder_commit(folder, WRITERS, (const char *const *)(uintptr_t)descriptions, NULL) == PH_OK);
    free(descriptions[0]);
    free(descriptions[1]);
    return fuzz_read(index, size_out);
}

/* All of each tensor, as it is, and but for its first row and column. */
static void load(const struct ph__folder *folder)
{
    for (size_t i = 0; i < ph__folder_num_tensors(folder); i++) {
        struct ph_tensor tensor = ph__folder_tensor(folder, i);
        fuzz_require(ph__folder_find(folder, tensor.name) == i);
        tensor.data = malloc(ph_shape_elements(&tensor.shape) * ph_dtype_size(tensor.dtype) + 1);
        fuzz_require(tensor.data != NULL && ph__folder_load(folder, 1, &tensor) == PH_OK);
        tensor.whole = tensor.shape;
        for (size_t k = 0; k < tensor.shape.num_dims; k++)
            tensor.shape.dims[k] -= tensor.shape.dims[k] > 0;
        tensor.first_row = tensor.whole.dims[0] > tensor.shape.dims[0];
        tensor.first_column = tensor.shape.num_dims == 2 && tensor.whole.dims[1] > tensor.shape.dims[1];
        fuzz_require(ph__folder_load(folder, 1, &tensor) == PH_OK);
        free(tensor.data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char folder[64], index[64], *text;
    static size_t text_size;
    if (text == NULL) {
        fuzz_folder_path(".", folder);
        fuzz_folder_path("model.safetensors.index.json", index);
        text = make_folder(folder, index, &text_size);
    }
    struct ph__folder *opened;
    char digits[65];
    size_t mark, edited_size;
    uint8_t *edited = fuzz_edit(text, text_size, data, size, 0, &mark, &edited_size);
    fuzz_reseal_json(edited, edited_size);
    fuzz_put(index, edited, edited_size);
    free(edited);
    if (ph__folder_open(folder, &opened) != PH_OK)
        return 0;
    fuzz_require(ph__folder_check_seals(opened, 0, 1) == PH_OK);
    load(opened);
    fuzz_require(ph__folder_digest(opened, NULL, digits) == PH_OK);
    ph__folder_metadata(opened, "format");
    ph__folder_close(opened);
    return 0;
}
