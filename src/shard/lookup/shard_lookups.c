/* The pass over lookups. It first plans all lookups: which rank has what of each feature's table, which ids
 * that rank is asked for, which vectors it gives. Then, since a program's requests are one input, it rewrites
 * the graph: this rank's own lookups and the start of their exchange move to the beginning of the forward
 * entry, where nothing waits for anything, and the lookup's node becomes the wait. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "shard/lookup/item_exchange.h"
#include "shard/lookup/lookup_pass.h"
#include "store/declaration.h"

/* ---- planning ---- */

/* Returns true when a slice is cut. A table without such a slice is the same on every rank and stays as it
 * is. */
static bool is_any_slice_cut(struct ph__lookup_pass *pass, const struct ph__declaration *table)
{
    for (size_t i = 0; i < table->num_slices; i++) {
        const struct ph__plan_table *plan = ph__pass_find_plan(pass, table->slices[i].name);
        if (plan != NULL && !ph__plan_is_replica(plan))
            return true;
    }
    return false;
}

static ph_status describe(
    struct ph__lookup_pass *pass, const struct ph__node *node, struct ph__spread_lookup *lookup)
{
    struct ph_builder *builder = pass->builder;
    const struct ph__node *slots = ph__builder_producer(builder, node->inputs[PH_EMBEDDING_SLOTS]);
    *lookup = (struct ph__spread_lookup){.output = node->outputs[0],
        .node = *node,
        .ids = slots->inputs[0],
        .table = node->inputs[PH_EMBEDDING_TABLE],
        .features = ph__feature_list(builder, slots->inputs[0]),
        .num_features = ph_value_type(builder, slots->inputs[0]).dims[0].extent};
    for (size_t i = 0; i < pass->sharding->num_towers; i++)
        if (pass->sharding->towers[i].lookup == lookup->output)
            lookup->tower = &pass->sharding->towers[i];
    lookup->declaration = ph__builder_copy(
        builder, ph__builder_declaration(builder, lookup->table), sizeof *lookup->declaration);
    lookup->slices = ph__pass_take(pass, lookup->num_features, sizeof *lookup->slices);
    lookup->plans = ph__pass_take(pass, lookup->num_features, sizeof *lookup->plans);
    PH_TRY(ph_builder_status(builder));
    const uint64_t *first_rows = ph__declaration_first_rows(lookup->declaration, pass->arena);
    if (first_rows == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < lookup->num_features && ph_builder_status(builder) == PH_OK; i++) {
        lookup->slices[i] =
            ph__declaration_slice_at(lookup->declaration, first_rows, ph__slots_ranges(slots)[i].first_row);
        lookup->plans[i] = ph__pass_find_plan(pass, lookup->declaration->slices[lookup->slices[i]].name);
    }
    return ph_builder_status(builder);
}

/* Adds a table's name to the list, which numbers tables on every rank alike. */
static ph_status list_table(struct ph__sharding *sharding, const char *name)
{
    for (size_t i = 0; i < sharding->num_tables; i++)
        if (strcmp(sharding->tables[i], name) == 0)
            return PH_OK;
    PH_TRY(ph__array_reserve((void **)&sharding->tables, &sharding->tables_capacity, sharding->num_tables + 1,
        sizeof *sharding->tables));
    const char *copy = ph__arena_strdup(&sharding->arena, name);
    if (copy == NULL)
        return ph__out_of_memory("a pass over lookups");
    sharding->tables[sharding->num_tables++] = copy;
    return PH_OK;
}

static ph_status add_lookup(struct ph__lookup_pass *pass, const struct ph__node *node)
{
    struct ph__spread_lookup lookup;
    PH_TRY(describe(pass, node, &lookup));
    if (!is_any_slice_cut(pass, lookup.declaration))
        return ph_builder_status(pass->builder);
    PH_TRY(ph__array_reserve(
        (void **)&pass->lookups, &pass->lookups_capacity, pass->num_lookups + 1, sizeof *pass->lookups));
    pass->lookups[pass->num_lookups++] = lookup;
    return list_table(pass->sharding, lookup.declaration->name);
}

