#include "data/source/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/memory.h"
#include "tensor/float16.h"

static const struct {
    const char *word; /* as in the header */
    enum ph__npy_type type;
    size_t item_bytes;
} types[] = {
    {"|b1", PH_NPY_BOOL, 1},
    {"|i1", PH_NPY_INT8, 1},
    {"<i2", PH_NPY_INT16, 2},
    {"<i4", PH_NPY_INT32, 4},
    {"<i8", PH_NPY_INT64, 8},
    {"|u1", PH_NPY_UINT8, 1},
    {"<u2", PH_NPY_UINT16, 2},
    {"<u4", PH_NPY_UINT32, 4},
    {"<u8", PH_NPY_UINT64, 8},
    {"<f2", PH_NPY_FLOAT16, 2},
    {"<f4", PH_NPY_FLOAT32, 4},
    {"<f8", PH_NPY_FLOAT64, 8},
};

/* ---- the header as text ---- */

/* A Python dictionary while it is read: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
struct header {
    const char *name; /* array's name in errors */
    const char *at, *end;
    char type[16];
    bool has_type, has_order, has_shape;
    uint64_t shape[2];
    size_t num_dimensions;
};

static ph_status fail(const struct header *header, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s: %s", header->name, problem);
}

static void skip_blanks(struct header *header)
{
    while (header->at < header->end && (*header->at == ' ' || *header->at == '\n' || *header->at == '\t'))
        header->at++;
}

/* Passes the next character that is not blank if it is `wanted`; returns false when it is not. */
static bool take(struct header *header, char wanted)
{
    skip_blanks(header);
    if (header->at == header->end || *header->at != wanted)
        return false;
    header->at++;
    return true;
}

static bool take_word(struct header *header, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(header);
    if ((size_t)(header->end - header->at) < length || memcmp(header->at, word, length) != 0)
        return false;
    header->at += length;
    return true;
}

/* Reads a text in single or double quotes, without quotes inside, shorter than `size`. */
static bool take_text(struct header *header, char *text, size_t size)
{
    char quote = take(header, '\'') ? '\'' : '"';
    if (quote == '"' && !take(header, '"'))
        return false;
    const char *stop = memchr(header->at, quote, (size_t)(header->end - header->at));
    if (stop == NULL || (size_t)(stop - header->at) >= size)
        return false;
    snprintf(text, size, "%.*s", (int)(stop - header->at), header->at);
    header->at = stop + 1;
    return true;
}

static bool take_number(struct header *header, uint64_t *number)
{
    const char *first = header->at;
    *number = 0;
    while (header->at < header->end && *header->at >= '0' && *header->at <= '9') {
        uint64_t digit = (uint64_t)(*header->at - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
        header->at++;
    }
    return header->at > first;
}

/* Parses "(3, 4)" or "(3,)". */
static ph_status parse_shape(struct header *header)
{
    if (!take(header, '('))
        return fail(header, "the .npy header's shape is not a tuple");
    while (!take(header, ')')) {
        uint64_t extent;
        skip_blanks(header);
        if (!take_number(header, &extent))
            return fail(header, "the .npy header's shape must be whole numbers of at most 64 bits");
        if (header->num_dimensions == 2)
            return fail(header, "the array has more than two dimensions");
        header->shape[header->num_dimensions++] = extent;
        if (!take(header, ',') && (header->at == header->end || *header->at != ')'))
            return fail(header, "the .npy header's shape is not valid");
    }
    header->has_shape = true;
    return PH_OK;
}

static ph_status parse_type(struct header *header)
{
    if (!take_text(header, header->type, sizeof header->type))
        return fail(header, "the array's dtype is not a single number type");
    header->has_type = true;
    return PH_OK;
}

static ph_status parse_order(struct header *header)
{
    if (take_word(header, "True"))
        return fail(header, "the array is in Fortran order; save it in C order (numpy.ascontiguousarray)");
    if (!take_word(header, "False"))
        return fail(header, "the .npy header's fortran_order must be True or False");
    header->has_order = true;
    return PH_OK;
}

static ph_status parse_entry(struct header *header)
{
    char key[16];
    if (!take_text(header, key, sizeof key) || !take(header, ':'))
        return fail(header, "the .npy header is not a dictionary of descr, fortran_order and shape");
    if (strcmp(key, "descr") == 0 && !header->has_type)
        return parse_type(header);
    if (strcmp(key, "fortran_order") == 0 && !header->has_order)
        return parse_order(header);
    if (strcmp(key, "shape") == 0 && !header->has_shape)
        return parse_shape(header);
    return fail(header, "the .npy header has an unknown or repeated key");
}

static ph_status parse_dictionary(struct header *header)
{
    if (!take(header, '{'))
        return fail(header, "the .npy header is not a dictionary");
    while (!take(header, '}')) {
        PH_TRY(parse_entry(header));
        skip_blanks(header);
        if (!take(header, ',') && (header->at == header->end || *header->at != '}'))
            return fail(header, "the .npy header is not valid");
    }
    skip_blanks(header);
    if (header->at != header->end)
        return fail(header, "the .npy header has more text after its dictionary");
    if (!header->has_type || !header->has_order || !header->has_shape)
        return fail(header, "the .npy header lacks descr, fortran_order or shape");
    return PH_OK;
}

/* ---- the header's meaning ---- */

ph_status ph__npy_header_bytes(
    const char *name, const unsigned char *bytes, size_t size, size_t *header_bytes_out)
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (size < PH_NPY_PREFIX_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: not a .npy array", name);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return ph_fail(PH_ERROR_DATA, "%s: version %d.%d of .npy is not supported", name, bytes[6], bytes[7]);
    uint64_t length = (uint64_t)bytes[8] | (uint64_t)bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    length += bytes[6] > 1 ? 12 : 10;
    if (length < PH_NPY_PREFIX_BYTES || length > PH_NPY_MAX_HEADER_BYTES)
        return ph_fail(
            PH_ERROR_DATA, "%s: a .npy header of %llu bytes is not valid", name, (unsigned long long)length);
    *header_bytes_out = (size_t)length;
    return PH_OK;
}

static ph_status find_type(const struct header *header, struct ph__npy *npy)
{
    const char *word = header->type;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        /* the order of a single byte is irrelevant: NumPy writes '|', other programs '<' */
        if (word[0] == '\0' || strcmp(word + 1, types[i].word + 1) != 0)
            continue;
        if (word[0] == '>' && types[i].item_bytes > 1)
            return ph_fail(PH_ERROR_DATA, "%s: the array is big-endian ('%s'); save it as little-endian",
                header->name, word);
        if (word[0] != types[i].word[0] && (types[i].item_bytes > 1 || strchr("<>=", word[0]) == NULL))
            continue;
        npy->type = types[i].type;
        npy->item_bytes = types[i].item_bytes;
        return PH_OK;
    }
    return ph_fail(PH_ERROR_DATA,
        "%s: dtype '%s' is not supported: use bool, int8 to int64, uint8 to uint64 or float16 to float64",
        header->name, word);
}

