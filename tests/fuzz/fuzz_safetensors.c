/* Safetensors files: listed, read, loaded into a model. Their seals are made to fit, so that what lies behind
 * it is reached; a model that is not loaded stays as it was. */
#include <stdlib.h>
#include <string.h>

#include "store/safetensors.h"
#include "store/store.h"
#include "support/fuzz_support.h"

static void read_tensors(const struct ph__safetensors *file)
{
    for (size_t i = 0; i < ph__safetensors_num_tensors(file); i++) {
        const struct ph_tensor tensor = ph__safetensors_tensor(file, i);
        fuzz_require(ph__safetensors_find(file, tensor.name) == i);
        void *bytes = malloc(ph_shape_elements(&tensor.shape) * ph_dtype_size(tensor.dtype) + 1);
        fuzz_require(bytes != NULL && ph__safetensors_read(file, i, bytes) == PH_OK);
        free(bytes);
    }
    struct ph__json_member member = {0};
    while (ph__safetensors_next_metadata(file, &member))
        fuzz_require(ph__safetensors_metadata(file, member.key) != NULL);
}

/* The tensors "w" (2,3) and "t.a" (2,1), "t.b" (1,1). */
static struct ph_store *make_store(void)
{
    static const struct ph_table_slice slices[] = {{"t.a", 2}, {"t.b", 1}};
    const struct ph__declaration declarations[] = {
        {.name = "w", .shape = {2, {2, 3}}},
        {.name = "t", .is_table = true, .shape = {2, {3, 1}}, .num_slices = 2, .slices = slices},
    };
    struct ph_store *store = NULL;
    struct ph_parameter *parameter;
    fuzz_require(ph_store_create(1, &store) == PH_OK);
    for (size_t i = 0; i < 2; i++)
        fuzz_require(ph__store_add(store, &declarations[i], NULL, &parameter) == PH_OK);
    return store;
}

/* Each number is 7 before: after a load that is refused, all of them still are. */
static void load(struct ph_store *store, const char *path)
{
    for (size_t i = 0; i < ph_store_num_tensors(store); i++) {
        const struct ph_tensor tensor = ph_store_tensor(store, i);
        for (size_t j = 0; j < ph_shape_elements(&tensor.shape); j++)
            ((ph_real *)tensor.data)[j] = 7;
    }
    if (ph_checkpoint_load(path, store, NULL) == PH_OK)
        return;
    for (size_t i = 0; i < ph_store_num_tensors(store); i++) {
        const struct ph_tensor tensor = ph_store_tensor(store, i);
        for (size_t j = 0; j < ph_shape_elements(&tensor.shape); j++)
            fuzz_require(((ph_real *)tensor.data)[j] == 7);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ph_store *store;
    if (store == NULL)
        store = make_store();
    const char *path = fuzz_sealed_tensors(0, data, size);
    struct ph__safetensors *file = NULL;
    if (ph__safetensors_open(path, &file) != PH_OK)
        return 0;
    read_tensors(file);
    if (ph__safetensors_is_sealed(file))
        fuzz_require(ph__safetensors_check_seal(file, &(struct ph__meanwhile){0}) == PH_OK);
    ph__safetensors_close(file);
    load(store, path);
    return 0;
}
