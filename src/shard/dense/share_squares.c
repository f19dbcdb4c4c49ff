#include "shard/dense/dense_passes.h"

#include <stdlib.h>
#include <string.h>

#include "op/update/op_update.h"
#include "shard/lookup/lookup_pass.h"
#include "shard/lookup/square_exchange.h"

enum { NUM_CHANNELS = PH_COMM_MAX_CHANNELS - PH_CHANNEL_SQUARES };

/* The update of a table whose rows have columns on other ranks. */
struct column_update {
    ph_value update; /* its token: tokens stay while nodes move */
    const struct ph__declaration *table;
};

/* Such updates of one table of the model. */
struct column_updates {
    struct ph__square_exchange *exchange;
    struct column_update *items;
    size_t count;
};

struct square_pass {
    struct ph__lookup_pass lookup; /* lookup.front: before all these updates */
    const uint32_t *readers;       /* (values) counted before the pass */
};

/* ---- updates ---- */

static bool is_column_update(const struct ph_builder *builder, const struct ph__node *node)
{
    if (node->is_dead || node->op != &ph__op_update_table)
        return false;
    const struct ph_optimizer *optimizer = node->attributes;
    const struct ph__declaration *table = ph__builder_declaration(builder, node->inputs[PH_UPDATE_PARAMETER]);
    return optimizer->rule.kind == PH_ROWWISE_ADAGRAD && table->shards != NULL &&
           table->shape.dims[1] < table->shards[0].whole_columns;
}

/* Returns the first such update's node; num_nodes when there is none. */
static size_t find_front(const struct ph_builder *builder)
{
    size_t node = 0;
    while (node < builder->graph.num_nodes && !is_column_update(builder, &builder->graph.nodes[node]))
        node++;
    return node;
}

static void refuse_all_rows(struct ph_builder *builder, const struct ph__node *node)
{
    const struct ph__declaration *table = ph__builder_declaration(builder, node->inputs[PH_UPDATE_PARAMETER]);
    const struct ph_optimizer *optimizer = node->attributes;
    if (optimizer->is_whole_table)
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "table '%s': the plan cuts its columns, but row-wise Adagrad whose l2 acts on all rows "
            "(optimizer.embedding_scope: whole) needs whole rows",
            table->slices[0].name);
}

static void list_updates(struct square_pass *pass, const char *family, struct column_updates *updates)
{
    struct ph_builder *builder = pass->lookup.builder;
    const struct ph__graph *graph = &builder->graph;
    *updates = (struct column_updates){
        .items = ph__pass_take(&pass->lookup, ph_builder_num_parameters(builder), sizeof *updates->items)};
    for (size_t i = 0; i < graph->num_nodes && ph_builder_status(builder) == PH_OK; i++) {
        const struct ph__node *node = &graph->nodes[i];
        if (!is_column_update(builder, node))
            continue;
        const struct ph__declaration *table =
            ph__builder_declaration(builder, node->inputs[PH_UPDATE_PARAMETER]);
        if (strcmp(table->family, family) != 0)
            continue;
        refuse_all_rows(builder, node);
        updates->items[updates->count++] = (struct column_update){node->outputs[0], table};
    }
}

/* ---- the exchange ---- */

/* Adds a slice to the exchange, with the shards of its rows on this rank and on others. */
static void add_slice(struct square_pass *pass, struct ph__square_exchange *exchange,
    struct ph__square_slice *slice, struct ph__square_share *shares, const struct ph__plan_table *table)
{
    const struct ph__sharding *sharding = pass->lookup.sharding;
    const struct ph__table_shard *own = ph__pass_shard_of(&pass->lookup, table, sharding->rank);
    const struct ph__table_shard *shards = sharding->plan->shards + table->first_shard;
    slice->first_shard = exchange->num_shards;
    for (size_t i = 0; i < table->num_shards; i++) { /* by columns; shards of other rows lie between */
        if (shards[i].first_row != own->first_row || shards[i].num_rows != own->num_rows)
            continue;
        if (&shards[i] == own)
            slice->own_shard = exchange->num_shards;
        else
            shares[exchange->num_shares++] = (struct ph__square_share){.rank = shards[i].rank,
                .plan_table = (uint32_t)(table - sharding->plan->tables),
                .slice = (uint32_t)exchange->num_slices,
                .num_blocks = (uint32_t)ph__square_blocks(shards[i].num_columns),
                .shard = exchange->num_shards};
        exchange->num_shards++;
    }
    slice->num_shards = exchange->num_shards - slice->first_shard;
    exchange->num_slices++;
}

