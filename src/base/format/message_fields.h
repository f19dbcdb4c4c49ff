/* Fields of messages, shared by the readers and writers of JSON and protobuf. */
#ifndef PH_BASE_MESSAGE_FIELDS_H
#define PH_BASE_MESSAGE_FIELDS_H

#include <stdbool.h>

#include "base/format/message.h"

/* Returns the bytes of the field's value, or of an item of its list. */
size_t ph__field_item_bytes(const struct ph__field *field);

/* Tells whether a member is zero or empty. */
bool ph__field_is_zero(const struct ph__field *field, const void *member);

/* Returns the member that says which field of a choice is there. */
static inline uint32_t *ph__message_choice(const struct ph__message *message, void *in)
{
    return (uint32_t *)(void *)((char *)in + message->choice);
}

#endif
