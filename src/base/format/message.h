/* Messages: structs that a table of fields describes. From the table follow a reader and a writer of JSON and
 * of protobuf (protobuf.dev, "Encoding"), so that both wires of one service are one table.
 *
 * A struct's members: bool, int64_t, uint64_t, float, double, struct ph__bytes (text, bytes, and JSON as it
 * is), a nested struct, or struct ph__list of any of these. Reading borrows texts from what is read, and puts
 * lists and unescaped strings into the arena; structs, the outermost too, are zeroed first. Fields that a
 * message leaves out are zero; in protobuf those that the table does not name are skipped, in JSON too unless
 * the message is strict. As protobuf's JSON has them, integers may be strings of digits.
 * Messages nest as deep as their tables do: no table may contain itself. Any thread. */
#ifndef PH_BASE_MESSAGE_H
#define PH_BASE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "base/memory/buffer.h"
#include "phloem/status.h"

struct ph__json_scan;

enum ph__field_type {
    PH_FIELD_TYPE_BOOL,   /* bool */
    PH_FIELD_TYPE_INT64,  /* int64_t: int32, int64 and enum of protobuf */
    PH_FIELD_TYPE_UINT64, /* uint64_t: uint32, uint64 */
    PH_FIELD_TYPE_FLOAT,  /* float */
    PH_FIELD_TYPE_DOUBLE, /* double */
    PH_FIELD_TYPE_TEXT,   /* struct ph__bytes, UTF-8 */
    PH_FIELD_TYPE_BYTES,  /* struct ph__bytes; in JSON a string of base64 is not decoded */
    PH_FIELD_TYPE_JSON,   /* struct ph__bytes: the text of any JSON value; not in protobuf */
    PH_FIELD_TYPE_WORD,   /* int64_t: an enum, in JSON one of `words` */
    PH_FIELD_TYPE_NESTED, /* the struct of `message` */
    PH_FIELD_TYPE_COUNT
};

enum ph__field_form {
    PH_FIELD_FORM_ONE,
    PH_FIELD_FORM_LIST, /* struct ph__list; numbers of protobuf are read packed or not, and not written packed
                         */
    PH_FIELD_FORM_MAP,  /* struct ph__list of a NESTED whose first field is a text, the key, and whose second
                           field is the value: in JSON an object */
};

struct ph__list {
    void *items; /* (count) */
    size_t count;
};

/* Returns a zeroed item at the list's end, or NULL without memory. Only for lists that grow by this alone. */
void *ph__list_add(struct ph__list *list, size_t item_bytes, struct ph__arena *arena);

struct ph__message;

struct ph__field {
    const char *name; /* key in JSON; NULL: not in JSON */
    uint32_t number;  /* of protobuf; 0: not in protobuf */
    enum ph__field_type type;
    enum ph__field_form form;
    size_t offset;                     /* of the member */
    const struct ph__message *message; /* NESTED */
    const char *const *words;          /* WORD: by number, NULL at the end */
    bool is_always;                    /* written to JSON even when it is zero or empty */
};

struct ph__message {
    const char *name; /* in errors */
    size_t size;      /* of the struct */
    const struct ph__field *fields;
    size_t num_fields;
    bool is_strict; /* JSON: a key that the table does not name is an error */
    /* Set: offset of a uint32_t that holds the number of the one field that is there, 0: none. In JSON such a
     * message is the value alone, and its type chooses the field. */
    bool is_choice;
    size_t choice;
};

#define PH_MESSAGE_FIELDS(array) .fields = (array), .num_fields = sizeof(array) / sizeof *(array)

/* Read a message into its struct. PH_ERROR_DATA says what is wrong and where; PH_ERROR_MEMORY. */
ph_status ph__message_from_protobuf(
    const struct ph__message *message, const void *bytes, size_t size, struct ph__arena *arena, void *to);
ph_status ph__message_from_json(
    const struct ph__message *message, const char *text, size_t size, struct ph__arena *arena, void *to);

/* Append a message to a buffer. */
void ph__message_to_protobuf(const struct ph__message *message, const void *from, struct ph__buffer *bytes);
void ph__message_to_json(const struct ph__message *message, const void *from, struct ph__buffer *text);

#endif
