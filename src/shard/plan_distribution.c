#include "shard/plan_distribution.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "graph/graph.h"
#include "shard/dense/dense_passes.h"
#include "shard/lookup/host_sums.h"
#include "shard/lookup/request_exchange.h"
#include "shard/lookup/vector_exchange.h"
#include "shard/tower/tower_pass.h"
#include "shard/units/units.h"

/* ---- starting early ----
 *
 * This pass and the one that waits late order nodes so that ranks compute while their exchanges are in
 * flight. Values do not change. Errors stick to the builder.
 *
 * Nodes that have effects keep their order, so that all ranks start their common operations in the same
 * order, though one without shards has fewer nodes. */

/* The nodes [begin, begin + count) of the graph, and their new order. */
struct order {
    const struct ph__graph *graph;
    size_t begin, count;
    struct ph__node *nodes; /* (count) */
    size_t num_placed;
    bool *is_placed, *is_needed; /* (count) */
};

static void need(struct order *order, ph_value value)
{
    const uint32_t producer = order->graph->values[value].producer;
    if (value != 0 && producer != PH_NO_NODE && producer >= order->begin)
        order->is_needed[producer - order->begin] = true;
}

static bool has_effect(const struct ph__node *node)
{
    return (node->op->traits & PH_OP_HAS_EFFECT) != 0;
}

static void place(struct order *order, size_t index)
{
    order->is_placed[index] = true;
    order->nodes[order->num_placed++] = order->graph->nodes[order->begin + index];
}

/* Places a start, behind those nodes it needs that have no place yet. */
static void place_start(struct order *order, size_t start)
{
    memset(order->is_needed, 0, order->count * sizeof *order->is_needed);
    order->is_needed[start] = true;
    for (size_t i = start + 1; i-- > 0;) {
        const struct ph__node *node = &order->graph->nodes[order->begin + i];
        order->is_needed[i] = order->is_needed[i] || has_effect(node);
        for (uint32_t k = 0; order->is_needed[i] && k < node->num_inputs; k++)
            need(order, node->inputs[k]);
    }
    for (size_t i = 0; i <= start; i++)
        if (order->is_needed[i] && !order->is_placed[i])
            place(order, i);
}

static bool is_start(const struct ph__op *op)
{
    return op == &ph__op_exchange_gradients_start || op == &ph__op_host_gradients_start;
}

static void place_all(struct order *order)
{
    for (size_t i = 0; i < order->count; i++)
        if (is_start(order->graph->nodes[order->begin + i].op))
            place_start(order, i);
    for (size_t i = 0; i < order->count; i++)
        if (!order->is_placed[i])
            place(order, i);
}

static void adopt(struct ph__graph *graph, const struct order *order)
{
    memcpy(graph->nodes + order->begin, order->nodes, order->count * sizeof *order->nodes);
    ph__graph_set_producers(graph, order->begin);
}

/* Orders backward, the builder's current entry, which is complete but for what starts late: nodes that an
 * exchange of gradients does not need, above all the gradients of weights, go behind its start. All ranks
 * call it alike. */
static void start_early(struct ph_builder *builder)
{
    struct ph__graph *graph = &builder->graph;
    struct order order = {.graph = graph, .begin = graph->num_nodes};
    if (ph_builder_status(builder) != PH_OK)
        return;
    while (order.begin > 0 && graph->nodes[order.begin - 1].entry == builder->entry)
        order.begin--;
    order.count = graph->num_nodes - order.begin;
    order.nodes = calloc(order.count + 1, sizeof *order.nodes);
    order.is_placed = calloc(order.count + 1, sizeof *order.is_placed);
    order.is_needed = calloc(order.count + 1, sizeof *order.is_needed);
    if (order.nodes == NULL || order.is_placed == NULL || order.is_needed == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: an order of %zu nodes", order.count);
    } else {
        place_all(&order);
        adopt(graph, &order);
    }
    free(order.nodes);
    free(order.is_placed);
    free(order.is_needed);
}

/* ---- waiting late ----
 *
 * No other rank waits for a wait, so ranks may reach theirs in different orders. */

