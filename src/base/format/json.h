/* JSON, read and written. Wraps jansson, whose header only json.c and json_parse.c include.
 * A node is borrowed from its document until ph__json_destroy. One thread at a time per document. */
#ifndef PH_BASE_JSON_H
#define PH_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "phloem/status.h"

struct ph__json; /* a document, or a node in it */

/* Building. Setters copy names and text. A non-finite number becomes null. Lack of memory is remembered and
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

/* Prints the text as a JSON string, quoted and escaped, for documents too large to be built. */
void ph__json_print_text(FILE *file, const char *text, size_t length);
/* Gives the document's text, malloc'ed; indent 0 is one line. Keys keep the order in which they were set. */
ph_status ph__json_text(const struct ph__json *json, int indent, char **text_out);
ph_status ph__json_write(const struct ph__json *json, const char *path); /* atomic, indented */

/* Reading. `where` names the source in errors; `error_status` is the error of a malformed text. Duplicate
 * keys, U+0000, integers beyond int64 and containers more than 64 deep are errors. A missing key gives NULL;
 * a value of another type gives the fallback. */
ph_status ph__json_parse(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out);
/* Reads the document of a file of at most max_bytes; an unreadable file gives error_status, too. */
ph_status ph__json_read(
    const char *path, ph_status error_status, uint64_t max_bytes, struct ph__json **json_out);
/* Parses the document that the text begins with; ignores the rest of the text, which must be UTF-8. */
ph_status ph__json_parse_start(
    const char *text, size_t size, const char *where, ph_status error_status, struct ph__json **json_out);
const struct ph__json *ph__json_get(const struct ph__json *object, const char *key);
const struct ph__json *ph__json_at(const struct ph__json *array, size_t index);
size_t ph__json_size(const struct ph__json *json); /* members or items; 0 for anything else */
/* An iterator over an object's members, zero-initialised at first. ph__json_next_member moves to the next
 * member, in order, and returns false at the end, or at once for anything but an object. */
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
bool ph__json_is_null(const struct ph__json *json); /* false for a missing node */

#endif
