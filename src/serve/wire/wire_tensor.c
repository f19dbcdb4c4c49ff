#include "serve/wire/wire_tensor.h"

#include <string.h>

#include "base/format/json_scan.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "tensor/float16.h"

/* ---- types ---- */

static const struct {
    const char *name;
    size_t bytes, list; /* of a value; offset in the contents */
} types[] = {[PH_TENSOR_NONE] = {"", 0, 0},
#define X(name, bytes, list) [PH_TENSOR_##name] = {#name, bytes, offsetof(struct ph__oip_contents, list)},
    PH_TENSOR_TYPES(X)
#undef X
};

const char *ph__tensor_type_name(enum ph__tensor_type type)
{
    return types[type].name;
}

static enum ph__tensor_type find_type(struct ph__bytes name)
{
    for (size_t i = 1; i < sizeof types / sizeof *types; i++)
        if (ph__bytes_are(name, types[i].name))
            return (enum ph__tensor_type)i;
    return PH_TENSOR_NONE;
}

static bool is_integer(enum ph__tensor_type type)
{
    return type >= PH_TENSOR_BOOL && type <= PH_TENSOR_INT64;
}

bool ph__tensor_is_integer(const struct ph__tensor *tensor)
{
    return is_integer(tensor->type);
}

/* ---- shapes ---- */

#define NAME_OF(tensor) (int)ph__min((tensor)->name.size, 64), (tensor)->name.bytes

static ph_status read_shape(const struct ph__oip_tensor *message, struct ph__tensor *tensor)
{
    const int64_t *dims = message->shape.items;
    if (message->shape.count > PH_TENSOR_MAX_DIMS)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s' has %zu dimensions; at most %d are possible",
            NAME_OF(tensor), message->shape.count, PH_TENSOR_MAX_DIMS);
    tensor->num_dims = message->shape.count;
    tensor->count = 1;
    for (size_t i = 0; i < tensor->num_dims; i++) {
        tensor->dims[i] = dims[i];
        if (dims[i] < 0 || !ph__size_mul(tensor->count, (size_t)dims[i], &tensor->count))
            return ph_fail(PH_ERROR_DATA, "tensor '%.*s': dimension %lld is impossible", NAME_OF(tensor),
                (long long)dims[i]);
    }
    return PH_OK;
}

static ph_status wrong_count(const struct ph__tensor *tensor, size_t count)
{
    return ph_fail(PH_ERROR_DATA, "tensor '%.*s' has %zu values, but its shape says %zu", NAME_OF(tensor),
        count, tensor->count);
}

/* Tells whether an integer is within the range of its type. Eight bytes always are: a negative UINT64 is one
 * that wrapped. */
static bool fits(enum ph__tensor_type type, int64_t integer)
{
    const size_t bits = 8 * types[type].bytes;
    if (type == PH_TENSOR_BOOL)
        return integer == 0 || integer == 1;
    if (bits == 64)
        return true;
    if (type < PH_TENSOR_INT8)
        return integer >= 0 && integer < (int64_t)1 << bits;
    return integer >= -((int64_t)1 << (bits - 1)) && integer < (int64_t)1 << (bits - 1);
}

/* ---- raw bytes ---- */

static uint32_t read_u32(const char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/* Reads texts with their lengths before them. A text takes four bytes at least, so that the count is known to
 * be possible before memory is taken for it. */
static ph_status read_raw_texts(struct ph__bytes raw, struct ph__arena *arena, struct ph__tensor *tensor)
{
    const size_t count = tensor->count;
    if (count > raw.size / 4)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': %zu bytes cannot hold %zu texts with their lengths",
            NAME_OF(tensor), raw.size, count);
    struct ph__bytes *texts = ph__arena_alloc_array(arena, count, sizeof *texts);
    if (texts == NULL)
        return PH_ERROR_MEMORY;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (raw.size - at < 4 || read_u32(raw.bytes + at) > raw.size - at - 4)
            return ph_fail(
                PH_ERROR_DATA, "tensor '%.*s': text %zu ends behind the tensor's bytes", NAME_OF(tensor), i);
        texts[i] = (struct ph__bytes){raw.bytes + at + 4, read_u32(raw.bytes + at)};
        at += 4 + texts[i].size;
    }
    if (at < raw.size)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': %zu bytes are left over behind its last text",
            NAME_OF(tensor), raw.size - at);
    tensor->values = texts;
    return PH_OK;
}