static ph_status list_lookups(struct ph__lookup_pass *pass)
{
    const struct ph__graph *graph = &pass->builder->graph;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        if (node->op == &ph__op_embedding_bag || node->op == &ph__op_embedding_rows)
            PH_TRY(add_lookup(pass, node));
    }
    return PH_OK;
}

/* ---- rewriting ---- */

/* Emits a lookup like the model's, of some slices of another table. */
static ph_value emit_lookup(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup,
    ph_value ids, ph_value table, const size_t *slices, enum ph_pooling pooling, ph_value weights)
{
    struct ph__embedding_bag_attributes attributes =
        *(const struct ph__embedding_bag_attributes *)lookup->node.attributes;
    attributes.pooling = pooling;
    if (ph_builder_status(pass->builder) != PH_OK)
        return 0;
    const struct ph__declaration *declaration = ph__builder_declaration(pass->builder, table);
    const ph_value inputs[PH_EMBEDDING_INPUTS] = {
        ph__slots(pass->builder, ids, declaration, slices), table, weights};
    return ph__emit1(
        pass->builder, lookup->node.op, NULL, &attributes, sizeof attributes, PH_EMBEDDING_INPUTS, inputs);
}

static enum ph_pooling pooling_of(const struct ph__spread_lookup *lookup)
{
    return ((const struct ph__embedding_bag_attributes *)lookup->node.attributes)->pooling;
}

/* Looks up the vectors of the global batch in this rank's shards of one key. */
static ph_value look_up_requests(
    struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, const struct ph__shard_group *group)
{
    struct ph_builder *builder = pass->builder;
    size_t *local_of = ph__pass_take(pass, lookup->declaration->num_slices, sizeof *local_of);
    size_t *slices = ph__pass_take(pass, group->count, sizeof *slices);
    const size_t num_streams = pass->sharding->streams[pass->sharding->rank].count;
    const ph_value requests = ph__input_requested_ids(builder, num_streams);
    const ph_value table = ph__local_table(pass, lookup->declaration, &group->key, local_of);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    for (size_t i = 0; i < group->count; i++)
        slices[i] = local_of[group->slices[i]];
    const ph_value ids = group->count == num_streams
                             ? requests
                             : ph_select_features(builder, requests, group->count, group->streams);
    const ph_value weights = lookup->node.inputs[PH_EMBEDDING_WEIGHTS] != 0
                                 ? ph__selected_weights(builder, ids, ph__input_requested_weights(builder))
                                 : 0;
    return emit_lookup(
        pass, lookup, ids, table, slices, group->key.is_cut ? PH_POOL_SUM : pooling_of(lookup), weights);
}

/* Selects features of the lookup's own ids, which may be a selection of the batch's. */
static ph_value select_own(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, size_t count,
    const size_t *features)
{
    size_t *of_batch = ph__pass_take(pass, count, sizeof *of_batch);
    if (count == lookup->num_features || of_batch == NULL)
        return lookup->ids;
    for (size_t i = 0; i < count; i++)
        of_batch[i] =
            lookup->features.selected != NULL ? lookup->features.selected[features[i]] : features[i];
    return ph_select_features(pass->builder, ph__unselected(pass->builder, lookup->ids), count, of_batch);
}

/* Looks up this rank's own samples in the tables that every rank has. */
static ph_value look_up_replicas(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup)
{
    struct ph_builder *builder = pass->builder;
    const struct ph__vector_exchange *exchange = lookup->exchange;
    size_t *local_of = ph__pass_take(pass, lookup->declaration->num_slices, sizeof *local_of);
    size_t *slices = ph__pass_take(pass, exchange->num_replicas, sizeof *slices);
    size_t *features = ph__pass_take(pass, exchange->num_replicas, sizeof *features);
    const ph_value table = ph__local_table(pass, lookup->declaration, NULL, local_of);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    for (size_t i = 0; i < exchange->num_replicas; i++) {
        features[i] = exchange->replicas[i];
        slices[i] = local_of[lookup->slices[features[i]]];
    }
    const ph_value ids = select_own(pass, lookup, exchange->num_replicas, features);
    const ph_value weights = ph__selected_weights(
        builder, ids, ph__unselected(builder, lookup->node.inputs[PH_EMBEDDING_WEIGHTS]));
    return emit_lookup(pass, lookup, ids, table, slices, pooling_of(lookup), weights);
}

