/* Reads JSON (RFC 8259) value by value, without a tree: for requests, of which a server reads many thousands
 * a second, and for the documents of json.h.
 *
 *     ph__json_scan_begin(&scan);
 *     while (ph__json_scan_next(&scan, &key))          the next member, or item, of the container
 *         ... read its value, or ph__json_scan_skip it
 *
 * A fault is sticky: all later calls give false, zeros and empty texts, and ph__json_scan_finish reports it.
 * Strings without escapes are borrowed from the text, others are in the arena; nothing else is allocated.
 * Containers nest up to 64 deep. One thread at a time. */
#ifndef PH_BASE_JSON_SCAN_H
#define PH_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "base/memory/buffer.h"
#include "phloem/status.h"

struct ph__json_scan {
    const char *start, *at, *end; /* borrowed until finish */
    struct ph__arena *arena;      /* borrowed until finish */
    const char *fault;            /* static; NULL: none */
    const char *fault_field; /* the caller's: what was read when it occurred; static or in the arena; NULL:
                                not said */
    uint64_t is_object;      /* a bit for each open container, the innermost last */
    unsigned depth;          /* open containers */
    bool is_first;           /* the innermost container has just begun */
};

enum ph__json_type {
    PH_JSON_TYPE_NONE, /* a fault */
    PH_JSON_TYPE_OBJECT,
    PH_JSON_TYPE_ARRAY,
    PH_JSON_TYPE_STRING,
    PH_JSON_TYPE_INTEGER, /* without fraction and exponent */
    PH_JSON_TYPE_REAL,
    PH_JSON_TYPE_BOOL,
    PH_JSON_TYPE_NULL,
};

void ph__json_scan_init(struct ph__json_scan *scan, const char *text, size_t size, struct ph__arena *arena);

/* Returns the type of the value that comes next. */
enum ph__json_type ph__json_scan_type(struct ph__json_scan *scan);

/* Enters the object or array that comes next. */
void ph__json_scan_begin(struct ph__json_scan *scan);
/* Moves to the next member of the innermost container, and gives an object's key (an empty one in an array).
 * Returns false at the container's end, which is left, and after a fault. */
bool ph__json_scan_next(struct ph__json_scan *scan, struct ph__bytes *key_out);

/* Read a value of this type; another is a fault. A string is UTF-8, since the text is. */
bool ph__json_scan_bool(struct ph__json_scan *scan);
int64_t ph__json_scan_integer(struct ph__json_scan *scan); /* within int64 */
double ph__json_scan_number(struct ph__json_scan *scan);   /* an integer or a real */
struct ph__bytes ph__json_scan_string(struct ph__json_scan *scan);
void ph__json_scan_null(struct ph__json_scan *scan);

/* Skips a value of any type, and returns its text. */
struct ph__bytes ph__json_scan_skip(struct ph__json_scan *scan);

/* Makes the scan fail; `fault` is static. The first fault stays. */
void ph__json_scan_fail(struct ph__json_scan *scan, const char *fault);
extern const char ph__json_no_memory[]; /* the fault that finish reports as PH_ERROR_MEMORY */

/* Reports a fault, or a text that goes on behind its value: PH_ERROR_DATA with the offset in bytes. */
ph_status ph__json_scan_finish(struct ph__json_scan *scan);

/* Appends a string to a JSON text, quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void ph__json_append_string(struct ph__buffer *text, struct ph__bytes string);

#endif
