#include "store/tensor_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "store/tensor_part.h"
#include "tensor/float16.h"
#include "tensor/row_format.h"

#define PIECE_BYTES ((size_t)1 << 20) /* of rows that are converted while they are read */
enum { JOINED_NUMBERS = 4096 };

/* ---- as a file has it -------------------------------------------------------------------------------------- */

ph_status ph__tensor_visit_bytes(const struct ph_tensor *tensor, ph_bytes_visit visit, void *context)
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

/* ---- and back ---------------------------------------------------------------------------------------------- */

static bool is_number(enum ph_dtype dtype)
{
    return dtype == PH_REAL || dtype == PH_F16 || dtype == PH_BF16;
}

bool ph__dtype_converts(enum ph_dtype from, enum ph_dtype to)
{
    return from == to || (is_number(from) && is_number(to));
}

/* A tensor on its way in, `piece_rows` of its rows at once. */
struct conversion {
    const struct ph_tensor *tensor;
    size_t rows, columns, piece_rows;
    enum ph_dtype dtype; /* of the rows that are read */
    ph_rows_read read;
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
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph_rows_read read, const void *context)
{
    const struct ph_area area = ph__shape_area(&tensor->shape);
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
        return ph_fail(PH_ERROR_MEMORY, "no memory to convert '%s'", tensor->name);
    conversion.numbers = (ph_real *)((char *)conversion.bytes + conversion.piece_rows * bytes);
    const ph_status status = convert_rows(&conversion);
    free(conversion.bytes);
    return status;
}

ph_status ph__tensor_fill(
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph_rows_read read, const void *context)
{
    const bool is_array = tensor->row_format == PH_ROWS_FP32 || tensor->row_format == PH_ROWS_FP16 ||
                          tensor->row_format == PH_ROWS_BF16;
    if (is_array && dtype == tensor->dtype)
        return read(context, 0, ph__shape_area(&tensor->shape).num_rows, tensor->data);
    return convert(tensor, dtype, read, context);
}
