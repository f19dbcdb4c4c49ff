#include "data/row_encoder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/cell.h"
#include "data/decimal.h"
#include "data/fit.h"
#include "data/text_hash.h"
#include "data/time_part.h"

void ph__row_encoder_init(struct ph__row_encoder *row, const struct ph_encoder *encoder, struct ph__fit *fit)
{
    *row = (struct ph__row_encoder){.encoder = encoder, .fit = fit};
}

void ph__row_encoder_fini(struct ph__row_encoder *row)
{
    free(row->lookups.items);
    free(row->pieces);
    free(row->scratch);
    *row = (struct ph__row_encoder){0};
}

/* The row's words; they move when the row grows. */
static uint32_t *words_of(const struct ph__row_encoder *row)
{
    return row->rows->words + row->start;
}

static ph_status fail_cell(
    const struct ph__column *column, const char *cell, size_t length, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "field '%s': '%.*s' %s", column->name, (int)(length < 40 ? length : 40),
        cell, problem);
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

static float log1p_of(const struct ph_encoder *encoder, double number)
{
    if (number <= 0)
        return 0;
    if (number < PH_LOG1P_TABLE_SIZE && number == (double)(size_t)number)
        return encoder->log1p[(size_t)number];
    return (float)log1p(number);
}

static bool is_standardised(const struct ph__column *column)
{
    return column->transform == PH_TRANSFORM_STANDARDISE ||
           column->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
}

/* NaN is a blank: of a standardised column the mean, else what `missing` says. */
static ph_status encode_dense(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    const struct ph_encoder *encoder = row->encoder;
    uint32_t *word = &words_of(row)[encoder->dense_word + column->slot];
    bool is_blank = isnan(number);
    if (column->has_indicator)
        word[1] = ph__word_from_float(is_blank ? 1.0f : 0.0f);
    if (row->fit != NULL && is_standardised(column) && is_blank)
        return ph__fit_value(row->fit, column, number);
    if (is_blank && is_standardised(column)) {
        *word = ph__word_from_float(0);
        return PH_OK;
    }
    if (is_blank)
        number = (double)column->missing;
    bool is_log1p =
        column->transform == PH_TRANSFORM_LOG1P || column->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
    float value = is_log1p ? log1p_of(encoder, number) : (float)number;
    if (is_standardised(column)) {
        if (row->fit != NULL)
            return ph__fit_value(row->fit, column, (double)value);
        value = (float)(((double)value - column->statistics.mean) / column->statistics.deviation);
    }
    *word = ph__word_from_float(value);
    return PH_OK;
}

static void encode_weight(struct ph__row_encoder *row, double weight)
{
    words_of(row)[row->encoder->weight_word] = ph__word_from_float((float)weight);
}

/* NaN: unknown, masked. */
static void encode_label(struct ph__row_encoder *row, const struct ph__column *column, double label)
{
    words_of(row)[column->slot] = ph__word_from_float((float)label);
}

