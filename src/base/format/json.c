/* JSON over jansson: a ph__json is a json_t by another name.
 *
 * The text is written here, not by jansson, which gives every number 17 digits: 0.1 should read 0.1. A
 * builder that runs out of memory notes the failure for its thread; the next text that this thread asks for
 * reports it. */
#include "base/format/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/text/number.h"

static _Thread_local bool has_failed;

static json_t *node(struct ph__json *json)
{
    return (json_t *)(void *)json;
}

static const json_t *const_node(const struct ph__json *json)
{
    return (const json_t *)(const void *)json;
}

/* ---- building ---- */

static struct ph__json *checked(json_t *made)
{
    has_failed = has_failed || made == NULL;
    return (struct ph__json *)(void *)made;
}

struct ph__json *ph__json_object(void)
{
    return checked(json_object());
}

struct ph__json *ph__json_array(void)
{
    return checked(json_array());
}

/* Makes a text node. In text that is not UTF-8 (a path may hold any bytes), bytes above 0x7f become '?'. */
static json_t *text_node(const char *text)
{
    if (text == NULL)
        return json_null();
    json_t *made = json_string(text);
    if (made != NULL)
        return made;
    char *ascii = strdup(text);
    if (ascii == NULL)
        return NULL;
    for (char *at = ascii; *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    made = json_string(ascii);
    free(ascii);
    return made;
}

static json_t *number_node(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

/* Sets a member; a NULL object or child is a failure noted before. */
static void set_node(struct ph__json *object, const char *key, json_t *child)
{
    if (json_object_set_new_nocheck(node(object), key, child) != 0)
        has_failed = true;
}

static void append_node(struct ph__json *array, json_t *child)
{
    if (json_array_append_new(node(array), child) != 0)
        has_failed = true;
}

void ph__json_set_text(struct ph__json *object, const char *key, const char *text)
{
    set_node(object, key, text_node(text));
}

void ph__json_set_number(struct ph__json *object, const char *key, double number)
{
    set_node(object, key, number_node(number));
}

void ph__json_set_integer(struct ph__json *object, const char *key, int64_t number)
{
    set_node(object, key, json_integer(number));
}

void ph__json_set_bool(struct ph__json *object, const char *key, bool value)
{
    set_node(object, key, json_boolean(value));
}

void ph__json_set_null(struct ph__json *object, const char *key)
{
    set_node(object, key, json_null());
}

void ph__json_set(struct ph__json *object, const char *key, struct ph__json *child)
{
    set_node(object, key, node(child));
}

void ph__json_append(struct ph__json *array, struct ph__json *child)
{
    append_node(array, node(child));
}

void ph__json_append_text(struct ph__json *array, const char *text)
{
    append_node(array, text_node(text));
}

void ph__json_append_integer(struct ph__json *array, int64_t number)
{
    append_node(array, json_integer(number));
}

void ph__json_append_number(struct ph__json *array, double number)
{
    append_node(array, number_node(number));
}

void ph__json_destroy(struct ph__json *json)
{
    json_decref(node(json));
}

/* ---- text ---- */

/* A printer; `indent` 0 prints one line. */
struct printer {
    FILE *file;
    int indent;
};

static void print_break(const struct printer *printer, size_t depth)
{
    if (printer->indent > 0)
        fprintf(printer->file, "\n%*s", (int)depth * printer->indent, "");
}

void ph__json_print_text(FILE *file, const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    putc_unlocked('"', file);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", file);
        else if (c == '\t')
            fputs("\\t", file);
        else if (c < 0x20 || c == 0x7f)
            fprintf(file, "\\u00%c%c", hex[c >> 4], hex[c & 15]);
        else
            putc_unlocked(c, file);
    }
    putc_unlocked('"', file);
}

/* Prints a real so that it is read back as a real: 1.0, not 1. */
static void print_real(const struct printer *printer, double number)
{
    char text[PH_NUMBER_TEXT_BYTES];
    ph__number_format(number, text);
    bool looks_real = strpbrk(text, ".e") != NULL;
    fprintf(printer->file, "%s%s", text, looks_real ? "" : ".0");
}

static void print_node(const struct printer *printer, const json_t *json, size_t depth);

static void print_array(const struct printer *printer, const json_t *json, size_t depth)
{
    size_t count = json_array_size(json);
    putc_unlocked('[', printer->file);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            putc_unlocked(',', printer->file);
        print_break(printer, depth + 1);
        print_node(printer, json_array_get(json, i), depth + 1);
    }
    if (count > 0)
        print_break(printer, depth);
    putc_unlocked(']', printer->file);
}

/* Returns the first member. jansson's iterator takes an object that is not const, and does not change it. */
static void *first_member(const json_t *object)
{
    union {
        const json_t *constant;
        json_t *iterated;
    } json = {.constant = object};
    return json_object_iter(json.iterated);
}

