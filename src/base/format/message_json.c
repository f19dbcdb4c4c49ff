/* Messages as JSON. */
#include <math.h>
#include <string.h>

#include "base/format/json_scan.h"
#include "base/format/message.h"
#include "base/format/message_fields.h"
#include "base/text/number.h"

/* ---- reading ---- */

static void read_message(const struct ph__message *message, struct ph__json_scan *scan, void *to);

/* Reads an enum's word; words are few. */
static void read_word(const struct ph__field *field, struct ph__json_scan *scan, int64_t *to)
{
    const struct ph__bytes word = ph__json_scan_string(scan);
    for (size_t i = 0; field->words[i] != NULL; i++)
        if (ph__bytes_are(word, field->words[i])) {
            *to = (int64_t)i;
            return;
        }
    ph__json_scan_fail(scan, "unknown word");
}

/* Reads an integer, or a string of its digits. */
static int64_t read_integer(struct ph__json_scan *scan)
{
    struct ph__json_scan digits;
    if (ph__json_scan_type(scan) != PH_JSON_TYPE_STRING)
        return ph__json_scan_integer(scan);
    const struct ph__bytes text = ph__json_scan_string(scan);
    ph__json_scan_init(&digits, text.bytes, text.size, scan->arena);
    const int64_t integer = ph__json_scan_integer(&digits);
    if (digits.fault != NULL || digits.at != digits.end)
        ph__json_scan_fail(scan, "an integer is expected");
    return integer;
}

static void read_unsigned(struct ph__json_scan *scan, uint64_t *to)
{
    const int64_t integer = read_integer(scan);
    if (integer < 0)
        ph__json_scan_fail(scan, "an integer from 0 on is expected");
    *to = (uint64_t)integer;
}

static void read_value(const struct ph__field *field, struct ph__json_scan *scan, void *to)
{
    switch (field->type) {
    case PH_FIELD_TYPE_BOOL:
        *(bool *)to = ph__json_scan_bool(scan);
        break;
    case PH_FIELD_TYPE_INT64:
        *(int64_t *)to = read_integer(scan);
        break;
    case PH_FIELD_TYPE_UINT64:
        read_unsigned(scan, to);
        break;
    case PH_FIELD_TYPE_FLOAT:
        *(float *)to = (float)ph__json_scan_number(scan);
        break;
    case PH_FIELD_TYPE_DOUBLE:
        *(double *)to = ph__json_scan_number(scan);
        break;
    case PH_FIELD_TYPE_TEXT:
    case PH_FIELD_TYPE_BYTES:
        *(struct ph__bytes *)to = ph__json_scan_string(scan);
        break;
    case PH_FIELD_TYPE_JSON:
        *(struct ph__bytes *)to = ph__json_scan_skip(scan);
        break;
    case PH_FIELD_TYPE_WORD:
        read_word(field, scan, to);
        break;
    case PH_FIELD_TYPE_NESTED:
        read_message(field->message, scan, to);
        break;
    case PH_FIELD_TYPE_COUNT:
        break;
    }
}

static void *add_item(const struct ph__field *field, struct ph__json_scan *scan, void *member)
{
    void *item = ph__list_add(member, ph__field_item_bytes(field), scan->arena);
    if (item == NULL)
        ph__json_scan_fail(scan, ph__json_no_memory);
    return item;
}

static void read_list(const struct ph__field *field, struct ph__json_scan *scan, void *member)
{
    struct ph__bytes key;
    if (ph__json_scan_type(scan) != PH_JSON_TYPE_ARRAY)
        ph__json_scan_fail(scan, "an array is expected");
    ph__json_scan_begin(scan);
    while (ph__json_scan_next(scan, &key)) {
        void *item = add_item(field, scan, member);
        if (item != NULL)
            read_value(field, scan, item);
    }
}

/* Reads an object as a list of keys and values. */
static void read_map(const struct ph__field *field, struct ph__json_scan *scan, void *member)
{
    const struct ph__field *fields = field->message->fields;
    struct ph__bytes key;
    if (ph__json_scan_type(scan) != PH_JSON_TYPE_OBJECT)
        ph__json_scan_fail(scan, "an object is expected");
    ph__json_scan_begin(scan);
    while (ph__json_scan_next(scan, &key)) {
        char *item = add_item(field, scan, member);
        if (item == NULL)
            return;
        *(struct ph__bytes *)(void *)(item + fields[0].offset) = key;
        read_value(&fields[1], scan, item + fields[1].offset);
    }
}

