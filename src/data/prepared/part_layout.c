#include "data/prepared/part_layout.h"

#include <stdlib.h>
#include <string.h>

ph_status ph__row_layout_init(struct ph__row_layout *layout, const struct ph_encoder *encoder)
{
    *layout = (struct ph__row_layout){.num_fixed_words = encoder->num_fixed_words};
    layout->limits = calloc(encoder->num_fixed_words + 1, sizeof *layout->limits);
    layout->lists = calloc(encoder->num_sparse + 1, sizeof *layout->lists);
    if (layout->limits == NULL || layout->lists == NULL) {
        ph__row_layout_fini(layout);
        return ph_fail(PH_ERROR_MEMORY, "no memory for the layout of %zu words", encoder->num_fixed_words);
    }
    for (size_t slot = 0; slot < encoder->num_sparse; slot++) {
        const struct ph__column *column = encoder->sparse_columns[slot];
        size_t word = encoder->sparse_word + slot;
        if (column->is_list)
            layout->lists[layout->num_lists++] = (struct ph__row_list){.word = (uint32_t)word,
                .limit = (uint32_t)column->num_rows,
                .is_weighted = column->is_weighted};
        else
            layout->limits[word] = (uint32_t)column->num_rows;
    }
    return PH_OK;
}

void ph__row_layout_fini(struct ph__row_layout *layout)
{
    free(layout->limits);
    free(layout->lists);
    memset(layout, 0, sizeof *layout);
}

size_t ph__row_layout_num_streams(const struct ph__row_layout *layout)
{
    size_t num_streams = layout->num_fixed_words + layout->num_lists;
    for (size_t i = 0; i < layout->num_lists; i++)
        num_streams += layout->lists[i].is_weighted;
    return num_streams;
}
