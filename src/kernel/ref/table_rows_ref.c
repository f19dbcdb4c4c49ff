/* Rows of a table as numbers, and back, the specification. */
#include "kernel/kernel_list.h"

#include <string.h>

#include "tensor/float16.h"
#include "tensor/row_format.h"

static const uint16_t *words_of(const struct ph__table_rows *table, size_t row)
{
    return (const uint16_t *)table->memory + row * table->dim;
}

void ph__table_rows_load_ref(
    const struct ph__table_rows *table, size_t first, size_t count, ph_real *numbers_out)
{
    const size_t begin = first * table->dim, elements = count * table->dim;
    const unsigned char *rows =
        (const unsigned char *)table->memory + first * ph__row_bytes(table->format, table->dim);
    for (size_t i = 0; i < elements; i++)
        numbers_out[i] = table->format == PH_ROWS_BF16_SPLIT
                             ? (ph_real)ph__join_float(words_of(table, first)[i], table->low[begin + i])
                             : ph__row_number(table->format, elements, rows, i);
}

static void store_by_chance(
    const struct ph__table_rows *table, const struct ph__row_slice *slice, size_t row, const ph_real *numbers)
{
    const size_t begin_row = slice > table->slices ? slice[-1].end_row : 0;
    const size_t logical_row = row - begin_row + slice->first_row;
    const struct ph__rng_key key = {table->seed, table->step, slice->stream};
    uint16_t *words = (uint16_t *)table->memory + row * table->dim;
    struct ph__rng_block block = {{0}};
    for (size_t d = 0; d < table->dim; d++) {
        const size_t element = slice->first_column + d;
        if (d == 0 || element % 8 == 0)
            block = ph__rng_block(&key, logical_row, (uint32_t)(element / 8));
        const uint32_t random = block.word[element % 8 / 2] >> 16 * (element % 2) & 0xffff;
        words[d] = table->format == PH_ROWS_FP16 ? ph__half_by_chance((float)numbers[d], random)
                                                 : ph__bfloat_by_chance((float)numbers[d], random);
    }
}

void ph__table_rows_store_ref(
    const struct ph__table_rows *table, size_t first, size_t count, const ph_real *numbers)
{
    const struct ph__row_slice *slice = table->slices;
    if (table->format == PH_ROWS_FP32 || table->format == PH_ROWS_BF16_SPLIT) {
        const size_t row_bytes = ph__row_bytes(table->format, table->dim);
        ph__rows_encode(table->format, count, table->dim, numbers,
            (unsigned char *)table->memory + first * row_bytes,
            table->low != NULL ? table->low + first * table->dim : NULL);
        return;
    }
    for (size_t row = first; row < first + count; row++) {
        while (row >= slice->end_row)
            slice++;
        store_by_chance(table, slice, row, numbers + (row - first) * table->dim);
    }
}
