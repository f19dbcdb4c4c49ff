/* Matrix products, from a library: gemm_onednn.c (oneDNN 2 and 3, C API) or gemm_reference.c (plain loops,
 * for the tsan preset and the double build). The only file of the tree that includes oneDNN's header is
 * gemm_onednn.c.
 *
 * Determinism: forward and backward-data products are cut by shape alone into tasks; each task is one serial
 * library primitive writing its own part of the output; tasks run on the team. Weight gradients
 * (weight_gradient.c) and layers of few inputs or outputs are our own kernels', whose sums have one order. So
 * bits do not depend on the number of threads. The fast mode (is_fast) hands the library's products and
 * weight gradients whole to the library's own threading instead.
 *
 * Rows that must not depend on each other: a library chooses its loops by the number of rows, so the bits of
 * a row change with the rows beside it. A weight packed with is_row_wise is multiplied by our own kernel
 * instead, in which they do not: a sample is then scored alike in every batch.
 *
 * bf16: a weight that is packed as such is rounded to bf16, the arrays that are multiplied with it are bf16,
 * and sums are reals. Where the library and the processor have instructions for that, products are the
 * library's; elsewhere they are products of reals, a slice of rows being widened before and its result
 * rounded behind, while they are in the cache. The fast mode does not apply.
 *
 * Prepared primitives live in a cache owned by the context; making one allocates, so ph__gemm_creations()
 * counts them: it must not grow after warm-up. One thread at a time per context. */
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

/* A weight matrix (out_features N, in_features K) row-major, packed into the library's layout.
 * Packing for the forward product Y(M,N) = X(M,K) W^T, or, transposed, for dX(M,K) = dY(M,N) W. */
struct ph__gemm_weight_shape {
    size_t out_features, in_features;
    bool is_transposed;
    bool is_row_wise; /* forward only: a row of Y does not depend on the others, nor does the fast mode apply
                       */
    bool is_bf16;     /* W is rounded to bf16; X and dY are bf16, but where is_row_wise: there X stays real */
};
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
    const void *activated; /* backward: what the activation made, (M,K); not read for PH_IDENTITY */
    void *y;               /* forward Y (M,N), backward dX (M,K) */
    bool is_activated_bf16, is_y_bf16;
    void *scratch; /* ph__gemm_scratch_bytes(); NULL where that is 0 */
};
size_t ph__gemm_scratch_bytes(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape);

/* Y(M,N) = activation(X(M,K) W^T + bias): packed not transposed. */
ph_status ph__gemm_forward(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args);

/* dX(M,K) = dY(M,N) W times the derivative of the activation that made X, by X alone: packed with
 * is_transposed. */
ph_status ph__gemm_backward_data(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args);

/* dW(N,K) = dY(M,N)^T X(M,K), bias gradient db(N) = column sums of dY (NULL: not wanted). Rows 0: zeros. x
 * and dy are bf16 where the shape is, dw and db reals. scratch: ph__gemm_weight_scratch_bytes(). */
size_t ph__gemm_weight_scratch_bytes(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape);
ph_status ph__gemm_backward_weight(struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape,
    size_t rows, const void *x, const void *dy, ph_real *dw, ph_real *db, void *scratch);

#endif
