/* Formats in which numbers travel between ranks: as they are, or in fewer bytes.
 *
 *   fp32         ph_real
 *   fp16, bf16   16 bits, to the nearest
 *   int8         one byte each, q = nearest(x / scale) with scale = largest |x| / 127 of the row, row by row;
 *                then the rows' scales, a float each. A row with a number that is not finite reads as NaN,
 *                one whose scale would be subnormal as zeros.
 *
 * Packing reads rows that lie `stride` numbers apart and writes them without gaps; unpacking is the way back;
 * ph__wire_add unpacks and adds to the numbers. Every ISA gives the same bits, except in a NaN that adding
 * makes. Counts may be zero; bytes are aligned as the numbers in them are; the caller rounds to nearest
 * (base/thread/cpu.h). */
#ifndef PH_COMM_WIRE_FORMAT_H
#define PH_COMM_WIRE_FORMAT_H

#include <stddef.h>

#include "kernel/kernel.h"
#include "phloem/comm.h"

const char *ph__wire_name(enum ph_wire_format wire);

size_t ph__wire_bytes(enum ph_wire_format wire, size_t rows, size_t columns);
void ph__wire_pack(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows, size_t columns,
    const ph_real *numbers, size_t stride, void *bytes_out);
void ph__wire_unpack(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers_out, size_t stride);
/* Pack or unpack `count` of the packed rows, from row `first` on: numbers holds those rows alone, without
 * gaps. */
void ph__wire_pack_rows(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows,
    size_t columns, const ph_real *numbers, size_t first, size_t count, void *bytes_out);
void ph__wire_unpack_rows(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows,
    size_t columns, const void *bytes, size_t first, size_t count, ph_real *numbers_out);
void ph__wire_add(const struct ph__kernels *kernels, enum ph_wire_format wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers, size_t stride);

#endif