/* The nodes from the first wait on. */
struct tail {
    struct ph_builder *builder;
    size_t begin, count;
    bool *is_late;          /* (count) a wait, or a reader of one's outputs */
    struct ph__node *nodes; /* (count) in their new order */
};

static struct ph__node *node_of(const struct tail *tail, size_t index)
{
    return &tail->builder->graph.nodes[tail->begin + index];
}

static bool reads_late(const struct tail *tail, const struct ph__node *node)
{
    const struct ph__graph *graph = &tail->builder->graph;
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const uint32_t producer = graph->values[node->inputs[k]].producer;
        if (node->inputs[k] != 0 && producer != PH_NO_NODE && producer >= tail->begin &&
            tail->is_late[producer - tail->begin])
            return true;
    }
    return false;
}

static bool gives_output(const struct tail *tail, const struct ph__node *node)
{
    for (uint32_t k = 0; k < node->num_outputs; k++)
        if (tail->builder->graph.values[node->outputs[k]].is_output)
            return true;
    return false;
}

/* Finds the late nodes. Returns true when all of them except the waits belong to the current entry. */
static bool find_late(const struct tail *tail)
{
    for (size_t i = 0; i < tail->count; i++) {
        const struct ph__node *node = node_of(tail, i);
        const bool is_wait = ph__is_gradient_wait(node);
        tail->is_late[i] = is_wait || reads_late(tail, node);
        if (tail->is_late[i] &&
            (gives_output(tail, node) || (!is_wait && node->entry != tail->builder->entry)))
            return false;
    }
    return true;
}

static void move_late(const struct tail *tail)
{
    struct ph__graph *graph = &tail->builder->graph;
    size_t num_placed = 0;
    for (int is_late = 0; is_late <= 1; is_late++)
        for (size_t i = 0; i < tail->count; i++)
            if (tail->is_late[i] == is_late)
                tail->nodes[num_placed++] = *node_of(tail, i);
    memcpy(graph->nodes + tail->begin, tail->nodes, tail->count * sizeof *tail->nodes);
    for (size_t i = tail->begin; i < graph->num_nodes; i++)
        if (ph__is_gradient_wait(&graph->nodes[i]))
            graph->nodes[i].entry = tail->builder->entry;
    ph__graph_set_producers(graph, tail->begin);
}

/* Orders the updates, the builder's current entry, which is complete. Waits for sums of dense gradients move
 * to the sums' readers, behind the updates of tables, which are the largest part of the computation
 * meanwhile. Where a node before the entry reads the sums, such as a norm of all gradients, the waits stay in
 * place. */