static void read_member(const struct ph__field *field, struct ph__json_scan *scan, void *to)
{
    void *member = (char *)to + field->offset;
    if (ph__json_scan_type(scan) == PH_JSON_TYPE_NULL)
        ph__json_scan_null(scan); /* as if the key were missing */
    else if (field->form == PH_FIELD_FORM_LIST)
        read_list(field, scan, member);
    else if (field->form == PH_FIELD_FORM_MAP)
        read_map(field, scan, member);
    else
        read_value(field, scan, member);
}

static bool takes(enum ph__field_type type, enum ph__json_type value)
{
    switch (value) {
    case PH_JSON_TYPE_BOOL:
        return type == PH_FIELD_TYPE_BOOL;
    case PH_JSON_TYPE_INTEGER:
        return type == PH_FIELD_TYPE_INT64;
    case PH_JSON_TYPE_REAL:
        return type == PH_FIELD_TYPE_DOUBLE;
    case PH_JSON_TYPE_STRING:
        return type == PH_FIELD_TYPE_TEXT;
    default:
        return false;
    }
}

/* Reads the value of the field whose type it has; none: the value is skipped, and no field is there. */
static void read_choice(const struct ph__message *message, struct ph__json_scan *scan, void *to)
{
    const enum ph__json_type type = ph__json_scan_type(scan);
    for (size_t i = 0; i < message->num_fields; i++)
        if (takes(message->fields[i].type, type)) {
            *ph__message_choice(message, to) = message->fields[i].number;
            read_value(&message->fields[i], scan, (char *)to + message->fields[i].offset);
            return;
        }
    ph__json_scan_skip(scan);
}

static const struct ph__field *find_field(const struct ph__message *message, struct ph__bytes key)
{
    for (size_t i = 0; i < message->num_fields; i++)
        if (message->fields[i].name != NULL && ph__bytes_are(key, message->fields[i].name))
            return &message->fields[i];
    return NULL;
}

/* Skips the value of a key that the table does not name, or refuses it. */
static void read_unknown(const struct ph__message *message, struct ph__json_scan *scan, struct ph__bytes key)
{
    if (message->is_strict) {
        scan->fault_field = ph__arena_printf(scan->arena, "%.*s", (int)key.size, key.bytes);
        ph__json_scan_fail(scan, "the key is not supported");
    }
    ph__json_scan_skip(scan);
}

static void read_message(const struct ph__message *message, struct ph__json_scan *scan, void *to)
{
    struct ph__bytes key;
    if (message->is_choice) {
        read_choice(message, scan, to);
        return;
    }
    if (ph__json_scan_type(scan) != PH_JSON_TYPE_OBJECT)
        ph__json_scan_fail(scan, "an object is expected");
    ph__json_scan_begin(scan);
    while (ph__json_scan_next(scan, &key)) {
        const struct ph__field *field = find_field(message, key);
        if (field != NULL)
            read_member(field, scan, to);
        else
            read_unknown(message, scan, key);
        if (scan->fault != NULL && scan->fault_field == NULL)
            scan->fault_field = field != NULL ? field->name : message->name;
    }
}

ph_status ph__message_from_json(
    const struct ph__message *message, const char *text, size_t size, struct ph__arena *arena, void *to)
{
    struct ph__json_scan scan;
    ph__json_scan_init(&scan, text, size, arena);
    memset(to, 0, message->size);
    read_message(message, &scan, to);
    return ph__json_scan_finish(&scan);
}

/* ---- writing ---- */

/* Writes a number. The zero below zero keeps a fraction: integers have no such zero, and "-0" would be read
 * as one. */
static void write_real(double number, int num_digits, struct ph__buffer *text)
{
    char digits[PH_NUMBER_TEXT_BYTES];
    if (number == 0 && signbit(number))
        ph__buffer_append_text(text, "-0.0");
    else if (isfinite(number))
        ph__buffer_append(text, digits, ph__real_write(number, num_digits, digits));
    else
        ph__buffer_append_text(text, "null");
}

