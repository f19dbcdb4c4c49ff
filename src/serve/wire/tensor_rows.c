#include "serve/wire/tensor_rows.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"

#define LINES "lines"

#define NAME_OF(tensor) (int)ph__min((tensor)->name.size, 64), (tensor)->name.bytes

/* ---- matching ---- */

struct match {
    const struct ph_session *session;
    struct ph__tensor_rows rows;
    const struct ph__tensor *first; /* the tensor that said how many rows there are; NULL: none yet */
};

enum role { ROLE_VALUE, ROLE_LIST_VALUES, ROLE_LIST_OFFSETS, ROLE_LIST_WEIGHTS, NUM_ROLES };

/* Finds the column that a tensor belongs to by its name, and the tensor's role in it. Returns SIZE_MAX
 * without one. A column of the very name comes first. */
static size_t find_column(const struct ph__name_index *index, struct ph__bytes name, enum role *role_out)
{
    static const char *const endings[NUM_ROLES] = {"", "__values", "__offsets", "__weights"};
    for (size_t role = 0; role < NUM_ROLES; role++) {
        const size_t ending = strlen(endings[role]);
        if (name.size <= ending || memcmp(name.bytes + name.size - ending, endings[role], ending) != 0)
            continue;
        const size_t column = ph__name_index_find_bytes(index, name.bytes, name.size - ending);
        if (column != PH_NO_NAME) {
            *role_out = (enum role)role;
            return column;
        }
    }
    return SIZE_MAX;
}

bool ph__tensor_rows_has(const struct ph__name_index *columns, struct ph__bytes name)
{
    enum role role;
    return find_column(columns, name, &role) != SIZE_MAX;
}

/* Notes the number of rows that a tensor speaks for. */
static ph_status agree(struct match *match, const struct ph__tensor *tensor, size_t num_rows)
{
    if (match->first == NULL) {
        match->first = tensor;
        match->rows.num_rows = num_rows;
    }
    if (num_rows == match->rows.num_rows)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "tensor '%.*s' has %zu rows, but '%.*s' has %zu", NAME_OF(tensor), num_rows,
        NAME_OF(match->first), match->rows.num_rows);
}

/* Takes a tensor of one value a row: shape [B] or [B,1]. */
static ph_status agree_value(struct match *match, const struct ph__tensor *tensor)
{
    const bool is_row = tensor->num_dims == 1 || (tensor->num_dims == 2 && tensor->dims[1] == 1);
    if (!is_row)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': the shape must be [B] or [B,1]", NAME_OF(tensor));
    return agree(match, tensor, tensor->count);
}

static ph_status add_role(struct match *match, const struct ph__tensor *tensor, size_t column, enum role role)
{
    struct ph__tensor_column *source = &match->rows.columns[column];
    const struct ph__tensor **members[NUM_ROLES] = {
        &source->values, &source->values, &source->offsets, &source->weights};
    if (*members[role] != NULL)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': the column is there twice", NAME_OF(tensor));
    *members[role] = tensor;
    if (role == ROLE_VALUE)
        return agree_value(match, tensor);
    if (role != ROLE_LIST_OFFSETS)
        return PH_OK;
    if (tensor->type != PH_TENSOR_INT32 && tensor->type != PH_TENSOR_INT64)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': offsets must be INT32 or INT64", NAME_OF(tensor));
    if (tensor->count == 0)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': B rows have B + 1 offsets", NAME_OF(tensor));
    return agree(match, tensor, tensor->count - 1);
}

static ph_status add_lines(struct match *match, const struct ph__tensor *tensor)
{
    if (match->session->lines.kind == PH_LINES_NONE)
        return ph_fail(PH_ERROR_DATA, "'lines': rows of this model's format are not lines of text; send a "
                                      "tensor for each column");
    if (tensor->type != PH_TENSOR_BYTES)
        return ph_fail(PH_ERROR_DATA, "'lines': the datatype must be BYTES");
    match->rows.lines = tensor;
    return agree_value(match, tensor);
}

