#include "data/source/arrow_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "tensor/float16.h"

#define INLINE_VIEW_BYTES 12
#define MAX_DECIMAL_DIGITS 38
#define SECONDS_A_DAY 86400

/* ---- the type ---- */

/* Returns the digits behind the point in "d:19,10" or "d:19,10,128", here 10; -1: not such a format. */
static int scale_of(const char *format)
{
    int precision, scale, bits = 128, length = 0;
    if (sscanf(format, "d:%d,%d%n,%d%n", &precision, &scale, &length, &bits, &length) < 2 ||
        format[length] != '\0')
        return -1;
    return bits == 128 && scale >= 0 && scale <= MAX_DECIMAL_DIGITS ? scale : -1;
}

/* Returns the unit of "tdD", "tdm", "tss:", "tsm:", "tsu:", "tsn:", the latter four followed by any time
 * zone: their numbers count in UTC. */
static struct ph__arrow_clock clock_of(const char *format)
{
    static const struct {
        const char *start; /* start of the format; all of it unless it ends in a colon */
        struct ph__arrow_clock clock;
    } clocks[] = {
        {"tdD", {1, 0, true}},
        {"tdm", {SECONDS_A_DAY * 1000LL, 3, true}},
        {"tss:", {SECONDS_A_DAY, 0, false}},
        {"tsm:", {SECONDS_A_DAY * 1000LL, 3, false}},
        {"tsu:", {SECONDS_A_DAY * 1000000LL, 6, false}},
        {"tsn:", {SECONDS_A_DAY * 1000000000LL, 9, false}},
    };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const size_t length = strlen(clocks[i].start);
        const bool may_go_on = clocks[i].start[length - 1] == ':'; /* a time zone may follow */
        if (strncmp(format, clocks[i].start, length) == 0 && (may_go_on || format[length] == '\0'))
            return clocks[i].clock;
    }
    return (struct ph__arrow_clock){0};
}

static enum ph__arrow_kind kind_of(const struct ArrowSchema *schema, const char *format)
{
    if (schema->dictionary != NULL)
        return format[0] != '\0' && format[1] == '\0' && strchr("cCsSiIlL", format[0]) != NULL
                   ? PH_ARROW_DICTIONARY
                   : PH_ARROW_UNKNOWN;
    if (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0)
        return PH_ARROW_TEXT;
    if (strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 || strncmp(format, "+w:", 3) == 0)
        return PH_ARROW_LIST;
    if (clock_of(format).ticks_a_day > 0)
        return PH_ARROW_TIME;
    if (scale_of(format) >= 0)
        return PH_ARROW_DECIMAL;
    if (format[0] == '\0' || format[1] != '\0')
        return PH_ARROW_UNKNOWN;
    if (strchr("bcCsSiIl", format[0]) != NULL)
        return PH_ARROW_INTEGER;
    if (strchr("efg", format[0]) != NULL)
        return PH_ARROW_REAL;
    if (strchr("uUzZ", format[0]) != NULL)
        return PH_ARROW_TEXT;
    return format[0] == 'L' ? PH_ARROW_UINT64 : format[0] == 'n' ? PH_ARROW_BLANK : PH_ARROW_UNKNOWN;
}

static bool is_fixed_list(const struct ph__arrow_column *column)
{
    return column->kind == PH_ARROW_LIST && column->format[1] == 'w';
}

static bool is_view(const struct ph__arrow_column *column)
{
    return column->kind == PH_ARROW_TEXT && column->format[0] == 'v';
}

/* Returns the bytes of a value in `values`; 0 for bits. */
static size_t value_bytes(char code)
{
    switch (code) {
    case 's':
    case 'S':
    case 'e':
        return 2;
    case 'i':
    case 'I':
    case 'f':
        return 4;
    case 'l':
    case 'L':
    case 'g':
        return 8;
    case 'b':
        return 0;
    default:
        return 1;
    }
}

/* ---- making ---- */

static ph_status fail(const struct ph__arrow_column *column, const char *problem)
{
    return ph_fail(
        PH_ERROR_DATA, "arrow: column '%s' (format '%s') %s", column->name, column->format, problem);
}

static ph_status set_view_buffers(struct ph__arrow_column *column, const struct ArrowArray *array)
{
    column->num_text_buffers = array->n_buffers - 3;
    column->text_buffers = array->buffers + 2;
    column->text_sizes = array->buffers[array->n_buffers - 1];
    if (column->num_text_buffers > 0 && column->text_sizes == NULL)
        return fail(column, "lacks the sizes of its buffers");
    return PH_OK;
}

