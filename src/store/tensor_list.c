#include "store/tensor_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "store/checkpoint_folder.h"
#include "store/tensor_shard.h"
#include "tensor/float16.h"
#include "tensor/row_format.h"

#define PIECE_BYTES ((size_t)1 << 20) /* rows that are converted at once */
enum { JOINED_NUMBERS = 4096 };

/* ---- bytes of a tensor, for a file ---- */

ph_status ph__tensor_visit_bytes(const struct ph_tensor *tensor, ph__bytes_visit visit, void *context)
{
    const size_t elements = ph_shape_elements(&tensor->shape);
    if (tensor->row_format != PH_ROWS_BF16_SPLIT)
        return visit(context, tensor->data, elements * ph_dtype_size(tensor->dtype));
    ph_real piece[JOINED_NUMBERS];
    for (size_t first = 0; first < elements; first += JOINED_NUMBERS) {
        const size_t count = elements - first < JOINED_NUMBERS ? elements - first : JOINED_NUMBERS;
        for (size_t i = 0; i < count; i++)
            piece[i] =
                (ph_real)ph__join_float(((const uint16_t *)tensor->data)[first + i], tensor->low[first + i]);
        PH_TRY(visit(context, piece, count * sizeof *piece));
    }
    return PH_OK;
}

/* ---- filling from a file ---- */

static bool is_number(enum ph_dtype dtype)
{
    return dtype == PH_REAL || dtype == PH_F16 || dtype == PH_BF16;
}

bool ph__dtype_converts(enum ph_dtype from, enum ph_dtype to)
{
    return from == to || (is_number(from) && is_number(to));
}

/* A conversion of a tensor, `piece_rows` of its rows at once. */
struct conversion {
    const struct ph_tensor *tensor;
    size_t rows, columns, piece_rows;
    enum ph_dtype dtype; /* of the rows before conversion */
    ph__rows_read read;
    const void *context;
    void *bytes;
    ph_real *numbers;
};

static void decode(const struct conversion *conversion, size_t count)
{
    const enum ph_row_format format = conversion->dtype == PH_F16    ? PH_ROWS_FP16
                                      : conversion->dtype == PH_BF16 ? PH_ROWS_BF16
                                                                     : PH_ROWS_FP32;
    for (size_t i = 0; i < count; i++)
        conversion->numbers[i] = ph__row_number(format, count, conversion->bytes, i);
}

static ph_status convert_rows(const struct conversion *conversion)
{
    const struct ph_tensor *tensor = conversion->tensor;
    const size_t columns = conversion->columns, row_bytes = ph__row_bytes(tensor->row_format, columns);
    for (size_t row = 0; row < conversion->rows; row += conversion->piece_rows) {
        const size_t count = ph__min(conversion->rows - row, conversion->piece_rows);
        PH_TRY(conversion->read(conversion->context, row, count, conversion->bytes));
        decode(conversion, count * columns);
        ph__rows_encode(tensor->row_format, count, columns, conversion->numbers,
            (char *)tensor->data + row * row_bytes, tensor->low != NULL ? tensor->low + row * columns : NULL);
    }
    return PH_OK;
}

static ph_status convert(
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph__rows_read read, const void *context)
{
    const struct ph__area area = ph__shape_area(&tensor->shape);
    const size_t bytes = area.num_columns * sizeof(ph_real);
    struct conversion conversion = {.tensor = tensor,
        .rows = area.num_rows,
        .columns = area.num_columns,
        .piece_rows = bytes > 0 && bytes < PIECE_BYTES ? PIECE_BYTES / bytes : 1,
        .dtype = dtype,
        .read = read,
        .context = context};
    conversion.bytes = malloc(2 * conversion.piece_rows * bytes + 1);
    if (conversion.bytes == NULL)
        return ph__out_of_memory("cannot convert '%s'", tensor->name);
    conversion.numbers = (ph_real *)((char *)conversion.bytes + conversion.piece_rows * bytes);
    const ph_status status = convert_rows(&conversion);
    free(conversion.bytes);
    return status;
}

ph_status ph__tensor_fill(
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph__rows_read read, const void *context)
{
    const bool is_array = tensor->row_format == PH_ROWS_FP32 || tensor->row_format == PH_ROWS_FP16 ||
                          tensor->row_format == PH_ROWS_BF16;
    if (is_array && dtype == tensor->dtype)
        return read(context, 0, ph__shape_area(&tensor->shape).num_rows, tensor->data);
    return convert(tensor, dtype, read, context);
}

/* ---- listing ---- */

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

