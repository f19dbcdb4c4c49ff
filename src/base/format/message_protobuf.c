/* Messages in protobuf's wire format. */
#include <string.h>

#include "base/format/message.h"
#include "base/format/message_fields.h"
#include "base/format/protobuf.h"
#include "base/text/utf8.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

/* ---- reading ---- */

struct reader {
    const unsigned char *at, *end;
    struct ph__arena *arena;
    bool is_cut; /* the bytes end within a field, or a varint has more than 64 bits */
};

static uint64_t read_varint(struct reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        const unsigned char byte = *reader->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    reader->is_cut = true;
    return 0;
}

/* Takes the next bytes; NULL when fewer are left. */
static const void *take(struct reader *reader, uint64_t size)
{
    if (reader->is_cut || size > (uint64_t)(reader->end - reader->at)) {
        reader->is_cut = true;
        return NULL;
    }
    const void *bytes = reader->at;
    reader->at += size;
    return bytes;
}

static void skip(struct reader *reader, unsigned wire_type)
{
    if (wire_type == WIRE_VARINT)
        (void)read_varint(reader);
    else if (wire_type == WIRE_FIXED64)
        (void)take(reader, 8);
    else if (wire_type == WIRE_FIXED32)
        (void)take(reader, 4);
    else if (wire_type == WIRE_LENGTH)
        (void)take(reader, read_varint(reader));
    else
        reader->is_cut = true; /* groups, which proto3 does not have */
}

static enum wire_type wire_type_of(enum ph__field_type type)
{
    static const enum wire_type types[PH_FIELD_TYPE_COUNT] = {
        [PH_FIELD_TYPE_FLOAT] = WIRE_FIXED32,
        [PH_FIELD_TYPE_DOUBLE] = WIRE_FIXED64,
        [PH_FIELD_TYPE_TEXT] = WIRE_LENGTH,
        [PH_FIELD_TYPE_BYTES] = WIRE_LENGTH,
        [PH_FIELD_TYPE_NESTED] = WIRE_LENGTH,
    };
    return types[type];
}

static ph_status read_message(const struct ph__message *message, struct reader *reader, void *to);

static ph_status read_nested(
    const struct ph__field *field, struct reader *reader, const void *bytes, size_t size, void *to)
{
    struct reader inner = {bytes, (const unsigned char *)bytes + size, reader->arena, false};
    const ph_status status = read_message(field->message, &inner, to);
    return status == PH_ERROR_DATA
               ? ph_fail(status, "%s: %s", field->name != NULL ? field->name : "a field", ph_error_text())
               : status;
}

/* Reads one value of the field's own wire type. */
static ph_status read_value(const struct ph__field *field, struct reader *reader, void *to)
{
    const enum wire_type wire_type = wire_type_of(field->type);
    if (wire_type == WIRE_VARINT) {
        const uint64_t value = read_varint(reader);
        if (field->type == PH_FIELD_TYPE_BOOL)
            *(bool *)to = value != 0;
        else
            *(uint64_t *)to = value;
        return PH_OK;
    }
    const uint64_t size = wire_type == WIRE_FIXED32 ? 4 : wire_type == WIRE_FIXED64 ? 8 : read_varint(reader);
    const void *bytes = take(reader, size);
    if (bytes == NULL)
        return PH_OK; /* is_cut */
    if (field->type == PH_FIELD_TYPE_NESTED)
        return read_nested(field, reader, bytes, (size_t)size, to);
    if (wire_type == WIRE_LENGTH)
        *(struct ph__bytes *)to = (struct ph__bytes){bytes, (size_t)size};
    else
        memcpy(to, bytes, (size_t)size);
    if (field->type == PH_FIELD_TYPE_TEXT && size > 0 && !ph__utf8_is_valid(bytes, (size_t)size))
        return ph_fail(PH_ERROR_DATA, "field %u is not UTF-8", field->number);
    return PH_OK;
}

static ph_status add_value(const struct ph__field *field, struct reader *reader, void *member)
{
    void *item = ph__list_add(member, ph__field_item_bytes(field), reader->arena);
    return item != NULL ? read_value(field, reader, item) : PH_ERROR_MEMORY;
}

/* Reads the numbers of a packed list behind those that are there. */
static ph_status read_packed(const struct ph__field *field, struct reader *reader, void *member)
{
    const uint64_t size = read_varint(reader);
    const unsigned char *bytes = take(reader, size);
    struct reader inner = {bytes, bytes != NULL ? bytes + size : NULL, reader->arena, false};
    while (inner.at < inner.end && !inner.is_cut)
        PH_TRY(add_value(field, &inner, member));
    reader->is_cut |= inner.is_cut;
    return PH_OK;
}

