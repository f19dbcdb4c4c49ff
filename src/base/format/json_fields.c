#include "base/format/json_fields.h"

#include <math.h>
#include <string.h>

static size_t value_bytes(enum ph__json_field_kind kind)
{
    return kind == PH_JSON_BOOL ? sizeof(bool) : kind == PH_JSON_SIZE ? sizeof(size_t) : sizeof(uint64_t);
}

/* ---- writing ---- */

static int64_t integer_of(enum ph__json_field_kind kind, const void *member)
{
    if (kind == PH_JSON_COUNT)
        return (int64_t) * (const uint64_t *)member;
    if (kind == PH_JSON_SIZE)
        return (int64_t) * (const size_t *)member;
    return *(const int64_t *)member;
}

static void set_value(struct ph__json *object, const struct ph__json_field *field, const void *member)
{
    if (field->kind == PH_JSON_TEXT)
        ph__json_set_text(object, field->key, member);
    else if (field->kind == PH_JSON_NUMBER || field->kind == PH_JSON_LATER)
        ph__json_set_number(object, field->key, *(const double *)member);
    else if (field->kind == PH_JSON_BOOL)
        ph__json_set_bool(object, field->key, *(const bool *)member);
    else
        ph__json_set_integer(object, field->key, integer_of(field->kind, member));
}

static void set_array(struct ph__json *object, const struct ph__json_field *field, const char *member)
{
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < field->capacity; i++) {
        const char *item = member + i * value_bytes(field->kind);
        if (field->kind == PH_JSON_NUMBER)
            ph__json_append_number(array, *(const double *)(const void *)item);
        else
            ph__json_append_integer(array, integer_of(field->kind, item));
    }
    ph__json_set(object, field->key, array);
}

static bool is_array(const struct ph__json_field *field)
{
    return field->capacity > 0 && field->kind != PH_JSON_TEXT;
}

void ph__json_set_fields(
    struct ph__json *object, const struct ph__json_field *fields, size_t num_fields, const void *from)
{
    for (size_t i = 0; i < num_fields; i++) {
        const char *member = (const char *)from + fields[i].offset;
        if (is_array(&fields[i]))
            set_array(object, &fields[i], member);
        else
            set_value(object, &fields[i], member);
    }
}

/* ---- reading ---- */

/* Reads a bool. A JSON bool is the same under both fallbacks; any other value follows them. */
static bool get_bool(const struct ph__json *json, bool *value)
{
    *value = ph__json_as_bool(json, false);
    return ph__json_as_bool(json, true) == *value;
}

static bool get_integer(const struct ph__json *json, enum ph__json_field_kind kind, void *member)
{
    if (!ph__json_is_integer(json))
        return false;
    int64_t integer = ph__json_as_integer(json, 0);
    if (kind == PH_JSON_COUNT)
        *(uint64_t *)member = (uint64_t)integer;
    else if (kind == PH_JSON_SIZE)
        *(size_t *)member = (size_t)integer;
    else
        *(int64_t *)member = integer;
    return true;
}

static bool get_number(const struct ph__json *json, double *value)
{
    *value = ph__json_as_number(json, (double)NAN);
    return !isnan(*value) || ph__json_is_null(json);
}

static bool get_text(const struct ph__json *json, size_t capacity, char *member)
{
    const char *text = ph__json_as_text(json, NULL);
    if (text == NULL || strlen(text) >= capacity)
        return false;
    memcpy(member, text, strlen(text) + 1);
    return true;
}

static bool get_value(const struct ph__json *json, const struct ph__json_field *field, void *member)
{
    if (field->kind == PH_JSON_TEXT)
        return get_text(json, field->capacity, member);
    if (field->kind == PH_JSON_NUMBER || field->kind == PH_JSON_LATER)
        return get_number(json, member) || (field->kind == PH_JSON_LATER && json == NULL);
    if (field->kind == PH_JSON_BOOL)
        return get_bool(json, member);
    return get_integer(json, field->kind, member);
}

static bool get_array(const struct ph__json *json, const struct ph__json_field *field, char *member)
{
    bool is_read = ph__json_is_array(json) && ph__json_size(json) == field->capacity;
    for (size_t i = 0; i < field->capacity && is_read; i++)
        is_read = get_value(ph__json_at(json, i), field, member + i * value_bytes(field->kind));
    return is_read;
}

const char *ph__json_get_fields(
    const struct ph__json *object, const struct ph__json_field *fields, size_t num_fields, void *to)
{
    for (size_t i = 0; i < num_fields; i++) {
        const struct ph__json *json = ph__json_get(object, fields[i].key);
        char *member = (char *)to + fields[i].offset;
        if (!(is_array(&fields[i]) ? get_array(json, &fields[i], member)
                                   : get_value(json, &fields[i], member)))
            return fields[i].key;
    }
    return NULL;
}