static void wait_late(struct ph_builder *builder)
{
    const struct ph__graph *graph = &builder->graph;
    struct tail tail = {.builder = builder};
    if (ph_builder_status(builder) != PH_OK)
        return;
    while (tail.begin < graph->num_nodes && !ph__is_gradient_wait(&graph->nodes[tail.begin]))
        tail.begin++;
    tail.count = graph->num_nodes - tail.begin;
    tail.is_late = calloc(tail.count + 1, sizeof *tail.is_late);
    tail.nodes = calloc(tail.count + 1, sizeof *tail.nodes);
    if (tail.is_late == NULL || tail.nodes == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: an order of %zu nodes", tail.count);
    else if (find_late(&tail))
        move_late(&tail);
    free(tail.is_late);
    free(tail.nodes);
}

/* ---- the context ---- */

/* Makes a group of every stride-th rank from `first` on. */
static struct ph__group *make_group(struct ph__sharding *sharding, size_t first, size_t stride, size_t size)
{
    struct ph__group *group = ph__arena_alloc(&sharding->arena, sizeof *group);
    uint32_t *ranks = ph__arena_alloc_array(&sharding->arena, size, sizeof *ranks);
    if (group == NULL || ranks == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++)
        ranks[i] = (uint32_t)(first + i * stride);
    *group = (struct ph__group){size, (sharding->rank - first) / stride, ranks};
    return group;
}

/* Makes the groups of units. PH_ERROR_CONFIG for settings that work with whole gradients alone. */
static ph_status prepare_units(struct ph__sharding *sharding)
{
    const struct ph__dense_settings *settings = &sharding->plan->units.settings;
    const size_t size = settings->group_size, place = sharding->rank % size;
    const char *mode = ph__dense_mode_name(settings->mode);
    if (sharding->reducer != NULL)
        return ph_fail(PH_ERROR_CONFIG,
            "parallel.sync: hub sums whole gradients: with dense mode '%s' use sync: allreduce", mode);
    if (sharding->dense == PH_WIRE_INT8)
        return ph_fail(PH_ERROR_CONFIG,
            "parallel.dense: int8 has a scale for each 256 numbers of whole gradients: with dense mode '%s' "
            "use "
            "fp32, fp16 or bf16",
            mode);
    sharding->unit_group = make_group(sharding, sharding->rank - place, 1, size);
    sharding->unit_peers = make_group(sharding, place, size, sharding->world_size / size);
    return sharding->unit_group != NULL && sharding->unit_peers != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__sharding_create(
    const struct ph__distribution_options *options, struct ph__sharding **sharding_out)
{
    const size_t world_size = ph_comm_world_size(options->comm);
    struct ph__sharding *sharding = calloc(1, sizeof *sharding);
    if (sharding == NULL)
        return ph__out_of_memory("a program's shards");
    *sharding = (struct ph__sharding){.comm = options->comm,
        .plan = options->plan,
        .forward = options->forward,
        .backward = options->backward,
        .dense = options->dense,
        .bucket_bytes = options->bucket_bytes,
        .overlaps = options->overlaps,
        .reducer = options->reducer,
        .tower_group = ph__comm_host(options->comm),
        .rank = ph_comm_rank(options->comm),
        .world_size = world_size,
        .streams = calloc(world_size, sizeof *sharding->streams),
        .bounds = calloc(world_size + 1, sizeof *sharding->bounds)};
    ph_status status = sharding->streams != NULL && sharding->bounds != NULL
                           ? ph__request_buffers_create(&sharding->requests)
                           : ph__out_of_memory("the shards of %zu ranks", world_size);
    if (status == PH_OK && options->plan != NULL && options->plan->units.num_units > 0)
        status = prepare_units(sharding);
    if (status != PH_OK) {
        ph__sharding_destroy(sharding);
        return status;
    }
    *sharding_out = sharding;
    return PH_OK;
}

void ph__sharding_destroy(struct ph__sharding *sharding)
{
    if (sharding == NULL)
        return;
    for (size_t rank = 0; sharding->streams != NULL && rank < sharding->world_size; rank++)
        free(sharding->streams[rank].items);
    free(sharding->streams);
    free(sharding->exchanges);
    free(sharding->tables);
    free(sharding->bounds);
    ph__request_buffers_destroy(sharding->requests);
    ph__arena_fini(&sharding->arena);
    free(sharding);
}

/* ---- the distribution ---- */

/* Returns the value in flight to this rank for a lookup of which it has no shards, or 0 when it has some.
 * Nothing of the rank's own leads to that value, but its gradient goes to other ranks. */
static ph_value only_in_flight(const struct ph__vector_exchange *exchange)
{
    if (exchange->sums != NULL && exchange->sums->own_count == 0)
        return exchange->sums->in_flight;
    return exchange->own_count == 0 && exchange->num_blocks > 0 ? exchange->in_flight : 0;
}

/* Lists the values in flight to lookups without shards on this rank. The rank sends their gradients all the
 * same, so it differentiates by them. */
static void list_in_flight(struct ph__sharding *sharding, struct ph_builder *builder,
    const ph_value **more_out, size_t *num_more_out)
{
    ph_value *more = ph__arena_alloc_array(&sharding->arena, sharding->num_exchanges + 1, sizeof *more);
    *num_more_out = 0;
    *more_out = more;
    if (more == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: a program's shards");
    for (size_t i = 0; more != NULL && i < sharding->num_exchanges; i++)
        if (only_in_flight(sharding->exchanges[i]) != 0)
            more[(*num_more_out)++] = only_in_flight(sharding->exchanges[i]);
}

static void spread(void *context, struct ph_builder *builder, const ph_value **more_out, size_t *num_more_out)
{
    ph__find_towers(context, builder);
    ph__place_towers(context, builder, ph__shard_lookups(context, builder));
    ph__sync_batch_norms(context, builder);
    ph__share_losses(context, builder);
    ph__units_spread(context, builder);
    list_in_flight(context, builder, more_out, num_more_out);
}

static ph_value read_as(void *context, ph_value parameter)
{
    return ph__units_whole(context, parameter);
}

static void differentiated(
    void *context, struct ph_builder *builder, size_t count, const ph_value *parameters, ph_value *gradients)
{
    const struct ph__sharding *sharding = context;
    ph__units_gather_again(context, builder);
    if (sharding->plan->units.settings.reduces_often)
        ph__units_reduce(context, builder, count, parameters, gradients);
}

/* Waits for gradients sent by a rank without shards: nothing reads them, and the rank waits until they are
 * sent. */
static void wait_for_gradients(
    struct ph__sharding *sharding, struct ph_builder *builder, ph_value in_flight, ph_value sent)
{
    for (size_t i = 0; i < sharding->num_exchanges; i++) {
        const struct ph__vector_exchange *exchange = sharding->exchanges[i];
        const struct ph__exchange_attributes attributes = {sharding->exchanges[i], exchange->own_count};
        const struct ph__host_attributes of_host = {exchange->sums, 0};
        if (only_in_flight(exchange) != in_flight)
            continue;
        if (exchange->sums != NULL)
            ph__host_gradient_wait(builder, &of_host, sent);
        else
            ph__gradient_wait(builder, &attributes, sent);
    }
}

static void reduce(
    void *context, struct ph_builder *builder, size_t count, const ph_value *parameters, ph_value *gradients)
{
    const struct ph__sharding *sharding = context;
    if (!sharding->plan->units.settings.reduces_often)
        ph__units_reduce(context, builder, count, parameters, gradients);
    if (sharding->overlaps)
        start_early(builder);
    for (size_t i = 0; i < count; i++)
        if (gradients[i] != 0 && ph__builder_declaration(builder, parameters[i]) == NULL)
            wait_for_gradients(context, builder, parameters[i], gradients[i]);
    ph__reduce_gradients(context, builder, count, parameters, gradients);
}

static void complete(void *context, struct ph_builder *builder)
{
    const struct ph__sharding *sharding = context;
    ph__units_share_squares(context, builder);
    ph__share_norms(context, builder);
    ph__share_squares(context, builder);
    if (sharding->overlaps)
        wait_late(builder);
}

static ph_status poll(void *context)
{
    return ph__comm_progress(context);
}

/* Creates the workspace. The first batch's requests are not known yet: as many as this rank's own ids are
 * assumed, and the same number on all ranks; they grow. */
static ph_status create_workspace(void *context, struct ph_executor *executor, size_t batch_size,
    size_t num_ids, struct ph_workspace **workspace_out)
{
    const struct ph__sharding *sharding = context;
    const struct ph__requests requests = {
        .num_samples = batch_size, .num_global_ids = num_ids * sharding->world_size, .num_ids = num_ids};
    ph__executor_poll(executor, poll, sharding->comm);
    return ph__workspace_create(
        executor, ph__divide_up(batch_size, sharding->world_size), num_ids, &requests, workspace_out);
}

static ph_status bind(
    void *context, struct ph_workspace *workspace, const struct ph_batch *batch, uint64_t seed, uint64_t step)
{
    struct ph__requests requests;
    PH_TRY(ph__requests_exchange(context, batch, &requests));
    return ph__workspace_bind(workspace, batch, &requests, seed, step);
}

ph_status ph__distribution_create(
    const struct ph__distribution_options *options, struct ph_distribution **distribution_out)
{
    struct ph_distribution *distribution = calloc(1, sizeof *distribution);
    struct ph__sharding *sharding;
    if (distribution == NULL)
        return ph__out_of_memory("a program's shards");
    const ph_status status = ph__sharding_create(options, &sharding);
    if (status != PH_OK) {
        free(distribution);
        return status;
    }
    *distribution = (struct ph_distribution){
        sharding, spread, read_as, differentiated, reduce, complete, create_workspace, bind};
    *distribution_out = distribution;
    return PH_OK;
}

void ph__distribution_destroy(struct ph_distribution *distribution)
{
    if (distribution == NULL)
        return;
    ph__sharding_destroy(distribution->context);
    free(distribution);
}