static ph_status read_raw(struct ph__bytes raw, struct ph__arena *arena, struct ph__tensor *tensor)
{
    size_t size = 0;
    tensor->held = tensor->type;
    if (tensor->type == PH_TENSOR_BYTES)
        return read_raw_texts(raw, arena, tensor);
    if (!ph__size_mul(tensor->count, types[tensor->type].bytes, &size) || size != raw.size)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s' has %zu bytes; its shape and type %s take %zu",
            NAME_OF(tensor), raw.size, types[tensor->type].name, size);
    tensor->values = raw.bytes;
    return PH_OK;
}

/* ---- JSON ---- */

struct values {
    struct ph__tensor *tensor;
    void *items;
    size_t count, capacity; /* read; room for */
};

static int64_t read_json_integer(struct ph__json_scan *scan, enum ph__tensor_type type)
{
    const bool is_bool = ph__json_scan_type(scan) == PH_JSON_TYPE_BOOL;
    const int64_t integer = is_bool ? ph__json_scan_bool(scan) : ph__json_scan_integer(scan);
    if (!fits(type, integer) || (type == PH_TENSOR_UINT64 && integer < 0))
        ph__json_scan_fail(scan, "the integer is out of the datatype's range");
    return integer;
}

static void read_json_value(struct ph__json_scan *scan, struct values *values)
{
    const size_t i = values->count++;
    if (i >= values->capacity)
        ph__json_scan_fail(scan, "more values than the shape says");
    else if (values->tensor->held == PH_TENSOR_BYTES)
        ((struct ph__bytes *)values->items)[i] = ph__json_scan_string(scan);
    else if (values->tensor->held == PH_TENSOR_FP64)
        ((double *)values->items)[i] = ph__json_scan_number(scan);
    else
        ((int64_t *)values->items)[i] = read_json_integer(scan, values->tensor->type);
}

/* Reads an array of values or of such arrays, row by row. */
static void read_json_array(struct ph__json_scan *scan, struct values *values)
{
    struct ph__bytes key;
    ph__json_scan_begin(scan);
    while (ph__json_scan_next(scan, &key)) {
        if (ph__json_scan_type(scan) == PH_JSON_TYPE_ARRAY)
            read_json_array(scan, values);
        else
            read_json_value(scan, values);
    }
}

/* Returns the type in which values of JSON or protobuf are held. */
static enum ph__tensor_type held_type(enum ph__tensor_type type)
{
    if (type == PH_TENSOR_BYTES)
        return PH_TENSOR_BYTES;
    return is_integer(type) ? PH_TENSOR_INT64 : PH_TENSOR_FP64;
}

static size_t held_bytes(enum ph__tensor_type held)
{
    return held == PH_TENSOR_BYTES ? sizeof(struct ph__bytes) : types[held].bytes;
}

static ph_status read_json(struct ph__bytes data, struct ph__arena *arena, struct ph__tensor *tensor)
{
    struct ph__json_scan scan;
    struct values values = {.tensor = tensor, .capacity = tensor->count};
    tensor->held = held_type(tensor->type);
    if (tensor->count > data.size) /* each value takes a byte at least */
        return wrong_count(tensor, 0);
    values.items = ph__arena_alloc_array(arena, tensor->count, held_bytes(tensor->held));
    if (values.items == NULL)
        return PH_ERROR_MEMORY;
    ph__json_scan_init(&scan, data.bytes, data.size, arena);
    if (ph__json_scan_type(&scan) != PH_JSON_TYPE_ARRAY)
        ph__json_scan_fail(&scan, "an array is expected");
    read_json_array(&scan, &values);
    const ph_status status = ph__json_scan_finish(&scan);
    if (status != PH_OK)
        return ph_fail(status, "tensor '%.*s': data: %s", NAME_OF(tensor), ph_error_text());
    if (values.count != tensor->count)
        return wrong_count(tensor, values.count);
    tensor->values = values.items;
    return PH_OK;
}

