#include "data/encode/fit.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

/* ---- exact sums ---- */

#define LEAST_EXPONENT (-352) /* exponent of digit 0's unit: a multiple of 32, at most 2 * (-148 - 24) */
#define DIGIT_BITS 32
#define MAX_ADDITIONS (UINT32_C(1) << 28)
#define MAX_DIGIT (INT64_C(1) << 62) /* MAX_ADDITIONS additions of less than 2^33 stay below it */
#define MAX_LAST_DIGIT (INT64_C(1) << 32)

/* Brings every digit but the last into [0, 2^32). */
static void carry(struct ph__exact_sum *sum)
{
    for (size_t i = 0; i + 1 < PH_EXACT_SUM_DIGITS; i++) {
        int64_t low = sum->digits[i] & (int64_t)UINT32_MAX;
        sum->digits[i + 1] += (sum->digits[i] - low) / ((int64_t)1 << DIGIT_BITS);
        sum->digits[i] = low;
    }
    sum->num_additions = 0;
}

/* Adds sign * mantissa * 2^exponent, mantissa below 2^48. */
static void add(struct ph__exact_sum *sum, uint64_t mantissa, int exponent, int sign)
{
    unsigned shift = (unsigned)(exponent - LEAST_EXPONENT);
    size_t digit = shift / DIGIT_BITS;
    unsigned bits = shift % DIGIT_BITS;
    uint64_t low = (mantissa & UINT32_MAX) << bits, high = (mantissa >> DIGIT_BITS) << bits;
    sum->digits[digit] += sign * (int64_t)(low & UINT32_MAX);
    sum->digits[digit + 1] += sign * (int64_t)((low >> DIGIT_BITS) + (high & UINT32_MAX));
    sum->digits[digit + 2] += sign * (int64_t)(high >> DIGIT_BITS);
    if (++sum->num_additions == MAX_ADDITIONS)
        carry(sum);
}

/* Splits a finite float into a mantissa of 24 bits and the exponent of its last bit. */
static uint64_t split(float number, int *exponent_out)
{
    int exponent;
    float fraction = frexpf(fabsf(number), &exponent);
    *exponent_out = exponent - 24;
    return (uint64_t)ldexpf(fraction, 24);
}

void ph__exact_sum_add(struct ph__exact_sum *sum, float number)
{
    int exponent;
    uint64_t mantissa = split(number, &exponent);
    if (mantissa != 0)
        add(sum, mantissa, exponent, number < 0 ? -1 : 1);
}

void ph__exact_sum_add_square(struct ph__exact_sum *sum, float number)
{
    int exponent;
    uint64_t mantissa = split(number, &exponent);
    if (mantissa != 0)
        add(sum, mantissa * mantissa, 2 * exponent, 1);
}

void ph__exact_sum_merge(struct ph__exact_sum *sum, const struct ph__exact_sum *other)
{
    struct ph__exact_sum carried = *other;
    carry(&carried);
    carry(sum);
    for (size_t i = 0; i < PH_EXACT_SUM_DIGITS; i++)
        sum->digits[i] += carried.digits[i];
    sum->num_additions = 2;
}

bool ph__exact_sum_is_sound(const struct ph__exact_sum *sum)
{
    const size_t last = PH_EXACT_SUM_DIGITS - 1;
    for (size_t i = 0; i < last; i++)
        if (sum->digits[i] < -MAX_DIGIT || sum->digits[i] > MAX_DIGIT)
            return false;
    return sum->digits[last] >= -MAX_LAST_DIGIT && sum->digits[last] <= MAX_LAST_DIGIT &&
           sum->num_additions < MAX_ADDITIONS;
}

long double ph__exact_sum_value(const struct ph__exact_sum *sum)
{
    struct ph__exact_sum carried = *sum;
    carry(&carried);
    long double value = 0;
    for (size_t i = PH_EXACT_SUM_DIGITS; i-- > 0;)
        value += ldexpl((long double)carried.digits[i], (int)i * DIGIT_BITS + LEAST_EXPONENT);
    return value;
}

/* ---- fits ---- */

static bool wants_vocabulary(const struct ph__column *column)
{
    return column->kind == PH_FIELD_ID && column->encoding == PH_ENCODING_VOCABULARY &&
           column->shares == NULL;
}

static bool wants_quantiles(const struct ph__column *column)
{
    return column->kind == PH_FIELD_ID && column->encoding == PH_ENCODING_BUCKET && column->num_buckets > 0;
}

static bool wants_statistics(const struct ph__column *column)
{
    return column->kind == PH_FIELD_DENSE && ph__column_is_standardised(column);
}

const struct ph__column *ph__fit_first_wanted(const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (wants_vocabulary(column) || wants_quantiles(column) || wants_statistics(column))
            return column;
    }
    return NULL;
}

