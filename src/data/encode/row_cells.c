/* Checks and encodes cells of every kind, and hands the values to the row in the making (row_encoder.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/text/utf8.h"
#include "data/encode/cell_text.h"
#include "data/encode/fit.h"
#include "data/encode/row_encoder.h"
#include "data/encode/text_hash.h"

#define QUOTED_BYTES 40 /* most bytes of a wrong cell that an error quotes */

/* PH_ERROR_DATA: "field 'price': 'n/a' is not a finite number". */
static ph_status fail_cell(
    const struct ph__column *column, const char *cell, size_t length, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "field '%s': '%.*s' %s", column->name,
        (int)ph__utf8_cut(cell, length, QUOTED_BYTES), cell, problem);
}

/* ---- numbers ---- */

/* Numbers are finite, or NaN for a blank. A blank dense value becomes the mean in a standardised column, else
 * `missing`; a blank label is unknown, as is a blank teacher. */

static float log1p_of(const struct ph_encoder *encoder, double number)
{
    if (number <= 0)
        return 0;
    if (number < PH_LOG1P_TABLE_SIZE && number == (double)(size_t)number)
        return encoder->log1p[(size_t)number];
    return (float)log1p(number);
}

static ph_status encode_dense(struct ph__row_encoder *row, const struct ph__column *column, double number)
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

static void encode_weight(struct ph__row_encoder *row, double weight)
{
    ph__row_words(row)[row->encoder->weight_word] = ph__word_from_float((float)weight);
}

/* Encodes a label or a teacher's probability. */
static void encode_target(struct ph__row_encoder *row, const struct ph__column *column, double target)
{
    const size_t first = column->kind == PH_FIELD_TEACHER ? row->encoder->num_tasks : 0;
    ph__row_words(row)[first + column->slot] = ph__word_from_float((float)target);
}

/* Counts the boundaries that are at most x. */
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

/* Puts counts above 2 in buckets by the square of their logarithm, rounded down: the recipe that won Criteo's
 * contest. */
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
    ph__row_words(row)[target] = isnan(number) ? 0 : 1 + bucket;
    return PH_OK;
}

/* ---- ids ---- */

/* `target` is the word of the row that gets the row of the table: at once, or with a vocabulary at the
 * commit; until then the id's text must stay. An id is never empty; decimal digits are fewer than
 * PH_LOOKUP_DIGITS, and copied. */

/* Returns the vocabulary that the column's ids are looked up in or, during a fit, counted in. */
static const struct ph__vocabulary *vocabulary_of(
    const struct ph__row_encoder *row, const struct ph__column *column)
{
    return row->fit != NULL ? &row->fit->columns[column->owner].vocabulary
                            : &row->encoder->columns[column->owner].vocabulary;
}

/* Appends the word to the lookups of the commit, and prefetches its slot. */
static ph_status add_lookup(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, size_t target)
{
    struct ph__lookups *lookups = &row->lookups;
    const struct ph__vocabulary *vocabulary = vocabulary_of(row, column);
    const uint64_t hash = ph__vocabulary_hash(word, length);
    if (lookups->count == lookups->capacity)
        PH_TRY(ph__array_reserve(
            (void **)&lookups->items, &lookups->capacity, lookups->count + 1, sizeof *lookups->items));
    if (vocabulary->num_slots != 0)
        __builtin_prefetch(&vocabulary->slots[hash & (vocabulary->num_slots - 1)]);
    lookups->items[lookups->count++] = (struct ph__lookup){
        .word = word, .length = length, .hash = hash, .column = column->owner, .target = target};
    return PH_OK;
}

static ph_status encode_id(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, size_t target)
{
    uint64_t number;
    double real;
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        return add_lookup(row, column, word, length, target);
    case PH_ENCODING_HASH:
        ph__row_words(row)[target] =
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
    ph__row_words(row)[target] = (uint32_t)number;
    return PH_OK;
}

