/* The context of matrix products, shared by packed_product.c and weight_gradient.c. */
#ifndef PH_KERNEL_GEMM_CONTEXT_H
#define PH_KERNEL_GEMM_CONTEXT_H

#include <stddef.h>

#include "kernel/gemm.h"
#include "kernel/gemm_library.h"
#include "kernel/kernel.h"

struct ph__gemm {
    struct ph__team *team; /* borrowed */
    bool is_fast;
    bool has_bf16;     /* the library has instructions for products of bf16 */
    bool has_int8_dot; /* the processor sums products of bytes */
    struct ph__gemm_library *library;
    const struct ph__kernels *kernels;
};

/* ---- lengths in pieces (packed_product.c) ---- */

/* The cut of a length follows from the length alone: equal pieces, then shrinking powers of two and a rest.
 * So the number of different pieces is bounded, whatever the lengths. */

#define PH_MIN_PIECE 16
#define PH_MAX_TAIL 7 /* of a piece of 1024: 512, 256, 128, 64, 32, 16 and a rest */

/* A length as num_full pieces of `full`, then num_tail shrinking ones. */
struct ph__cut {
    size_t full, num_full, num_tail;
    size_t tail[PH_MAX_TAIL + 1];
};

struct ph__piece {
    size_t first, count;
    size_t kind; /* 0: a full piece, else 1 + its place in the tail */
};

/* Cuts a length. full is a power of two, at most PH_MIN_PIECE * 2^PH_MAX_TAIL, or the length itself. */
struct ph__cut ph__cut_length(size_t length, size_t full);
size_t ph__cut_pieces(const struct ph__cut *cut);
struct ph__piece ph__cut_piece(const struct ph__cut *cut, size_t index);

#endif
