/* Matrix products, from a library: gemm_onednn.c (oneDNN 2 and 3, C API) or gemm_reference.c (plain loops, for the
 * tsan preset and the double build). The only file of the tree that includes oneDNN's header is gemm_onednn.c.
 *
 * Determinism: forward and backward-data products are cut by shape alone into tasks; each task is one serial library
 * primitive writing its own part of the output; tasks run on the team. Weight gradients (weight_gradient.c) and layers of
 * few inputs are our own kernels', whose sums have one order. So bits do not depend on the number of threads. The fast
 * mode (is_fast) hands the library's products and weight gradients whole to the library's own threading instead.
 *
 * Rows that must not depend on each other: a library chooses its loops by the number of rows, so the bits of a row change
 * with the rows beside it. A weight packed with is_row_wise is multiplied by our own kernel instead, in which they do
 * not: a sample is then scored alike in every batch.
 *
 * Prepared primitives live in a cache owned by the context; making one allocates, so ph__gemm_creations() counts them:
 * it must not grow after warm-up. One thread at a time per context. */
#ifndef PH_KERNEL_GEMM_H
#define PH_KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parallel.h"
#include "phloem/kernel.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

struct ph_gemm;

ph_status ph__gemm_create(struct ph_team *team, bool is_fast, struct ph_gemm **gemm_out);
void ph__gemm_destroy(struct ph_gemm *gemm);
uint64_t ph__gemm_creations(const struct ph_gemm *gemm);
const char *ph__gemm_library(void); /* "oneDNN 2.6.3", "reference" */

/* A weight matrix (out_features N, in_features K) row-major, packed into the library's layout.
 * Packing for the forward product Y(M,N) = X(M,K) W^T, or, transposed, for dX(M,K) = dY(M,N) W. */
struct ph_gemm_weight_shape {
    size_t out_features, in_features;
    bool is_transposed;
    bool
        is_row_wise; /* forward only: a row of Y does not depend on the others, nor does the fast mode apply */
};
ph_status ph__gemm_packed_bytes(
    struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, size_t *bytes_out);
ph_status ph__gemm_pack(
    struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, const ph_real *weight, void *packed);

/* Y(M,N) = activation(X(M,K) W^T + bias): packed not transposed; bias (N) may be NULL. rows M may be 0. */
ph_status ph__gemm_forward(struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, size_t rows,
    const ph_real *x, const void *packed, const ph_real *bias, enum ph_activation activation, ph_real *y);

/* dX(M,K) = dY(M,N) W times the derivative of the activation that made X, by X (M,K) alone (x is not read for
 * PH_IDENTITY): packed with is_transposed. */
ph_status ph__gemm_backward_data(struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, size_t rows,
    const ph_real *dy, const void *packed, enum ph_activation activation, const ph_real *x, ph_real *dx);

/* dW(N,K) = dY(M,N)^T X(M,K), bias gradient db(N) = column sums of dY (NULL: not wanted). Rows 0: zeros.
 * scratch: ph__gemm_weight_scratch_bytes(). */
size_t ph__gemm_weight_scratch_bytes(const struct ph_gemm *gemm, size_t out_features, size_t in_features);
ph_status ph__gemm_backward_weight(struct ph_gemm *gemm, size_t rows, size_t out_features, size_t in_features,
    const ph_real *x, const ph_real *dy, ph_real *dw, ph_real *db, void *scratch);

#endif