static int compare_shares(const void *left, const void *right)
{
    const struct ph__square_share *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->plan_table < b->plan_table ? -1 : a->plan_table > b->plan_table;
}

/* Adds the slices of an update's table. */
static void add_table(struct square_pass *pass, struct ph__square_exchange *exchange,
    const struct ph__declaration *table, struct ph__square_slice *slices, struct ph__square_share *shares)
{
    size_t end_slot = 0;
    for (size_t i = 0; i < table->num_slices && ph_builder_status(pass->lookup.builder) == PH_OK; i++) {
        const struct ph__plan_table *plan = ph__pass_find_plan(&pass->lookup, table->slices[i].name);
        struct ph__square_slice *slice = &slices[exchange->num_slices];
        end_slot += table->slices[i].num_rows;
        *slice = (struct ph__square_slice){.table = (uint32_t)exchange->num_tables, .end_slot = end_slot};
        if (plan != NULL)
            add_slice(pass, exchange, slice, shares, plan);
    }
    exchange->num_tables++;
}

static void plan_exchange(struct square_pass *pass, size_t number, struct column_updates *updates)
{
    struct ph__sharding *sharding = pass->lookup.sharding;
    size_t num_slices = 0;
    for (size_t i = 0; i < updates->count; i++)
        num_slices += updates->items[i].table->num_slices;
    size_t *first_slices = ph__pass_take(&pass->lookup, updates->count, sizeof *first_slices);
    struct ph__square_slice *slices = ph__pass_take(&pass->lookup, num_slices, sizeof *slices);
    struct ph__square_share *shares =
        ph__pass_take(&pass->lookup, num_slices * sharding->world_size, sizeof *shares);
    struct ph__square_exchange *exchange = ph__pass_take(&pass->lookup, 1, sizeof *exchange);
    if (ph_builder_status(pass->lookup.builder) != PH_OK)
        return;
    *exchange = (struct ph__square_exchange){.sharding = sharding,
        .channel = (uint32_t)(PH_CHANNEL_SQUARES + number),
        .what = ph__arena_printf(&sharding->arena, "squares of %s", sharding->tables[number]),
        .first_slices = first_slices,
        .slices = slices,
        .shares = shares};
    for (size_t i = 0; i < updates->count; i++) {
        add_table(pass, exchange, updates->items[i].table, slices, shares);
        first_slices[i + 1] = exchange->num_slices;
    }
    qsort(shares, exchange->num_shares, sizeof *shares, compare_shares);
    updates->exchange = exchange;
}

/* ---- rewriting ---- */

/* Moves the nodes added since `begin` before node `index`. */
static void move_before(struct square_pass *pass, size_t index, size_t begin)
{
    const ph_status status = ph__graph_move_before(&pass->lookup.builder->graph, index, begin);
    if (status != PH_OK)
        ph_builder_fail(pass->lookup.builder, status, "%s", ph_error_text());
}

static bool is_only_reader(const struct square_pass *pass, ph_value update)
{
    const struct ph__graph *graph = &pass->lookup.builder->graph;
    const struct ph__node *node = ph__builder_producer(pass->lookup.builder, update);
    const ph_value gradient = node->inputs[PH_UPDATE_GRADIENT];
    return pass->readers[gradient] == 1 && !graph->values[gradient].is_output;
}