static ph_status encode_digits(struct ph__row_encoder *row, const struct ph__column *column, const char *text,
    size_t length, size_t target)
{
    PH_TRY(encode_id(row, column, text, length, target));
    if (column->encoding != PH_ENCODING_VOCABULARY)
        return PH_OK;
    struct ph__lookup *lookup = &row->lookups.items[row->lookups.count - 1]; /* waits for the commit */
    memcpy(lookup->digits, text, length);
    lookup->word = NULL;
    return PH_OK;
}

/* Encodes a number as its decimal text. */
static ph_status encode_number(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, size_t target)
{
    char text[PH_LOOKUP_DIGITS];
    if (column->encoding == PH_ENCODING_RAW && number >= 0 && (uint64_t)number < column->num_rows) {
        ph__row_words(row)[target] = (uint32_t)number;
        return PH_OK;
    }
    size_t length = ph__integer_write(number, text);
    return encode_digits(row, column, text, length, target);
}

/* Encodes the id of a single-valued feature, "" for a blank. */
static ph_status encode_single(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    size_t target = row->encoder->sparse_word + column->slot;
    if (column->component != PH_TIME_WHOLE && length > 0) {
        int component = ph__time_component(column->component, word, length);
        if (component < 0)
            return fail_cell(column, word, length, "is not a time as YYMMDDHH or YYYY-MM-DD HH:MM:SS");
        return encode_number(row, column, component, target);
    }
    if (length > 0)
        return encode_id(row, column, word, length, target);
    ph__row_words(row)[target] = 0;
    bool is_fitted = row->fit != NULL && column->num_buckets > 0;
    return is_fitted ? ph__fit_value(row->fit, column, (double)NAN) : PH_OK;
}

static void encode_group(struct ph__row_encoder *row, const char *cell, size_t length)
{
    uint64_t group = ph__text_hash(cell, length, 0);
    uint32_t *words = ph__row_words(row);
    words[row->encoder->group_word] = (uint32_t)group;
    words[row->encoder->group_word + 1] = (uint32_t)(group >> 32);
}

/* ---- lists ---- */

ph_status ph__row_item(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, float weight)
{
    size_t target;
    PH_TRY(ph__row_add_item(row, column, weight, &target));
    return target == SIZE_MAX ? PH_OK : encode_id(row, column, word, length, target);
}

ph_status ph__row_integer_item(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, float weight)
{
    size_t target;
    PH_TRY(ph__row_add_item(row, column, weight, &target));
    return target == SIZE_MAX ? PH_OK : encode_number(row, column, number, target);
}