static ph_status add_tensor(struct match *match, const struct ph__tensor *tensor)
{
    enum role role = ROLE_VALUE;
    const size_t column = find_column(&match->session->inputs.index, tensor->name, &role);
    if (column != SIZE_MAX)
        return add_role(match, tensor, column, role);
    if (ph__bytes_are(tensor->name, LINES))
        return add_lines(match, tensor);
    return ph_fail(PH_ERROR_DATA, "the model has no input '%.*s'", NAME_OF(tensor));
}

/* ---- lists ---- */

static ph_status check_offsets(const struct ph__tensor *offsets, size_t num_values)
{
    int64_t former = 0;
    for (size_t i = 0; i < offsets->count; i++) {
        const int64_t offset = ph__tensor_integer(offsets, i);
        if (offset < former || (i == 0 && offset != 0))
            return ph_fail(PH_ERROR_DATA, "tensor '%.*s': offset %zu is %lld: offsets begin at 0 and ascend",
                NAME_OF(offsets), i, (long long)offset);
        former = offset;
    }
    if ((uint64_t)former != num_values)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s' ends at %lld, but there are %zu values",
            NAME_OF(offsets), (long long)former, num_values);
    return PH_OK;
}

/* Returns the floats of a column whose only feature takes them as they are; NULL: it is another one. */
static const unsigned char *plain_floats(
    const struct ph_session *session, size_t column, const struct ph__tensor *values)
{
    const size_t first = session->inputs.first[column];
    const bool is_plain = values != NULL && values->held == PH_TENSOR_FP32 &&
                          session->inputs.first[column + 1] == first + 1 &&
                          ph__column_is_plain(session->inputs.features[first]);
    return is_plain ? values->values : NULL;
}

static ph_status check_column(
    const struct ph_session *session, size_t column, struct ph__tensor_column *source)
{
    const char *name = ph_session_column_name(session, column);
    const struct ph__tensor *values = source->values, *weights = source->weights;
    source->floats = plain_floats(session, column, values);
    if (source->offsets == NULL && weights == NULL)
        return values == NULL || values->name.size == strlen(name)
                   ? PH_OK
                   : ph_fail(PH_ERROR_DATA, "'%s__values' needs '%s__offsets'", name, name);
    if (source->offsets == NULL || values == NULL || values->name.size == strlen(name))
        return ph_fail(
            PH_ERROR_DATA, "a list of '%s' needs '%s__values' and '%s__offsets'", name, name, name);
    if ((!ph__tensor_is_integer(values) && !ph__tensor_is_text(values)) || values->type == PH_TENSOR_UINT64)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': ids must be INT64 or BYTES", NAME_OF(values));
    if (weights != NULL && (ph__tensor_is_text(weights) || weights->count != values->count))
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': there must be one number for each of %zu values",
            NAME_OF(weights), values->count);
    for (size_t f = session->inputs.first[column]; f < session->inputs.first[column + 1]; f++)
        if (!session->inputs.features[f]->is_list)
            return ph_fail(
                PH_ERROR_DATA, "column '%s' is not a list: send one value a row as '%s'", name, name);
    return check_offsets(source->offsets, values->count);
}

ph_status ph__tensor_rows_match(const struct ph_session *session, const struct ph__tensor *tensors,
    size_t num_tensors, struct ph__arena *arena, struct ph__tensor_rows *rows_out)
{
    const size_t num_columns = ph_session_num_columns(session);
    struct match match = {.session = session};
    if (num_tensors == 0)
        return ph_fail(PH_ERROR_DATA, "the request has no inputs");
    match.rows.columns = ph__arena_alloc_array(arena, num_columns, sizeof *match.rows.columns);
    if (match.rows.columns == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tensors; i++)
        PH_TRY(add_tensor(&match, &tensors[i]));
    if (match.rows.lines != NULL && num_tensors > 1)
        return ph_fail(PH_ERROR_DATA, "'lines' must be the only input: its lines have all columns");
    for (size_t i = 0; i < num_columns; i++)
        PH_TRY(check_column(session, i, &match.rows.columns[i]));
    *rows_out = match.rows;
    return PH_OK;
}