/* inputs_out: inputs of wait. */
static void emit_start(struct square_pass *pass, const struct column_updates *updates, ph_value *inputs_out)
{
    struct ph_builder *builder = pass->lookup.builder;
    const struct ph__square_attributes attributes = {updates->exchange};
    const size_t begin = builder->graph.num_nodes;
    ph_value *own = inputs_out + PH_SQUARES_OUTPUTS;
    for (size_t i = 0; i < updates->count; i++) {
        ph_value *inputs = own + i * PH_SQUARES_TABLE_INPUTS;
        const ph_value update = updates->items[i].update;
        inputs[PH_SQUARES_BLOCKS] =
            ph__row_squares(builder, update, is_only_reader(pass, update), &inputs[PH_SQUARES_SLOTS]);
    }
    ph__emit(builder, &ph__op_exchange_squares_start, NULL, &attributes, sizeof attributes,
        updates->count * PH_SQUARES_TABLE_INPUTS, own, PH_SQUARES_OUTPUTS, inputs_out);
    if (ph_builder_status(builder) != PH_OK)
        return;
    const size_t count = builder->graph.num_nodes - begin;
    move_before(pass, pass->lookup.front, begin);
    pass->lookup.front += count;
}

static void emit_wait(
    struct square_pass *pass, const struct column_updates *updates, const ph_value *inputs, ph_value *sums)
{
    struct ph_builder *builder = pass->lookup.builder;
    struct ph__graph *graph = &builder->graph;
    const struct ph__square_attributes attributes = {updates->exchange};
    const size_t begin = graph->num_nodes;
    ph__emit(builder, &ph__op_exchange_squares_wait, NULL, &attributes, sizeof attributes,
        PH_SQUARES_OUTPUTS + updates->count * PH_SQUARES_TABLE_INPUTS, inputs, updates->count, sums);
    if (ph_builder_status(builder) != PH_OK)
        return;
    for (size_t i = 0; i < updates->count; i++) {
        const struct ph__node *node = ph__builder_producer(builder, updates->items[i].update);
        node->inputs[PH_UPDATE_SQUARE_SUMS] = sums[i];
    }
    move_before(pass, graph->values[updates->items[0].update].producer, begin);
}

static void share(struct square_pass *pass, size_t number)
{
    struct ph__sharding *sharding = pass->lookup.sharding;
    struct ph_builder *builder = pass->lookup.builder;
    struct column_updates updates;
    list_updates(pass, sharding->tables[number], &updates);
    if (updates.count == 0 || ph_builder_status(builder) != PH_OK)
        return;
    plan_exchange(pass, number, &updates);
    ph_value *inputs = ph__pass_take(
        &pass->lookup, PH_SQUARES_OUTPUTS + updates.count * PH_SQUARES_TABLE_INPUTS, sizeof *inputs);
    ph_value *sums = ph__pass_take(&pass->lookup, updates.count, sizeof *sums);
    if (ph_builder_status(builder) != PH_OK)
        return;
    emit_start(pass, &updates, inputs);
    emit_wait(pass, &updates, inputs, sums);
}

void ph__share_squares(struct ph__sharding *sharding, struct ph_builder *builder)
{
    if (ph_builder_status(builder) != PH_OK)
        return;
    const size_t front = find_front(builder);
    if (front == builder->graph.num_nodes)
        return;
    uint32_t *readers = ph__graph_count_readers(&builder->graph);
    struct square_pass pass = {
        .lookup = {.sharding = sharding, .builder = builder, .arena = &builder->graph.arena, .front = front},
        .readers = readers};
    if (readers == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "%s", ph_error_text());
    else if (sharding->num_tables > NUM_CHANNELS)
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "row-wise Adagrad of tables whose columns are cut supports models of at most %d tables",
            (int)NUM_CHANNELS);
    for (size_t i = 0; i < sharding->num_tables && ph_builder_status(builder) == PH_OK; i++)
        share(&pass, i);
    free(readers);
}