static bool wants_ids(const struct ph__vector_exchange *exchange)
{
    if (exchange->is_of_items)
        return true;
    for (size_t i = 0; i < exchange->num_blocks; i++)
        if (exchange->blocks[i].is_mean)
            return true;
    return false;
}

/* Moves the nodes added since `begin` to the front, behind those moved before. */
static void bring_forward(struct ph__lookup_pass *pass, size_t begin)
{
    struct ph__graph *graph = &pass->builder->graph;
    const size_t count = graph->num_nodes - begin;
    const ph_status status = ph__graph_move_before(graph, pass->front, begin);
    if (status != PH_OK)
        ph_builder_fail(pass->builder, status, "%s", ph_error_text());
    pass->front += count;
}

/* Moves the nodes added since `begin` before the model's lookup, and returns the lookup's node. */
static struct ph__node *node_behind(
    struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, size_t begin)
{
    struct ph__graph *graph = &pass->builder->graph;
    const ph_status status = ph__graph_move_before(graph, graph->values[lookup->output].producer, begin);
    if (status != PH_OK)
        ph_builder_fail(pass->builder, status, "%s", ph_error_text());
    return &graph->nodes[graph->values[lookup->output].producer];
}

/* Rewrites a lookup all of whose features are in tables that every rank has. */
static void look_up_replicas_only(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup)
{
    const size_t begin = pass->builder->graph.num_nodes;
    const ph_value replicas = look_up_replicas(pass, lookup);
    if (ph_builder_status(pass->builder) != PH_OK)
        return;
    const struct ph__node added = *ph__builder_producer(pass->builder, replicas);
    pass->builder->graph.num_nodes--; /* removes the new lookup: the model's node takes its place */
    struct ph__node *node = node_behind(pass, lookup, begin);
    node->inputs = added.inputs;
    node->num_inputs = added.num_inputs;
}

/* Adds the lookups of this rank's part of its host's blocks, and sends them to the ranks of the host;
 * wait_inputs_out: the inputs of the wait. */
static void emit_host_start(
    struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, ph_value *wait_inputs_out)
{
    struct ph__host_sums *sums = lookup->exchange->sums;
    const struct ph__host_attributes attributes = {.sums = sums};
    ph_value *lookups = wait_inputs_out + PH_HOST_OUTPUTS;
    for (size_t i = 0; i < sums->own_count; i++)
        lookups[i] = look_up_requests(pass, lookup, &lookup->host_groups[i]);
    ph__emit(pass->builder, &ph__op_host_sums_start, NULL, &attributes, sizeof attributes, sums->own_count,
        lookups, PH_HOST_OUTPUTS, wait_inputs_out);
    sums->in_flight = wait_inputs_out[PH_HOST_IN_FLIGHT];
}

/* Adds this rank's own vectors, (own_count). Its own groups are looked up while the host's parts are in
 * flight. */
static void emit_own(
    struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, ph_value *vectors_out)
{
    const struct ph__host_sums *sums = lookup->exchange->sums;
    const struct ph__host_attributes attributes = {.sums = sums};
    ph_value inputs[PH_MAX_OPERANDS] = {0};
    if (sums != NULL)
        emit_host_start(pass, lookup, inputs);
    for (size_t i = 0; i < lookup->num_groups; i++)
        vectors_out[i] = look_up_requests(pass, lookup, &lookup->groups[i]);
    if (sums != NULL)
        ph__emit(pass->builder, &ph__op_host_sums_wait, NULL, &attributes, sizeof attributes,
            PH_HOST_OUTPUTS + sums->own_count, inputs, sums->num_blocks, vectors_out + lookup->num_groups);
}

/* Adds the own vectors and the start of their exchange; outputs_out: start's outputs. */
static void emit_start(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup,
    ph_value *vectors_out, ph_value *outputs_out)
{
    struct ph__vector_exchange *exchange = lookup->exchange;
    const struct ph__exchange_attributes attributes = {.exchange = exchange};
    const size_t begin = pass->builder->graph.num_nodes;
    emit_own(pass, lookup, vectors_out);
    ph__emit(pass->builder, &ph__op_exchange_vectors_start, NULL, &attributes, sizeof attributes,
        exchange->own_count, vectors_out, PH_EXCHANGE_OUTPUTS, outputs_out);
    exchange->in_flight = outputs_out[PH_EXCHANGE_IN_FLIGHT];
    if (exchange->is_of_items && exchange->own_count > 0)
        exchange->own_items = ph_value_type(pass->builder, vectors_out[0]).dims[0];
    if (ph_builder_status(pass->builder) == PH_OK)
        bring_forward(pass, begin);
}