static void *next_member(const json_t *object, void *member)
{
    union {
        const json_t *constant;
        json_t *iterated;
    } json = {.constant = object};
    return json_object_iter_next(json.iterated, member);
}

static void print_object(const struct printer *printer, const json_t *json, size_t depth)
{
    bool is_first = true;
    putc_unlocked('{', printer->file);
    for (void *member = first_member(json); member != NULL; member = next_member(json, member)) {
        const char *key = json_object_iter_key(member);
        if (!is_first)
            putc_unlocked(',', printer->file);
        print_break(printer, depth + 1);
        ph__json_print_text(printer->file, key, strlen(key));
        fputs(printer->indent > 0 ? ": " : ":", printer->file);
        print_node(printer, json_object_iter_value(member), depth + 1);
        is_first = false;
    }
    if (!is_first)
        print_break(printer, depth);
    putc_unlocked('}', printer->file);
}

static void print_node(const struct printer *printer, const json_t *json, size_t depth)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        print_object(printer, json, depth);
        break;
    case JSON_ARRAY:
        print_array(printer, json, depth);
        break;
    case JSON_STRING:
        ph__json_print_text(printer->file, json_string_value(json), json_string_length(json));
        break;
    case JSON_INTEGER:
        fprintf(printer->file, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        break;
    case JSON_REAL:
        print_real(printer, json_real_value(json));
        break;
    case JSON_TRUE:
        fputs("true", printer->file);
        break;
    case JSON_FALSE:
        fputs("false", printer->file);
        break;
    case JSON_NULL:
        fputs("null", printer->file);
        break;
    }
}

ph_status ph__json_text(const struct ph__json *json, int indent, char **text_out)
{
    bool is_incomplete = has_failed || json == NULL;
    has_failed = false;
    char *text = NULL;
    size_t size = 0;
    FILE *file = is_incomplete ? NULL : open_memstream(&text, &size);
    if (file == NULL)
        return ph__out_of_memory("a JSON document");
    struct printer printer = {file, indent};
    print_node(&printer, const_node(json), 0);
    bool is_printed = ferror(file) == 0;
    if (fclose(file) != 0 || !is_printed) {
        free(text);
        return ph__out_of_memory("the text of a JSON document");
    }
    *text_out = text;
    return PH_OK;
}

ph_status ph__json_write(const struct ph__json *json, const char *path)
{
    char *text = NULL;
    ph_status status = ph__json_text(json, 2, &text);
    if (status != PH_OK)
        return ph_fail(status, "%s: %s", path, ph_error_text());
    struct ph__atomic_file file;
    status = ph__atomic_file_open(path, &file);
    if (status != PH_OK)
        goto done;
    status = ph__atomic_file_write(&file, text, strlen(text));
    if (status == PH_OK)
        status = ph__atomic_file_write(&file, "\n", 1);
    if (status == PH_OK)
        status = ph__atomic_file_commit(&file);
    else
        ph__atomic_file_abandon(&file);
done:
    free(text);
    return status;
}

/* ---- reading ---- */

static const struct ph__json *as_ph(const json_t *json)
{
    return (const struct ph__json *)(const void *)json;
}

const struct ph__json *ph__json_get(const struct ph__json *object, const char *key)
{
    return as_ph(json_object_get(const_node(object), key));
}

const struct ph__json *ph__json_at(const struct ph__json *array, size_t index)
{
    return as_ph(json_array_get(const_node(array), index));
}

size_t ph__json_size(const struct ph__json *json)
{
    const json_t *value = const_node(json);
    return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

bool ph__json_next_member(const struct ph__json *object, struct ph__json_member *member)
{
    const json_t *json = const_node(object);
    void *place = member->place == NULL ? first_member(json) : next_member(json, member->place);
    if (place == NULL)
        return false;
    *member =
        (struct ph__json_member){json_object_iter_key(place), as_ph(json_object_iter_value(place)), place};
    return true;
}

const char *ph__json_as_text(const struct ph__json *json, const char *fallback)
{
    return json_is_string(const_node(json)) ? json_string_value(const_node(json)) : fallback;
}

int64_t ph__json_as_integer(const struct ph__json *json, int64_t fallback)
{
    return json_is_integer(const_node(json)) ? json_integer_value(const_node(json)) : fallback;
}

double ph__json_as_number(const struct ph__json *json, double fallback)
{
    return json_is_number(const_node(json)) ? json_number_value(const_node(json)) : fallback;
}

bool ph__json_as_bool(const struct ph__json *json, bool fallback)
{
    return json_is_boolean(const_node(json)) ? json_is_true(const_node(json)) : fallback;
}

bool ph__json_is_array(const struct ph__json *json)
{
    return json_is_array(const_node(json));
}

bool ph__json_is_object(const struct ph__json *json)
{
    return json_is_object(const_node(json));
}

bool ph__json_is_integer(const struct ph__json *json)
{
    return json_is_integer(const_node(json));
}

bool ph__json_is_null(const struct ph__json *json)
{
    return json_is_null(const_node(json));
}
