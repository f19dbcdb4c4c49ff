/* Binary cross entropy with logits, the specification; exp and log are libm's, in double. */
#include "kernel/kernel_list.h"

#include <math.h>

/* sum_i w (max(z,0) - z y + log(1 + exp(-|z|))) */
double ph__bce_ref(size_t n, const ph_real *logits, const ph_real *labels, const ph_real *weights)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double z = (double)logits[i];
        const double loss = (z < 0 ? 0 : z) - z * (double)labels[i] + log1p(exp(-fabs(z)));
        sum += weights != NULL ? (double)weights[i] * loss : loss;
    }
    return sum;
}

/* dz = scale w (sigmoid(z) - y) */
void ph__bce_backward_ref(size_t n, const ph_real *logits, const ph_real *labels, const ph_real *weights,
    ph_real scale, ph_real *dz)
{
    for (size_t i = 0; i < n; i++) {
        const double e = exp(-fabs((double)logits[i]));
        const double probability = (logits[i] < 0 ? e : 1) / (1 + e);
        const ph_real weight = weights != NULL ? scale * weights[i] : scale;
        dz[i] = weight * (ph_real)(probability - (double)labels[i]);
    }
}
