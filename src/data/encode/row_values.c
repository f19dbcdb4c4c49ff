#include "data/encode/row_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/utf8.h"
#include "data/encode/decimal.h"
#include "data/encode/fit.h"
#include "data/encode/text_hash.h"
#include "data/encode/time_part.h"

#define QUOTED_BYTES 40 /* at most, of a cell that is wrong */

ph_status ph__fail_cell(const struct ph__column *column, const char *cell, size_t length, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "field '%s': '%.*s' %s", column->name,
        (int)ph__utf8_cut(cell, length, QUOTED_BYTES), cell, problem);
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

ph_status ph__encode_dense(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    const struct ph_encoder *encoder = row->encoder;
    uint32_t *word = &ph__row_words(row)[encoder->dense_word + column->slot];
    bool is_blank = isnan(number);
    if (column->has_indicator)
        word[1] = ph__word_from_float(is_blank ? 1.0f : 0.0f);
    if (row->fit != NULL && ph__column_is_standardised(column) && is_blank)
        return ph__fit_value(row->fit, column, number);
    if (is_blank && ph__column_is_standardised(column)) {
        *word = ph__word_from_float(0);
        return PH_OK;
    }
    if (is_blank)
        number = (double)column->missing;
    bool is_log1p =
        column->transform == PH_TRANSFORM_LOG1P || column->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
    float value = is_log1p ? log1p_of(encoder, number) : (float)number;
    if (ph__column_is_standardised(column)) {
        if (row->fit != NULL)
            return ph__fit_value(row->fit, column, (double)value);
        value = (float)(((double)value - column->statistics.mean) / column->statistics.deviation);
        if (!isfinite(value))
            return ph_fail(PH_ERROR_DATA,
                "field '%s': %g is too many standard deviations from the mean for a float", column->name,
                number);
    }
    *word = ph__word_from_float(value);
    return PH_OK;
}

void ph__encode_weight(struct ph__row_encoder *row, double weight)
{
    ph__row_words(row)[row->encoder->weight_word] = ph__word_from_float((float)weight);
}

void ph__encode_label(struct ph__row_encoder *row, const struct ph__column *column, double label)
{
    ph__row_words(row)[column->slot] = ph__word_from_float((float)label);
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

ph_status ph__encode_bucket(
    struct ph__row_encoder *row, const struct ph__column *column, double number, size_t target)
{
    if (row->fit != NULL && column->num_buckets > 0)
        return ph__fit_value(row->fit, column, number);
    uint32_t bucket =
        column->encoding == PH_ENCODING_BUCKET ? bucket_of(column, number) : log_bucket_of(number);
    ph__row_words(row)[target] = isnan(number) ? 0 : 1 + bucket;
    return PH_OK;
}

/* ---- ids ------------------------------------------------------------------------------------------------- */

/* Where the column's ids are looked up, or counted. */
static const struct ph__vocabulary *vocabulary_of(
    const struct ph__row_encoder *row, const struct ph__column *column)
{
    return row->fit != NULL ? &row->fit->columns[column->owner].vocabulary
                            : &row->encoder->columns[column->owner].vocabulary;
}

ph_status ph__encode_id(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, size_t target)
{
    uint64_t number;
    double real;
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        return ph__lookups_add(&row->lookups, vocabulary_of(row, column),
            (struct ph__lookup){.word = word, .length = length, .column = column->owner, .target = target});
    case PH_ENCODING_HASH:
        ph__row_words(row)[target] =
            1 + (uint32_t)ph__text_hash_below(
                    ph__text_hash_from(column->hash_start, word, length), column->num_rows - 1);
        return PH_OK;
    case PH_ENCODING_BUCKET:
    case PH_ENCODING_LOG_BUCKET:
        if (!ph__decimal_parse(word, length, &real))
            return ph__fail_cell(column, word, length, "is not a finite number");
        return ph__encode_bucket(row, column, real, target);
    case PH_ENCODING_RAW:
    case PH_ENCODING_INHERIT:
        break;
    }
    if (!ph__decimal_parse_id(word, length, &number))
        return ph__fail_cell(column, word, length, "is not a raw id, a whole number");
    if (number >= column->num_rows)
        return ph__fail_cell(column, word, length, "is beyond the rows of the table");
    ph__row_words(row)[target] = (uint32_t)number;
    return PH_OK;
}

ph_status ph__encode_digits(struct ph__row_encoder *row, const struct ph__column *column, const char *text,
    size_t length, size_t target)
{
    PH_TRY(ph__encode_id(row, column, text, length, target));
    if (column->encoding == PH_ENCODING_VOCABULARY) /* the lookup waits for the commit: it keeps the text */
        ph__lookups_own_last(&row->lookups);
    return PH_OK;
}

ph_status ph__encode_number(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, size_t target)
{
    char text[PH_LOOKUP_DIGITS];
    if (column->encoding == PH_ENCODING_RAW && number >= 0 && (uint64_t)number < column->num_rows) {
        ph__row_words(row)[target] = (uint32_t)number;
        return PH_OK;
    }
    size_t length = (size_t)snprintf(text, sizeof text, "%" PRId64, number);
    return ph__encode_digits(row, column, text, length, target);
}

ph_status ph__encode_single(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    size_t target = row->encoder->sparse_word + column->slot;
    if (column->part != PH_TIME_WHOLE && length > 0) {
        int part = ph__time_part(column->part, word, length);
        if (part < 0)
            return ph__fail_cell(column, word, length, "is not a time as YYMMDDHH or YYYY-MM-DD HH:MM:SS");
        return ph__encode_number(row, column, part, target);
    }
    if (length > 0)
        return ph__encode_id(row, column, word, length, target);
    ph__row_words(row)[target] = 0;
    bool is_fitted = row->fit != NULL && column->num_buckets > 0;
    return is_fitted ? ph__fit_value(row->fit, column, (double)NAN) : PH_OK;
}

void ph__encode_group(struct ph__row_encoder *row, const char *cell, size_t length)
{
    uint64_t group = ph__text_hash(cell, length, 0);
    uint32_t *words = ph__row_words(row);
    words[row->encoder->group_word] = (uint32_t)group;
    words[row->encoder->group_word + 1] = (uint32_t)(group >> 32);
}
