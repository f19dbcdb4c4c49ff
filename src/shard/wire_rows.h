/* Rows into the format in which they travel between ranks and back (comm/wire/wire_format.h), by all threads of a backend's team. Each
 * row has the same bits whoever packs it. */
#ifndef PH_SHARD_WIRE_ROWS_H
#define PH_SHARD_WIRE_ROWS_H

#include "comm/wire/wire_format.h"
#include "graph/op.h"

/* numbers, numbers_out: (rows, columns) without gaps. */
void ph__pack_rows(const struct ph_backend *backend, enum ph_wire wire, size_t rows, size_t columns,
    const ph_real *numbers, void *bytes_out);
void ph__unpack_rows(const struct ph_backend *backend, enum ph_wire wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers_out);

#endif
