#include "serve/inputs.h"

#include <stdlib.h>
#include <string.h>

static bool is_feature(const struct ph__column *column)
{
    return column->kind == PH_FIELD_ID || column->kind == PH_FIELD_DENSE;
}

static bool is_known(const struct ph__inputs *inputs, const char *name)
{
    for (size_t i = 0; i < inputs->num_columns; i++)
        if (strcmp(inputs->names[i], name) == 0)
            return true;
    return false;
}

/* One more column, with all features that are made of it. */
static void add_column(struct ph__inputs *inputs, const struct ph_encoder *encoder, const char *name)
{
    size_t next = inputs->first[inputs->num_columns];
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (is_feature(column) && strcmp(column->from, name) == 0)
            inputs->features[next++] = column;
    }
    inputs->names[inputs->num_columns++] = name;
    inputs->first[inputs->num_columns] = next;
}

ph_status ph__inputs_init(const struct ph_encoder *encoder, struct ph__inputs *inputs_out)
{
    const size_t most = encoder->num_columns + 1;
    struct ph__inputs inputs = {
        .names = calloc(most, sizeof(const char *)),
        .first = calloc(most, sizeof *inputs.first),
        .features = calloc(most, sizeof(const struct ph__column *)),
    };
    if (inputs.names == NULL || inputs.first == NULL || inputs.features == NULL) {
        ph__inputs_fini(&inputs);
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu columns", encoder->num_columns);
    }
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (is_feature(column) && !is_known(&inputs, column->from))
            add_column(&inputs, encoder, column->from);
    }
    *inputs_out = inputs;
    return PH_OK;
}

void ph__inputs_fini(struct ph__inputs *inputs)
{
    free(inputs->names);
    free(inputs->first);
    free(inputs->features);
    *inputs = (struct ph__inputs){0};
}

ph_status ph__inputs_encode(const struct ph__inputs *inputs, struct ph__row_encoder *row,
    const struct ph_cell *cells, struct ph__rows *rows)
{
    PH_TRY(ph__row_begin(row, rows));
    for (size_t i = 0; i < inputs->num_columns; i++)
        for (size_t f = inputs->first[i]; f < inputs->first[i + 1]; f++)
            PH_TRY(ph__row_cell(row, inputs->features[f], &cells[i]));
    return ph__row_commit(row);
}
