/* convert: reals to bf16, to the nearest. Only the precision pass adds it, behind the backward pass; so it has no
 * gradient. */
#include "graph/graph.h"

enum { BLOCK = 16384 };

static ph_status convert_infer(struct ph_infer *infer)
{
    char text[96];
    if (infer->inputs[0].kind != PH_DENSE || infer->inputs[0].dtype != PH_REAL)
        return ph_fail(
            PH_ERROR_BUG, "%s: wants reals; got %s", infer->name, ph__type_text(&infer->inputs[0], text));
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dtype = PH_BF16;
    return PH_OK;
}

static void convert_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const double elements = (double)ph_shape_elements(&call->outputs[0].shape);
    *cost_out = (struct ph_cost){.bytes = elements * (sizeof(ph_real) + sizeof(uint16_t))};
}

static void convert_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph_call *call = argument;
    (void)worker;
    call->backend->kernels->bf16_narrow(last - first, (const ph_real *)call->inputs[0].data + first,
        (uint16_t *)call->outputs[0].data + first);
}

static ph_status convert_run(struct ph_call *call)
{
    ph__for_blocks(call->backend, ph_shape_elements(&call->outputs[0].shape), BLOCK, convert_block, call);
    return PH_OK;
}

const struct ph_op ph__op_convert = {
    .name = "convert", .infer = convert_infer, .cost = convert_cost, .run = convert_run};
