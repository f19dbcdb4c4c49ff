/* Matrix products, from a library: gemm_onednn.c (oneDNN 2 and 3, C API) or gemm_reference.c (plain loops,
 * for the tsan preset and the double build). Only onednn.h includes oneDNN's header.
 *
 * Determinism: forward and backward-data products are cut into tasks by shape alone. Each task is one serial
 * library primitive that writes its own part of the output; tasks run on the team. Our own kernels, whose
 * sums have one order, make weight gradients (weight_gradient.c) and layers of few inputs or outputs. So bits
 * do not depend on the number of threads. The fast mode (is_fast) hands the library's products and weight
 * gradients whole to the library's own threading instead.
 *
 * Rows independent of each other: a library chooses its loops by the number of rows, so the bits of a row
 * change with the rows beside it. Our own kernel multiplies weights packed with is_row_wise; its rows do not
 * depend on each other, so a sample is scored alike in every batch.
 *
 * bf16: a weight packed as bf16 is rounded to bf16, the arrays multiplied with it are bf16, and sums are
 * reals. The library makes such products where it and the processor have instructions for them. Elsewhere
 * they are products of reals: a slice of rows is widened before the product and its result rounded after it,
 * while both are in the cache. The fast mode does not apply.
 *
 * int8: a weight packed as bytes is multiplied with rows that become bytes on their way into the product,
 * each with a scale of its own (kernel.h). Sums are exact and by our own kernel, so rows are independent, and
 * bits are the same on every ISA. Arrays are reals. The fast mode does not apply.
 *
 * Prepared primitives live in a cache owned by the context. Making one allocates, so ph__gemm_creations()
 * counts them: the count must not grow after warm-up. One thread at a time per context. */
#ifndef PH_KERNEL_GEMM_H
#define PH_KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/parallel.h"
#include "phloem/kernel.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

struct ph__gemm;

ph_status ph__gemm_create(struct ph__team *team, bool is_fast, struct ph__gemm **gemm_out);
void ph__gemm_destroy(struct ph__gemm *gemm);
uint64_t ph__gemm_creations(const struct ph__gemm *gemm);
const char *ph__gemm_library(void); /* "oneDNN 2.6.3", "reference" */

/* A weight matrix (out_features N, in_features K), row-major, packed into the library's layout for the
 * forward product Y(M,N) = X(M,K) W^T, or, transposed, for dX(M,K) = dY(M,N) W. */
struct ph__gemm_weight_shape {
    size_t out_features, in_features;
    bool is_transposed;
    bool is_row_wise; /* forward only: rows of Y are independent; no fast mode */
    bool is_bf16; /* W is rounded to bf16; X and dY are bf16, except that X stays real where is_row_wise */
    bool is_int8; /* W is rounded to bytes, as are rows of X and dY; not with is_row_wise or is_bf16 */
};
/* Tells whether the shape can be of int8: it has enough outputs, and sums of at most PH_INT8_MOST_TERMS. */
bool ph__gemm_takes_int8(size_t out_features, size_t in_features, bool is_transposed);
ph_status ph__gemm_packed_bytes(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, size_t *bytes_out);
ph_status ph__gemm_pack(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const ph_real *weight, void *packed);

/* A product with a packed weight. Arrays are row-major, of ph_real or bf16. */
struct ph__gemm_args {
    size_t rows;   /* M, may be 0 */
    const void *x; /* forward X (M,K), backward dY (M,N); bf16 where the weight's shape says so */
    const void *packed;
    const ph_real *bias; /* (N), forward only; NULL: none */
    enum ph_activation activation;
    bool is_block_normed; /* block norm before the activation; backward only with PH_IDENTITY and
                             PH_HARD_SWISH */
    ph_real *raw; /* forward, with block norm or PH_HARD_SWISH: the product before them, (M,N); NULL: not
                     wanted */
    /* backward, (M,K): the activation's output; the raw product for PH_HARD_SWISH and for block norm. Not
     * read for PH_IDENTITY without block norm */
    const void *activated;
    void *y; /* forward Y (M,N), backward dX (M,K) */
    bool is_activated_bf16, is_y_bf16;
    void *scratch; /* ph__gemm_scratch_bytes(); NULL where that is 0 */
};
size_t ph__gemm_scratch_bytes(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape);

/* Y(M,N) = activation(X(M,K) W^T + bias), with block norm before the activation where that is wanted. Both
 * run on a slice of rows while its product is in the cache, with the bits of the kernels. The weight is
 * packed not transposed. */
ph_status ph__gemm_forward(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args);

/* dX(M,K) = dY(M,N) W, passed back through the activation, and the block norm before it, that made X. The
 * weight is packed with is_transposed. */
ph_status ph__gemm_backward_data(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args);

/* dW(N,K) = dY(M,N)^T X(M,K); bias gradient db(N) = column sums of dY (NULL: not wanted). Zeros for 0 rows. x
 * and dy are bf16 where the shape is; dw and db are reals. scratch: ph__gemm_weight_scratch_bytes(). */
size_t ph__gemm_weight_scratch_bytes(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape);
ph_status ph__gemm_backward_weight(struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape,
    size_t rows, const void *x, const void *dy, ph_real *dw, ph_real *db, void *scratch);

#endif
