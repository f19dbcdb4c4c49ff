/* Cells of every kind: what is wrong with them, and which value they are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/encode/decimal.h"
#include "data/encode/row_values.h"

/* ---- lists ----------------------------------------------------------------------------------------------- */

ph_status ph__row_item(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, float weight)
{
    size_t target;
    PH_TRY(ph__row_add_item(row, column, weight, &target));
    return target == SIZE_MAX ? PH_OK : ph__encode_id(row, column, word, length, target);
}

ph_status ph__row_integer_item(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, float weight)
{
    size_t target;
    PH_TRY(ph__row_add_item(row, column, weight, &target));
    return target == SIZE_MAX ? PH_OK : ph__encode_number(row, column, number, target);
}

/* The weight is behind the last colon. */
ph_status ph__row_weighted_item(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    const char *colon = memrchr(word, ':', length);
    double weight = 1;
    if (colon != NULL) {
        size_t id_length = (size_t)(colon - word);
        if (id_length == 0 || !ph__decimal_parse(colon + 1, length - id_length - 1, &weight) ||
            !isfinite((float)weight))
            return ph__fail_cell(column, word, length, "is not id:weight, the weight a finite number");
        length = id_length;
    }
    return ph__row_item(row, column, word, length, (float)weight);
}

static ph_status encode_list(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length)
{
    const char *end = cell + length;
    for (const char *word = cell; word < end;) {
        const char *stop = memchr(word, row->encoder->list_separator, (size_t)(end - word));
        size_t word_length = (size_t)((stop != NULL ? stop : end) - word);
        if (word_length > 0)
            PH_TRY(column->is_weighted ? ph__row_weighted_item(row, column, word, word_length)
                                       : ph__row_item(row, column, word, word_length, 1));
        word += word_length + 1;
    }
    return PH_OK;
}

/* ---- cells ----------------------------------------------------------------------------------------------- */

#define BEYOND_FLOAT "is beyond the range of a 32-bit float, which ends at 3.4e38"

static bool is_beyond_float(double number)
{
    return isfinite(number) && isinf((float)number);
}

/* What is wrong with the number of a label, a dense value or a weight (NaN: a blank); NULL: nothing. */
static const char *problem_of(const struct ph__column *column, double number)
{
    switch (column->kind) {
    case PH_FIELD_LABEL:
        return number < 0 || number > 1 ? "is not a label in [0, 1]" : NULL;
    case PH_FIELD_WEIGHT:
        if (is_beyond_float(number))
            return BEYOND_FLOAT;
        return number >= 0 && !isinf(number) ? NULL : "is not a weight, a finite number of at least 0";
    case PH_FIELD_DENSE:
    case PH_FIELD_ID:
    case PH_FIELD_GROUP:
    case PH_FIELD_IGNORE:
        break;
    }
    if (is_beyond_float(number))
        return BEYOND_FLOAT;
    return isinf(number) ? "is not a finite number" : NULL;
}

static ph_status encode_checked(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    if (column->kind == PH_FIELD_DENSE)
        return ph__encode_dense(row, column, number);
    if (column->kind == PH_FIELD_LABEL)
        ph__encode_label(row, column, number);
    else
        ph__encode_weight(row, number);
    return PH_OK;
}

static ph_status encode_text_number(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length)
{
    double number = (double)NAN;
    const char *problem = NULL;
    if (column->kind == PH_FIELD_LABEL && length == 1 && (cell[0] == '0' || cell[0] == '1'))
        number = cell[0] - '0';
    else if (length > 0 && !ph__decimal_parse(cell, length, &number))
        problem = problem_of(column, column->kind == PH_FIELD_LABEL ? 2 : (double)INFINITY);
    if (problem == NULL)
        problem = problem_of(column, number);
    return problem != NULL ? ph__fail_cell(column, cell, length, problem)
                           : encode_checked(row, column, number);
}

ph_status ph__row_text(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length)
{
    switch (column->kind) {
    case PH_FIELD_LABEL:
    case PH_FIELD_DENSE:
    case PH_FIELD_WEIGHT:
        return encode_text_number(row, column, cell, length);
    case PH_FIELD_GROUP:
        ph__encode_group(row, cell, length);
        return PH_OK;
    case PH_FIELD_ID:
        if (column->is_group)
            ph__encode_group(row, cell, length);
        return column->is_list ? encode_list(row, column, cell, length)
                               : ph__encode_single(row, column, cell, length);
    case PH_FIELD_IGNORE:
        break;
    }
    return PH_OK;
}

