#include "tensor/row_format.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tensor/float16.h"

enum { INT8_LEVELS = 255, INT4_LEVELS = 15 }; /* steps between the least and the largest */

struct range { /* a number is scale * level + offset */
    float scale, offset;
};

/* ---- names and sizes ---- */

const char *ph_row_format_name(enum ph_row_format format)
{
#define FORMAT_NAME(name, text) text,
    static const char *const names[PH_ROW_FORMAT_COUNT] = {PH_ROW_FORMAT_LIST(FORMAT_NAME)};
#undef FORMAT_NAME
    return (unsigned)format < PH_ROW_FORMAT_COUNT ? names[format] : "unknown";
}

ph_status ph__row_format_parse(const char *what, const char *text, enum ph_row_format *format_out)
{
#define FORMAT_LISTED(name, text) " " text
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++)
        if (strcmp(text, ph_row_format_name((enum ph_row_format)format)) == 0) {
            *format_out = (enum ph_row_format)format;
            return PH_OK;
        }
    return ph_fail(PH_ERROR_USAGE, "%s '%.32s' must be one of" PH_ROW_FORMAT_LIST(FORMAT_LISTED), what, text);
#undef FORMAT_LISTED
}

size_t ph__row_bytes(enum ph_row_format format, size_t dim)
{
    switch (format) {
    case PH_ROWS_FP16:
    case PH_ROWS_BF16:
    case PH_ROWS_BF16_SPLIT:
        return dim * sizeof(uint16_t);
    case PH_ROWS_INT8:
        return dim + 2 * sizeof(float);
    case PH_ROWS_INT4:
        return (dim + 1) / 2 + 2 * sizeof(uint16_t);
    case PH_ROWS_FP32:
    case PH_ROW_FORMAT_COUNT:
        break;
    }
    return dim * sizeof(ph_real);
}

size_t ph__table_bytes(enum ph_row_format format, size_t rows, size_t dim)
{
    const size_t low_bytes = format == PH_ROWS_BF16_SPLIT ? dim * sizeof(uint16_t) : 0;
    return rows * (ph__row_bytes(format, dim) + low_bytes);
}

bool ph__row_format_is_learnt(enum ph_row_format format)
{
    return format == PH_ROWS_FP32 || format == PH_ROWS_FP16 || format == PH_ROWS_BF16 ||
           format == PH_ROWS_BF16_SPLIT;
}

enum ph_row_format ph__row_format_fitting(enum ph_row_format format, size_t dim)
{
    return ph__row_bytes(format, dim) < ph__row_bytes(PH_ROWS_FP32, dim) ? format : PH_ROWS_FP32;
}

/* ---- encoding a row ---- */

/* Finds the least and the largest number; returns false where a number is not finite, or there is none. */
static bool find_bounds(size_t dim, const ph_real *numbers, float *least_out, float *largest_out)
{
    float least = INFINITY, largest = -INFINITY;
    bool is_finite = dim > 0;
    for (size_t d = 0; d < dim; d++) {
        const float number = (float)numbers[d];
        is_finite = is_finite && isfinite(number);
        least = number < least ? number : least;
        largest = number > largest ? number : largest;
    }
    *least_out = least;
    *largest_out = largest;
    return is_finite;
}

static struct range range_of_floats(size_t dim, const ph_real *numbers)
{
    float least, largest;
    if (!find_bounds(dim, numbers, &least, &largest))
        return (struct range){NAN, NAN};
    const float span = largest - least;
    return isfinite(span) ? (struct range){span / INT8_LEVELS, least} : (struct range){NAN, NAN};
}

/* Returns the range as halves hold it: the offset is rounded first, so that the scale reaches from there to
 * the largest number. */
static struct range range_of_halves(size_t dim, const ph_real *numbers)
{
    float least, largest;
    if (!find_bounds(dim, numbers, &least, &largest))
        return (struct range){NAN, NAN};
    const float offset = ph__float_from_half(ph__half_from_float(least));
    const double step = ((double)largest - (double)offset) / INT4_LEVELS;
    const float scale = ph__float_from_half(ph__half_from_float(step > 0 ? (float)step : 0));
    if (!isfinite(scale) || !isfinite(offset))
        return (struct range){NAN, NAN};
    return (struct range){scale, offset};
}

/* Returns the nearest level of a finite number; 0 where there is only one level, or none at all. */
static unsigned level_of(struct range range, int num_levels, ph_real number)
{
    if (!(range.scale > 0))
        return 0;
    const double level = ((double)number - (double)range.offset) / (double)range.scale;
    return level <= 0 ? 0 : level >= num_levels ? (unsigned)num_levels : (unsigned)lrint(level);
}

