/* Parses JSON, then reads the text once more along the document and compares the two.
 *
 * jansson gathers the bytes of a string or number in a buffer. Without memory to grow the buffer, jansson
 * (2.14) drops bytes and reports no error. A vocabulary is one long string, which would come back as
 * another one. The second reading knows that the text is a JSON object or array and does not check the
 * grammar again. */
#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
};

/* ---- strings ---- */

/* Reads four hexadecimal digits. */
static uint32_t read_code(struct reader *reader)
{
    uint32_t code = 0;
    for (size_t i = 0; i < 4 && reader->at < reader->end; i++, reader->at++) {
        const char digit = *reader->at;
        code = code * 16 + (uint32_t)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return code;
}

static size_t write_utf8(uint32_t code, unsigned char bytes[4])
{
    if (code < 0x80) {
        bytes[0] = (unsigned char)code;
        return 1;
    }
    const size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
    bytes[0] = (unsigned char)((0xf00u >> size) | code);
    return size;
}

/* Decodes an escape whose backslash has been read, into UTF-8; a code above U+FFFF is two escapes. Returns
 * the bytes. */
static size_t read_escape(struct reader *reader, unsigned char bytes[4])
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const char letter = *reader->at++;
    const char *found = strchr(letters, letter);
    if (letter != 'u') {
        bytes[0] = (unsigned char)(found != NULL ? meanings[found - letters] : letter);
        return 1;
    }
    uint32_t code = read_code(reader);
    if (code >= 0xd800 && code < 0xdc00) {
        reader->at += 2; /* the \u of the second escape */
        code = 0x10000 + ((code - 0xd800) << 10) + (read_code(reader) - 0xdc00);
    }
    return write_utf8(code, bytes);
}

static bool is_string(struct reader *reader, const char *value)
{
    const char *end = value + strlen(value);
    reader->at++; /* the quotation mark */
    while (reader->at < reader->end && *reader->at != '"') {
        unsigned char bytes[4] = {(unsigned char)*reader->at};
        size_t size = 1;
        if (*reader->at++ == '\\')
            size = read_escape(reader, bytes);
        if ((size_t)(end - value) < size || memcmp(value, bytes, size) != 0)
            return false;
        value += size;
    }
    reader->at++;
    return value == end;
}

/* ---- numbers and words ---- */

/* Reads a number with a decimal point, whatever the locale's is. */
static double real_at(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double number = strtod_l(text, NULL, plain);
    freelocale(plain);
    return number;
}

/* Compares a number or word. A number ends before a bracket, comma or blank. The document's type already
 * tells true, false and null. */
static bool is_scalar(struct reader *reader, const struct ph__json *json)
{
    const char *text = reader->at;
    while (reader->at < reader->end && strchr(",]} \t\r\n", *reader->at) == NULL)
        reader->at++;
    if (ph__json_is_integer(json))
        return ph__json_as_integer(json, 0) == strtoll(text, NULL, 10);
    const double number = ph__json_as_number(json, (double)NAN);
    return isnan(number) || number == real_at(text);
}

/* ---- documents ---- */

static bool is_value(struct reader *reader, const struct ph__json *json);

/* Skips what stands between values: blanks, commas, colons, and the brackets that end a list. */
static void skip_to_value(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n,:]}", *reader->at) != NULL)
        reader->at++;
}

static bool is_array(struct reader *reader, const struct ph__json *json)
{
    bool is_same = true;
    reader->at++;
    for (size_t i = 0; i < ph__json_size(json) && is_same; i++)
        is_same = is_value(reader, ph__json_at(json, i));
    return is_same;
}

/* Compares an object; its members keep the order of the text. */
static bool is_object(struct reader *reader, const struct ph__json *json)
{
    struct ph__json_member member = {0};
    bool is_same = true;
    reader->at++;
    while (is_same && ph__json_next_member(json, &member)) {
        skip_to_value(reader);
        is_same = is_string(reader, member.key) && is_value(reader, member.value);
    }
    return is_same;
}

static bool is_value(struct reader *reader, const struct ph__json *json)
{
    skip_to_value(reader);
    if (ph__json_is_object(json))
        return is_object(reader, json);
    if (ph__json_is_array(json))
        return is_array(reader, json);
    const char *text = ph__json_as_text(json, NULL);
    return text != NULL ? is_string(reader, text) : is_scalar(reader, json);
}

/* Tells whether the document equals the text from which it was read without an error. False: memory ran out,
 * and the document has lost something. */
static bool is_text(const struct ph__json *json, const char *text, size_t size)
{
    struct reader reader = {text, text + size};
    return is_value(&reader, json);
}

/* ---- parsing ---- */

static ph_status parse(const char *text, size_t size, bool is_start, const char *where,
    ph_status error_status, struct ph__json **json_out)
{
    struct ph__json *json = NULL;
    size_t end = size;
    PH_TRY(ph__json_load(text, size, where, error_status, is_start ? &end : NULL, &json));
    if (!is_text(json, text, end)) {
        ph__json_destroy(json);
        return ph__out_of_memory("%s: a JSON document", where);
    }
    *json_out = json;
    return PH_OK;
}

ph_status ph__json_parse(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out)
{
    return parse(text, size, false, where, error_status, json_out);
}

ph_status ph__json_read(
    const char *path, ph_status error_status, uint64_t max_bytes, struct ph__json **json_out)
{
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    ph_status status = ph__file_read(&arena, path, max_bytes, &text, &size);
    if (status == PH_ERROR_DATA)
        status = ph_fail(error_status, "%s", ph_error_text());
    if (status == PH_OK)
        status = ph__json_parse(text, size, path, error_status, json_out);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__json_parse_start(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out)
{
    return parse(text, size, true, where, error_status, json_out);
}
