/* Sums of squares of sharded parameters.
 *
 * squared_norm adds the squares of a parameter block by block. Shards are cut between blocks, so each member
 * makes the sums of its own blocks (block_squares), gather_squares brings those of all members together, and
 * add_squares, in the place of squared_norm, adds them in the order of the whole parameter. */
#include <string.h>

#include "op/update/op_update.h"
#include "shard/exchange_nodes.h"
#include "shard/units/units.h"

enum { MOST_GATHERED = PH_MAX_OPERANDS - 1 };

/* Parameters whose squares one node gathers. */
struct squares {
    struct ph__sharding *sharding;
    size_t count;
    const struct ph__unit_parameter *parameters[MOST_GATHERED];
};

struct squares_attributes {
    const struct squares *squares;
};

static const struct squares *squares_of(const struct ph__call *call)
{
    return ((const struct squares_attributes *)call->attributes)->squares;
}

/* Returns the number of the block at which a member begins; of member group_size, the number of blocks. */
static size_t first_block(const struct ph__unit_parameter *parameter, size_t member)
{
    return ph__divide_up(parameter->bounds[member], ph__block_rows(parameter->columns));
}

static size_t count_blocks(const struct squares *squares, size_t num_parameters)
{
    size_t count = 0;
    for (size_t i = 0; i < num_parameters; i++)
        count += first_block(squares->parameters[i], squares->sharding->unit_group->size);
    return count;
}

/* ---- gather_squares: sums of the own blocks (count) -> sums of all blocks, parameter by parameter ---- */

static ph_status gather_infer(struct ph__infer *infer)
{
    const struct squares *squares = ((const struct squares_attributes *)infer->attributes)->squares;
    infer->outputs[0] = ph__dense_type(1, &(struct ph_dim){.extent = count_blocks(squares, squares->count) *
                                                                     (sizeof(double) / sizeof(ph_real))});
    return PH_OK;
}

static size_t gather_scratch_bytes(const struct ph__call *call)
{
    const struct squares *squares = squares_of(call);
    return 2 * squares->count * squares->sharding->unit_group->size * sizeof(struct ph__message);
}

/* Returns the message with a member's sums of parameter i; `sums`: of all blocks. */
static struct ph__message message_of(
    const struct squares *squares, size_t i, size_t member, size_t rank, double *sums)
{
    const struct ph__unit_parameter *parameter = squares->parameters[i];
    const size_t first = first_block(parameter, member), end = first_block(parameter, member + 1);
    return (struct ph__message){
        rank, sums + count_blocks(squares, i) + first, (end - first) * sizeof(double)};
}

/* Lists the messages from each other member and, where is_sent, to each. */
static size_t list_messages(const struct ph__call *call, bool is_sent, struct ph__message *messages)
{
    const struct squares *squares = squares_of(call);
    const struct ph__group *group = squares->sharding->unit_group;
    size_t count = 0;
    for (size_t member = 0; member < group->size; member++)
        for (size_t i = 0; member != group->own && i < squares->count; i++) {
            messages[count] = message_of(
                squares, i, is_sent ? group->own : member, group->ranks[member], call->outputs[0].data);
            count += messages[count].bytes > 0;
        }
    return count;
}

static ph_status gather_run(struct ph__call *call)
{
    const struct squares *squares = squares_of(call);
    const struct ph__comm_call named = {PH_CHANNEL_UNIT_SQUARES, "squares of sharded parameters"};
    struct ph__message *messages = call->scratch;
    uint64_t ticket;
    for (size_t i = 0; i < squares->count; i++) {
        const struct ph__message own =
            message_of(squares, i, squares->sharding->unit_group->own, 0, call->outputs[0].data);
        if (own.bytes > 0)
            memcpy(own.data, call->inputs[i].data, (size_t)own.bytes);
    }
    struct ph__exchange list = {.receives = messages};
    list.num_receives = list_messages(call, false, messages);
    list.sends = messages + list.num_receives;
    list.num_sends = list_messages(call, true, messages + list.num_receives);
    PH_TRY(ph__comm_exchange_start(squares->sharding->comm, &named, &list, &ticket));
    return ph__comm_wait(squares->sharding->comm, ticket);
}

static const struct ph__op gather_squares = {
    .name = "gather_squares",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = gather_infer,
    .cost = ph__written_cost,
    .scratch_bytes = gather_scratch_bytes,
    .run = gather_run,
};

/* ---- add_squares: sums of all blocks, none, sum so far -> sum; inputs as those of squared_norm ---- */

struct add_attributes {
    size_t first, count; /* blocks of the parameter among all */
};

