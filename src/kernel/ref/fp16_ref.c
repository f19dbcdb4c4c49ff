/* fp16 and back, the specification. */
#include "kernel/kernel_list.h"
#include "tensor/float16.h"

void ph__fp16_narrow_ref(size_t n, const ph_real *x, uint16_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = ph__half_from_float((float)x[i]);
}

void ph__fp16_widen_ref(size_t n, const uint16_t *x, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (ph_real)ph__float_from_half(x[i]);
}
