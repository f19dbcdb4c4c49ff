#include "serve/inputs.h"

#include <stdlib.h>

static bool is_feature(const struct ph__column *column)
{
    return column->kind == PH_FIELD_ID || column->kind == PH_FIELD_DENSE;
}

/* One more column, with all features that are made of it. */
static ph_status add_column(struct ph__inputs *inputs, const struct ph_encoder *encoder, const char *name)
{
    size_t next = inputs->first[inputs->index.count], count;
    const struct ph__column *const *made = ph__encoder_made_from(encoder, name, &count);
    PH_TRY(ph__name_index_add(&inputs->index, name));
    for (size_t i = 0; i < count; i++)
        if (is_feature(made[i]))
            inputs->features[next++] = made[i];
    inputs->first[inputs->index.count] = next;
    return PH_OK;
}

static ph_status add_columns(struct ph__inputs *inputs, const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (is_feature(column) && ph__name_index_find(&inputs->index, column->from) == PH_NO_NAME)
            PH_TRY(add_column(inputs, encoder, column->from));
    }
    return PH_OK;
}

ph_status ph__inputs_init(const struct ph_encoder *encoder, struct ph__inputs *inputs_out)
{
    const size_t most = encoder->num_columns + 1;
    struct ph__inputs inputs = {
        .first = calloc(most, sizeof *inputs.first),
        .features = calloc(most, sizeof(const struct ph__column *)),
    };
    const ph_status status =
        inputs.first != NULL && inputs.features != NULL
            ? add_columns(&inputs, encoder)
            : ph_fail(PH_ERROR_MEMORY, "no memory for %zu columns", encoder->num_columns);
    if (status == PH_OK)
        *inputs_out = inputs;
    else
        ph__inputs_fini(&inputs);
    return status;
}

void ph__inputs_fini(struct ph__inputs *inputs)
{
    ph__name_index_fini(&inputs->index);
    free(inputs->first);
    free(inputs->features);
    *inputs = (struct ph__inputs){0};
}

ph_status ph__inputs_encode(const struct ph__inputs *inputs, struct ph__row_encoder *row,
    const struct ph_cell *cells, struct ph__rows *rows)
{
    PH_TRY(ph__row_begin(row, rows));
    for (size_t i = 0; i < inputs->index.count; i++)
        for (size_t f = inputs->first[i]; f < inputs->first[i + 1]; f++)
            PH_TRY(ph__row_cell(row, inputs->features[f], &cells[i]));
    return ph__row_commit(row);
}