/* ---- encoding ---- */

static ph_status encode_value(
    const struct ph__tensor *values, struct ph__row_encoder *row, const struct ph__column *feature, size_t at)
{
    if (ph__tensor_is_text(values)) {
        const struct ph__bytes text = ph__tensor_text(values, at);
        return ph__row_text(row, feature, text.bytes, text.size);
    }
    if (!ph__tensor_is_integer(values))
        return ph__row_real(row, feature, ph__tensor_real(values, at));
    const int64_t integer = ph__tensor_integer(values, at);
    return values->type == PH_TENSOR_UINT64 ? ph__row_unsigned(row, feature, (uint64_t)integer)
                                            : ph__row_integer(row, feature, integer);
}

static ph_status encode_list(const struct ph__tensor_column *source, struct ph__row_encoder *row,
    const struct ph__column *feature, size_t at)
{
    const size_t first = (size_t)ph__tensor_integer(source->offsets, at);
    const size_t end = (size_t)ph__tensor_integer(source->offsets, at + 1);
    for (size_t i = first; i < end; i++) {
        const float weight = source->weights != NULL ? (float)ph__tensor_real(source->weights, i) : 1;
        if (ph__tensor_is_text(source->values)) {
            const struct ph__bytes id = ph__tensor_text(source->values, i);
            PH_TRY(ph__row_item(row, feature, id.bytes, id.size, weight));
        } else {
            PH_TRY(ph__row_integer_item(row, feature, ph__tensor_integer(source->values, i), weight));
        }
    }
    return PH_OK;
}

static ph_status encode_cell(const struct ph__tensor_column *source, struct ph__row_encoder *row,
    const struct ph__column *feature, size_t at)
{
    if (source->values == NULL)
        return ph__row_text(row, feature, "", 0); /* a blank has a value where one is missing */
    return source->offsets != NULL ? encode_list(source, row, feature, at)
                                   : encode_value(source->values, row, feature, at);
}

/* Encodes a finite float of a column that has floats. */
static inline bool encode_float(const struct ph__tensor_column *source, struct ph__row_encoder *row,
    const struct ph__column *feature, size_t at)
{
    float number;
    memcpy(&number, source->floats + at * sizeof number, sizeof number);
    if (!isfinite(number))
        return false;
    ph__row_words(row)[row->encoder->dense_word + feature->slot] = ph__word_from_float(number);
    return true;
}

static ph_status encode_columns(const struct ph__tensor_rows *rows, const struct ph__inputs *inputs,
    struct ph__context *context, size_t row)
{
    struct ph__row_encoder *encoder = &context->row;
    PH_TRY(ph__row_begin(encoder, &context->rows));
    for (size_t i = 0; i < inputs->index.count; i++) {
        const struct ph__tensor_column *source = &rows->columns[i];
        const size_t first = inputs->first[i];
        if (source->floats != NULL && encode_float(source, encoder, inputs->features[first], row))
            continue;
        for (size_t f = first; f < inputs->first[i + 1]; f++)
            PH_TRY(encode_cell(source, encoder, inputs->features[f], row));
    }
    return ph__row_commit(&context->row);
}

ph_status ph__tensor_rows_encode(const struct ph__tensor_rows *rows, const struct ph_session *session,
    struct ph__context *context, size_t row)
{
    ph_status status;
    if (rows->lines != NULL) {
        const struct ph__bytes line = ph__tensor_text(rows->lines, row);
        status = ph__lines_encode(&session->lines, context, line.bytes, line.size);
    } else {
        status = encode_columns(rows, &session->inputs, context, row);
    }
    return status == PH_OK ? PH_OK : ph_fail(status, "row %zu: %s", row, ph_error_text());
}