static ph_status set_buffers(struct ph__arrow_column *column, const struct ArrowArray *array)
{
    int64_t wanted = column->kind == PH_ARROW_TEXT ? 3 : is_fixed_list(column) ? 1 : 2;
    bool has_enough = is_view(column) ? array->n_buffers >= 3 : array->n_buffers == wanted;
    if (column->kind == PH_ARROW_BLANK)
        return PH_OK;
    if (!has_enough || array->buffers == NULL)
        return fail(column, "has the wrong number of buffers for its type");
    column->validity = array->buffers[0];
    if (column->validity == NULL && array->null_count > 0)
        return fail(column, "has nulls but no validity bitmap");
    if (is_fixed_list(column))
        return PH_OK;
    column->values = array->buffers[1];
    if (column->values == NULL && array->length > 0)
        return fail(column, "has rows but no buffer of values");
    if (is_view(column))
        return set_view_buffers(column, array);
    if (column->kind == PH_ARROW_TEXT)
        column->text = array->buffers[2];
    return PH_OK;
}

static ph_status init_column(struct ph__arena *arena, const struct ArrowSchema *schema,
    const struct ArrowArray *array, int depth, struct ph__arrow_column *column);

/* Makes the column of a dictionary's values or a list's items; nested lists and the like become unknown. */
static ph_status init_child(struct ph__arena *arena, const struct ArrowSchema *schema,
    const struct ArrowArray *array, int depth, struct ph__arrow_column *column)
{
    bool is_list = column->kind == PH_ARROW_LIST;
    bool has_child = is_list ? schema->n_children == 1 && array->n_children == 1 &&
                                   schema->children != NULL && array->children != NULL &&
                                   schema->children[0] != NULL && array->children[0] != NULL
                             : array->dictionary != NULL;
    if (!has_child)
        return fail(column, is_list ? "has no items" : "has no dictionary");
    column->child = ph__arena_alloc(arena, sizeof *column->child);
    if (column->child == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(init_column(arena, is_list ? schema->children[0] : schema->dictionary,
        is_list ? array->children[0] : array->dictionary, depth + 1, column->child));
    enum ph__arrow_kind kind = column->child->kind;
    bool is_written = kind == PH_ARROW_TIME || kind == PH_ARROW_DECIMAL;
    if (kind == PH_ARROW_UNKNOWN || kind == PH_ARROW_LIST || is_written ||
        (!is_list && kind == PH_ARROW_DICTIONARY))
        column->kind = PH_ARROW_UNKNOWN;
    return PH_OK;
}

/* Reads the size in "+w:3", and checks that all items are there. */
static ph_status set_list_size(struct ph__arrow_column *column, const char *format)
{
    char *end;
    int64_t last;
    column->list_size = strtoll(format + 3, &end, 10);
    if (end == format + 3 || *end != '\0' || column->list_size < 0 || column->list_size > INT32_MAX)
        return fail(column, "has no valid list size in its format");
    if (__builtin_mul_overflow(column->offset + column->length, column->list_size, &last) ||
        last > column->child->length)
        return fail(column, "has fewer items than its lists need");
    return PH_OK;
}

/* Returns "list<item>" for errors: the item's format tells why a list is not supported. */
static char *full_format(struct ph__arena *arena, const struct ArrowSchema *schema)
{
    bool has_item = schema->format[0] == '+' && schema->n_children == 1 && schema->children != NULL &&
                    schema->children[0] != NULL && schema->children[0]->format != NULL;
    const char *item = has_item ? schema->children[0]->format : NULL;
    return item != NULL ? ph__arena_printf(arena, "%s<%s>", schema->format, item)
                        : ph__arena_strdup(arena, schema->format);
}

static ph_status init_column(struct ph__arena *arena, const struct ArrowSchema *schema,
    const struct ArrowArray *array, int depth, struct ph__arrow_column *column)
{
    if (schema->format == NULL || schema->release == NULL || array->release == NULL)
        return ph_fail(PH_ERROR_USAGE, "arrow: a column has no format, or has been released");
    *column = (struct ph__arrow_column){
        .name = ph__arena_strdup(arena, schema->name != NULL ? schema->name : ""),
        .format = full_format(arena, schema),
        .kind = depth < 3 ? kind_of(schema, schema->format) : PH_ARROW_UNKNOWN,
        .code = schema->format[0],
        .length = array->length,
        .offset = array->offset,
    };
    if (column->name == NULL || column->format == NULL)
        return PH_ERROR_MEMORY;
    int64_t end;
    if (array->length < 0 || array->offset < 0 ||
        __builtin_add_overflow(array->length, array->offset, &end) || end > INT64_MAX / 16)
        return fail(column, "has an invalid length or offset");
    if (column->kind == PH_ARROW_UNKNOWN)
        return PH_OK;
    if (column->kind == PH_ARROW_TIME) {
        column->clock = clock_of(schema->format);
        column->code = strcmp(schema->format, "tdD") == 0 ? 'i' : 'l';
    }
    if (column->kind == PH_ARROW_DECIMAL)
        column->scale = scale_of(schema->format);
    PH_TRY(set_buffers(column, array));
    if (column->kind == PH_ARROW_LIST || column->kind == PH_ARROW_DICTIONARY)
        PH_TRY(init_child(arena, schema, array, depth, column));
    return is_fixed_list(column) ? set_list_size(column, schema->format) : PH_OK;
}

ph_status ph__arrow_column_init(struct ph__arena *arena, const struct ArrowSchema *schema,
    const struct ArrowArray *batch, int64_t index, struct ph__arrow_column *column_out)
{
    const struct ArrowArray *array = batch->children[index];
    const struct ArrowSchema *type = schema->children[index];
    if (array == NULL || type == NULL)
        return ph_fail(PH_ERROR_USAGE, "arrow: column %lld is missing", (long long)index);
    PH_TRY(init_column(arena, type, array, 0, column_out));
    if (array->length < batch->offset + batch->length)
        return fail(column_out, "has fewer rows than its batch");
    column_out->offset += batch->offset;
    column_out->length = batch->length;
    return PH_OK;
}

ph_status ph__arrow_column_check(const struct ph__arrow_column *column)
{
    return column->kind != PH_ARROW_UNKNOWN ? PH_OK : fail(column, "has a type that is not supported");
}

/* ---- values ---- */

bool ph__arrow_is_null(const struct ph__arrow_column *column, int64_t row)
{
    return column->kind == PH_ARROW_BLANK || !ph__arrow_bit(column->validity, column->offset + row);
}

static const unsigned char *value_at(const struct ph__arrow_column *column, int64_t row, size_t size)
{
    return column->values + (size_t)(column->offset + row) * size;
}

int64_t ph__arrow_integer(const struct ph__arrow_column *column, int64_t row)
{
    uint64_t word = 0;
    size_t size = value_bytes(column->code);
    if (size == 0)
        return ph__arrow_bit(column->values, column->offset + row);
    memcpy(&word, value_at(column, row, size), size); /* little-endian, as every supported machine */
    unsigned unused = 64 - 8 * (unsigned)size;
    bool is_signed = column->code >= 'a';
    return is_signed ? (int64_t)(word << unused) >> unused : (int64_t)word;
}

double ph__arrow_real(const struct ph__arrow_column *column, int64_t row)
{
    union {
        uint16_t half;
        float single;
        double whole;
    } value;
    size_t size = value_bytes(column->code);
    memcpy(&value, value_at(column, row, size), size);
    return size == 2   ? (double)ph__float_from_half(value.half)
           : size == 4 ? (double)value.single
                       : value.whole;
}

/* Reads offsets `row` and the next one, of 32 or 64 bits. */
static ph_status read_range(
    const struct ph__arrow_column *column, int64_t row, bool is_large, int64_t *first, int64_t *end)
{
    int32_t small[2];
    int64_t large[2];
    if (is_large)
        memcpy(large, value_at(column, row, sizeof large[0]), sizeof large);
    else
        memcpy(small, value_at(column, row, sizeof small[0]), sizeof small);
    *first = is_large ? large[0] : small[0];
    *end = is_large ? large[1] : small[1];
    return *first >= 0 && *first <= *end ? PH_OK : fail(column, "has offsets that decrease or are negative");
}

/* Reads a view: its length, then the text itself, or four bytes of the text, the number of its buffer and the
 * place there. */
static ph_status read_view(
    const struct ph__arrow_column *column, int64_t row, const char **text_out, size_t *length_out)
{
    const unsigned char *view = value_at(column, row, 16);
    int32_t length, buffer, place;
    memcpy(&length, view, sizeof length);
    memcpy(&buffer, view + 8, sizeof buffer);
    memcpy(&place, view + 12, sizeof place);
    if (length < 0)
        return fail(column, "has a text of negative length");
    *length_out = (size_t)length;
    *text_out = (const char *)view + 4;
    if (length <= INLINE_VIEW_BYTES)
        return PH_OK;
    int64_t size = 0;
    if (buffer >= 0 && buffer < column->num_text_buffers)
        memcpy(&size, column->text_sizes + (size_t)buffer * sizeof size, sizeof size);
    if (place < 0 || (int64_t)place + length > size || column->text_buffers[buffer] == NULL)
        return fail(column, "has a text outside its buffers");
    *text_out = (const char *)column->text_buffers[buffer] + place;
    return PH_OK;
}

ph_status ph__arrow_text(
    const struct ph__arrow_column *column, int64_t row, const char **text_out, size_t *length_out)
{
    int64_t first, end;
    if (is_view(column))
        return read_view(column, row, text_out, length_out);
    PH_TRY(read_range(column, row, column->code == 'U' || column->code == 'Z', &first, &end));
    if (end > first && column->text == NULL)
        return fail(column, "has texts but no buffer of text");
    *text_out = end > first ? (const char *)column->text + first : "";
    *length_out = (size_t)(end - first);
    return PH_OK;
}

/* Writes a decimal number with `scale` digits behind the point and at least one before it. */
static size_t write_decimal(__int128 number, int scale, char text[PH_ARROW_WRITTEN_BYTES])
{
    char digits[MAX_DECIMAL_DIGITS + 3]; /* last digit first */
    const bool is_negative = number < 0;
    int count = 0;
    size_t length = 0;
    for (unsigned __int128 rest = is_negative ? -(unsigned __int128)number : (unsigned __int128)number;
         rest > 0 || count <= scale; rest /= 10)
        digits[count++] = (char)('0' + (int)(rest % 10));
    if (is_negative)
        text[length++] = '-';
    while (count > 0) {
        text[length++] = digits[--count];
        if (count == scale && scale > 0)
            text[length++] = '.';
    }
    return length;
}

/* Writes the digits of a fraction with their point, or nothing when the fraction is 0. */
static size_t write_fraction(int64_t ticks, int num_digits, char *text)
{
    if (ticks == 0)
        return 0;
    text[0] = '.';
    for (int i = num_digits; i > 0; i--, ticks /= 10)
        text[i] = (char)('0' + ticks % 10);
    return 1 + (size_t)num_digits;
}

/* Writes "2014-10-21", or "2014-10-21 05:30:00" with a fraction in the unit's digits unless it is zero, in
 * UTC: like times in text, so that a row means the same from every source. Returns the length; 0 outside the
 * years 1 to 9999. */
static size_t write_time(struct ph__arrow_clock clock, int64_t ticks, char text[PH_ARROW_WRITTEN_BYTES])
{
    int64_t days = ticks / clock.ticks_a_day, rest = ticks % clock.ticks_a_day;
    if (rest < 0) {
        rest += clock.ticks_a_day;
        days--;
    }
    if (!ph__date_write(days, text))
        return 0;
    size_t length = PH_DATE_BYTES - 1;
    if (clock.is_date)
        return length;
    const int64_t ticks_a_second = clock.ticks_a_day / SECONDS_A_DAY;
    const int seconds = (int)(rest / ticks_a_second);
    length += (size_t)snprintf(text + length, PH_ARROW_WRITTEN_BYTES - length, " %02d:%02d:%02d",
        seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    length += write_fraction(rest % ticks_a_second, clock.num_digits, text + length);
    text[length] = '\0';
    return length;
}

ph_status ph__arrow_written(
    const struct ph__arrow_column *column, int64_t row, char text[PH_ARROW_WRITTEN_BYTES], size_t *length_out)
{
    if (column->kind == PH_ARROW_DECIMAL) {
        __int128 number;
        memcpy(&number, value_at(column, row, sizeof number), sizeof number);
        *length_out = write_decimal(number, column->scale, text);
        return PH_OK;
    }
    *length_out = write_time(column->clock, ph__arrow_integer(column, row), text);
    return *length_out > 0 ? PH_OK : fail(column, "has a time outside the years 1 to 9999");
}

ph_status ph__arrow_index(const struct ph__arrow_column *column, int64_t row, int64_t *index_out)
{
    int64_t index = ph__arrow_integer(column, row);
    if (index < 0 || index >= column->child->length)
        return fail(column, "has an index outside its dictionary");
    *index_out = index;
    return PH_OK;
}

ph_status ph__arrow_items(
    const struct ph__arrow_column *column, int64_t row, int64_t *first_out, int64_t *end_out)
{
    if (is_fixed_list(column)) {
        *first_out = (column->offset + row) * column->list_size;
        *end_out = *first_out + column->list_size;
        return PH_OK;
    }
    PH_TRY(read_range(column, row, column->format[1] == 'L', first_out, end_out));
    return *end_out <= column->child->length ? PH_OK : fail(column, "has lists beyond its items");
}
