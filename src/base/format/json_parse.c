/* Parses JSON: json_scan.h reads the values, and jansson keeps them. jansson's own parser (2.14) may lose
 * part of a document unnoticed when memory runs out. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/format/json_scan.h"
#include "base/memory/memory.h"

static json_t *read_value(struct ph__json_scan *scan);

static json_t *read_text(struct ph__json_scan *scan)
{
    const struct ph__bytes text = ph__json_scan_string(scan);
    if (text.size == 0)
        return json_string("");
    if (memchr(text.bytes, '\0', text.size) != NULL)
        ph__json_scan_fail(scan, "a string holds U+0000");
    return json_stringn_nocheck(text.bytes, text.size);
}

/* Reads a number exactly, with a decimal point in any locale. */
static json_t *read_real(struct ph__json_scan *scan)
{
    const struct ph__bytes text = ph__json_scan_skip(scan);
    if (scan->at == scan->end) /* strtod would read on */
        ph__json_scan_fail(scan, "the text ends within its value");
    if (scan->fault != NULL)
        return NULL;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double number = strtod_l(text.bytes, NULL, plain);
    freelocale(plain);
    if (!isfinite(number))
        ph__json_scan_fail(scan, "a number within the range of double is expected");
    return json_real(number);
}

static void add_member(struct ph__json_scan *scan, json_t *object, struct ph__bytes key)
{
    char *name = ph__arena_alloc(scan->arena, key.size + 1);
    if (name != NULL && key.size > 0)
        memcpy(name, key.bytes, key.size);
    if (name != NULL && (strlen(name) < key.size || json_object_get(object, name) != NULL))
        ph__json_scan_fail(scan, "a key holds U+0000, or is there twice");
    if (json_object_set_new_nocheck(object, name, read_value(scan)) != 0)
        ph__json_scan_fail(scan, ph__json_no_memory);
}

static json_t *read_container(struct ph__json_scan *scan)
{
    struct ph__bytes key;
    const bool is_object = ph__json_scan_type(scan) == PH_JSON_TYPE_OBJECT;
    json_t *container = is_object ? json_object() : json_array();
    ph__json_scan_begin(scan);
    while (ph__json_scan_next(scan, &key))
        if (is_object)
            add_member(scan, container, key);
        else if (json_array_append_new(container, read_value(scan)) != 0)
            ph__json_scan_fail(scan, ph__json_no_memory);
    return container;
}

/* Returns NULL without memory, or after a fault. */
static json_t *read_value(struct ph__json_scan *scan)
{
    switch (ph__json_scan_type(scan)) {
    case PH_JSON_TYPE_OBJECT:
    case PH_JSON_TYPE_ARRAY:
        return read_container(scan);
    case PH_JSON_TYPE_STRING:
        return read_text(scan);
    case PH_JSON_TYPE_INTEGER:
        return json_integer(ph__json_scan_integer(scan));
    case PH_JSON_TYPE_REAL:
        return read_real(scan);
    case PH_JSON_TYPE_BOOL:
        return json_boolean(ph__json_scan_bool(scan));
    case PH_JSON_TYPE_NULL:
        ph__json_scan_null(scan);
        return json_null();
    case PH_JSON_TYPE_NONE:
        break;
    }
    ph__json_scan_fail(scan, "a value is expected");
    return NULL;
}

static size_t line_of(const struct ph__json_scan *scan)
{
    size_t line = 1;
    for (const char *at = scan->start; at < scan->at; at++)
        line += *at == '\n';
    return line;
}

/* Reads the object or array of the text; is_start: whatever stands behind it. */
static ph_status parse(const char *text, size_t size, bool is_start, const char *where,
    ph_status error_status, struct ph__json **json_out)
{
    struct ph__arena arena = {0};
    struct ph__json_scan scan;
    ph__json_scan_init(&scan, text, size, &arena);
    json_t *json = read_container(&scan);
    if (json == NULL)
        ph__json_scan_fail(&scan, ph__json_no_memory);
    ph_status status = is_start && scan.fault == NULL ? PH_OK : ph__json_scan_finish(&scan);
    if (status == PH_OK)
        *json_out = (struct ph__json *)(void *)json;
    else
        json_decref(json);
    if (status == PH_ERROR_MEMORY)
        status = ph__out_of_memory("%s: a JSON document", where);
    else if (status != PH_OK)
        status = ph_fail(error_status, "%s:%zu: not valid JSON: %s", where, line_of(&scan), scan.fault);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__json_parse(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out)
{
    return parse(text, size, false, where, error_status, json_out);
}

ph_status ph__json_parse_start(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out)
{
    return parse(text, size, true, where, error_status, json_out);
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
