#include "base/format/json_scan.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/text/utf8.h"

#define MAX_DEPTH 64

const char ph__json_no_memory[] = "out of memory";

void ph__json_scan_init(struct ph__json_scan *scan, const char *text, size_t size, struct ph__arena *arena)
{
    const char *start = size > 0 ? text : ""; /* text may be NULL otherwise */
    *scan = (struct ph__json_scan){.start = start, .at = start, .end = start + size, .arena = arena};
    if (!ph__utf8_is_valid(start, size))
        ph__json_scan_fail(scan, "the text is not UTF-8");
}

void ph__json_scan_fail(struct ph__json_scan *scan, const char *fault)
{
    if (scan->fault == NULL)
        scan->fault = fault;
}

static void skip_blanks(struct ph__json_scan *scan)
{
    const char *at = scan->at;
    while (at < scan->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    scan->at = at;
}

/* Takes the character if it comes next. */
static bool take(struct ph__json_scan *scan, char character)
{
    skip_blanks(scan);
    if (scan->at == scan->end || *scan->at != character)
        return false;
    scan->at++;
    return true;
}

ph_status ph__json_scan_finish(struct ph__json_scan *scan)
{
    skip_blanks(scan);
    if (scan->at < scan->end)
        ph__json_scan_fail(scan, "the text goes on behind its value");
    if (scan->fault == NULL)
        return PH_OK;
    if (scan->fault == ph__json_no_memory)
        return ph__out_of_memory("values of JSON");
    const size_t byte = (size_t)(scan->at - scan->start);
    if (scan->fault_field == NULL)
        return ph_fail(PH_ERROR_DATA, "JSON, byte %zu: %s", byte, scan->fault);
    return ph_fail(PH_ERROR_DATA, "JSON, byte %zu, '%s': %s", byte, scan->fault_field, scan->fault);
}

/* ---- types ---- */

static bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static const char *skip_digits(const char *at, const char *end)
{
    while (is_digit(at, end))
        at++;
    return at;
}

/* Returns the end of the number at `at`, or NULL when there is none. */
static const char *end_of_number(const char *at, const char *end, bool *is_integer_out)
{
    at += at < end && *at == '-';
    if (!is_digit(at, end))
        return NULL;
    at = *at == '0' ? at + 1 : skip_digits(at, end);
    *is_integer_out = true;
    if (at < end && *at == '.') {
        *is_integer_out = false;
        if (!is_digit(++at, end))
            return NULL;
        at = skip_digits(at, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        *is_integer_out = false;
        at++;
        at += at < end && (*at == '+' || *at == '-');
        if (!is_digit(at, end))
            return NULL;
        at = skip_digits(at, end);
    }
    return at;
}

static enum ph__json_type number_type(const struct ph__json_scan *scan)
{
    bool is_integer;
    if (end_of_number(scan->at, scan->end, &is_integer) == NULL)
        return PH_JSON_TYPE_NONE;
    return is_integer ? PH_JSON_TYPE_INTEGER : PH_JSON_TYPE_REAL;
}

enum ph__json_type ph__json_scan_type(struct ph__json_scan *scan)
{
    skip_blanks(scan);
    if (scan->fault != NULL || scan->at == scan->end)
        return PH_JSON_TYPE_NONE;
    switch (*scan->at) {
    case '{':
        return PH_JSON_TYPE_OBJECT;
    case '[':
        return PH_JSON_TYPE_ARRAY;
    case '"':
        return PH_JSON_TYPE_STRING;
    case 't':
    case 'f':
        return PH_JSON_TYPE_BOOL;
    case 'n':
        return PH_JSON_TYPE_NULL;
    default:
        return number_type(scan);
    }
}

/* ---- containers ---- */

void ph__json_scan_begin(struct ph__json_scan *scan)
{
    const bool is_object = take(scan, '{');
    if (scan->fault != NULL)
        return;
    if (!is_object && !take(scan, '['))
        ph__json_scan_fail(scan, "an object or an array is expected");
    if (scan->depth == MAX_DEPTH)
        ph__json_scan_fail(scan, "containers nest too deep");
    if (scan->fault != NULL)
        return;
    scan->depth++;
    scan->is_object = scan->is_object << 1 | (uint64_t)is_object;
    scan->is_first = true;
}

/* Leaves the innermost container when its bracket comes next. */
static bool ends(struct ph__json_scan *scan)
{
    if (!take(scan, (scan->is_object & 1) != 0 ? '}' : ']'))
        return false;
    scan->depth--;
    scan->is_object >>= 1;
    scan->is_first = false;
    return true;
}

bool ph__json_scan_next(struct ph__json_scan *scan, struct ph__bytes *key_out)
{
    *key_out = (struct ph__bytes){0};
    if (scan->fault != NULL || scan->depth == 0)
        return false;
    const bool is_first = scan->is_first;
    scan->is_first = false;
    if (ends(scan))
        return false;
    if (!is_first && !take(scan, ','))
        ph__json_scan_fail(scan, "a comma or a closing bracket is expected");
    if ((scan->is_object & 1) != 0) {
        *key_out = ph__json_scan_string(scan);
        if (!take(scan, ':'))
            ph__json_scan_fail(scan, "a colon is expected");
    }
    return scan->fault == NULL;
}

/* ---- strings ---- */

/* Reads four hexadecimal digits. Returns false without them. */
static bool read_code(const char **at, const char *end, uint32_t *code_out)
{
    uint32_t code = 0;
    if (end - *at < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        const int digit = ph__hex_digit(*(*at)++);
        if (digit < 0)
            return false;
        code = code * 16 + (uint32_t)digit;
    }
    *code_out = code;
    return true;
}

static size_t write_utf8(uint32_t code, char *bytes)
{
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    const size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)((0xf00u >> size) | code);
    return size;
}

/* Decodes the escape behind a backslash into UTF-8, at most four bytes. Returns their number; 0: there is no
 * such escape. Two escapes make a character above U+FFFF; half of one is refused. */
static size_t decode_escape(const char **at, const char *end, char *bytes)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    if (*at == end)
        return 0;
    const char letter = *(*at)++;
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    if (found != NULL) {
        bytes[0] = meanings[found - letters];
        return 1;
    }
    if (letter != 'u' || !read_code(at, end, &code) || (code >= 0xdc00 && code < 0xe000))
        return 0;
    if (code < 0xd800 || code >= 0xe000)
        return write_utf8(code, bytes);
    if (end - *at < 2 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return 0;
    *at += 2;
    if (!read_code(at, end, &low) || low < 0xdc00 || low >= 0xe000)
        return 0;
    return write_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), bytes);
}