/* ---- lists of protobuf ---- */

static ph_status check_ranges(const struct ph__tensor *tensor)
{
    for (size_t i = 0; i < tensor->count; i++)
        if (!fits(tensor->type, ph__tensor_integer(tensor, i)))
            return ph_fail(PH_ERROR_DATA, "tensor '%.*s': value %zu is out of the range of %s",
                NAME_OF(tensor), i, types[tensor->type].name);
    return PH_OK;
}

static ph_status read_contents(const struct ph__oip_contents *contents, struct ph__tensor *tensor)
{
    const struct ph__list *list =
        (const struct ph__list *)(const void *)((const char *)contents + types[tensor->type].list);
    if (list->count != tensor->count)
        return wrong_count(tensor, list->count);
    if (tensor->type == PH_TENSOR_BOOL || tensor->type == PH_TENSOR_FP32)
        tensor->held = tensor->type;
    else
        tensor->held = held_type(tensor->type);
    tensor->values = list->items;
    return tensor->held == PH_TENSOR_INT64 ? check_ranges(tensor) : PH_OK;
}

/* ---- reading ---- */

ph_status ph__tensor_read(const struct ph__oip_tensor *message, const struct ph__bytes *raw,
    struct ph__arena *arena, struct ph__tensor *tensor_out)
{
    struct ph__tensor tensor = {.name = message->name, .type = find_type(message->datatype)};
    if (tensor.type == PH_TENSOR_NONE)
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': unknown datatype '%.*s'", NAME_OF(&tensor),
            (int)ph__min(message->datatype.size, 64), message->datatype.bytes);
    PH_TRY(read_shape(message, &tensor));
    if (raw == NULL && (tensor.type == PH_TENSOR_FP16 || tensor.type == PH_TENSOR_BF16))
        return ph_fail(PH_ERROR_DATA, "tensor '%.*s': values of type %s must be binary", NAME_OF(&tensor),
            types[tensor.type].name);
    if (raw != NULL)
        PH_TRY(read_raw(*raw, arena, &tensor));
    else if (message->data.size > 0)
        PH_TRY(read_json(message->data, arena, &tensor));
    else
        PH_TRY(read_contents(&message->contents, &tensor));
    *tensor_out = tensor;
    return PH_OK;
}

/* ---- values ---- */

struct ph__bytes ph__tensor_text(const struct ph__tensor *tensor, size_t i)
{
    return ((const struct ph__bytes *)tensor->values)[i];
}

/* Returns the bytes of value i; those above them are zero. */
static uint64_t bits_of(const struct ph__tensor *tensor, size_t i)
{
    const size_t bytes = types[tensor->held].bytes;
    uint64_t bits = 0;
    memcpy(&bits, (const char *)tensor->values + i * bytes, bytes);
    return bits;
}

int64_t ph__tensor_integer(const struct ph__tensor *tensor, size_t i)
{
    const uint64_t bits = bits_of(tensor, i);
    const size_t spare = 64 - 8 * types[tensor->held].bytes;
    if (tensor->held == PH_TENSOR_BOOL)
        return bits != 0;
    return tensor->held < PH_TENSOR_INT8 ? (int64_t)bits : (int64_t)(bits << spare) >> spare;
}

double ph__tensor_real(const struct ph__tensor *tensor, size_t i)
{
    const uint64_t bits = bits_of(tensor, i);
    float single;
    double real;
    switch (tensor->held) {
    case PH_TENSOR_FP16:
        return (double)ph__float_from_half((uint16_t)bits);
    case PH_TENSOR_BF16:
        return (double)ph__float_from_bfloat((uint16_t)bits);
    case PH_TENSOR_FP32:
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    case PH_TENSOR_FP64: /* JSON's decimals become what their type holds */
        memcpy(&real, &bits, sizeof real);
        return tensor->type == PH_TENSOR_FP32 ? (double)(float)real : real;
    default:
        return (double)ph__tensor_integer(tensor, i);
    }
}
