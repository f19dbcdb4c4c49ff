#include "store/tensor_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "store/init.h"
#include "store/tensor_bytes.h"

/* ---- listing ------------------------------------------------------------------------------------------- */

ph_status ph__tensor_list_add(struct ph__tensor_list *list, const struct ph_tensor *tensor)
{
    PH_TRY(
        ph__array_reserve((void **)&list->tensors, &list->capacity, list->count + 1, sizeof *list->tensors));
    list->tensors[list->count++] = *tensor;
    return PH_OK;
}

ph_status ph__tensor_list_add_store(struct ph__tensor_list *list, const struct ph_store *store)
{
    for (size_t i = 0; i < ph_store_num_tensors(store); i++) {
        struct ph_tensor tensor = ph_store_tensor(store, i);
        PH_TRY(ph__tensor_list_add(list, &tensor));
    }
    return PH_OK;
}

ph_status ph__tensor_list_add_state(struct ph__tensor_list *list, const struct ph_state *state)
{
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        PH_TRY(ph__tensor_list_add(list, &tensor));
    }
    return PH_OK;
}

/* One slot of one logical tensor, whose part of the slot begins at *data; moves *data behind it. */
static ph_status add_slot(struct ph__tensor_list *list, const struct ph_slot *slot, const char *name,
    const struct ph_shape *shape, ph_real **data)
{
    struct ph_tensor tensor = {.dtype = PH_REAL, .shape = *shape, .data = *data};
    size_t rows, columns;
    ph__init_matrix(shape, &rows, &columns);
    if (slot->is_per_row)
        tensor.shape = (struct ph_shape){.rank = 1, .dims = {rows}};
    tensor.name = ph__arena_printf(&list->arena, "slot.%s:%s", slot->name, name);
    if (tensor.name == NULL)
        return PH_ERROR_MEMORY;
    *data += ph_shape_elements(&tensor.shape);
    return ph__tensor_list_add(list, &tensor);
}

static ph_status add_parameter_slots(struct ph__tensor_list *list, const struct ph_parameter *parameter)
{
    for (size_t s = 0; s < parameter->num_slots; s++) {
        const struct ph_slot *slot = &parameter->slots[s];
        ph_real *data = slot->data;
        if (!parameter->is_table)
            PH_TRY(add_slot(list, slot, parameter->name, &parameter->shape, &data));
        for (size_t i = 0; parameter->is_table && i < parameter->num_slices; i++) {
            const struct ph_table_slice *slice = &parameter->slices[i];
            struct ph_shape shape = {.rank = 2, .dims = {slice->num_rows, parameter->shape.dims[1]}};
            PH_TRY(add_slot(list, slot, slice->name, &shape, &data));
        }
    }
    return PH_OK;
}

ph_status ph__tensor_list_add_slots(struct ph__tensor_list *list, const struct ph_store *store)
{
    for (size_t i = 0; i < ph__store_num_parameters(store); i++)
        PH_TRY(add_parameter_slots(list, ph__store_parameter(store, i)));
    return PH_OK;
}

void ph__tensor_list_fini(struct ph__tensor_list *list)
{
    free(list->tensors);
    ph__arena_fini(&list->arena);
    *list = (struct ph__tensor_list){0};
}

/* ---- values -------------------------------------------------------------------------------------------- */

static bool is_finite(const ph_real *values, size_t count)
{
    int is_fine = 1;
    for (size_t i = 0; i < count; i++)
        is_fine &= isfinite(values[i]) != 0;
    return is_fine != 0;
}

/* Words whose exponent has all of these bits are not finite. */
static bool are_words_finite(const uint16_t *words, size_t count, uint16_t exponent)
{
    int is_fine = 1;
    for (size_t i = 0; i < count; i++)
        is_fine &= (words[i] & exponent) != exponent;
    return is_fine != 0;
}

static bool is_tensor_finite(const struct ph_tensor *tensor)
{
    const size_t count = ph_shape_elements(&tensor->shape);
    if (tensor->dtype == PH_F16)
        return are_words_finite(tensor->data, count, 0x7c00);
    if (tensor->dtype == PH_BF16 || tensor->row_format == PH_ROWS_BF16_SPLIT)
        return are_words_finite(tensor->data, count, 0x7f80);
    return tensor->dtype != PH_REAL || is_finite(tensor->data, count);
}

ph_status ph__tensor_list_check_finite(const struct ph__tensor_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct ph_tensor *tensor = &list->tensors[i];
        if (!is_tensor_finite(tensor))
            return ph_fail(PH_ERROR_DATA, "'%s' holds a number that is not finite", tensor->name);
    }
    return PH_OK;
}

/* ---- digest -------------------------------------------------------------------------------------------- */

