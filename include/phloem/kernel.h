/* Terms that kernels, operators and configs share: activations, pooling, sampling, optimizers. */
#ifndef PHLOEM_KERNEL_H
#define PHLOEM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PH_HARD_SWISH: x clamp(x + 3, 0, 6) / 6. */
enum ph_activation { PH_IDENTITY, PH_RELU, PH_SIGMOID, PH_HARD_SWISH };

/* Reductions of one bag's vectors, each times its weight where ids have one. The mean divides by the number
 * of ids. */
enum ph_pooling { PH_POOL_SUM, PH_POOL_MEAN };

/* Rules that choose c of a node's d neighbours, n_0 to n_(d-1) (ES-SpMM, arXiv:2104.10716; aes: AES-SpMM,
 * arXiv:2503.18427): the s-th chosen one, s < c, is n_o(s). c = min(d, width), and where c = d all are taken,
 * each once. X(NAME, name):
 *
 *     bucket   o = s: the first ones
 *     stride   o = p s mod d; the prime p, one of ten, starts from `seed` and does not divide d
 *     residue  q = (s^2 + seed) mod 21767; o = q mod d for s <= 10883, else (21767 - q) mod d; may repeat
 *     rate     as stride, of c = ceil(rate d) neighbours; the width must be 0
 *     aes      runs of consecutive neighbours: 4 for d / width <= 2, 8 for <= 36, 16 for <= 54, else 32; run
 *              k starts at 1429 k mod (d - length + 1); runs may overlap
 *     even     o = floor(s d / width) */
#define PH_SAMPLINGS(X) \
    X(BUCKET, bucket)   \
    X(STRIDE, stride)   \
    X(RESIDUE, residue) \
    X(RATE, rate)       \
    X(AES, aes)         \
    X(EVEN, even)

enum ph_sampling_strategy {
#define X(name, text) PH_SAMPLING_##name,
    PH_SAMPLINGS(X)
#undef X
};

/* Choice of each node's neighbours. Zero-initialised: all of them. */
struct ph_sampling {
    size_t width; /* neighbours of a node at most; 0: all */
    double rate;  /* RATE: share of the neighbours, in (0,1]; others: 0 */
    enum ph_sampling_strategy strategy;
    uint32_t seed; /* STRIDE, RATE and RESIDUE */
};

/* Factors of an aggregation, X(NAME, name); w are edge weights, one where there are none; d and c count a
 * node's neighbours and the chosen ones.
 *
 *     sum        d/c sum of w x
 *     mean       1 / (c + bias) sum of w x
 *     symmetric  d/c sum of w x / sqrt(d d_j), where d_j counts the neighbours of neighbour j, at least 1 */
#define PH_NORMALISATIONS(X) \
    X(SUM, sum)              \
    X(MEAN, mean)            \
    X(SYMMETRIC, symmetric)

enum ph_normalisation {
#define X(name, text) PH_NORMALISE_##name,
    PH_NORMALISATIONS(X)
#undef X
};

/* src/kernel/kernel.h and docs/CONFIG.md have the formulas. */
enum ph_optimizer_kind {
    PH_SGD,
    PH_MOMENTUM,
    PH_ADAGRAD,
    PH_ROWWISE_ADAGRAD,
    PH_ADAM,
    PH_ADAMW,
    PH_OPTIMIZER_COUNT
};

/* Rule that updates a weight by its gradient. Settings, operators and hubs add what differs from parameter to
 * parameter: the learning rate and l2. Members that the kind does not use are ignored. */
struct ph_update_rule {
    enum ph_optimizer_kind kind;
    bool is_nesterov;    /* MOMENTUM */
    double momentum;     /* MOMENTUM */
    double beta1, beta2; /* ADAM, ADAMW */
    double epsilon;      /* all but SGD and MOMENTUM */
    double weight_decay; /* ADAMW, decoupled */
};

#ifdef __cplusplus
}
#endif
#endif
