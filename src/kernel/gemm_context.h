/* The context of products, which packed_product.c and weight_gradient.c share. */
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

#endif
