/* What packed_product.c and weight_gradient.c need of a matrix library: single products, prepared once, run
 * by one worker at a time.
 *
 * gemm_onednn.c and gemm_reference.c implement it; those two alone call it. All of it but
 * ph__gemm_library_run is for the thread that owns the context, outside of parallel regions. */
#ifndef PH_KERNEL_GEMM_LIBRARY_H
#define PH_KERNEL_GEMM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

enum ph__product_flag {
    PH_PRODUCT_A_TRANSPOSED = 1, /* A is stored (inner, rows) */
    PH_PRODUCT_B_TRANSPOSED = 2, /* B is stored, or was before it was packed, (columns, inner) */
    PH_PRODUCT_B_PACKED = 4,     /* B is in the library's layout */
    PH_PRODUCT_BIAS = 8,         /* + bias (columns), the same for each row */
    PH_PRODUCT_THREADED = 16,    /* the library may use its own threads, and give bits up */
    PH_PRODUCT_BF16 =
        32, /* A and B are bf16, or were reals before B was packed; sums, bias and C are reals */
};

/* C (rows, columns) = A (rows, inner) B (inner, columns). A stride is the distance in reals between the rows
 * of a matrix as it is stored; b_stride is 0 for a packed B. Only size_t members: compared as bytes. */
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

/* A product that can be run. The library that is none has no entries: ph__plain_product computes it. */
struct ph__prepared {
    struct ph__product product;
    struct ph__library_entry *entry; /* owned by the library */
};

struct ph__gemm_library;

/* num_workers: how many may run products at once. num_threads: those of a PH_PRODUCT_THREADED product and of
 * packing (ph__team_library_threads). */
ph_status ph__gemm_library_create(
    size_t num_workers, size_t num_threads, struct ph__gemm_library **library_out);
void ph__gemm_library_destroy(struct ph__gemm_library *library);
uint64_t ph__gemm_library_creations(const struct ph__gemm_library *library);

/* Whether this library and processor have instructions for products of bf16. Without them it may refuse such
 * a product, or take long. */
bool ph__gemm_library_has_bf16(void);

/* Finds or makes what runs `product`. packed: the B of the coming runs when the product is packed, else NULL.
 */
ph_status ph__gemm_library_prepare(struct ph__gemm_library *library, const struct ph__product *product,
    const void *packed, struct ph__prepared *prepared_out);

/* In a task of the team, or, when PH_PRODUCT_THREADED, outside of one with worker 0. worker < num_workers, no
 * two at once with the same worker. Fails only by a bug, and records no text. */
ph_status ph__gemm_library_run(
    const struct ph__prepared *prepared, size_t worker, const struct ph__product_operands *operands);

/* Packing B (inner, columns), reals that are stored (columns, inner) when is_transposed. */
struct ph__packing {
    size_t inner, columns;
    bool is_transposed;
    bool is_bf16; /* rounded on the way */
};
ph_status ph__gemm_library_packed_bytes(
    struct ph__gemm_library *library, const struct ph__packing *packing, size_t *bytes_out);
ph_status ph__gemm_library_pack(
    struct ph__gemm_library *library, const struct ph__packing *packing, const ph_real *matrix, void *packed);

/* Any product by plain loops, for which packed means copied as it is stored. plain_product.c, in every build.
 */
void ph__plain_product(const struct ph__product *product, const struct ph__product_operands *operands);

/* sums (columns) = the sum over rows of x, whose rows stand `stride` reals apart; in blocks of rows, then of
 * blocks. */
void ph__plain_column_sums(size_t rows, size_t columns, size_t stride, const ph_real *x, ph_real *sums);

#endif
