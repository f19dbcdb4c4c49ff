/* Embeddings: rows of the model's tables, for ids that a program hands over as cells. */
#include <string.h>

#include "base/text/utf8.h"
#include "serve/session.h"
#include "store/store.h"
#include "tensor/float16.h"
#include "tensor/row_format.h"

/* Rows of a feature in a table. */
struct rows_place {
    const struct ph_parameter *table; /* NULL: none */
    size_t first_row;
};

static const struct ph__column *find_feature(const struct ph_encoder *encoder, const char *feature)
{
    for (size_t i = 0; i < encoder->num_sparse; i++)
        if (strcmp(encoder->sparse_columns[i]->name, feature) == 0)
            return encoder->sparse_columns[i];
    return NULL;
}

/* Tells whether a slice is of the feature `name`: both slice and table have their scope before them. */
static bool is_slice_of(const struct ph_parameter *table, const char *slice, const char *name)
{
    const size_t scope_bytes = (size_t)(ph__last_word(table->name, '.') - table->name);
    return strncmp(slice, table->name, scope_bytes) == 0 && strcmp(slice + scope_bytes, name) == 0;
}

static size_t dim_of(const struct ph_parameter *table)
{
    return table->shape.dims[1];
}

/* Finds the widest table with rows for the feature, in the order in which the model declares its tables. */
static struct rows_place find_rows(const struct ph_session *session, const struct ph__column *column)
{
    const struct ph_encoder *encoder = session->model.encoder;
    const struct ph_store *store = session->model.store;
    const char *owner = encoder->sparse[encoder->sparse[column->slot].owner].name;
    struct rows_place widest = {.table = NULL};
    for (size_t i = 0; i < ph__store_num_parameters(store); i++) {
        const struct ph_parameter *table = ph__store_parameter(store, i);
        size_t first_row = 0;
        if (!table->is_table || (widest.table != NULL && dim_of(table) <= dim_of(widest.table)))
            continue;
        for (size_t k = 0; k < table->num_slices; first_row += table->slices[k++].num_rows)
            if (is_slice_of(table, table->slices[k].name, owner))
                widest = (struct rows_place){table, first_row};
    }
    return widest;
}

size_t ph_session_embedding_dim(const struct ph_session *session, const char *feature)
{
    const struct ph__column *column = find_feature(session->model.encoder, feature);
    const struct rows_place place = column != NULL ? find_rows(session, column) : (struct rows_place){0};
    return place.table != NULL ? dim_of(place.table) : 0;
}

struct embed_request {
    struct ph__request base;
    const struct ph__column *column;
    struct rows_place place;
    const struct ph_cell *cells; /* (num_ids) */
    float *vectors;              /* (num_ids, dim) */
};

static void read_row(const struct ph_parameter *table, size_t row, float *vector)
{
    const size_t dim = dim_of(table);
    const char *from = (const char *)table->memory + row * ph__row_bytes(table->row_format, dim);
    for (size_t d = 0; d < dim; d++)
        vector[d] = table->low != NULL
                        ? ph__join_float(((const uint16_t *)from)[d], table->low[row * dim + d])
                        : (float)ph__row_number(table->row_format, dim, from, d);
}

/* Encodes a row that has only this cell, and gives the number of its ids and the first id's row. */
static ph_status encode_cell(const struct embed_request *request, struct ph__context *context, size_t number,
    size_t *num_ids_out, size_t *row_out)
{
    const struct ph_encoder *encoder = context->encoder;
    PH_TRY(ph__row_begin(&context->row, &context->rows));
    PH_TRY(ph__row_cell(&context->row, request->column, &request->cells[number]));
    PH_TRY(ph__row_commit(&context->row));
    const uint32_t *words = context->rows.words + context->rows.starts[context->rows.num_rows - 1];
    const size_t word = words[encoder->sparse_word + request->column->slot];
    *num_ids_out = request->column->is_list ? word : 1;
    *row_out = request->column->is_list && word > 0 ? words[encoder->num_fixed_words] : word;
    return PH_OK;
}

static ph_status embed_cell(struct ph__request *base, struct ph__context *context, size_t number)
{
    const struct embed_request *request = (const struct embed_request *)base;
    float *vector = request->vectors + number * dim_of(request->place.table);
    size_t num_ids, row;
    const ph_status status = encode_cell(request, context, number, &num_ids, &row);
    if (status != PH_OK)
        return ph_fail(status, "id %zu: %s", number, ph_error_text());
    if (num_ids > 1)
        return ph_fail(PH_ERROR_DATA, "id %zu: field '%s': the cell has %zu ids; give it one", number,
            request->column->name, num_ids);
    if (num_ids == 1)
        read_row(request->place.table, request->place.first_row + row, vector);
    else
        memset(vector, 0, dim_of(request->place.table) * sizeof *vector);
    return PH_OK;
}

ph_status ph_session_embed(struct ph_session *session, const char *feature, size_t num_ids,
    const struct ph_cell *cells, float *vectors)
{
    struct embed_request request = {.base = {num_ids, embed_cell},
        .column = find_feature(session->model.encoder, feature),
        .cells = cells,
        .vectors = vectors};
    if (request.column != NULL)
        request.place = find_rows(session, request.column);
    if (request.place.table == NULL)
        return ph_fail(PH_ERROR_USAGE, "the model has no embeddings of a feature '%s'", feature);
    return ph__session_run(session, &request.base, NULL);
}
