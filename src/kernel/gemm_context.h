/* What gemm.c, weight_gradient.c and weight_gradient_library.c share: the context of products. */
#ifndef PH_KERNEL_GEMM_CONTEXT_H
#define PH_KERNEL_GEMM_CONTEXT_H

#include "kernel/gemm.h"
#include "kernel/gemm_library.h"
#include "kernel/kernel.h"

struct ph_gemm {
    struct ph_team *team; /* borrowed */
    bool is_fast;
    bool has_bf16; /* the library multiplies bf16 by instructions made for it */
    struct ph_gemm_library *library;
    const struct ph_kernels *kernels;
};

/* A weight gradient that is left to the library: dw (N,K) = dy (M,N)^T x (M,K), db (N) the column sums of dy, NULL where it
 * is not wanted. */
struct ph_weight_gradient {
    const struct ph_gemm *gemm;
    size_t samples, out_features, in_features; /* M, N, K; M > 0 */
    const void *x, *dy;
    ph_real *dw, *db;
};
/* Of reals, by the library's own threads: bits follow their number. */
ph_status ph__weight_gradient_threaded(const struct ph_weight_gradient *wanted);
/* Of bf16, where the library has_bf16. */
ph_status ph__weight_gradient_in_bf16(const struct ph_weight_gradient *wanted);

#endif
