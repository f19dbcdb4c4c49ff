/* JSON, read and written: jansson behind a small door, so that its header stays in json.c.
 * A node is borrowed from its document until ph__json_destroy. One thread at a time per document. */
#ifndef PH_BASE_JSON_H
#define PH_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "phloem/status.h"

struct ph__json; /* a document or a node in it */

/* Building. Setters copy names and text. A non-finite number becomes null. Out of memory is remembered and
 * reported by ph__json_text / ph__json_write, so that building needs no checks. */
struct ph__json *ph__json_object(void);
struct ph__json *ph__json_array(void);
void ph__json_set_text(struct ph__json *object, const char *key, const char *text); /* NULL text: null */
void ph__json_set_number(struct ph__json *object, const char *key, double number);
void ph__json_set_integer(struct ph__json *object, const char *key, int64_t number);
void ph__json_set_bool(struct ph__json *object, const char *key, bool value);
void ph__json_set_null(struct ph__json *object, const char *key);
void ph__json_set(struct ph__json *object, const char *key, struct ph__json *child); /* takes ownership */
void ph__json_append(struct ph__json *array, struct ph__json *child);                /* takes ownership */
void ph__json_append_text(struct ph__json *array, const char *text);                 /* NULL text: null */
void ph__json_append_integer(struct ph__json *array, int64_t number);
void ph__json_append_number(struct ph__json *array, double number);
void ph__json_destroy(struct ph__json *json);

/* Prints this text as a JSON string, quoted and escaped, for documents too large to be built. */
void ph__json_print_text(FILE *file, const char *text, size_t length);
/* Text, malloc'ed; indent 0 is one line. Keys keep the order in which they were set. */
ph_status ph__json_text(const struct ph__json *json, int indent, char **text_out);
ph_status ph__json_write(const struct ph__json *json, const char *path); /* atomic, indented */

/* Reading. `where` names the source in errors; `error_status` is what a malformed text gives. Duplicate keys
 * are refused. A document that there was no memory for is never taken for another one: it gives
 * PH_ERROR_MEMORY, or error_status where the parser tells no more. Looking up a missing key gives NULL;
 * asking for a value of another type gives the fallback. */
ph_status ph__json_parse(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out);
/* The document of a file of at most max_bytes; one that cannot be read gives error_status, too. */
ph_status ph__json_read(
    const char *path, ph_status error_status, uint64_t max_bytes, struct ph__json **json_out);
/* The document that the text begins with, whatever stands behind it. */
ph_status ph__json_parse_start(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out);
/* The document as the parser gives it: where memory was lacking it may have lost something, which
 * json_parse.c finds out. Only the start of the text where end_out, which is set to the document's end, is
 * not NULL. */
ph_status ph__json_load(const char *text, size_t size, const char *where, ph_status error_status,
    size_t *end_out, struct ph__json **json_out);
const struct ph__json *ph__json_get(const struct ph__json *object, const char *key);
const struct ph__json *ph__json_at(const struct ph__json *array, size_t index);
size_t ph__json_size(const struct ph__json *json); /* members or items; 0 for anything else */
/* Sets the member after this one, in their order; the first of a zero-initialised one. False at the end, and
 * at once for anything but an object. */
struct ph__json_member {
    const char *key;
    const struct ph__json *value;
    void *place; /* jansson's */
};
bool ph__json_next_member(const struct ph__json *object, struct ph__json_member *member);
const char *ph__json_as_text(const struct ph__json *json, const char *fallback);
int64_t ph__json_as_integer(const struct ph__json *json, int64_t fallback);
double ph__json_as_number(const struct ph__json *json, double fallback);
bool ph__json_as_bool(const struct ph__json *json, bool fallback);
bool ph__json_is_array(const struct ph__json *json);
bool ph__json_is_object(const struct ph__json *json);
bool ph__json_is_integer(const struct ph__json *json);
bool ph__json_is_null(const struct ph__json *json); /* a null that is there */

#endif