ph_status ph__tensor_list_add_model(
    struct ph__tensor_list *list, const struct ph_store *store, const struct ph_state *state)
{
    static const char scope[] = PH_TRAINING_SCOPE ".";
    const size_t first = list->count;
    size_t count = first;
    PH_TRY(ph__tensor_list_add_store(list, store));
    for (size_t i = first; i < list->count; i++)
        if (strncmp(list->tensors[i].name, scope, strlen(scope)) != 0)
            list->tensors[count++] = list->tensors[i];
    list->count = count;
    return state != NULL ? ph__tensor_list_add_state(list, state) : PH_OK;
}

/* Turns a slot's tensor into one of one number a row. Parts with some columns all have the numbers of their
 * rows; first_column tells the parts apart. */
static void keep_rows(struct ph_tensor *tensor)
{
    if (tensor->shape.num_dims < 2) /* the optimizer sees one row */
        tensor->shape.dims[0] = 1;
    tensor->shape.num_dims = 1;
    if (ph__tensor_is_shard(tensor))
        tensor->whole.num_dims = 1;
    if (tensor->first_column == 0 && tensor->whole.dims[0] == tensor->shape.dims[0])
        tensor->whole.num_dims = 0;
}

/* Adds one slot of a logical tensor, or of the part in the store; its numbers begin at *data, which moves
 * behind them. */
static ph_status add_slot(struct ph__tensor_list *list, const struct ph__slot *slot,
    const struct ph_tensor *weights, ph_real **data)
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
        const struct ph__slot *slot = &parameter->slots[s];
        const struct ph_tensor dense = ph__dense_tensor(parameter);
        ph_real *data = slot->data;
        if (!parameter->is_table)
            PH_TRY(add_slot(list, slot, &dense, &data));
        for (size_t i = 0; parameter->is_table && i < parameter->num_slices; i++) {
            const struct ph_tensor slice =
                ph__slice_tensor(&parameter->slices[i], &parameter->shards[i], parameter->shape.dims[1]);
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

/* ---- values ---- */

static bool is_finite(const ph_real *values, size_t count)
{
    int is_fine = 1;
    for (size_t i = 0; i < count; i++)
        is_fine &= isfinite(values[i]) != 0;
    return is_fine != 0;
}

/* Tells whether no word is infinite or NaN: such words have all bits of `exponent`. */
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
            return ph_fail(PH_ERROR_DATA, "tensor '%s' holds a number that is not finite", tensor->name);
    }
    return PH_OK;
}

/* ---- digest ---- */

static int compare_name(const void *a, const void *b)
{
    const struct ph_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static ph_status digest_bytes(void *digest, const void *bytes, size_t size)
{
    return ph__digest_update(digest, bytes, size);
}

/* Adds "name\nF32 2 20 16\n". */
ph_status ph__digest_tensor_head(struct ph__digest *digest, const struct ph_tensor *tensor)
{
    char head[128];
    int length =
        snprintf(head, sizeof head, "\n%s %zu", ph_dtype_name(tensor->dtype), tensor->shape.num_dims);
    for (size_t i = 0; i < tensor->shape.num_dims; i++)
        length += snprintf(head + length, sizeof head - (size_t)length, " %zu", tensor->shape.dims[i]);
    length += snprintf(head + length, sizeof head - (size_t)length, "\n");
    PH_TRY(ph__digest_update(digest, tensor->name, strlen(tensor->name)));
    return ph__digest_update(digest, head, (size_t)length);
}

static ph_status digest_tensor(struct ph__digest *digest, const struct ph_tensor *tensor)
{
    PH_TRY(ph__digest_tensor_head(digest, tensor));
    return ph__tensor_visit_bytes(tensor, digest_bytes, digest);
}

static ph_status digest_tensors(const struct ph_tensor *tensors, size_t count, char hex_out[65])
{
    struct ph__digest *digest;
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

/* ---- loading ---- */

ph_status ph__tensor_list_check(const struct ph__tensor_list *list, const struct ph__folder *folder)
{
    PH_TRY(ph__folder_check_tensors(folder, list->count, list->tensors));
    return ph__folder_check_no_others(folder, list->count, list->tensors);
}

ph_status ph__tensor_list_load_from(const struct ph__tensor_list *list, const struct ph__folder *folder)
{
    PH_TRY(ph__folder_check_seals(folder, 0, 1));
    PH_TRY(ph__tensor_list_check(list, folder));
    return ph__folder_load(folder, list->count, list->tensors);
}

ph_status ph__tensor_list_load(const struct ph__tensor_list *list, const char *path)
{
    struct ph__folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    const ph_status status = ph__tensor_list_load_from(list, folder);
    ph__folder_close(folder);
    return status;
}
