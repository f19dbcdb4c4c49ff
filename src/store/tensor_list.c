#include "store/tensor_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "store/checkpoint_folder.h"
#include "store/tensor_bytes.h"
#include "store/tensor_part.h"

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

/* One number a row of the tensor. Every part of some columns has those of its rows: first_column tells them apart. */
static void keep_rows(struct ph_tensor *tensor)
{
    if (tensor->shape.rank < 2) /* one row to the optimizer */
        tensor->shape.dims[0] = 1;
    tensor->shape.rank = 1;
    if (ph__tensor_is_part(tensor))
        tensor->whole.rank = 1;
    if (tensor->first_column == 0 && tensor->whole.dims[0] == tensor->shape.dims[0])
        tensor->whole.rank = 0;
}

/* One slot of one logical tensor, or of the part of it that there is; its numbers begin at *data, which moves behind
 * them. */
static ph_status add_slot(
    struct ph__tensor_list *list, const struct ph_slot *slot, const struct ph_tensor *weights, ph_real **data)
{
    struct ph_tensor tensor = {.dtype = PH_REAL,
        .shape = weights->shape,
        .data = *data,
        .first_row = weights->first_row,
        .first_column = weights->first_column,
        .whole = weights->whole};
    if (slot->is_per_row)
        keep_rows(&tensor);
    tensor.name = ph__arena_printf(&list->arena, "slot.%s:%s", slot->name, weights->name);
    if (tensor.name == NULL)
        return PH_ERROR_MEMORY;
    *data += ph_shape_elements(&tensor.shape);
    return ph__tensor_list_add(list, &tensor);
}

static ph_status add_parameter_slots(struct ph__tensor_list *list, const struct ph_parameter *parameter)
{
    for (size_t s = 0; s < parameter->num_slots; s++) {
        const struct ph_slot *slot = &parameter->slots[s];
        const struct ph_tensor dense = {.name = parameter->name, .shape = parameter->shape};
        ph_real *data = slot->data;
        if (!parameter->is_table)
            PH_TRY(add_slot(list, slot, &dense, &data));
        for (size_t i = 0; parameter->is_table && i < parameter->num_slices; i++) {
            const struct ph_tensor slice =
                ph__slice_tensor(&parameter->slices[i], &parameter->parts[i], parameter->shape.dims[1]);
            PH_TRY(add_slot(list, slot, &slice, &data));
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

/* "name\nF32 2 20 16\n" */
ph_status ph__digest_tensor_head(struct ph_digest *digest, const struct ph_tensor *tensor)
{
    char head[128];
    int length = snprintf(head, sizeof head, "\n%s %zu", ph_dtype_name(tensor->dtype), tensor->shape.rank);
    for (size_t i = 0; i < tensor->shape.rank; i++)
        length += snprintf(head + length, sizeof head - (size_t)length, " %zu", tensor->shape.dims[i]);
    length += snprintf(head + length, sizeof head - (size_t)length, "\n");
    PH_TRY(ph__digest_update(digest, tensor->name, strlen(tensor->name)));
    return ph__digest_update(digest, head, (size_t)length);
}

static ph_status digest_tensor(struct ph_digest *digest, const struct ph_tensor *tensor)
{
    PH_TRY(ph__digest_tensor_head(digest, tensor));
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

ph_status ph__tensor_list_load(const struct ph__tensor_list *list, const char *path)
{
    struct ph_folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    ph_status status = ph__folder_check_seals(folder, 0, 1);
    if (status == PH_OK)
        status = ph__folder_check_tensors(folder, list->count, list->tensors);
    if (status == PH_OK)
        status = ph__folder_check_no_others(folder, list->count, list->tensors);
    if (status == PH_OK)
        status = ph__folder_load(folder, list->count, list->tensors);
    ph__folder_close(folder);
    return status;
}
