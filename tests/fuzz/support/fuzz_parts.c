#include "support/fuzz_parts.h"

const struct ph__row_layout *fuzz_layout(void)
{
    static uint32_t limits[] = {0, 0, 50, 0, 0};
    static struct ph__row_list lists[] = {
        {.word = 3, .limit = 1000}, {.word = 4, .limit = 7, .is_weighted = true}};
    static const struct ph__row_layout layout = {
        .num_fixed_words = 5, .limits = limits, .lists = lists, .num_lists = 2};
    return &layout;
}

void fuzz_check_rows(const struct ph__rows *rows, size_t first)
{
    const struct ph__row_layout *layout = fuzz_layout();
    for (size_t i = first; i < rows->num_rows; i++) {
        const uint32_t *row = rows->words + rows->starts[i];
        size_t next = layout->num_fixed_words;
        for (size_t word = 0; word < layout->num_fixed_words; word++)
            fuzz_require(layout->limits[word] == 0 || row[word] < layout->limits[word]);
        for (size_t l = 0; l < layout->num_lists; l++) {
            const struct ph__row_list *list = &layout->lists[l];
            const size_t length = row[list->word];
            fuzz_require(length <= FUZZ_MAX_WORDS);
            for (size_t j = 0; j < length; j++)
                fuzz_require(row[next + j] < list->limit);
            next += length << list->is_weighted;
        }
        fuzz_require(rows->starts[i] + next == rows->starts[i + 1]);
    }
}