/* How many of the boundaries are at most x. */
static uint32_t bucket_of(const struct ph__column *column, double x)
{
    size_t low = 0, high = column->num_boundaries;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (column->boundaries[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* Of the recipe that won Criteo's contest: counts above 2 by the square of their logarithm, rounded down. */
static uint32_t log_bucket_of(double x)
{
    if (x <= 2)
        return (uint32_t)(fmax(floor(x), -PH_LOG_BUCKET_NEGATIVES) + PH_LOG_BUCKET_NEGATIVES);
    double logarithm = log(x);
    double bucket = fmin(floor(logarithm * logarithm), PH_LOG_BUCKET_MAX);
    return (uint32_t)(PH_LOG_BUCKET_NEGATIVES + 3 + bucket);
}

static ph_status encode_bucket(
    struct ph__row_encoder *row, const struct ph__column *column, double number, size_t target)
{
    if (row->fit != NULL && column->num_buckets > 0)
        return ph__fit_value(row->fit, column, number);
    uint32_t bucket =
        column->encoding == PH_ENCODING_BUCKET ? bucket_of(column, number) : log_bucket_of(number);
    words_of(row)[target] = isnan(number) ? 0 : 1 + bucket;
    return PH_OK;
}

/* ---- ids ------------------------------------------------------------------------------------------------- */

/* Where the column's ids are looked up, or counted. */
static const struct ph__vocabulary *vocabulary_of(
    const struct ph__row_encoder *row, const struct ph__column *column)
{
    size_t index = (size_t)(column - row->encoder->columns);
    return row->fit != NULL ? &row->fit->columns[index].vocabulary : &column->vocabulary;
}

/* The id goes to word `target` of the row: at once, or from a vocabulary at the commit. The word is not empty. */
static ph_status encode_id(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, size_t target)
{
    uint64_t number;
    double real;
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        return ph__lookups_add(&row->lookups, vocabulary_of(row, column),
            (struct ph__lookup){.word = word,
                .length = length,
                .column = (size_t)(column - row->encoder->columns),
                .target = target});
    case PH_ENCODING_HASH:
        words_of(row)[target] =
            1 + (uint32_t)ph__text_hash_below(
                    ph__text_hash_from(column->hash_start, word, length), column->num_rows - 1);
        return PH_OK;
    case PH_ENCODING_BUCKET:
    case PH_ENCODING_LOG_BUCKET:
        if (!ph__decimal_parse(word, length, &real))
            return fail_cell(column, word, length, "is not a finite number");
        return encode_bucket(row, column, real, target);
    case PH_ENCODING_RAW:
    case PH_ENCODING_INHERIT:
        break;
    }
    if (!ph__decimal_parse_id(word, length, &number))
        return fail_cell(column, word, length, "is not a raw id, a whole number");
    if (number >= column->num_rows)
        return fail_cell(column, word, length, "is beyond the rows of the table");
    words_of(row)[target] = (uint32_t)number;
    return PH_OK;
}

/* An id that is a number in decimal, of less than PH_LOOKUP_DIGITS bytes; the text need not stay. */
static ph_status encode_digits(struct ph__row_encoder *row, const struct ph__column *column, const char *text,
    size_t length, size_t target)
{
    PH_TRY(encode_id(row, column, text, length, target));
    if (column->encoding == PH_ENCODING_VOCABULARY) /* the lookup waits for the commit: it keeps the text */
        ph__lookups_own_last(&row->lookups);
    return PH_OK;
}

/* An id that is a number: encoded as its decimal text. */
static ph_status encode_number(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, size_t target)
{
    char text[PH_LOOKUP_DIGITS];
    if (column->encoding == PH_ENCODING_RAW && number >= 0 && (uint64_t)number < column->num_rows) {
        words_of(row)[target] = (uint32_t)number;
        return PH_OK;
    }
    size_t length = (size_t)snprintf(text, sizeof text, "%" PRId64, number);
    return encode_digits(row, column, text, length, target);
}

static ph_status encode_single(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    size_t target = row->encoder->sparse_word + column->slot;
    if (column->part != PH_TIME_WHOLE && length > 0) {
        int part = ph__time_part(column->part, word, length);
        if (part < 0)
            return fail_cell(column, word, length, "is not a time as YYMMDDHH or YYYY-MM-DD HH");
        return encode_number(row, column, part, target);
    }
    if (length > 0)
        return encode_id(row, column, word, length, target);
    words_of(row)[target] = 0;
    bool is_fitted = row->fit != NULL && column->num_buckets > 0;
    return is_fitted ? ph__fit_value(row->fit, column, (double)NAN) : PH_OK;
}

static void encode_group(struct ph__row_encoder *row, const char *cell, size_t length)
{
    uint64_t group = ph__text_hash(cell, length, 0);
    uint32_t *words = words_of(row);
    words[row->encoder->group_word] = (uint32_t)group;
    words[row->encoder->group_word + 1] = (uint32_t)(group >> 32);
}

/* ---- lists ----------------------------------------------------------------------------------------------- */
/* Room for so many more words in the row. */
static ph_status reserve_words(struct ph__row_encoder *row, size_t num_words)
{
    size_t wanted = row->start + row->num_words + num_words;
    if (wanted <= row->rows->words_capacity)
        return PH_OK;
    return ph__array_reserve(
        (void **)&row->rows->words, &row->rows->words_capacity, wanted, sizeof *row->rows->words);
}

/* The piece that the next id of the list belongs to: the last one, or a new one. */
static ph_status piece_for(
    struct ph__row_encoder *row, const struct ph__column *column, struct ph__list_piece **piece_out)
{
    if (row->num_pieces > 0 && row->pieces[row->num_pieces - 1].slot == column->slot) {
        *piece_out = &row->pieces[row->num_pieces - 1];
        return PH_OK;
    }
    if (row->num_pieces == row->pieces_capacity)
        PH_TRY(ph__array_reserve(
            (void **)&row->pieces, &row->pieces_capacity, row->num_pieces + 1, sizeof *row->pieces));
    *piece_out = &row->pieces[row->num_pieces++];
    **piece_out = (struct ph__list_piece){.slot = (uint32_t)column->slot, .start = row->num_words};
    return PH_OK;
}

/* The word for one more id of a list, followed by its weight's; *target_out is SIZE_MAX when the list is full. */
static ph_status add_item(
    struct ph__row_encoder *row, const struct ph__column *column, float weight, size_t *target_out)
{
    struct ph__list_piece *piece;
    uint32_t *length = &words_of(row)[row->encoder->sparse_word + column->slot];
    *target_out = SIZE_MAX;
    if (*length >= column->max_length)
        return PH_OK;
    ++*length;
    PH_TRY(piece_for(row, column, &piece));
    PH_TRY(reserve_words(row, 2));
    piece->count++;
    *target_out = row->num_words++;
    if (column->is_weighted)
        words_of(row)[row->num_words++] = ph__word_from_float(weight);
    return PH_OK;
}

ph_status ph__row_item(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, float weight)
{
    size_t target;
    PH_TRY(add_item(row, column, weight, &target));
    return target == SIZE_MAX ? PH_OK : encode_id(row, column, word, length, target);
}

ph_status ph__row_integer_item(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, float weight)
{
    size_t target;
    PH_TRY(add_item(row, column, weight, &target));
    return target == SIZE_MAX ? PH_OK : encode_number(row, column, number, target);
}

/* "id:weight": the weight is behind the last colon. */
static ph_status encode_weighted_word(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    const char *colon = memrchr(word, ':', length);
    double weight = 1;
    if (colon != NULL) {
        size_t id_length = (size_t)(colon - word);
        if (id_length == 0 || !ph__decimal_parse(colon + 1, length - id_length - 1, &weight) ||
            !isfinite((float)weight))
            return fail_cell(column, word, length, "is not id:weight, the weight a finite number");
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
            PH_TRY(column->is_weighted ? encode_weighted_word(row, column, word, word_length)
                                       : ph__row_item(row, column, word, word_length, 1));
        word += word_length + 1;
    }
    return PH_OK;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct ph__list_piece *left = a, *right = b;
    if (left->slot != right->slot)
        return left->slot < right->slot ? -1 : 1;
    return left->start < right->start ? -1 : left->start > right->start;
}

static bool are_lists_in_order(const struct ph__row_encoder *row)
{
    if (row->encoder->has_id_weights && row->num_pieces > 0)
        return false;
    for (size_t i = 1; i < row->num_pieces; i++)
        if (row->pieces[i - 1].slot >= row->pieces[i].slot)
            return false;
    return true;
}

/* Copies the pieces of one list behind `to`: all ids, then all weights. Returns the number of words. */
static size_t gather_list(
    const struct ph__row_encoder *row, const struct ph__list_piece *pieces, size_t num_pieces, uint32_t *to)
{
    bool is_weighted = row->encoder->sparse_columns[pieces[0].slot]->is_weighted;
    size_t stride = is_weighted ? 2 : 1, count = 0, next = 0;
    for (size_t p = 0; p < num_pieces; p++)
        count += pieces[p].count;
    for (size_t p = 0; p < num_pieces; p++) {
        const uint32_t *from = words_of(row) + pieces[p].start;
        for (size_t i = 0; i < pieces[p].count; i++, next++) {
            to[next] = from[stride * i];
            if (is_weighted)
                to[count + next] = from[stride * i + 1];
        }
    }
    return stride * count;
}

/* Lists come in the order of the file and in pieces; they are to lie in the order of their slots, in one. */
static ph_status order_lists(struct ph__row_encoder *row)
{
    if (are_lists_in_order(row))
        return PH_OK;
    size_t first = row->encoder->num_fixed_words, num_words = row->num_words - first, used = 0;
    PH_TRY(
        ph__array_reserve((void **)&row->scratch, &row->scratch_capacity, num_words, sizeof *row->scratch));
    qsort(row->pieces, row->num_pieces, sizeof *row->pieces, compare_pieces);
    for (size_t p = 0, next = 0; p < row->num_pieces; p = next) {
        while (next < row->num_pieces && row->pieces[next].slot == row->pieces[p].slot)
            next++;
        used += gather_list(row, row->pieces + p, next - p, row->scratch + used);
    }
    memcpy(words_of(row) + first, row->scratch, num_words * sizeof *row->scratch);
    return PH_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

ph_status ph__row_begin(struct ph__row_encoder *row, struct ph__rows *rows)
{
    const struct ph_encoder *encoder = row->encoder;
    PH_TRY(ph__rows_reserve(rows, encoder->num_fixed_words, &row->start));
    row->rows = rows;
    row->num_words = encoder->num_fixed_words;
    row->num_pieces = 0;
    row->lookups.count = 0;
    if (row->fit != NULL)
        ph__fit_drop_row(row->fit);
    memset(words_of(row), 0, encoder->num_fixed_words * sizeof(uint32_t));
    for (size_t t = 0; t < encoder->num_tasks; t++)
        words_of(row)[t] = ph__word_from_float(NAN);
    if (encoder->has_weight)
        encode_weight(row, 1);
    return PH_OK;
}

ph_status ph__row_commit(struct ph__row_encoder *row)
{
    if (row->fit != NULL)
        return ph__fit_row(row->fit, &row->lookups);
    for (size_t i = 0; i < row->lookups.count; i++) {
        const struct ph__lookup *lookup = &row->lookups.items[i];
        const struct ph__column *column = &row->encoder->columns[lookup->column];
        const char *word = ph__lookup_word(lookup);
        uint32_t found = ph__vocabulary_row(&column->vocabulary, word, lookup->length, lookup->hash);
        if (found == 0)
            PH_TRY(ph__encoder_check_word(column, word, lookup->length));
        words_of(row)[lookup->target] = found;
    }
    PH_TRY(order_lists(row));
    ph__rows_commit(row->rows, row->num_words);
    return PH_OK;
}

/* ---- cells ----------------------------------------------------------------------------------------------- */

/* What is wrong with the number of a label, a dense value or a weight (NaN: a blank); NULL: nothing. */
static const char *problem_of(const struct ph__column *column, double number)
{
    switch (column->kind) {
    case PH_FIELD_LABEL:
        return number < 0 || number > 1 ? "is not a label in [0, 1]" : NULL;
    case PH_FIELD_WEIGHT:
        return number >= 0 && !isinf((float)number) ? NULL : "is not a weight, a finite number of at least 0";
    case PH_FIELD_DENSE:
    case PH_FIELD_ID:
    case PH_FIELD_GROUP:
    case PH_FIELD_IGNORE:
        break;
    }
    return isinf((float)number) ? "is not a finite number" : NULL;
}

static ph_status encode_checked(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    if (column->kind == PH_FIELD_DENSE)
        return encode_dense(row, column, number);
    if (column->kind == PH_FIELD_LABEL)
        encode_label(row, column, number);
    else
        encode_weight(row, number);
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
    return problem != NULL ? fail_cell(column, cell, length, problem) : encode_checked(row, column, number);
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
        encode_group(row, cell, length);
        return PH_OK;
    case PH_FIELD_ID:
        if (column->is_group)
            encode_group(row, cell, length);
        return column->is_list ? encode_list(row, column, cell, length)
                               : encode_single(row, column, cell, length);
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
    bool is_bucket = column->encoding == PH_ENCODING_BUCKET || column->encoding == PH_ENCODING_LOG_BUCKET;
    if (is_bucket && isinf(number))
        return fail_number(column, number, "is not a finite number");
    if (is_bucket)
        return encode_bucket(row, column, number, row->encoder->sparse_word + column->slot);
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
        encode_group(row, text, length);
    if (column->kind == PH_FIELD_GROUP)
        return PH_OK;
    if (column->part != PH_TIME_WHOLE)
        return encode_single(row, column, text, length);
    if (column->is_list)
        PH_TRY(add_item(row, column, 1, &target));
    return target == SIZE_MAX ? PH_OK : encode_digits(row, column, text, length, target);
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
    return encode_number(row, column, number, row->encoder->sparse_word + column->slot);
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
        float weight = cell->weights != NULL ? cell->weights[i] : 1;
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