static void write_integer(const struct ph__field *field, const void *value, struct ph__buffer *text)
{
    char digits[PH_INTEGER_TEXT_BYTES];
    const size_t length = field->type == PH_FIELD_TYPE_UINT64
                              ? ph__unsigned_write(*(const uint64_t *)value, digits)
                              : ph__integer_write(*(const int64_t *)value, digits);
    ph__buffer_append(text, digits, length);
}

static void write_value(const struct ph__field *field, const void *value, struct ph__buffer *text)
{
    const struct ph__bytes *bytes = value;
    switch (field->type) {
    case PH_FIELD_TYPE_BOOL:
        ph__buffer_append_text(text, *(const bool *)value ? "true" : "false");
        break;
    case PH_FIELD_TYPE_INT64:
    case PH_FIELD_TYPE_UINT64:
        write_integer(field, value, text);
        break;
    case PH_FIELD_TYPE_FLOAT:
        write_real((double)*(const float *)value, PH_FLOAT_DIGITS, text);
        break;
    case PH_FIELD_TYPE_DOUBLE:
        write_real(*(const double *)value, PH_DOUBLE_DIGITS, text);
        break;
    case PH_FIELD_TYPE_TEXT:
    case PH_FIELD_TYPE_BYTES:
        ph__json_append_string(text, *bytes);
        break;
    case PH_FIELD_TYPE_JSON:
        ph__buffer_append(text, bytes->bytes, bytes->size);
        break;
    case PH_FIELD_TYPE_WORD:
        ph__json_append_string(text, ph__bytes_of(field->words[*(const int64_t *)value]));
        break;
    case PH_FIELD_TYPE_NESTED:
        ph__message_to_json(field->message, value, text);
        break;
    case PH_FIELD_TYPE_COUNT:
        break;
    }
}

static void write_list(const struct ph__field *field, const struct ph__list *list, struct ph__buffer *text)
{
    const size_t item_bytes = ph__field_item_bytes(field);
    ph__buffer_append(text, "[", 1);
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            ph__buffer_append(text, ",", 1);
        write_value(field, (const char *)list->items + i * item_bytes, text);
    }
    ph__buffer_append(text, "]", 1);
}

static void write_map(const struct ph__field *field, const struct ph__list *list, struct ph__buffer *text)
{
    const struct ph__field *fields = field->message->fields;
    ph__buffer_append(text, "{", 1);
    for (size_t i = 0; i < list->count; i++) {
        const char *item = (const char *)list->items + i * field->message->size;
        if (i > 0)
            ph__buffer_append(text, ",", 1);
        ph__json_append_string(text, *(const struct ph__bytes *)(const void *)(item + fields[0].offset));
        ph__buffer_append(text, ":", 1);
        write_value(&fields[1], item + fields[1].offset, text);
    }
    ph__buffer_append(text, "}", 1);
}

static void write_member(const struct ph__field *field, const void *member, struct ph__buffer *text)
{
    if (field->form == PH_FIELD_FORM_LIST)
        write_list(field, member, text);
    else if (field->form == PH_FIELD_FORM_MAP)
        write_map(field, member, text);
    else
        write_value(field, member, text);
}

/* Writes the value of the field that is there, or null. */
static void write_choice(const struct ph__message *message, const void *from, struct ph__buffer *text)
{
    const uint32_t choice = *ph__message_choice(message, (void *)from);
    for (size_t i = 0; i < message->num_fields; i++)
        if (message->fields[i].number == choice) {
            write_value(&message->fields[i], (const char *)from + message->fields[i].offset, text);
            return;
        }
    ph__buffer_append_text(text, "null");
}

void ph__message_to_json(const struct ph__message *message, const void *from, struct ph__buffer *text)
{
    bool is_first = true;
    if (message->is_choice) {
        write_choice(message, from, text);
        return;
    }
    ph__buffer_append(text, "{", 1);
    for (size_t i = 0; i < message->num_fields; i++) {
        const struct ph__field *field = &message->fields[i];
        const void *member = (const char *)from + field->offset;
        if (field->name == NULL || (!field->is_always && ph__field_is_zero(field, member)))
            continue;
        if (!is_first)
            ph__buffer_append(text, ",", 1);
        is_first = false;
        ph__json_append_string(text, ph__bytes_of(field->name));
        ph__buffer_append(text, ":", 1);
        write_member(field, member, text);
    }
    ph__buffer_append(text, "}", 1);
}
