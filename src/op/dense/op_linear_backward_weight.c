/* The gradients of a linear operator's weight and bias: dW = dy^T x, db = sum of the rows of dy. inputs: dy (...,M), x
 * (...,K), whose rows are all their dimensions but the last; outputs: dW (M,K) and, if there is a bias, db (M). */
#include "op/operator.h"

enum { DY, X };

static ph_status backward_weight_infer(struct ph_infer *infer)
{
    const struct ph_type *dy = &infer->inputs[DY], *x = &infer->inputs[X];
    if (!ph__type_is_real(dy) || !ph__type_is_real(x) || x->rank < 2)
        return ph__infer_fail(infer, "dy (...,M), x (...,K)");
    const struct ph_dim last[] = {ph__last_dim(dy), ph__last_dim(x)};
    const struct ph_type like_dy = ph__type_with_last(x, last[DY]);
    if (!ph__type_equal(&like_dy, dy))
        return ph__infer_fail(infer, "dy (...,M), x (...,K)");
    infer->outputs[0] = ph__dense_type(2, last);
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &last[DY]);
    return PH_OK;
}

static void backward_weight_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)ph__vectors(&call->inputs[DY]), cost_out);
}

static struct ph_gemm_weight_shape weight_shape(const struct ph_call *call)
{
    const struct ph_operand *dy = &call->inputs[DY], *x = &call->inputs[X];
    return (struct ph_gemm_weight_shape){
        .out_features = ph__row_width(dy), .in_features = ph__row_width(x), .is_bf16 = ph__is_bf16(dy)};
}

static size_t backward_weight_scratch_bytes(const struct ph_call *call)
{
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    return ph__gemm_weight_scratch_bytes(call->backend->gemm, &shape);
}

static ph_status backward_weight_run(struct ph_call *call)
{
    const struct ph_operand *dy = &call->inputs[DY], *x = &call->inputs[X];
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    ph_real *db = call->num_outputs > 1 ? call->outputs[1].data : NULL;
    return ph__gemm_backward_weight(call->backend->gemm, &shape, ph__vectors(dy), x->data, dy->data,
        call->outputs[0].data, db, call->scratch);
}

const struct ph_op ph__op_linear_backward_weight = {
    .name = "linear_backward_weight",
    .traits = PH_OP_CALLS_LIBRARY,
    .bf16_operands = 1 << DY | 1 << X,
    .bf16_inputs = 1 << DY | 1 << X,
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};
