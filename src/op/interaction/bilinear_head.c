#include "op/interaction/bilinear_head.h"

#include "base/sizes.h"

static bool has_shape(
    const struct ph_type *vectors, struct ph_dim samples, struct ph_dim heads, struct ph_dim dim)
{
    return ph__type_is_real_of_rank(vectors, 2) && ph__dim_equal(vectors->dims[0], samples) &&
           ph__dim_equal(vectors->dims[1], ph__dim(heads.extent * dim.extent));
}

bool ph__are_bilinear_types(const struct ph_type *x, const struct ph_type *y, const struct ph_type *weight)
{
    const struct ph_dim *dims = weight->dims;
    return ph__type_is_real_of_rank(weight, 4) && ph__has_fixed_dims(weight, 0) &&
           has_shape(x, x->dims[0], dims[1], dims[2]) && has_shape(y, x->dims[0], dims[1], dims[3]);
}

struct ph__bilinear_head ph__describe_bilinear(const struct ph_call *call, const struct ph_operand *x,
    const struct ph_operand *y, const struct ph_operand *weight)
{
    const size_t *dims = weight->shape.dims;
    struct ph__bilinear_head head = {.kernels = call->backend->kernels,
        .num_tasks = dims[0],
        .num_heads = dims[1],
        .x_dim = dims[2],
        .y_dim = dims[3],
        .x = x->data,
        .y = y->data,
        .weight = weight->data,
        .workers = call->scratch};
    head.worker_reals =
        PH_BILINEAR_BLOCK_SAMPLES * ph__max(ph__bilinear_x_reals(&head), ph__bilinear_y_reals(&head));
    return head;
}

size_t ph__bilinear_workers_bytes(const struct ph_call *call, const struct ph__bilinear_head *head)
{
    return ph__team_num_threads(call->backend->team) * head->worker_reals * sizeof(ph_real);
}

void ph__bilinear_cost(
    const struct ph_call *call, const struct ph_operand *weight, double products, struct ph_cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops = 2 * products * (double)ph__rows(&call->inputs[0]) * (double)ph__elements(weight);
}

ph_status ph__check_bilinear_gradient(const struct ph_infer *infer)
{
    const struct ph_type *inputs = infer->inputs;
    if (!ph__type_is_real_of_rank(&inputs[PH_BILINEAR_GRADIENT_DZ], 2) ||
        !ph__are_bilinear_types(&inputs[PH_BILINEAR_GRADIENT_X], &inputs[PH_BILINEAR_GRADIENT_Y],
            &inputs[PH_BILINEAR_GRADIENT_WEIGHT]))
        return ph__infer_fail(infer, "dz (B,T), x (B,K), y (B,M), weight (T,heads,K/heads,M/heads)");
    return PH_OK;
}

struct ph__bilinear_head ph__describe_bilinear_gradient(const struct ph_call *call)
{
    struct ph__bilinear_head head = ph__describe_bilinear(call, &call->inputs[PH_BILINEAR_GRADIENT_X],
        &call->inputs[PH_BILINEAR_GRADIENT_Y], &call->inputs[PH_BILINEAR_GRADIENT_WEIGHT]);
    head.dz = call->inputs[PH_BILINEAR_GRADIENT_DZ].data;
    return head;
}
