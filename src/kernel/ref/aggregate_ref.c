/* Sums of copies and the optimizer's step, the specification: number by number. */
#include "kernel/kernel_list.h"

#include "tensor/float16.h"

static ph_real number_of(const void *array, enum ph_dtype dtype, size_t i)
{
    switch (dtype) {
    case PH_F16:
        return (ph_real)ph__float_from_half(((const uint16_t *)array)[i]);
    case PH_BF16:
        return (ph_real)ph__float_from_bfloat(((const uint16_t *)array)[i]);
    default:
        return ((const ph_real *)array)[i];
    }
}

static void set_number(void *array, enum ph_dtype dtype, size_t i, ph_real x)
{
    switch (dtype) {
    case PH_F16:
        ((uint16_t *)array)[i] = ph__half_from_float((float)x);
        break;
    case PH_BF16:
        ((uint16_t *)array)[i] = ph__bfloat_from_float((float)x);
        break;
    default:
        ((ph_real *)array)[i] = x;
    }
}

static ph_real sum_of_copies(const struct ph__aggregate_args *args, size_t i)
{
    const size_t rest = args->sum_so_far == NULL ? 1 : 0;
    ph_real sum = rest == 0 ? args->sum_so_far[i] : number_of(args->copies[0], args->dtype, i);
    for (size_t c = rest; c < args->num_copies; c++)
        sum += number_of(args->copies[c], args->dtype, i);
    return sum;
}

void ph__aggregate_ref(const struct ph__aggregate_args *args)
{
    for (size_t i = 0; i < args->n; i++) {
        const ph_real sum = sum_of_copies(args, i) * args->sum_scale;
        ph_real weight = sum;
        if (args->step != NULL) {
            weight = args->weight[i];
            ph__optimizer_update_ref(args->step, 1, &sum, &weight, args->m != NULL ? args->m + i : NULL,
                args->s != NULL ? args->s + i : NULL);
        }
        if (args->new_weight != NULL)
            args->new_weight[i] = weight;
        for (size_t r = 0; r < args->num_results; r++)
            set_number(args->results[r], args->dtype, i, weight);
    }
}