static int compare_name(const void *a, const void *b)
{
    const struct ph_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static ph_status digest_bytes(void *digest, const void *bytes, size_t size)
{
    return ph__digest_update(digest, bytes, size);
}

/* "name\nF32 2 20 16\n", then the bytes */
static ph_status digest_tensor(struct ph_digest *digest, const struct ph_tensor *tensor)
{
    char head[128];
    int length = snprintf(head, sizeof head, "\n%s %zu", ph_dtype_name(tensor->dtype), tensor->shape.rank);
    for (size_t i = 0; i < tensor->shape.rank; i++)
        length += snprintf(head + length, sizeof head - (size_t)length, " %zu", tensor->shape.dims[i]);
    length += snprintf(head + length, sizeof head - (size_t)length, "\n");
    PH_TRY(ph__digest_update(digest, tensor->name, strlen(tensor->name)));
    PH_TRY(ph__digest_update(digest, head, (size_t)length));
    return ph__tensor_visit_bytes(tensor, digest_bytes, digest);
}

static ph_status digest_tensors(const struct ph_tensor *tensors, size_t count, char hex_out[65])
{
    struct ph_digest *digest;
    PH_TRY(ph__digest_create(&digest));
    ph_status status = PH_OK;
    for (size_t i = 0; status == PH_OK && i < count; i++)
        status = digest_tensor(digest, &tensors[i]);
    if (status == PH_OK)
        status = ph__digest_finish(digest, hex_out);
    ph__digest_destroy(digest);
    return status;
}

ph_status ph__tensor_list_digest(struct ph__tensor_list *list, char hex_out[65])
{
    qsort(list->tensors, list->count, sizeof *list->tensors, compare_name);
    return digest_tensors(list->tensors, list->count, hex_out);
}

/* ---- loading ------------------------------------------------------------------------------------------- */

static bool fits(const struct ph_tensor *found, const struct ph_tensor *wanted)
{
    bool is_fit = ph__dtype_converts(found->dtype, wanted->dtype) && found->shape.rank == wanted->shape.rank;
    for (size_t i = 0; is_fit && i < found->shape.rank; i++)
        is_fit = found->shape.dims[i] == wanted->shape.dims[i];
    return is_fit;
}

/* "F32 (20,16)" */
static void describe(const struct ph_tensor *tensor, char text[128])
{
    int length = snprintf(text, 128, "%s (", ph_dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->shape.rank; i++)
        length +=
            snprintf(text + length, 128 - (size_t)length, "%s%zu", i > 0 ? "," : "", tensor->shape.dims[i]);
    snprintf(text + length, 128 - (size_t)length, ")");
}

static ph_status check_tensor(
    const char *path, const struct ph_safetensors *file, const struct ph_tensor *wanted, size_t *index_out)
{
    const size_t index = ph__safetensors_find(file, wanted->name);
    if (index == ph__safetensors_num_tensors(file))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model's tensor '%s' is missing", path, wanted->name);
    const struct ph_tensor found = ph__safetensors_tensor(file, index);
    if (!fits(&found, wanted)) {
        char found_text[128], wanted_text[128];
        describe(&found, found_text);
        describe(wanted, wanted_text);
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' is %s, but the model's is %s", path,
            wanted->name, found_text, wanted_text);
    }
    *index_out = index;
    return PH_OK;
}

/* Every tensor of the model is in the file and as many as there; then the first one that is the file's alone.
 */
static ph_status check_surplus(
    const char *path, const struct ph_safetensors *file, const size_t *indices, size_t count)
{
    const size_t num_in_file = ph__safetensors_num_tensors(file);
    for (size_t i = 0; num_in_file > count && i < num_in_file; i++) {
        bool is_known = false;
        for (size_t j = 0; !is_known && j < count; j++)
            is_known = indices[j] == i;
        if (!is_known)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model has no tensor '%s'", path,
                ph__safetensors_tensor(file, i).name);
    }
    return PH_OK;
}

static ph_status check_tensors(
    const struct ph__tensor_list *list, const char *path, const struct ph_safetensors *file, size_t *indices)
{
    PH_TRY(ph__safetensors_check_seal(file));
    for (size_t i = 0; i < list->count; i++)
        PH_TRY(check_tensor(path, file, &list->tensors[i], &indices[i]));
    return check_surplus(path, file, indices, list->count);
}

static ph_status read_tensors(
    const struct ph__tensor_list *list, const struct ph_safetensors *file, const size_t *indices)
{
    for (size_t i = 0; i < list->count; i++) {
        ph_status status = ph__tensor_read(&list->tensors[i], file, indices[i]);
        if (status != PH_OK)
            return ph_fail(status, "%s; the model is loaded in part and must not be used", ph_error_text());
    }
    return PH_OK;
}

ph_status ph__tensor_list_load(const struct ph__tensor_list *list, const char *path)
{
    struct ph_safetensors *file;
    PH_TRY(ph__safetensors_open(path, &file));
    size_t *indices = calloc(list->count + 1, sizeof *indices);
    ph_status status = indices != NULL ? PH_OK : ph_fail(PH_ERROR_MEMORY, "no memory to load %s", path);
    if (status == PH_OK)
        status = check_tensors(list, path, file, indices);
    if (status == PH_OK)
        status = read_tensors(list, file, indices);
    free(indices);
    ph__safetensors_close(file);
    return status;
}
