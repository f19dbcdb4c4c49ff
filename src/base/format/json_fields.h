/* Reads and writes the members of a struct as members of a JSON object. A table has one line for each
 * member. */
#ifndef PH_BASE_JSON_FIELDS_H
#define PH_BASE_JSON_FIELDS_H

#include "base/format/json.h"

enum ph__json_field_kind {
    PH_JSON_COUNT,  /* uint64_t */
    PH_JSON_SIZE,   /* size_t */
    PH_JSON_SIGNED, /* int64_t */
    PH_JSON_NUMBER, /* double, exact; a number that is not finite is null, and NaN when read back */
    PH_JSON_LATER,  /* the same, also NaN where an earlier version has not written the key */
    PH_JSON_BOOL,   /* bool */
    PH_JSON_TEXT,   /* char[capacity], NUL-terminated */
};

struct ph__json_field {
    const char *key;
    enum ph__json_field_kind kind;
    size_t offset;   /* of the member in the struct */
    size_t capacity; /* TEXT: bytes; otherwise the items of an array, 0: a single value */
};

/* Sets a member of the object for each field, in order. `from` is the struct. */
void ph__json_set_fields(
    struct ph__json *object, const struct ph__json_field *fields, size_t num_fields, const void *from);

/* Fills the struct. Returns the key of the first field that is missing, of another type or too long, or NULL
 * when all have been read. Members before the failed one have been written. */
const char *ph__json_get_fields(
    const struct ph__json *object, const struct ph__json_field *fields, size_t num_fields, void *to);

#endif
