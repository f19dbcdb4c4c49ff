/* Elementwise optimizers, the specification: the formulas of kernel.h as written there. */
#include "kernel/kernel_list.h"

#include <assert.h>
#include <math.h>

static ph_real square_root(ph_real x)
{
    return (ph_real)sqrt((double)x); /* a float's double root, rounded, is its correctly rounded root */
}

/* m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  returns lr (m / c1) / (sqrt(v / c2) + eps) */
static ph_real adam_step(const struct ph__optimizer_step *step, ph_real g, ph_real *m, ph_real *v)
{
    *m = step->beta1 * *m + (1 - step->beta1) * g;
    *v = step->beta2 * *v + (1 - step->beta2) * g * g;
    return step->learning_rate * (*m / step->bias_correction1) /
           (square_root(*v / step->bias_correction2) + step->epsilon);
}

static ph_real momentum_step(const struct ph__optimizer_step *step, ph_real g, ph_real *m)
{
    *m = step->momentum * *m + g;
    return step->learning_rate * (step->is_nesterov ? g + step->momentum * *m : *m);
}

static ph_real adagrad_step(const struct ph__optimizer_step *step, ph_real g, ph_real *s)
{
    *s += g * g;
    return step->learning_rate * g / (square_root(*s) + step->epsilon);
}

static void update_one(
    const struct ph__optimizer_step *step, ph_real gradient, ph_real *w, ph_real *m, ph_real *s)
{
    const ph_real g = gradient * step->gradient_scale + step->l2 * *w;
    switch (step->kind) {
    case PH_SGD:
        *w -= step->learning_rate * g;
        break;
    case PH_MOMENTUM:
        *w -= momentum_step(step, g, m);
        break;
    case PH_ADAGRAD:
        *w -= adagrad_step(step, g, s);
        break;
    case PH_ADAMW:
        *w -= step->learning_rate * step->weight_decay * *w;
        *w -= adam_step(step, g, m, s);
        break;
    case PH_ADAM:
        *w -= adam_step(step, g, m, s);
        break;
    default:
        assert(0 && "an elementwise optimizer");
    }
}

void ph__optimizer_update_ref(const struct ph__optimizer_step *step, size_t n, const ph_real *grad,
    ph_real *weight, ph_real *m, ph_real *s)
{
    for (size_t i = 0; i < n; i++)
        update_one(
            step, grad != NULL ? grad[i] : 0, weight + i, m != NULL ? m + i : NULL, s != NULL ? s + i : NULL);
}
