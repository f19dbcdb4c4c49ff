/* Elementwise optimizers. */
#include <assert.h>

#include "kernel/simd/optimizer_step.h"
#include "kernel/simd/simd.h"

/* Updates all n weights; kind is a constant. */
PH_INLINE void update_all(const struct ph__optimizer_step *step, enum ph_optimizer_kind kind, size_t n,
    const float *grad, float *weight, float *m, float *s)
{
    const struct constants c = broadcast(step);
    const int has_m = has_momentum(kind), has_s = has_sum(kind);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH) {
        vf mi = has_m ? vf_load(m + i) : vf_zero();
        vf si = has_s ? vf_load(s + i) : vf_zero();
        const vf gi = grad != NULL ? vf_load(grad + i) : vf_zero();
        vf_store(weight + i, step_vector(&c, kind, step->is_nesterov, gi, vf_load(weight + i), &mi, &si));
        if (has_m)
            vf_store(m + i, mi);
        if (has_s)
            vf_store(s + i, si);
    }
    if (i == n)
        return;
    const vmask tail = vf_first(n - i);
    vf mi = has_m ? vf_load_mask(m + i, tail) : vf_zero();
    vf si = has_s ? vf_load_mask(s + i, tail) : vf_zero();
    const vf gi = grad != NULL ? vf_load_mask(grad + i, tail) : vf_zero();
    const vf wi = vf_load_mask(weight + i, tail);
    vf_store_mask(weight + i, tail, step_vector(&c, kind, step->is_nesterov, gi, wi, &mi, &si));
    if (has_m)
        vf_store_mask(m + i, tail, mi);
    if (has_s)
        vf_store_mask(s + i, tail, si);
}

void PH_SIMD(optimizer_update)(
    const struct ph__optimizer_step *step, size_t n, const float *grad, float *weight, float *m, float *s)
{
    switch (step->kind) {
    case PH_SGD:
        update_all(step, PH_SGD, n, grad, weight, m, s);
        break;
    case PH_MOMENTUM:
        update_all(step, PH_MOMENTUM, n, grad, weight, m, s);
        break;
    case PH_ADAGRAD:
        update_all(step, PH_ADAGRAD, n, grad, weight, m, s);
        break;
    case PH_ADAM:
        update_all(step, PH_ADAM, n, grad, weight, m, s);
        break;
    case PH_ADAMW:
        update_all(step, PH_ADAMW, n, grad, weight, m, s);
        break;
    default:
        assert(0 && "an elementwise optimizer");
    }
}
