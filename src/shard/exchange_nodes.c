#include "shard/exchange_nodes.h"

#include <string.h>

ph_status ph__start_node_run(const struct ph_sharding *sharding, const struct ph_comm_call *named,
    const struct ph_exchange *list, const struct ph_operand *ticket)
{
    uint64_t started;
    PH_TRY(ph__comm_exchange_start(sharding->comm, named, list, &started));
    *ticket->scalar = (double)started;
    return PH_OK;
}

ph_status ph__back_wait_infer(struct ph_infer *infer)
{
    infer->outputs[0] = infer->inputs[PH_BACK_WAIT_GRADIENT];
    return PH_OK;
}

void ph__written_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    cost_out->bytes = (double)ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

ph_status ph__back_wait_run(
    struct ph_call *call, const struct ph_sharding *sharding, void (*unpack)(const struct ph_call *call))
{
    const struct ph_operand *gradient = &call->inputs[PH_BACK_WAIT_GRADIENT];
    PH_TRY(ph__comm_wait(sharding->comm, (uint64_t)*call->inputs[PH_BACK_WAIT_TICKET].scalar));
    if (ph__is_absent(gradient))
        return PH_OK;
    if (sharding->backward != PH_WIRE_FP32)
        unpack(call);
    else if (call->outputs[0].data != gradient->data)
        memcpy(call->outputs[0].data, gradient->data, ph__elements(&call->outputs[0]) * sizeof(ph_real));
    return PH_OK;
}

ph_value ph__back_wait_emit(struct ph_builder *builder, const struct ph_back_wait *wait, ph_value sent)
{
    const struct ph_node *start = ph__builder_producer(builder, sent);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    if (start == NULL || start->op != wait->start)
        return ph_builder_fail(
            builder, PH_ERROR_BUG, "the gradients of '%s' are not on their way", wait->what);
    const ph_value inputs[PH_BACK_WAIT_INPUTS] = {
        wait->has_lookup ? start->outputs[PH_BACK_GRADIENTS + wait->lookup] : 0,
        start->outputs[PH_BACK_TICKET], start->outputs[PH_BACK_SENT], start->outputs[PH_BACK_RECEIVED]};
    return ph__emit1(
        builder, wait->wait, NULL, wait->attributes, wait->attributes_size, PH_BACK_WAIT_INPUTS, inputs);
}
