/* global_norm: the sum of squares of all gradients. Gradients of parameters that every rank has are the same
 * everywhere by now, and count once; those of shards belong to one rank each, and are added in the order of
 * the ranks. The parameters of towers count as shards of the first rank of their host.
 *
 * inputs: squares of this rank's shards, squares of the parameters that every rank has (host scalars; either
 * may be none); output: their sum over all ranks. A rank that has neither takes part as well. */
#include "shard/dense/dense_passes.h"

#include <assert.h>

#include "op/update/op_update.h"
#include "shard/exchange_nodes.h"
#include "shard/units/units.h"

enum { SHARDS, REPLICAS, NUM_INPUTS };

struct norm_attributes {
    struct ph__sharding *sharding;
};

static const struct ph__sharding *sharding_of(const struct ph__call *call)
{
    return ((const struct norm_attributes *)call->attributes)->sharding;
}

static ph_status norm_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static void norm_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double num_ranks = (double)sharding_of(call)->world_size;
    *cost_out = (struct ph__cost){.flops = num_ranks, .bytes = num_ranks * sizeof(double)};
}

static size_t norm_scratch_bytes(const struct ph__call *call)
{
    return ph__gather_numbers_bytes(sharding_of(call), 1);
}

static double number_of(const struct ph__operand *operand)
{
    return operand->scalar != NULL ? *operand->scalar : 0;
}

static ph_status norm_run(struct ph__call *call)
{
    static const struct ph__comm_call named = {PH_CHANNEL_NORM, "norm of the gradients"};
    const struct ph__sharding *sharding = sharding_of(call);
    const double own = number_of(&call->inputs[SHARDS]);
    const double *all;
    double sum = 0;
    PH_TRY(ph__gather_numbers(sharding, &named, 1, &own, call->scratch, &all));
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        sum += all[rank];
    *call->outputs[0].scalar = sum + number_of(&call->inputs[REPLICAS]);
    return PH_OK;
}

static const struct ph__op global_norm = {
    .name = "global_norm",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = norm_infer,
    .cost = norm_cost,
    .scratch_bytes = norm_scratch_bytes,
    .run = norm_run,
};

/* ---- the pass ---- */

/* Returns the sum that a gradient's squares belong to; NUM_INPUTS: none, another rank counts them. Sums of
 * sharded dense parameters are the same everywhere, like those of replicas. */
static int part_of(
    const struct ph__sharding *sharding, const struct ph_builder *builder, const struct ph__node *norm)
{
    const ph_value parameter = norm->inputs[PH_NORM_PARAMETER];
    if (norm->op == &ph__op_add_squares)
        return REPLICAS;
    if (ph__is_of_tower(sharding, parameter))
        return sharding->rank % sharding->plan->topology.ranks_per_host == 0 ? SHARDS : NUM_INPUTS;
    return ph__builder_declaration(builder, parameter)->shards != NULL ? SHARDS : REPLICAS;
}

/* Splits the chain of sums that ends in `last` into one of shards and one of replicas, walking from its end:
 * each place where a sum is to be read waits for the next sum of its kind. */
static void part_chain(const struct ph__sharding *sharding, struct ph_builder *builder, ph_value last,
    ph_value sums_out[NUM_INPUTS])
{
    const struct ph__graph *graph = &builder->graph;
    ph_value *places[NUM_INPUTS] = {&sums_out[SHARDS], &sums_out[REPLICAS]};
    while (last != 0) {
        struct ph__node *norm = &graph->nodes[graph->values[last].producer];
        assert(norm->op == &ph__op_squared_norm || norm->op == &ph__op_add_squares);
        const int part = part_of(sharding, builder, norm);
        const ph_value before = norm->inputs[PH_NORM_SUM];
        if (part != NUM_INPUTS) {
            *places[part] = last;
            places[part] = &norm->inputs[PH_NORM_SUM];
        }
        last = before;
    }
    *places[SHARDS] = *places[REPLICAS] = 0;
}

/* Adds the sum over ranks before the clip factor, in the clip factor's entry. */
static void share_norm(struct ph__sharding *sharding, struct ph_builder *builder, size_t index)
{
    struct ph__graph *graph = &builder->graph;
    const struct norm_attributes attributes = {sharding};
    const uint32_t entry = builder->entry;
    const size_t begin = graph->num_nodes;
    ph_value sums[NUM_INPUTS];
    part_chain(sharding, builder, graph->nodes[index].inputs[0], sums);
    builder->entry = graph->nodes[index].entry;
    const ph_value sum =
        ph__emit1(builder, &global_norm, NULL, &attributes, sizeof attributes, NUM_INPUTS, sums);
    builder->entry = entry;
    if (ph_builder_status(builder) != PH_OK)
        return;
    graph->nodes[index].inputs[0] = sum;
    const ph_status status = ph__graph_move_before(graph, index, begin);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
}

void ph__share_norms(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const struct ph__graph *graph = &builder->graph;
    for (size_t i = 0; ph_builder_status(builder) == PH_OK && i < graph->num_nodes; i++)
        if (graph->nodes[i].op == &ph__op_clip_factor)
            share_norm(sharding, builder, i++);
}
