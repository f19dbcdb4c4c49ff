/* The cross of a cross layer (DCN-V2, Wang et al., arXiv 2008.13535, section 3.2): first * w + x,
 * elementwise, with w the linear part W x + b of the layer. Gradients: dfirst = dy * w, dw = dy * first, dx =
 * dy. Elementwise, so the result may take over the memory of first. */
#include "op/operator.h"

enum { FIRST, W, X, NUM_INPUTS };

static void cross_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0];
    if (gradient->is_wanted[FIRST])
        gradient->input_gradients[FIRST] = ph_multiply(gradient->builder, dy, node.inputs[W]);
    if (gradient->is_wanted[W])
        gradient->input_gradients[W] = ph_multiply(gradient->builder, dy, node.inputs[FIRST]);
    gradient->input_gradients[X] = dy;
}

static void cross_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2, cost_out);
}

struct cross_call {
    const struct ph__kernels *kernels;
    const ph_real *first, *w, *x;
    ph_real *y;
};

static void cross_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct cross_call *cross = argument;
    cross->kernels->multiply_add(
        last - first, cross->first + first, cross->w + first, cross->x + first, cross->y + first);
}

static ph_status cross_run(struct ph__call *call)
{
    struct cross_call cross = {call->backend->kernels, call->inputs[FIRST].data, call->inputs[W].data,
        call->inputs[X].data, call->outputs[0].data};
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), PH_BLOCK_ELEMENTS, cross_block, &cross);
    return PH_OK;
}

const struct ph__op ph__op_cross = {
    .name = "cross",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .gradient = cross_gradient,
    .cost = cross_cost,
    .run = cross_run,
};

ph_value ph_cross(struct ph_builder *builder, ph_value first, ph_value w, ph_value x)
{
    const ph_value inputs[NUM_INPUTS] = {first, w, x};
    return ph__emit1(builder, &ph__op_cross, NULL, NULL, 0, NUM_INPUTS, inputs);
}
