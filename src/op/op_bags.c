/* bags: which bag each position belongs to, for walks from an id back to its sample.
 *
 * jagged (bags, N) -> bags (N) u32 and lengths (bags) i32 */
#include "op/op_table.h"

enum { BLOCK_BAGS = 4096 };

static ph_status bags_infer(struct ph_infer *infer)
{
    const struct ph_type *slots = &infer->inputs[0];
    infer->outputs[0] = ph__dense_type(1, &slots->dims[1]);
    infer->outputs[0].dtype = PH_U32;
    infer->outputs[1] = ph__dense_type(1, &slots->dims[0]);
    infer->outputs[1].dtype = PH_I32;
    return PH_OK;
}

static void bags_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const struct ph_shape *shape = &call->inputs[0].shape;
    cost_out->bytes = (double)(shape->dims[1] + 2 * shape->dims[0]) * sizeof(uint32_t);
}

static void bags_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph_call *call = argument;
    const uint32_t *offsets = call->inputs[0].index;
    uint32_t *bags = call->outputs[0].data;
    int32_t *lengths = call->outputs[1].data;
    (void)worker;
    for (size_t bag = first; bag < last; bag++) {
        lengths[bag] = (int32_t)(offsets[bag + 1] - offsets[bag]);
        for (size_t p = offsets[bag]; p < offsets[bag + 1]; p++)
            bags[p] = (uint32_t)bag;
    }
}

static ph_status bags_run(struct ph_call *call)
{
    ph__for_blocks(call->backend, call->inputs[0].shape.dims[0], BLOCK_BAGS, bags_block, call);
    return PH_OK;
}

const struct ph_op ph__op_bags = {
    .name = "bags",
    .infer = bags_infer,
    .cost = bags_cost,
    .run = bags_run,
};

void ph__bags(struct ph_builder *builder, ph_value slots, ph_value *bags_out, ph_value *lengths_out)
{
    ph_value outputs[2];
    outputs[0] = ph__builder_find(builder, &ph__op_bags, NULL, 0, 1, &slots, 0);
    outputs[1] = ph__builder_find(builder, &ph__op_bags, NULL, 0, 1, &slots, 1);
    if (outputs[0] == 0)
        ph__emit(builder, &ph__op_bags, NULL, NULL, 0, 1, &slots, 2, outputs);
    *bags_out = outputs[0];
    *lengths_out = outputs[1];
}
