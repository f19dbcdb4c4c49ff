/* global_mean: joins the means l_r over weights t_r of all ranks r: loss = sum_r l_r t_r / T, T = sum_r t_r,
 * summed in the order of the ranks; 0 where T is 0. The gradient by this rank's l_r is t_r / T.
 *
 * inputs: l_r, t_r (host scalars: loss, and the weight that it is a mean over); outputs: loss, T. */
#include "shard/dense/dense_passes.h"

#include "shard/exchange_nodes.h"

enum { LOSS, TOTAL, NUM_VALUES };

struct mean_attributes {
    struct ph__sharding *sharding;
};

static struct ph__sharding *sharding_of(const struct ph__call *call)
{
    return ((const struct mean_attributes *)call->attributes)->sharding;
}

static ph_status mean_infer(struct ph__infer *infer)
{
    infer->outputs[LOSS] = ph__scalar_type();
    infer->outputs[TOTAL] = ph__scalar_type();
    return PH_OK;
}

static void mean_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.flops = 2, .bytes = 4 * sizeof(double)};
}

static size_t mean_scratch_bytes(const struct ph__call *call)
{
    return ph__gather_numbers_bytes(sharding_of(call), NUM_VALUES);
}

static ph_status mean_run(struct ph__call *call)
{
    static const struct ph__comm_call named = {PH_CHANNEL_LOSS, "loss"};
    const struct ph__sharding *sharding = sharding_of(call);
    const double own[NUM_VALUES] = {*call->inputs[LOSS].scalar, *call->inputs[TOTAL].scalar};
    const double *all;
    double sum = 0, total = 0;
    PH_TRY(ph__gather_numbers(sharding, &named, NUM_VALUES, own, call->scratch, &all));
    for (size_t rank = 0; rank < sharding->world_size; rank++) {
        sum += all[NUM_VALUES * rank + LOSS] * all[NUM_VALUES * rank + TOTAL];
        total += all[NUM_VALUES * rank + TOTAL];
    }
    *call->outputs[LOSS].scalar = total > 0 ? sum / total : 0;
    *call->outputs[TOTAL].scalar = total;
    return PH_OK;
}

static const struct ph__op global_mean_backward; /* below */

static void mean_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {gradient->output_gradients[LOSS], node.inputs[TOTAL], node.outputs[TOTAL]};
    gradient->input_gradients[LOSS] =
        ph__emit1(gradient->builder, &global_mean_backward, NULL, NULL, 0, 3, inputs);
}

static const struct ph__op global_mean = {
    .name = "global_mean",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_MIXES_SAMPLES | PH_OP_AWAITS,
    .infer = mean_infer,
    .gradient = mean_gradient,
    .cost = mean_cost,
    .scratch_bytes = mean_scratch_bytes,
    .run = mean_run,
};

/* ---- backward: gradient, t_r, T -> gradient t_r / T ---- */

static ph_status backward_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static ph_status backward_run(struct ph__call *call)
{
    const double own = *call->inputs[1].scalar, total = *call->inputs[2].scalar;
    *call->outputs[0].scalar = total > 0 ? *call->inputs[0].scalar * (own / total) : 0;
    return PH_OK;
}

static const struct ph__op global_mean_backward = {
    .name = "global_mean_backward",
    .infer = backward_infer,
    .cost = mean_cost,
    .run = backward_run,
};

/* ---- the pass ---- */

/* Inserts the mean behind a loss. The mean takes over the loss's output values, which other nodes read, and
 * the loss gets new ones. */
static void share_loss(struct ph__sharding *sharding, struct ph_builder *builder, size_t index)
{
    struct ph__graph *graph = &builder->graph;
    const struct mean_attributes attributes = {sharding};
    const size_t begin = graph->num_nodes;
    ph_value outputs[NUM_VALUES];
    ph__emit(builder, &global_mean, NULL, &attributes, sizeof attributes, NUM_VALUES,
        graph->nodes[index].outputs, NUM_VALUES, outputs);
    if (ph_builder_status(builder) != PH_OK)
        return;
    struct ph__node *loss = &graph->nodes[index], *mean = &graph->nodes[begin];
    ph_value *shared = loss->outputs;
    loss->outputs = mean->outputs;
    mean->outputs = shared;
    mean->inputs = ph__builder_copy(builder, loss->outputs, NUM_VALUES * sizeof *outputs);
    for (size_t k = 0; k < NUM_VALUES; k++) {
        graph->values[loss->outputs[k]].producer = (uint32_t)index;
        graph->values[mean->outputs[k]].producer = (uint32_t)begin;
    }
    const ph_status status = ph__graph_move_before(graph, index + 1, begin);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
}

void ph__share_losses(struct ph__sharding *sharding, struct ph_builder *builder)
{
    for (size_t i = 0; ph_builder_status(builder) == PH_OK && i < builder->graph.num_nodes; i++)
        if (ph__is_mean_loss(builder->graph.nodes[i].op))
            share_loss(sharding, builder, i);
}