static ph_status add_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static void add_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct add_attributes *attributes = call->attributes;
    *cost_out = (struct ph__cost){
        .flops = (double)attributes->count, .bytes = (double)(attributes->count * sizeof(double))};
}

static ph_status add_run(struct ph__call *call)
{
    const struct add_attributes *attributes = call->attributes;
    const double *sums = (const double *)call->inputs[PH_NORM_PARAMETER].data + attributes->first;
    double sum = call->inputs[PH_NORM_SUM].scalar != NULL ? *call->inputs[PH_NORM_SUM].scalar : 0;
    for (size_t i = 0; i < attributes->count; i++)
        sum += sums[i];
    *call->outputs[0].scalar = sum;
    return PH_OK;
}

const struct ph__op ph__op_add_squares = {
    .name = "add_squares",
    .infer = add_infer,
    .cost = add_cost,
    .run = add_run,
};

/* ---- the pass ---- */

static const struct ph__unit_parameter *sharded(const struct ph__sharding *sharding, ph_value parameter)
{
    for (size_t u = 0; u < sharding->num_units; u++)
        for (size_t k = 0; k < sharding->units[u].plan->num_parameters; k++)
            if (parameter != 0 && sharding->units[u].shards[k] == parameter)
                return &sharding->units[u].plan->parameters[k];
    return NULL;
}

/* Returns the parameter of a squared norm that is sharded. */
static const struct ph__unit_parameter *sharded_norm(
    const struct ph__sharding *sharding, const struct ph__node *node)
{
    return node->op == &ph__op_squared_norm && !node->is_dead
               ? sharded(sharding, node->inputs[PH_NORM_PARAMETER])
               : NULL;
}

/* Lets a squared norm add the gathered sums of its parameter, the last of `squares` so far. */
static void become_addition(
    struct ph_builder *builder, size_t index, const struct squares *squares, size_t i, ph_value gathered)
{
    struct ph__node *node = &builder->graph.nodes[index];
    const struct add_attributes attributes = {
        count_blocks(squares, i), first_block(squares->parameters[i], squares->sharding->unit_group->size)};
    const ph_value inputs[PH_NORM_INPUTS] = {
        [PH_NORM_PARAMETER] = gathered, [PH_NORM_SUM] = node->inputs[PH_NORM_SUM]};
    node->op = &ph__op_add_squares;
    node->attributes = ph__builder_copy(builder, &attributes, sizeof attributes);
    node->attributes_size = sizeof attributes;
    node->inputs = ph__builder_copy(builder, inputs, sizeof inputs);
}

/* Gathers the squares of sharded norms from node `first` on, as many as one node can. Returns the node behind
 * the last of them. */
static size_t share_some(struct ph__sharding *sharding, struct ph_builder *builder, size_t first)
{
    struct ph__graph *graph = &builder->graph;
    struct squares *squares = ph__arena_alloc(&sharding->arena, sizeof *squares);
    size_t norms[MOST_GATHERED], at = first;
    ph_value own[MOST_GATHERED];
    const uint32_t entry = builder->entry;
    const size_t begin = graph->num_nodes;
    if (squares == NULL)
        return ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: squares of shards");
    squares->sharding = sharding;
    builder->entry = graph->nodes[first].entry;
    for (; at < begin && squares->count < MOST_GATHERED; at++) {
        const struct ph__node node = graph->nodes[at];
        const struct ph__unit_parameter *parameter = sharded_norm(sharding, &node);
        if (parameter == NULL)
            continue;
        norms[squares->count] = at;
        own[squares->count] = ph__emit1(builder, &ph__op_block_squares, NULL, node.attributes,
            node.attributes_size, PH_NORM_SUM + 1,
            (const ph_value[]){node.inputs[PH_NORM_PARAMETER], node.inputs[PH_NORM_GRADIENT], 0});
        squares->parameters[squares->count++] = parameter;
    }
    const struct squares_attributes attributes = {squares};
    const ph_value gathered =
        ph__emit1(builder, &gather_squares, NULL, &attributes, sizeof attributes, squares->count, own);
    builder->entry = entry;
    for (size_t i = 0; i < squares->count && ph_builder_status(builder) == PH_OK; i++)
        become_addition(builder, norms[i], squares, i, gathered);
    if (ph_builder_status(builder) == PH_OK && ph__graph_move_before(graph, first, begin) != PH_OK)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "%s", ph_error_text());
    return at + (graph->num_nodes - begin);
}

void ph__units_share_squares(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const struct ph__graph *graph = &builder->graph;
    for (size_t i = 0; i < graph->num_nodes && ph_builder_status(builder) == PH_OK;)
        i = sharded_norm(sharding, &graph->nodes[i]) != NULL ? share_some(sharding, builder, i) : i + 1;
}