/* Computes the sizes, and refuses any that overflows. */
static ph_status measure(const struct header *header, struct ph__npy *npy)
{
    size_t num_bytes, num_rows = (size_t)header->shape[0];
    if (header->num_dimensions == 0)
        return fail(header, "the array is a single number, without rows");
    npy->num_rows = header->shape[0];
    npy->num_columns = header->num_dimensions == 2 ? (size_t)header->shape[1] : 1;
    if (npy->num_columns == 0)
        return fail(header, "the array has no columns");
    if (!ph__size_mul(npy->num_columns, npy->item_bytes, &npy->row_bytes) ||
        npy->row_bytes > PH_NPY_MAX_ROW_BYTES)
        return ph_fail(PH_ERROR_DATA, "%s: a row of %zu columns is larger than %d MiB", header->name,
            npy->num_columns, PH_NPY_MAX_ROW_BYTES >> 20);
    if (!ph__size_mul(num_rows, npy->row_bytes, &num_bytes) || num_bytes > INT64_MAX)
        return ph_fail(PH_ERROR_DATA, "%s: %zu rows of %zu columns are more than any file holds",
            header->name, num_rows, npy->num_columns);
    npy->num_bytes = num_bytes;
    return PH_OK;
}

ph_status ph__npy_parse(
    const char *name, const unsigned char *bytes, size_t header_bytes, struct ph__npy *npy_out)
{
    size_t prefix_bytes = bytes[6] > 1 ? 12 : 10;
    struct header header = {
        .name = name, .at = (const char *)bytes + prefix_bytes, .end = (const char *)bytes + header_bytes};
    struct ph__npy npy = {0};
    PH_TRY(parse_dictionary(&header));
    PH_TRY(find_type(&header, &npy));
    PH_TRY(measure(&header, &npy));
    *npy_out = npy;
    return PH_OK;
}

/* ---- items ---- */

double ph__npy_real(enum ph__npy_type type, const unsigned char *item)
{
    union {
        uint16_t half;
        float single;
        double whole;
    } value;
    if (type == PH_NPY_FLOAT16) {
        memcpy(&value.half, item, sizeof value.half);
        return (double)ph__float_from_half(value.half);
    }
    if (type == PH_NPY_FLOAT32) {
        memcpy(&value.single, item, sizeof value.single);
        return (double)value.single;
    }
    memcpy(&value.whole, item, sizeof value.whole);
    return value.whole;
}

int64_t ph__npy_integer(enum ph__npy_type type, const unsigned char *item)
{
    union {
        int16_t i2;
        int32_t i4;
        int64_t i8;
        uint16_t u2;
        uint32_t u4;
    } value;
    switch (type) {
    case PH_NPY_BOOL:
        return item[0] != 0;
    case PH_NPY_INT8:
        return (int8_t)item[0];
    case PH_NPY_UINT8:
        return item[0];
    case PH_NPY_INT16:
        memcpy(&value.i2, item, sizeof value.i2);
        return value.i2;
    case PH_NPY_UINT16:
        memcpy(&value.u2, item, sizeof value.u2);
        return value.u2;
    case PH_NPY_INT32:
        memcpy(&value.i4, item, sizeof value.i4);
        return value.i4;
    case PH_NPY_UINT32:
        memcpy(&value.u4, item, sizeof value.u4);
        return value.u4;
    case PH_NPY_INT64:
    case PH_NPY_UINT64:
    case PH_NPY_FLOAT16:
    case PH_NPY_FLOAT32:
    case PH_NPY_FLOAT64:
        break;
    }
    memcpy(&value.i8, item, sizeof value.i8);
    return value.i8;
}