/* Takes the text after the last colon as the weight. */
ph_status ph__row_weighted_item(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    const char *colon = memrchr(word, ':', length);
    double weight = 1;
    if (colon != NULL) {
        size_t id_length = (size_t)(colon - word);
        if (id_length == 0 || !ph__decimal_parse(colon + 1, length - id_length - 1, &weight) ||
            !isfinite((float)weight))
            return fail_cell(column, word, length, "is not id:weight with a finite number as weight");
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

/* ---- cells ---- */

#define BEYOND_FLOAT "is beyond the range of a 32-bit float, which ends at 3.4e38"

static bool is_beyond_float(double number)
{
    return isfinite(number) && isinf((float)number);
}

/* Returns the problem with the number of a label, a teacher, a dense value or a weight (NaN: a blank), or
 * NULL. */
static const char *problem_of(const struct ph__column *column, double number)
{
    switch (column->kind) {
    case PH_FIELD_LABEL:
        return number < 0 || number > 1 ? "is not a label in [0, 1]" : NULL;
    case PH_FIELD_TEACHER: /* as a float: 1 - 1e-9 rounds to 1 */
        return (float)number <= 0 || (float)number >= 1
                   ? "is not a teacher's probability, above 0 and below 1"
                   : NULL;
    case PH_FIELD_WEIGHT:
        if (is_beyond_float(number))
            return BEYOND_FLOAT;
        return number >= 0 && !isinf(number) ? NULL : "is not a weight, a finite number of at least 0";
    case PH_FIELD_DENSE:
    case PH_FIELD_ID:
    case PH_FIELD_GROUP:
    case PH_FIELD_SPLIT:
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
        return encode_dense(row, column, number);
    if (column->kind == PH_FIELD_LABEL || column->kind == PH_FIELD_TEACHER)
        encode_target(row, column, number);
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

static bool is_word(const char *word, const char *cell, size_t length)
{
    return strlen(word) == length && memcmp(word, cell, length) == 0;
}

/* Encodes a label that is 1 for one class of its cell, unless the cell is blank. */
static ph_status encode_class(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length)
{
    size_t count;
    const struct ph__column *const *classes = ph__encoder_made_from(row->encoder, column->from, &count);
    bool is_known = false;
    for (size_t i = 0; i < count && !is_known; i++)
        is_known = classes[i]->class_start > 0 && is_word(ph__column_class(classes[i]), cell, length);
    if (is_known)
        encode_target(row, column, is_word(ph__column_class(column), cell, length) ? 1 : 0);
    else if (length > 0 && !is_word("-1", cell, length))
        return fail_cell(column, cell, length, "is not one of its classes");
    return PH_OK;
}

ph_status ph__row_text(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length)
{
    if (column->class_start > 0)
        return encode_class(row, column, cell, length);
    switch (column->kind) {
    case PH_FIELD_LABEL:
    case PH_FIELD_TEACHER:
    case PH_FIELD_DENSE:
    case PH_FIELD_WEIGHT:
        return encode_text_number(row, column, cell, length);
    case PH_FIELD_SPLIT:
        row->is_outside = row->split != NULL && !is_word(row->split, cell, length);
        return PH_OK;
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

static ph_status encode_real_id(struct ph__row_encoder *row, const struct ph__column *column, double number)
{
    bool is_bucket = ph__column_is_bucket(column);
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
    if (column->class_start > 0) {
        char text[32];
        return ph__row_text(
            row, column, text, isnan(number) ? 0 : (size_t)snprintf(text, sizeof text, "%.15g", number));
    }
    if (column->kind == PH_FIELD_IGNORE || column->kind == PH_FIELD_SPLIT)
        return PH_OK;
    const char *problem = problem_of(column, number);
    return problem != NULL ? fail_number(column, number, problem) : encode_checked(row, column, number);
}

/* Encodes a number in decimal as ph__row_text does, but the text need not stay. */
static ph_status encode_whole(
    struct ph__row_encoder *row, const struct ph__column *column, const char *text, size_t length)
{
    size_t target = row->encoder->sparse_word + column->slot;
    if (column->is_group || column->kind == PH_FIELD_GROUP)
        encode_group(row, text, length);
    if (column->kind == PH_FIELD_GROUP)
        return PH_OK;
    if (column->component != PH_TIME_WHOLE)
        return encode_single(row, column, text, length);
    if (column->is_list)
        PH_TRY(ph__row_add_item(row, column, 1, &target));
    return target == SIZE_MAX ? PH_OK : encode_digits(row, column, text, length, target);
}

ph_status ph__row_integer(struct ph__row_encoder *row, const struct ph__column *column, int64_t number)
{
    char text[PH_LOOKUP_DIGITS];
    if (column->kind != PH_FIELD_ID && column->kind != PH_FIELD_GROUP)
        return ph__row_real(row, column, (double)number);
    if (column->kind == PH_FIELD_GROUP || column->is_group || column->component != PH_TIME_WHOLE)
        return encode_whole(row, column, text, ph__integer_write(number, text));
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
    return encode_whole(row, column, text, ph__unsigned_write(number, text));
}

static ph_status encode_integers(
    struct ph__row_encoder *row, const struct ph__column *column, const struct ph_cell *cell)
{
    if (column->kind != PH_FIELD_ID || !column->is_list)
        return ph_fail(PH_ERROR_DATA, "field '%s': not a list of ids; give it a single value", column->name);
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
    return ph_fail(PH_ERROR_USAGE, "field '%s': the cell's kind is unknown", column->name);
}