ph_status ph__fit_init(struct ph__fit *fit, const struct ph_encoder *encoder)
{
    *fit = (struct ph__fit){.encoder = encoder};
    fit->columns = calloc(encoder->num_columns + 1, sizeof *fit->columns);
    if (fit->columns == NULL)
        return ph__out_of_memory("encoder: cannot learn %zu columns", encoder->num_columns);
    for (size_t i = 0; i < encoder->num_columns; i++) {
        fit->columns[i].totals.min = (double)INFINITY;
        fit->columns[i].totals.max = -(double)INFINITY;
    }
    return PH_OK;
}

void ph__fit_fini(struct ph__fit *fit)
{
    for (size_t i = 0; fit->columns != NULL && i < fit->encoder->num_columns; i++) {
        ph__vocabulary_fini(&fit->columns[i].vocabulary);
        free(fit->columns[i].sample.items);
    }
    free(fit->columns);
    free(fit->values);
    *fit = (struct ph__fit){0};
}

/* ---- the sample ---- */

static bool is_before(const struct ph__sampled *a, const struct ph__sampled *b)
{
    return a->hash < b->hash || (a->hash == b->hash && a->value < b->value);
}

static void swap(struct ph__sampled *a, struct ph__sampled *b)
{
    struct ph__sampled kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct ph__sampled *items, size_t at)
{
    for (; at > 0 && is_before(&items[(at - 1) / 2], &items[at]); at = (at - 1) / 2)
        swap(&items[(at - 1) / 2], &items[at]);
}

static void sift_down(struct ph__sampled *items, size_t count)
{
    for (size_t at = 0;;) {
        size_t last = at, left = 2 * at + 1;
        if (left < count && is_before(&items[last], &items[left]))
            last = left;
        if (left + 1 < count && is_before(&items[last], &items[left + 1]))
            last = left + 1;
        if (last == at)
            return;
        swap(&items[at], &items[last]);
        at = last;
    }
}

static ph_status sample_add(struct ph__sample *sample, struct ph__sampled item)
{
    if (sample->count == PH_QUANTILE_SAMPLE) {
        if (is_before(&item, &sample->items[0])) {
            sample->items[0] = item;
            sift_down(sample->items, sample->count);
        }
        return PH_OK;
    }
    PH_TRY(ph__array_reserve(
        (void **)&sample->items, &sample->capacity, sample->count + 1, sizeof *sample->items));
    sample->items[sample->count] = item;
    sift_up(sample->items, sample->count++);
    return PH_OK;
}

/* ---- gathering ---- */

ph_status ph__fit_value(struct ph__fit *fit, const struct ph__column *column, double value)
{
    PH_TRY(ph__array_reserve(
        (void **)&fit->values, &fit->values_capacity, fit->num_values + 1, sizeof *fit->values));
    size_t index = (size_t)(column - fit->encoder->columns);
    fit->values[fit->num_values++] = (struct ph__fit_value){index, value};
    return PH_OK;
}

static ph_status keep_value(struct ph__fit *fit, const struct ph__fit_value *value)
{
    struct ph__fit_column *column = &fit->columns[value->column];
    struct ph__fit_totals *totals = &column->totals;
    if (isnan(value->value)) {
        totals->num_blanks++;
        return PH_OK;
    }
    totals->num_values++;
    totals->min = fmin(totals->min, value->value);
    totals->max = fmax(totals->max, value->value);
    if (wants_quantiles(&fit->encoder->columns[value->column])) {
        uint64_t hash = ph__text_mix(fit->row_key ^ ph__text_mix(value->column));
        return sample_add(&column->sample, (struct ph__sampled){hash, value->value});
    }
    ph__exact_sum_add(&totals->sum, (float)value->value);
    ph__exact_sum_add_square(&totals->sum_of_squares, (float)value->value);
    return PH_OK;
}

/* Checks the words that the fit does not hold yet; the others were checked when they were new. */
static ph_status check_words(const struct ph__fit *fit, const struct ph__lookups *lookups)
{
    for (size_t i = 0; i < lookups->count; i++) {
        const struct ph__lookup *lookup = &lookups->items[i];
        const char *word = ph__lookup_word(lookup);
        const struct ph__vocabulary *vocabulary = &fit->columns[lookup->column].vocabulary;
        if (ph__vocabulary_row(vocabulary, word, lookup->length, lookup->hash) == 0)
            PH_TRY(ph__encoder_check_word(&fit->encoder->columns[lookup->column], word, lookup->length));
    }
    return PH_OK;
}

