/* Terms that kernels, operators and configs share: activations, pooling, optimizers. */
#ifndef PHLOEM_KERNEL_H
#define PHLOEM_KERNEL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PH_HARD_SWISH: x clamp(x + 3, 0, 6) / 6. */
enum ph_activation { PH_IDENTITY, PH_RELU, PH_SIGMOID, PH_HARD_SWISH };

/* Reductions of one bag's vectors, each times its weight where ids have one. The mean divides by the number
 * of ids. */
enum ph_pooling { PH_POOL_SUM, PH_POOL_MEAN };

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
