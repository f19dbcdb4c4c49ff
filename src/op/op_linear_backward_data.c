/* The gradient of a linear operator's input: dx = dy W. inputs: dy (B,M), W (M,K) packed transposed. */
#include "op/operator.h"

static ph_status backward_data_infer(struct ph_infer *infer)
{
    const struct ph_type *dy = &infer->inputs[0], *weight = &infer->inputs[1];
    if (!ph__type_is_real_of_rank(dy, 2) || !ph__type_is_real_of_rank(weight, 2) ||
        !ph__dim_equal(dy->dims[1], weight->dims[0]))
        return ph__infer_fail(infer, "dy (B,M), weight (M,K)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){dy->dims[0], weight->dims[1]});
    return PH_OK;
}

static void backward_data_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[1].shape.dims[0], cost_out);
}

static ph_status backward_data_run(struct ph_call *call)
{
    const struct ph_operand *dy = &call->inputs[0], *packed = &call->inputs[1];
    const struct ph_gemm_weight_shape shape = ph__weight_shape(packed->shape.dims, PH_PACK_TRANSPOSED);
    return ph__gemm_backward_data(
        call->backend->gemm, &shape, ph__rows(dy), dy->data, packed->data, call->outputs[0].data);
}

const struct ph_op ph__op_linear_backward_data = {
    .name = "linear_backward_data",
    .infer = backward_data_infer,
    .cost = backward_data_cost,
    .run = backward_data_run,
};
