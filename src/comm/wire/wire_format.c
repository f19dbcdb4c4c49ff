/* Packs and unpacks rows: see wire_format.h. Rows without gaps are handled as one long row, unless each has
 * its own scale. */
#include "comm/wire/wire_format.h"

#include <string.h>

#include "base/sizes.h"

enum { BLOCK = 256 }; /* numbers on the stack while they are added: they stay in the first cache */

const char *ph__wire_name(enum ph_wire_format wire)
{
    static const char *const names[PH_WIRE_COUNT] = {"fp32", "fp16", "bf16", "int8"};
    return names[wire];
}

static size_t number_bytes(enum ph_wire_format wire)
{
    switch (wire) {
    case PH_WIRE_INT8:
        return sizeof(int8_t);
    case PH_WIRE_FP16:
    case PH_WIRE_BF16:
        return sizeof(uint16_t);
    default:
        return sizeof(ph_real);
    }
}

size_t ph__wire_bytes(enum ph_wire_format wire, size_t rows, size_t columns)
{
    const size_t scales = wire == PH_WIRE_INT8 && columns > 0 ? rows * sizeof(float) : 0;
    return rows * columns * number_bytes(wire) + scales;
}

/* Rows, joined to one where possible; scales_at: byte at which the scales begin. */
struct rows {
    size_t count, columns, scales_at;
};

static struct rows rows_of(enum ph_wire_format wire, size_t rows, size_t columns, size_t stride)
{
    if (wire != PH_WIRE_INT8 && stride == columns)
        return (struct rows){.count = 1, .columns = rows * columns};
    return (struct rows){.count = rows, .columns = columns, .scales_at = rows * columns};
}

/* ---- packing ---- */

/* scale_out: for int8, four bytes of any alignment. */
static void pack_row(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t columns,
    const ph_real *numbers, void *bytes_out, unsigned char *scale_out)
{
    float scale;
    switch (wire) {
    case PH_WIRE_FP16:
        kernels->fp16_narrow(columns, numbers, bytes_out);
        break;
    case PH_WIRE_BF16:
        kernels->bf16_narrow(columns, numbers, bytes_out);
        break;
    case PH_WIRE_INT8:
        scale = kernels->int8_narrow(columns, numbers, bytes_out);
        memcpy(scale_out, &scale, sizeof scale);
        break;
    default:
        memcpy(bytes_out, numbers, columns * sizeof *numbers);
    }
}

void ph__wire_pack(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows, size_t columns,
    const ph_real *numbers, size_t stride, void *bytes_out)
{
    if (rows == 0 || columns == 0)
        return;
    const struct rows all = rows_of(wire, rows, columns, stride);
    const size_t row_bytes = all.columns * number_bytes(wire);
    unsigned char *bytes = bytes_out, *scales = bytes + all.scales_at;
    for (size_t row = 0; row < all.count; row++)
        pack_row(kernels, wire, all.columns, numbers + row * stride, bytes + row * row_bytes,
            scales + row * sizeof(float));
}

void ph__wire_pack_rows(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows,
    size_t columns, const ph_real *numbers, size_t first, size_t count, void *bytes_out)
{
    const size_t row_bytes = columns * number_bytes(wire);
    unsigned char *to = (unsigned char *)bytes_out + first * row_bytes;
    unsigned char *scales = (unsigned char *)bytes_out + rows * row_bytes + first * sizeof(float);
    if (wire != PH_WIRE_INT8) {
        ph__wire_pack(kernels, wire, count, columns, numbers, columns, to);
        return;
    }
    for (size_t row = 0; row < count && columns > 0; row++)
        pack_row(kernels, wire, columns, numbers + row * columns, to + row * row_bytes,
            scales + row * sizeof(float));
}

/* ---- unpacking ---- */

static void unpack_row(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t columns,
    const void *bytes, float scale, ph_real *numbers_out)
{
    switch (wire) {
    case PH_WIRE_FP16:
        kernels->fp16_widen(columns, bytes, numbers_out);
        break;
    case PH_WIRE_BF16:
        kernels->bf16_widen(columns, bytes, numbers_out);
        break;
    case PH_WIRE_INT8:
        kernels->int8_widen(columns, bytes, scale, numbers_out);
        break;
    default:
        memcpy(numbers_out, bytes, columns * sizeof *numbers_out);
    }
}

static void add_row(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t columns,
    const void *bytes, float scale, ph_real *numbers)
{
    if (wire == PH_WIRE_FP32) {
        kernels->add(columns, numbers, bytes, numbers);
        return;
    }
    ph_real block[BLOCK];
    for (size_t first = 0; first < columns; first += BLOCK) {
        const size_t count = ph__min(columns - first, BLOCK);
        const unsigned char *from = (const unsigned char *)bytes + first * number_bytes(wire);
        unpack_row(kernels, wire, count, from, scale, block);
        kernels->add(count, numbers + first, block, numbers + first);
    }
}

typedef void read_row(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t columns,
    const void *bytes, float scale, ph_real *numbers);

/* read is a constant: the call is inlined. */
static inline void read_rows(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows,
    size_t columns, const void *bytes, ph_real *numbers, size_t stride, read_row *read)
{
    if (rows == 0 || columns == 0)
        return;
    const struct rows all = rows_of(wire, rows, columns, stride);
    const size_t row_bytes = all.columns * number_bytes(wire);
    const unsigned char *from = bytes;
    for (size_t row = 0; row < all.count; row++) {
        float scale = 0;
        if (wire == PH_WIRE_INT8)
            memcpy(&scale, from + all.scales_at + row * sizeof scale, sizeof scale);
        read(kernels, wire, all.columns, from + row * row_bytes, scale, numbers + row * stride);
    }
}

void ph__wire_unpack(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers_out, size_t stride)
{
    read_rows(kernels, wire, rows, columns, bytes, numbers_out, stride, unpack_row);
}

void ph__wire_unpack_rows(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows,
    size_t columns, const void *bytes, size_t first, size_t count, ph_real *numbers_out)
{
    const size_t row_bytes = columns * number_bytes(wire);
    const unsigned char *from = (const unsigned char *)bytes + first * row_bytes;
    const unsigned char *scales = (const unsigned char *)bytes + rows * row_bytes + first * sizeof(float);
    if (wire != PH_WIRE_INT8) {
        ph__wire_unpack(kernels, wire, count, columns, from, numbers_out, columns);
        return;
    }
    for (size_t row = 0; row < count && columns > 0; row++) {
        float scale;
        memcpy(&scale, scales + row * sizeof scale, sizeof scale);
        unpack_row(kernels, wire, columns, from + row * row_bytes, scale, numbers_out + row * columns);
    }
}

void ph__wire_add(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers, size_t stride)
{
    read_rows(kernels, wire, rows, columns, bytes, numbers, stride, add_row);
}
