/* One vector's step of each elementwise optimizer. Division and square root are the IEEE operations. Adam's
 * bias corrections are folded into the learning rate and a reciprocal, which leaves one division and one root
 * per element. */
#ifndef PH_KERNEL_OPTIMIZER_STEP_H
#define PH_KERNEL_OPTIMIZER_STEP_H

#include "kernel/simd/simd.h"

struct constants {
    vf learning_rate, gradient_scale, l2, decay, momentum, beta1, beta2, rest1, rest2, epsilon, adam_rate,
        reciprocal2;
};

static struct constants broadcast(const struct ph__optimizer_step *step)
{
    return (struct constants){
        .learning_rate = vf_set1(step->learning_rate),
        .gradient_scale = vf_set1(step->gradient_scale),
        .l2 = vf_set1(step->l2),
        .decay = vf_set1(step->learning_rate * step->weight_decay),
        .momentum = vf_set1(step->momentum),
        .beta1 = vf_set1(step->beta1),
        .beta2 = vf_set1(step->beta2),
        .rest1 = vf_set1(1.0F - step->beta1),
        .rest2 = vf_set1(1.0F - step->beta2),
        .epsilon = vf_set1(step->epsilon),
        .adam_rate = vf_set1(step->learning_rate / step->bias_correction1),
        .reciprocal2 = vf_set1(1.0F / step->bias_correction2),
    };
}

/* Steps one vector by the formulas of kernel.h; kind is a constant. Returns the new weights. */
PH_INLINE vf step_vector(
    const struct constants *c, enum ph_optimizer_kind kind, int is_nesterov, vf gradient, vf w, vf *m, vf *s)
{
    const vf g = vf_fma(c->l2, w, vf_mul(gradient, c->gradient_scale));
    switch (kind) {
    case PH_MOMENTUM:
        *m = vf_fma(c->momentum, *m, g);
        return vf_fnma(c->learning_rate, is_nesterov ? vf_fma(c->momentum, *m, g) : *m, w);
    case PH_ADAGRAD:
        *s = vf_fma(g, g, *s);
        return vf_sub(w, vf_div(vf_mul(c->learning_rate, g), vf_add(vf_sqrt(*s), c->epsilon)));
    case PH_ADAMW:
        w = vf_fnma(c->decay, w, w);
        /* fall through */
    case PH_ADAM:
        *m = vf_fma(c->beta1, *m, vf_mul(c->rest1, g));
        *s = vf_fma(c->beta2, *s, vf_mul(vf_mul(c->rest2, g), g));
        const vf root = vf_sqrt(vf_mul(*s, c->reciprocal2));
        return vf_sub(w, vf_div(vf_mul(c->adam_rate, *m), vf_add(root, c->epsilon)));
    default:
        return vf_fnma(c->learning_rate, g, w);
    }
}

PH_INLINE int has_momentum(enum ph_optimizer_kind kind)
{
    return kind == PH_MOMENTUM || kind == PH_ADAM || kind == PH_ADAMW;
}

PH_INLINE int has_sum(enum ph_optimizer_kind kind)
{
    return kind == PH_ADAGRAD || kind == PH_ADAM || kind == PH_ADAMW;
}

#endif
