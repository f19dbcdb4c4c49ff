/* The words that kernels, operators and configs share: activations, pooling, optimizers. */
#ifndef PHLOEM_KERNEL_H
#define PHLOEM_KERNEL_H

#ifdef __cplusplus
extern "C" {
#endif

enum ph_activation { PH_IDENTITY, PH_RELU, PH_SIGMOID };

/* Of the vectors of one bag, each times its weight where ids have one. A mean divides by the number of ids. */
enum ph_pooling { PH_POOL_SUM, PH_POOL_MEAN };

/* The formulas stand in src/kernel/kernel.h and docs/CONFIG.md. */
enum ph_optimizer_kind {
    PH_SGD,
    PH_MOMENTUM,
    PH_ADAGRAD,
    PH_ROWWISE_ADAGRAD,
    PH_ADAM,
    PH_ADAMW,
    PH_OPTIMIZER_COUNT
};

#ifdef __cplusplus
}
#endif
#endif