ph_status ph__fit_row(struct ph__fit *fit, const struct ph__lookups *lookups)
{
    PH_TRY(check_words(fit, lookups));
    for (size_t i = 0; i < lookups->count; i++) {
        const struct ph__lookup *lookup = &lookups->items[i];
        PH_TRY(ph__vocabulary_count(&fit->columns[lookup->column].vocabulary, ph__lookup_word(lookup),
            lookup->length, 1, lookup->hash, NULL));
    }
    for (size_t i = 0; i < fit->num_values; i++)
        PH_TRY(keep_value(fit, &fit->values[i]));
    fit->num_values = 0;
    fit->num_rows++;
    return PH_OK;
}

/* ---- merging ---- */

ph_status ph__fit_column_merge(struct ph__fit_column *column, const struct ph__fit_column *later)
{
    struct ph__fit_totals *totals = &column->totals;
    const struct ph__fit_totals *more = &later->totals;
    totals->num_values += more->num_values;
    totals->num_blanks += more->num_blanks;
    totals->min = fmin(totals->min, more->min);
    totals->max = fmax(totals->max, more->max);
    ph__exact_sum_merge(&totals->sum, &more->sum);
    ph__exact_sum_merge(&totals->sum_of_squares, &more->sum_of_squares);
    for (size_t i = 0; i < later->sample.count; i++)
        PH_TRY(sample_add(&column->sample, later->sample.items[i]));
    return PH_OK;
}

uint64_t ph__fit_bytes(const struct ph__fit *fit)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < fit->encoder->num_columns; i++) {
        const struct ph__vocabulary *vocabulary = &fit->columns[i].vocabulary;
        bytes += vocabulary->num_slots * sizeof *vocabulary->slots + vocabulary->text_capacity +
                 vocabulary->starts_capacity * sizeof *vocabulary->starts +
                 vocabulary->counts_capacity * sizeof *vocabulary->counts +
                 fit->columns[i].sample.capacity * sizeof *fit->columns[i].sample.items;
    }
    return bytes;
}

/* ---- finishing ---- */

static void finish_statistics(const struct ph__fit_totals *gathered, struct ph__column *column)
{
    struct ph__statistics *statistics = &column->statistics;
    long double n = (long double)gathered->num_values;
    *statistics = (struct ph__statistics){
        .num_values = gathered->num_values, .num_blanks = gathered->num_blanks, .deviation = 1};
    if (gathered->num_values == 0)
        return;
    long double mean = ph__exact_sum_value(&gathered->sum) / n;
    long double variance = ph__exact_sum_value(&gathered->sum_of_squares) / n - mean * mean;
    statistics->min = gathered->min;
    statistics->max = gathered->max;
    statistics->mean = (double)mean;
    if (variance > 0 && gathered->min < gathered->max)
        statistics->deviation = (double)sqrtl(variance);
}

static int compare_values(const void *a, const void *b)
{
    const struct ph__sampled *left = a, *right = b;
    return left->value < right->value ? -1 : left->value > right->value;
}

/* Sets boundary k to the value below which k / num_buckets of the sample lie; drops equal boundaries. */
static ph_status finish_quantiles(struct ph__sample *sample, struct ph__column *column)
{
    column->boundaries = calloc(column->num_buckets, sizeof *column->boundaries);
    if (column->boundaries == NULL)
        return ph__out_of_memory("encoder: %zu buckets", column->num_buckets);
    if (sample->count > 0)
        qsort(sample->items, sample->count, sizeof *sample->items, compare_values);
    column->num_boundaries = 0;
    for (size_t k = 1; k < column->num_buckets && sample->count > 0; k++) {
        double value = sample->items[k * sample->count / column->num_buckets].value;
        bool is_new = column->num_boundaries == 0 || value > column->boundaries[column->num_boundaries - 1];
        if (is_new && value > sample->items[0].value)
            column->boundaries[column->num_boundaries++] = value;
    }
    return PH_OK;
}

static ph_status finish_column(struct ph__fit_column *gathered, struct ph__column *column)
{
    if (wants_statistics(column))
        finish_statistics(&gathered->totals, column);
    if (wants_quantiles(column))
        return finish_quantiles(&gathered->sample, column);
    if (!wants_vocabulary(column))
        return PH_OK;
    column->vocabulary = gathered->vocabulary;
    gathered->vocabulary = (struct ph__vocabulary){0};
    return ph__vocabulary_finish(&column->vocabulary, column->min_count);
}

ph_status ph__fit_finish(struct ph__fit *fit, struct ph_encoder *encoder)
{
    ph_status status = PH_OK;
    for (size_t i = 0; status == PH_OK && i < encoder->num_columns; i++)
        status = finish_column(&fit->columns[i], &encoder->columns[i]);
    encoder->num_training_rows = fit->num_rows;
    ph__fit_fini(fit);
    return status;
}
