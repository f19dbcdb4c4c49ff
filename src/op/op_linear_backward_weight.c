/* The gradients of a linear operator's weight and bias: dW = dy^T x, db = sum_b dy.
 * inputs: dy (B,M), x (B,K); outputs: dW (M,K) and, if there is a bias, db (M). */
#include "op/operator.h"

static ph_status backward_weight_infer(struct ph_infer *infer)
{
    const struct ph_type *dy = &infer->inputs[0], *x = &infer->inputs[1];
    if (!ph__type_is_real_of_rank(dy, 2) || !ph__type_is_real_of_rank(x, 2) ||
        !ph__dim_equal(dy->dims[0], x->dims[0]))
        return ph__infer_fail(infer, "dy (B,M), x (B,K)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){dy->dims[1], x->dims[1]});
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &dy->dims[1]);
    return PH_OK;
}

static void backward_weight_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)ph__rows(&call->inputs[0]), cost_out);
}

static size_t backward_weight_scratch_bytes(const struct ph_call *call)
{
    const struct ph_operand *dy = &call->inputs[0], *x = &call->inputs[1];
    return ph__gemm_weight_scratch_bytes(call->backend->gemm, dy->shape.dims[1], x->shape.dims[1]);
}

static ph_status backward_weight_run(struct ph_call *call)
{
    const struct ph_operand *dy = &call->inputs[0], *x = &call->inputs[1];
    ph_real *db = call->num_outputs > 1 ? call->outputs[1].data : NULL;
    return ph__gemm_backward_weight(call->backend->gemm, ph__rows(dy), dy->shape.dims[1], x->shape.dims[1],
        x->data, dy->data, call->outputs[0].data, db, call->scratch);
}

const struct ph_op ph__op_linear_backward_weight = {
    .name = "linear_backward_weight",
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};