static ph_status fail_number(const struct ph__column *column, double number, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "field '%s': %g %s", column->name, number, problem);
}

/* A number as an id. */
static ph_status encode_real_id(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    bool is_bucket = ph__column_is_bucket(column);
    if (is_bucket && isinf(number))
        return fail_number(column, number, "is not a finite number");
    if (is_bucket)
        return ph__encode_bucket(row, column, number, row->encoder->sparse_word + column->slot);
    if (isnan(number))
        return ph__row_text(row, column, "", 0);
    if (number != floor(number) || fabs(number) >= 9007199254740992.0)
        return fail_number(column, number, "is not an id, a whole number");
    return ph__row_integer(row, column, (int64_t)number);
}

ph_status ph__row_real(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    if (column->kind == PH_FIELD_ID)
        return encode_real_id(row, column, number);
    if (column->kind == PH_FIELD_GROUP)
        return fail_number(column, number, "is not a group: a text or a whole number");
    if (column->kind == PH_FIELD_IGNORE)
        return PH_OK;
    const char *problem = problem_of(column, number);
    return problem != NULL ? fail_number(column, number, problem) : encode_checked(row, column, number);
}

/* As ph__row_text of a number in decimal, but that the text need not stay. */
static ph_status encode_whole(
    struct ph__row_encoder *row, const struct ph__column *column, const char *text, size_t length)
{
    size_t target = row->encoder->sparse_word + column->slot;
    if (column->is_group || column->kind == PH_FIELD_GROUP)
        ph__encode_group(row, text, length);
    if (column->kind == PH_FIELD_GROUP)
        return PH_OK;
    if (column->part != PH_TIME_WHOLE)
        return ph__encode_single(row, column, text, length);
    if (column->is_list)
        PH_TRY(ph__row_add_item(row, column, 1, &target));
    return target == SIZE_MAX ? PH_OK : ph__encode_digits(row, column, text, length, target);
}

ph_status ph__row_integer(struct ph__row_encoder *row, const struct ph__column *column, int64_t number)
{
    char text[PH_LOOKUP_DIGITS];
    if (column->kind != PH_FIELD_ID && column->kind != PH_FIELD_GROUP)
        return ph__row_real(row, column, (double)number);
    if (column->kind == PH_FIELD_GROUP || column->is_group || column->part != PH_TIME_WHOLE)
        return encode_whole(row, column, text, (size_t)snprintf(text, sizeof text, "%" PRId64, number));
    if (column->is_list)
        return ph__row_integer_item(row, column, number, 1);
    return ph__encode_number(row, column, number, row->encoder->sparse_word + column->slot);
}

ph_status ph__row_unsigned(struct ph__row_encoder *row, const struct ph__column *column, uint64_t number)
{
    char text[PH_LOOKUP_DIGITS];
    if (number <= INT64_MAX)
        return ph__row_integer(row, column, (int64_t)number);
    if (column->kind != PH_FIELD_ID && column->kind != PH_FIELD_GROUP)
        return ph__row_real(row, column, (double)number);
    return encode_whole(row, column, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, number));
}

static ph_status encode_integers(
    struct ph__row_encoder *row, const struct ph__column *column, const struct ph_cell *cell)
{
    if (column->kind != PH_FIELD_ID || !column->is_list)
        return ph_fail(PH_ERROR_DATA, "field '%s': is no list of ids", column->name);
    for (size_t i = 0; i < cell->count; i++) {
        float weight = column->is_weighted && cell->weights != NULL ? cell->weights[i] : 1;
        if (!isfinite(weight))
            return fail_number(column, (double)weight, "is not the weight of an id, a finite number");
        PH_TRY(ph__row_integer_item(row, column, cell->integers[i], weight));
    }
    return PH_OK;
}

ph_status ph__row_cell(
    struct ph__row_encoder *row, const struct ph__column *column, const struct ph_cell *cell)
{
    switch (cell->kind) {
    case PH_CELL_BLANK:
        return ph__row_text(row, column, "", 0);
    case PH_CELL_TEXT:
        return ph__row_text(row, column, cell->text, cell->length);
    case PH_CELL_INTEGER:
        return ph__row_integer(row, column, cell->integer);
    case PH_CELL_REAL:
        return ph__row_real(row, column, cell->real);
    case PH_CELL_INTEGERS:
        return encode_integers(row, column, cell);
    }
    return ph_fail(PH_ERROR_USAGE, "field '%s': a cell of no known kind", column->name);
}
