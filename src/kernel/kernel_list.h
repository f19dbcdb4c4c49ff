/* Lists every kernel by name, with the implementation that each ISA's table holds, and declares all
 * implementations with the types of the table's members.
 *
 * An entry names its own ISA where that variant beats the next lower one on bench_kernels, else the winner's:
 * a losing variant is not kept. (With AVX-512 the gradient row was 13% slower than with AVX2, and the
 * elementwise optimizers, bound by memory, division and root, no faster.) */
#ifndef PH_KERNEL_KERNEL_LIST_H
#define PH_KERNEL_KERNEL_LIST_H

#include "kernel/kernel.h"

/* X(kernel, implementation in the AVX2 table, implementation in the AVX-512 table); the hub's first. */
#define PH_HUB_KERNEL_LIST(X)  \
    X(aggregate, avx2, avx512) \
    X(sum_of_squares, avx2, avx512)

#define PH_KERNEL_LIST(X)                     \
    X(embedding_bag, avx2, avx512)            \
    X(list_neighbours, avx2, avx512)          \
    X(embedding_gradient_row, avx2, avx2)     \
    X(embedding_update, avx2, avx512)         \
    X(embedding_squares, avx2, avx512)        \
    X(table_rows_load, avx2, avx512)          \
    X(table_rows_store, avx2, avx512)         \
    X(row_product, avx2, avx512)              \
    X(narrow_product, avx2, avx512)           \
    X(weight_product, avx2, avx512)           \
    X(small_product, avx2, avx512)            \
    X(int8_pack, avx2, avx512)                \
    X(int8_product, avx2, avx512)             \
    X(multiply_rows, avx2, avx512)            \
    X(transpose, avx2, avx512)                \
    X(interchange, avx2, avx512)              \
    X(optimizer_update, avx2, avx2)           \
    X(rowwise_adagrad_update, avx2, avx512)   \
    X(row_squares, avx2, avx512)              \
    X(rowwise_adagrad_step, avx2, avx512)     \
    PH_HUB_KERNEL_LIST(X)                     \
    X(fm_forward, avx2, avx512)               \
    X(fm_backward, avx2, avx512)              \
    X(dot_forward, avx2, avx512)              \
    X(dot_backward, avx2, avx512)             \
    X(relu, avx2, avx512)                     \
    X(relu_backward, avx2, avx512)            \
    X(sigmoid, avx2, avx512)                  \
    X(sigmoid_backward, avx2, avx512)         \
    X(hard_swish, avx2, avx512)               \
    X(hard_swish_backward, avx2, avx512)      \
    X(add, avx2, avx512)                      \
    X(multiply, avx2, avx512)                 \
    X(multiply_add, avx2, avx512)             \
    X(scale, avx2, avx512)                    \
    X(add_rows, avx2, avx512)                 \
    X(bf16_narrow, avx2, avx512)              \
    X(bf16_widen, avx2, avx512)               \
    X(fp16_narrow, avx2, avx512)              \
    X(fp16_widen, avx2, avx512)               \
    X(int8_narrow, avx2, avx512)              \
    X(int8_widen, avx2, avx512)               \
    X(dropout, avx2, avx512)                  \
    X(dropout_backward, avx2, avx512)         \
    X(batch_norm_sums, avx2, avx512)          \
    X(batch_norm_apply, avx2, avx512)         \
    X(batch_norm_gradient_sums, avx2, avx512) \
    X(batch_norm_backward, avx2, avx512)      \
    X(layer_norm, avx2, avx512)               \
    X(layer_norm_backward, avx2, avx512)      \
    X(block_norm, avx2, avx512)               \
    X(block_norm_backward, avx2, avx512)      \
    X(attention_forward, avx2, avx512)        \
    X(attention_backward, avx2, avx512)       \
    X(list_runs, ref, avx512)                 \
    X(bce, avx2, avx512)                      \
    X(bce_backward, avx2, avx512)

#define PH_KERNEL_DECLARE(name, avx2, avx512)                                               \
    __typeof__(*((const struct ph__kernels *)0)->name) ph__##name##_ref, ph__##name##_avx2, \
        ph__##name##_avx512;
PH_KERNEL_LIST(PH_KERNEL_DECLARE)
#undef PH_KERNEL_DECLARE

/* Kernels in the tables of this library. libphloem_hub is built with PH_HUB_KERNEL_LIST, and its other
 * entries are NULL (cmake/hub_library.cmake). */
#ifndef PH_TABLE_KERNEL_LIST
#define PH_TABLE_KERNEL_LIST PH_KERNEL_LIST
#endif

#endif
