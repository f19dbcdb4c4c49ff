/* Every kernel by name, and which implementation each ISA's table holds.
 *
 * An entry names its own ISA where that variant beats the next lower one on bench_kernels, and the winner's
 * where it does not: such a variant is not kept. Declares all implementations with the types of the table
 * itself. */
#ifndef PH_KERNEL_KERNEL_LIST_H
#define PH_KERNEL_KERNEL_LIST_H

#include "kernel/kernel.h"

/* X(kernel, implementation in the AVX2 table, implementation in the AVX-512 table) */
#define PH_KERNEL_LIST(X)                 \
    X(embedding_bag, ref, ref)            \
    X(embedding_gradient_row, ref, ref)   \
    X(optimizer_update, ref, ref)         \
    X(rowwise_adagrad_update, ref, ref)   \
    X(sum_of_squares, ref, ref)           \
    X(fm_forward, ref, ref)               \
    X(fm_backward, ref, ref)              \
    X(dot_forward, ref, ref)              \
    X(dot_backward, ref, ref)             \
    X(relu, ref, ref)                     \
    X(relu_backward, ref, ref)            \
    X(sigmoid, ref, ref)                  \
    X(sigmoid_backward, ref, ref)         \
    X(add, ref, ref)                      \
    X(multiply, ref, ref)                 \
    X(scale, ref, ref)                    \
    X(add_rows, ref, ref)                 \
    X(dropout, ref, ref)                  \
    X(dropout_backward, ref, ref)         \
    X(batch_norm_sums, ref, ref)          \
    X(batch_norm_apply, ref, ref)         \
    X(batch_norm_gradient_sums, ref, ref) \
    X(batch_norm_backward, ref, ref)      \
    X(bce, ref, ref)                      \
    X(bce_backward, ref, ref)

#define PH_KERNEL_DECLARE(name, avx2, avx512)                                              \
    __typeof__(*((const struct ph_kernels *)0)->name) ph__##name##_ref, ph__##name##_avx2, \
        ph__##name##_avx512;
PH_KERNEL_LIST(PH_KERNEL_DECLARE)
#undef PH_KERNEL_DECLARE

#endif
