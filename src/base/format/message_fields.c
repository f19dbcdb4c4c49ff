#include "base/format/message_fields.h"

#include <string.h>

static const size_t sizes[PH_FIELD_TYPE_COUNT] = {
    [PH_FIELD_TYPE_BOOL] = sizeof(bool),
    [PH_FIELD_TYPE_INT64] = sizeof(int64_t),
    [PH_FIELD_TYPE_UINT64] = sizeof(uint64_t),
    [PH_FIELD_TYPE_FLOAT] = sizeof(float),
    [PH_FIELD_TYPE_DOUBLE] = sizeof(double),
    [PH_FIELD_TYPE_TEXT] = sizeof(struct ph__bytes),
    [PH_FIELD_TYPE_BYTES] = sizeof(struct ph__bytes),
    [PH_FIELD_TYPE_JSON] = sizeof(struct ph__bytes),
    [PH_FIELD_TYPE_WORD] = sizeof(int64_t),
};

size_t ph__field_item_bytes(const struct ph__field *field)
{
    return field->type == PH_FIELD_TYPE_NESTED ? field->message->size : sizes[field->type];
}

/* Keeps a capacity of the least power of two, from four on, that holds the items. */
void *ph__list_add(struct ph__list *list, size_t item_bytes, struct ph__arena *arena)
{
    const size_t count = list->count;
    if (count == 0 || (count >= 4 && (count & (count - 1)) == 0)) {
        void *items = ph__arena_alloc_array(arena, count == 0 ? 4 : 2 * count, item_bytes);
        if (items == NULL)
            return NULL;
        if (count > 0)
            memcpy(items, list->items, count * item_bytes);
        list->items = items;
    }
    list->count++;
    return (char *)list->items + count * item_bytes;
}

static bool is_zero_message(const struct ph__message *message, const void *from);

bool ph__field_is_zero(const struct ph__field *field, const void *member)
{
    static const uint64_t zero = 0;
    if (field->form != PH_FIELD_FORM_ONE)
        return ((const struct ph__list *)member)->count == 0;
    if (field->type == PH_FIELD_TYPE_NESTED)
        return is_zero_message(field->message, member);
    if (sizes[field->type] == sizeof(struct ph__bytes))
        return ((const struct ph__bytes *)member)->size == 0;
    return memcmp(member, &zero, sizes[field->type]) == 0;
}

static bool is_zero_message(const struct ph__message *message, const void *from)
{
    if (message->is_choice)
        return *ph__message_choice(message, (void *)from) == 0;
    for (size_t i = 0; i < message->num_fields; i++)
        if (!ph__field_is_zero(&message->fields[i], (const char *)from + message->fields[i].offset))
            return false;
    return true;
}