/* Returns the closing quotation mark of the string that begins at `at`, or NULL. */
static const char *end_of_string(const char *at, const char *end, bool *has_escapes_out)
{
    *has_escapes_out = false;
    for (; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < ' ')
            return NULL;
        if (*at == '\\') {
            *has_escapes_out = true;
            if (++at == end)
                return NULL;
        }
    }
    return at < end ? at : NULL;
}

static struct ph__bytes unescape(struct ph__json_scan *scan, const char *at, const char *end)
{
    char *text = ph__arena_alloc(scan->arena, (size_t)(end - at));
    size_t size = 0;
    if (text == NULL)
        ph__json_scan_fail(scan, ph__json_no_memory);
    while (at < end && scan->fault == NULL) {
        if (*at != '\\') {
            text[size++] = *at++;
            continue;
        }
        at++;
        const size_t length = decode_escape(&at, end, text + size);
        if (length == 0)
            ph__json_scan_fail(scan, "unknown escape in a string");
        size += length;
    }
    return scan->fault == NULL ? (struct ph__bytes){text, size} : (struct ph__bytes){0};
}

struct ph__bytes ph__json_scan_string(struct ph__json_scan *scan)
{
    bool has_escapes;
    if (scan->fault != NULL)
        return (struct ph__bytes){0};
    if (!take(scan, '"')) {
        ph__json_scan_fail(scan, "a string is expected");
        return (struct ph__bytes){0};
    }
    const char *start = scan->at, *end = end_of_string(start, scan->end, &has_escapes);
    if (end == NULL) {
        ph__json_scan_fail(scan, "a string does not end, or has a control character");
        return (struct ph__bytes){0};
    }
    scan->at = end + 1;
    return has_escapes ? unescape(scan, start, end) : (struct ph__bytes){start, (size_t)(end - start)};
}

/* ---- other values ---- */