static void encode_words(
    size_t dim, const ph_real *numbers, unsigned char *row, uint16_t (*word_of)(float number))
{
    for (size_t d = 0; d < dim; d++) {
        const uint16_t word = word_of((float)numbers[d]);
        memcpy(row + d * sizeof word, &word, sizeof word);
    }
}

static void encode_split(size_t dim, const ph_real *numbers, unsigned char *row, uint16_t *low)
{
    for (size_t d = 0; d < dim; d++) {
        uint16_t unwanted;
        const uint16_t high = ph__split_float((float)numbers[d], low != NULL ? low + d : &unwanted);
        memcpy(row + d * sizeof high, &high, sizeof high);
    }
}

static void encode_int8(size_t dim, const ph_real *numbers, unsigned char *row)
{
    const struct range range = range_of_floats(dim, numbers);
    for (size_t d = 0; d < dim; d++)
        row[d] = (unsigned char)level_of(range, INT8_LEVELS, numbers[d]);
    memcpy(row + dim, &range, sizeof range);
}

static void encode_int4(size_t dim, const ph_real *numbers, unsigned char *row)
{
    const struct range range = range_of_halves(dim, numbers);
    const uint16_t halves[2] = {ph__half_from_float(range.scale), ph__half_from_float(range.offset)};
    for (size_t d = 0; d < dim; d += 2) {
        const unsigned even = level_of(range, INT4_LEVELS, numbers[d]);
        const unsigned odd = d + 1 < dim ? level_of(range, INT4_LEVELS, numbers[d + 1]) : 0;
        row[d / 2] = (unsigned char)(even | odd << 4);
    }
    memcpy(row + (dim + 1) / 2, halves, sizeof halves);
}

static void encode_row(
    enum ph_row_format format, size_t dim, const ph_real *numbers, unsigned char *row, uint16_t *low)
{
    switch (format) {
    case PH_ROWS_FP16:
        encode_words(dim, numbers, row, ph__half_from_float);
        break;
    case PH_ROWS_BF16:
        encode_words(dim, numbers, row, ph__bfloat_from_float);
        break;
    case PH_ROWS_BF16_SPLIT:
        encode_split(dim, numbers, row, low);
        break;
    case PH_ROWS_INT8:
        encode_int8(dim, numbers, row);
        break;
    case PH_ROWS_INT4:
        encode_int4(dim, numbers, row);
        break;
    case PH_ROWS_FP32:
    case PH_ROW_FORMAT_COUNT:
        memcpy(row, numbers, dim * sizeof *numbers);
        break;
    }
}

void ph__rows_encode(
    enum ph_row_format format, size_t rows, size_t dim, const ph_real *numbers, void *encoded, uint16_t *low)
{
    const size_t row_bytes = ph__row_bytes(format, dim);
    for (size_t i = 0; i < rows; i++)
        encode_row(format, dim, numbers + i * dim, (unsigned char *)encoded + i * row_bytes,
            low != NULL ? low + i * dim : NULL);
}

/* ---- decoding ---- */

static uint16_t word_at(const unsigned char *bytes)
{
    uint16_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static ph_real int8_number(size_t dim, const unsigned char *row, size_t d)
{
    struct range range;
    memcpy(&range, row + dim, sizeof range);
    return (ph_real)range.scale * (ph_real)row[d] + (ph_real)range.offset;
}

static ph_real int4_number(size_t dim, const unsigned char *row, size_t d)
{
    const unsigned char *halves = row + (dim + 1) / 2;
    const unsigned level = (unsigned)row[d / 2] >> 4 * (d % 2) & 15;
    return (ph_real)ph__float_from_half(word_at(halves)) * (ph_real)level +
           (ph_real)ph__float_from_half(word_at(halves + sizeof(uint16_t)));
}

ph_real ph__row_number(enum ph_row_format format, size_t dim, const void *row, size_t d)
{
    const unsigned char *bytes = row;
    ph_real number;
    assert(d < dim);
    switch (format) {
    case PH_ROWS_FP16:
        return (ph_real)ph__float_from_half(word_at(bytes + d * sizeof(uint16_t)));
    case PH_ROWS_BF16:
    case PH_ROWS_BF16_SPLIT:
        return (ph_real)ph__float_from_bfloat(word_at(bytes + d * sizeof(uint16_t)));
    case PH_ROWS_INT8:
        return int8_number(dim, bytes, d);
    case PH_ROWS_INT4:
        return int4_number(dim, bytes, d);
    case PH_ROWS_FP32:
    case PH_ROW_FORMAT_COUNT:
        break;
    }
    memcpy(&number, bytes + d * sizeof number, sizeof number);
    return number;
}
