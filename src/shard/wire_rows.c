/* See wire_rows.h. */
#include "shard/wire_rows.h"

enum { BLOCK_ROWS = 512 };

struct rows {
    const struct ph_kernels *kernels;
    enum ph_wire wire;
    size_t count, columns;
    const void *from;
    void *to;
};

static void pack_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct rows *rows = argument;
    const ph_real *numbers = (const ph_real *)rows->from + first * rows->columns;
    (void)worker;
    ph__wire_pack_rows(
        rows->kernels, rows->wire, rows->count, rows->columns, numbers, first, last - first, rows->to);
}

static void unpack_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct rows *rows = argument;
    ph_real *numbers = (ph_real *)rows->to + first * rows->columns;
    (void)worker;
    ph__wire_unpack_rows(
        rows->kernels, rows->wire, rows->count, rows->columns, rows->from, first, last - first, numbers);
}

void ph__pack_rows(const struct ph_backend *backend, enum ph_wire wire, size_t rows, size_t columns,
    const ph_real *numbers, void *bytes_out)
{
    struct rows all = {backend->kernels, wire, rows, columns, numbers, bytes_out};
    ph__for_blocks(backend, rows, BLOCK_ROWS, pack_block, &all);
}

void ph__unpack_rows(const struct ph_backend *backend, enum ph_wire wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers_out)
{
    struct rows all = {backend->kernels, wire, rows, columns, bytes, numbers_out};
    ph__for_blocks(backend, rows, BLOCK_ROWS, unpack_block, &all);
}