static ph_status read_field(
    const struct ph__field *field, unsigned wire_type, struct reader *reader, void *member)
{
    const enum wire_type own = wire_type_of(field->type);
    if (field->form != PH_FIELD_FORM_ONE && wire_type == WIRE_LENGTH && own != WIRE_LENGTH)
        return read_packed(field, reader, member);
    if (wire_type != own)
        return ph_fail(PH_ERROR_DATA, "field %u has wire type %u", field->number, wire_type);
    if (field->form != PH_FIELD_FORM_ONE)
        return add_value(field, reader, member);
    return read_value(field, reader, member);
}

static const struct ph__field *find_field(const struct ph__message *message, uint64_t number)
{
    for (size_t i = 0; i < message->num_fields; i++)
        if (message->fields[i].number == number && number != 0)
            return &message->fields[i];
    return NULL;
}

/* Reads into the zeroed struct. */
static ph_status read_message(const struct ph__message *message, struct reader *reader, void *to)
{
    while (reader->at < reader->end && !reader->is_cut) {
        const uint64_t tag = read_varint(reader);
        const struct ph__field *field = find_field(message, tag >> 3);
        if (reader->is_cut)
            break;
        if (field == NULL) {
            skip(reader, (unsigned)(tag & 7));
            continue;
        }
        if (message->is_choice)
            *ph__message_choice(message, to) = field->number;
        PH_TRY(read_field(field, (unsigned)(tag & 7), reader, (char *)to + field->offset));
    }
    return reader->is_cut
               ? ph_fail(PH_ERROR_DATA, "%s is not a message of protobuf, or is cut off", message->name)
               : PH_OK;
}

ph_status ph__message_from_protobuf(
    const struct ph__message *message, const void *bytes, size_t size, struct ph__arena *arena, void *to)
{
    struct reader reader = {bytes, bytes, arena, false};
    if (size > 0) /* bytes may be NULL otherwise */
        reader.end += size;
    memset(to, 0, message->size);
    return read_message(message, &reader, to);
}

/* ---- writing ---- */

/* Writes a message behind its tag: its length is known when it has been written, and moves it by the bytes
 * that the length takes. */
static void write_nested(const struct ph__field *field, const void *from, struct ph__buffer *bytes)
{
    struct ph__buffer prefix = {0};
    const size_t start = bytes->size;
    ph__message_to_protobuf(field->message, from, bytes);
    const size_t size = bytes->size - start;
    unsigned char head[20];
    prefix = (struct ph__buffer){.bytes = head, .capacity = sizeof head};
    ph__protobuf_prefix(&prefix, field->number, size);
    if (ph__buffer_extend(bytes, prefix.size) == NULL)
        return;
    memmove(bytes->bytes + start + prefix.size, bytes->bytes + start, size);
    memcpy(bytes->bytes + start, head, prefix.size);
}

static void write_value(const struct ph__field *field, const void *value, struct ph__buffer *bytes)
{
    switch (field->type) {
    case PH_FIELD_TYPE_BOOL:
        ph__protobuf_integer(bytes, field->number, *(const bool *)value);
        break;
    case PH_FIELD_TYPE_INT64:
    case PH_FIELD_TYPE_UINT64:
    case PH_FIELD_TYPE_WORD:
        ph__protobuf_integer(bytes, field->number, *(const uint64_t *)value);
        break;
    case PH_FIELD_TYPE_FLOAT:
        ph__protobuf_float(bytes, field->number, *(const float *)value);
        break;
    case PH_FIELD_TYPE_DOUBLE:
        ph__protobuf_double(bytes, field->number, *(const double *)value);
        break;
    case PH_FIELD_TYPE_TEXT:
    case PH_FIELD_TYPE_BYTES:
        ph__protobuf_prefix(bytes, field->number, ((const struct ph__bytes *)value)->size);
        ph__buffer_append(
            bytes, ((const struct ph__bytes *)value)->bytes, ((const struct ph__bytes *)value)->size);
        break;
    case PH_FIELD_TYPE_NESTED:
        write_nested(field, value, bytes);
        break;
    case PH_FIELD_TYPE_JSON:
    case PH_FIELD_TYPE_COUNT:
        break;
    }
}

static void write_list(const struct ph__field *field, const struct ph__list *list, struct ph__buffer *bytes)
{
    const size_t item_bytes = ph__field_item_bytes(field);
    for (size_t i = 0; i < list->count; i++)
        write_value(field, (const char *)list->items + i * item_bytes, bytes);
}

void ph__message_to_protobuf(const struct ph__message *message, const void *from, struct ph__buffer *bytes)
{
    for (size_t i = 0; i < message->num_fields; i++) {
        const struct ph__field *field = &message->fields[i];
        const void *member = (const char *)from + field->offset;
        if (field->number == 0)
            continue;
        if (field->form != PH_FIELD_FORM_ONE)
            write_list(field, member, bytes);
        else if (message->is_choice ? *ph__message_choice(message, (void *)from) == field->number
                                    : !ph__field_is_zero(field, member))
            write_value(field, member, bytes);
    }
}