static void exchange_vectors(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup)
{
    struct ph_builder *builder = pass->builder;
    struct ph__vector_exchange *exchange = lookup->exchange;
    const struct ph__exchange_attributes attributes = {.exchange = exchange};
    ph_value inputs[PH_MAX_OPERANDS] = {0};
    emit_start(pass, lookup, inputs + PH_EXCHANGE_LOOKUPS, inputs);
    const size_t begin = builder->graph.num_nodes;
    inputs[PH_EXCHANGE_IDS] = wants_ids(exchange) ? lookup->ids : 0;
    if (exchange->num_replicas > 0)
        inputs[PH_EXCHANGE_REPLICAS] = look_up_replicas(pass, lookup);
    if (ph_builder_status(builder) != PH_OK)
        return;
    struct ph__node *node = node_behind(pass, lookup, begin);
    node->op = exchange->is_of_items ? &ph__op_exchange_items_wait : &ph__op_exchange_vectors_wait;
    node->num_inputs = (uint32_t)(PH_EXCHANGE_LOOKUPS + exchange->own_count);
    node->inputs = ph__builder_copy(builder, inputs, node->num_inputs * sizeof *inputs);
    node->attributes = ph__builder_copy(builder, &attributes, sizeof attributes);
    node->attributes_size = sizeof attributes;
}

/* Adds this rank's lookups for a tower, and sends them inside its host. */
static ph_status start_tower(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup)
{
    struct ph__tower *tower = lookup->tower;
    const size_t begin = pass->builder->graph.num_nodes;
    tower->exchange = lookup->exchange;
    if (lookup->exchange->sums == NULL)
        return ph_builder_status(pass->builder);
    tower->num_wait_inputs = PH_HOST_OUTPUTS + lookup->exchange->sums->own_count;
    tower->wait_inputs = ph__pass_take(pass, tower->num_wait_inputs, sizeof *tower->wait_inputs);
    if (tower->wait_inputs != NULL)
        emit_host_start(pass, lookup, tower->wait_inputs);
    if (ph_builder_status(pass->builder) == PH_OK)
        bring_forward(pass, begin);
    return ph_builder_status(pass->builder);
}

static ph_status rewrite(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup)
{
    const struct ph__vector_exchange *exchange = lookup->exchange;
    if (lookup->tower != NULL)
        return start_tower(pass, lookup);
    if (exchange->own_count + PH_EXCHANGE_LOOKUPS > PH_MAX_OPERANDS)
        return ph_fail(PH_ERROR_CONFIG,
            "table '%s': one rank holds shards of %zu different widths, which is too many",
            lookup->declaration->name, exchange->own_count);
    if (exchange->num_blocks == 0)
        look_up_replicas_only(pass, lookup);
    else
        exchange_vectors(pass, lookup);
    return ph_builder_status(pass->builder);
}

static ph_status shard_lookups(struct ph__lookup_pass *pass)
{
    PH_TRY(list_lookups(pass));
    for (size_t i = 0; i < pass->num_lookups; i++)
        PH_TRY(ph__plan_vector_exchange(pass, &pass->lookups[i]));
    for (size_t i = 0; i < pass->num_lookups; i++)
        PH_TRY(rewrite(pass, &pass->lookups[i]));
    for (size_t i = 0; i < pass->num_lookups; i++)
        ph__builder_forget(pass->builder, pass->lookups[i].table);
    return PH_OK;
}

size_t ph__shard_lookups(struct ph__sharding *sharding, struct ph_builder *builder)
{
    struct ph__lookup_pass pass = {.sharding = sharding, .builder = builder, .arena = &builder->graph.arena};
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const ph_status status = shard_lookups(&pass);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
    free(pass.lookups);
    return pass.front;
}
