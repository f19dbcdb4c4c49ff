/* Interface that packed_product.c and weight_gradient.c have to a matrix library: single products,
 * prepared once, run by one worker at a time.
 *
 * gemm_onednn.c and gemm_reference.c implement it; only the two named above call it. All functions but
 * ph__gemm_library_run are for the thread that owns the context, outside of parallel regions. */
#ifndef PH_KERNEL_GEMM_LIBRARY_H
#define PH_KERNEL_GEMM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

enum ph__product_flag {
    PH_PRODUCT_A_TRANSPOSED = 1, /* A is stored (inner, rows) */
    PH_PRODUCT_B_TRANSPOSED = 2, /* B is stored (columns, inner), or was before it was packed */
    PH_PRODUCT_B_PACKED = 4,     /* B is in the library's layout */
    PH_PRODUCT_BIAS = 8,         /* + bias (columns), the same for each row */
    PH_PRODUCT_THREADED = 16,    /* the library may use its own threads; bits may change */
    PH_PRODUCT_BF16 = 32,        /* A and B are bf16, or reals before B was packed; sums, bias, C are reals */
};

/* C (rows, columns) = A (rows, inner) B (inner, columns). A stride is the distance in reals between the rows
 * of a stored matrix; b_stride is 0 for a packed B. Only size_t members: products are compared as bytes. */
struct ph__product {
    size_t rows, columns, inner;
    size_t a_stride, b_stride, c_stride;
    size_t flags; /* of enum ph__product_flag */
};

struct ph__product_operands {
    const void *a, *b;
    const ph_real *bias;
    ph_real *c;
};

/* A product that is ready to run. gemm_reference.c leaves entry NULL; ph__plain_product then computes it. */
struct ph__prepared {
    struct ph__product product;
    struct ph__library_entry *entry; /* owned by the library */
};

struct ph__gemm_library;

/* num_workers: how many workers may run products at once. num_threads: threads of a PH_PRODUCT_THREADED
 * product and of packing (ph__team_library_threads). */
ph_status ph__gemm_library_create(
    size_t num_workers, size_t num_threads, struct ph__gemm_library **library_out);
void ph__gemm_library_destroy(struct ph__gemm_library *library);
uint64_t ph__gemm_library_creations(const struct ph__gemm_library *library);

/* Returns true when this library and processor have instructions for products of bf16. Without them the
 * library may refuse such a product, or take long. */
bool ph__gemm_library_has_bf16(void);

/* Finds or makes the primitive that runs `product`. packed: B of the coming runs when the product is packed,
 * else NULL. */
ph_status ph__gemm_library_prepare(struct ph__gemm_library *library, const struct ph__product *product,
    const void *packed, struct ph__prepared *prepared_out);

/* Runs a product in a task of the team, or, when PH_PRODUCT_THREADED, outside of one with worker 0. worker <
 * num_workers; no two calls at once with the same worker. Fails only by a bug, and records no text. */
ph_status ph__gemm_library_run(
    const struct ph__prepared *prepared, size_t worker, const struct ph__product_operands *operands);

/* Packing of B (inner, columns): reals, stored (columns, inner) when is_transposed. */
struct ph__packing {
    size_t inner, columns;
    bool is_transposed;
    bool is_bf16; /* rounded while packing */
};
ph_status ph__gemm_library_packed_bytes(
    struct ph__gemm_library *library, const struct ph__packing *packing, size_t *bytes_out);
ph_status ph__gemm_library_pack(
    struct ph__gemm_library *library, const struct ph__packing *packing, const ph_real *matrix, void *packed);

/* Computes any product by plain loops; here a packed B is a copy of B as stored. In every build
 * (plain_product.c). */
void ph__plain_product(const struct ph__product *product, const struct ph__product_operands *operands);

/* sums (columns) = sums of x's columns over the rows, which lie `stride` reals apart; adds rows in blocks,
 * then the blocks. */
void ph__plain_column_sums(size_t rows, size_t columns, size_t stride, const ph_real *x, ph_real *sums);

#endif