static bool take_word(struct ph__json_scan *scan, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(scan);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

bool ph__json_scan_bool(struct ph__json_scan *scan)
{
    if (scan->fault != NULL)
        return false;
    const bool value = take_word(scan, "true");
    if (!value && !take_word(scan, "false"))
        ph__json_scan_fail(scan, "true or false is expected");
    return value;
}

void ph__json_scan_null(struct ph__json_scan *scan)
{
    if (scan->fault == NULL && !take_word(scan, "null"))
        ph__json_scan_fail(scan, "null is expected");
}

static struct ph__bytes take_number(struct ph__json_scan *scan)
{
    bool is_integer;
    skip_blanks(scan);
    const char *start = scan->at, *end = end_of_number(start, scan->end, &is_integer);
    if (end == NULL) {
        ph__json_scan_fail(scan, "a number is expected");
        return (struct ph__bytes){0};
    }
    scan->at = end;
    return (struct ph__bytes){start, (size_t)(end - start)};
}

int64_t ph__json_scan_integer(struct ph__json_scan *scan)
{
    char text[PH_INTEGER_TEXT_BYTES];
    int64_t integer = 0;
    if (scan->fault != NULL)
        return 0;
    const struct ph__bytes number = take_number(scan);
    if (scan->fault != NULL)
        return 0;
    if (number.size < sizeof text) {
        memcpy(text, number.bytes, number.size);
        text[number.size] = '\0';
    }
    if (number.size >= sizeof text || !ph__integer_parse(text, &integer))
        ph__json_scan_fail(scan, "an integer of 64 bits is expected");
    return integer;
}

double ph__json_scan_number(struct ph__json_scan *scan)
{
    double real = 0;
    if (scan->fault != NULL)
        return 0;
    const struct ph__bytes number = take_number(scan);
    if (scan->fault == NULL && !ph__decimal_parse(number.bytes, number.size, &real))
        ph__json_scan_fail(scan, "a number within the range of double is expected");
    return real;
}

static void skip_scalar(struct ph__json_scan *scan, enum ph__json_type type)
{
    bool has_escapes;
    if (type == PH_JSON_TYPE_BOOL)
        (void)ph__json_scan_bool(scan);
    else if (type == PH_JSON_TYPE_NULL)
        ph__json_scan_null(scan);
    else if (type == PH_JSON_TYPE_INTEGER || type == PH_JSON_TYPE_REAL)
        (void)take_number(scan);
    else if (type == PH_JSON_TYPE_STRING) {
        const char *end = end_of_string(scan->at + 1, scan->end, &has_escapes);
        if (end == NULL)
            ph__json_scan_fail(scan, "a string does not end, or has a control character");
        else
            scan->at = end + 1;
    } else
        ph__json_scan_fail(scan, "a value is expected");
}

struct ph__bytes ph__json_scan_skip(struct ph__json_scan *scan)
{
    struct ph__bytes key;
    const unsigned depth = scan->depth;
    skip_blanks(scan);
    const char *start = scan->at;
    do {
        const enum ph__json_type type = ph__json_scan_type(scan);
        if (type == PH_JSON_TYPE_OBJECT || type == PH_JSON_TYPE_ARRAY)
            ph__json_scan_begin(scan);
        else
            skip_scalar(scan, type);
        while (scan->depth > depth && scan->fault == NULL && !ph__json_scan_next(scan, &key))
            ;
    } while (scan->depth > depth && scan->fault == NULL);
    return (struct ph__bytes){start, scan->fault == NULL ? (size_t)(scan->at - start) : 0};
}

/* ---- writing ---- */

static void append_escape(struct ph__buffer *text, unsigned char character)
{
    char escape[8];
    if (character == '"' || character == '\\')
        snprintf(escape, sizeof escape, "\\%c", character);
    else
        snprintf(escape, sizeof escape, "\\u%04x", character);
    ph__buffer_append_text(text, escape);
}

void ph__json_append_string(struct ph__buffer *text, struct ph__bytes string)
{
    uint32_t code;
    size_t plain = 0; /* bytes from here on are copied as they are */
    ph__buffer_append(text, "\"", 1);
    for (size_t at = 0; at < string.size;) {
        const size_t length = ph__utf8_decode(string.bytes + at, string.size - at, &code);
        const bool is_plain = length > 0 && code >= ' ' && code != '"' && code != '\\';
        if (!is_plain) {
            ph__buffer_append(text, string.bytes + plain, at - plain);
            if (length > 0)
                append_escape(text, (unsigned char)code);
            else
                ph__buffer_append_text(text, "\xef\xbf\xbd");
            plain = at + (length > 0 ? length : 1);
        }
        at += length > 0 ? length : 1;
    }
    ph__buffer_append(text, string.bytes + plain, string.size - plain);
    ph__buffer_append(text, "\"", 1);
}
