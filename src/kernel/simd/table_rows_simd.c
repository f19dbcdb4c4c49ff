/* Loads a table's rows as numbers, and stores numbers as rows. */
#include <string.h>

#include "kernel/simd/simd.h"
#include "kernel/simd/table_numbers.h"

void PH_SIMD(table_rows_load)(
    const struct ph__table_rows *table, size_t first, size_t count, float *numbers_out)
{
    const size_t place = first * table->dim, elements = count * table->dim;
    switch (table->format) {
    case PH_ROWS_FP16:
        load_numbers(table, PH_ROWS_FP16, place, elements, numbers_out);
        break;
    case PH_ROWS_BF16:
        load_numbers(table, PH_ROWS_BF16, place, elements, numbers_out);
        break;
    case PH_ROWS_BF16_SPLIT:
        load_numbers(table, PH_ROWS_BF16_SPLIT, place, elements, numbers_out);
        break;
    default:
        memcpy(numbers_out, (const float *)table->memory + place, elements * sizeof *numbers_out);
    }
}

PH_INLINE void store_rows(const struct ph__table_rows *table, enum ph_row_format format, size_t first,
    size_t count, const float *numbers)
{
    struct chance chance;
    uint32_t rows[DRAWN_BLOCKS];
    start(&chance, table);
    for (size_t i = 0, drawn = 0, next = 0; i < count; i++) {
        if (chance.together > 0 && i == next) {
            for (size_t k = 0; k < DRAWN_BLOCKS && i + k < count; k++)
                rows[k] = (uint32_t)(first + i + k);
            drawn = i;
            next += draw_rows(&chance, rows, count - i);
        }
        store_row(&chance, format, first + i, numbers + i * table->dim,
            chance.together > 0 ? chance.words + (i - drawn) * chance.row_words : NULL);
    }
}

void PH_SIMD(table_rows_store)(
    const struct ph__table_rows *table, size_t first, size_t count, const float *numbers)
{
    const size_t place = first * table->dim, elements = count * table->dim;
    switch (table->format) {
    case PH_ROWS_FP16:
        store_rows(table, PH_ROWS_FP16, first, count, numbers);
        break;
    case PH_ROWS_BF16:
        store_rows(table, PH_ROWS_BF16, first, count, numbers);
        break;
    case PH_ROWS_BF16_SPLIT:
        store_split(table, place, elements, numbers);
        break;
    default:
        memcpy((float *)table->memory + place, numbers, elements * sizeof *numbers);
    }
}
