#include "shard/tower/tower_pass.h"

#include <string.h>

#include "base/memory/memory.h"
#include "shard/lookup/host_sums.h"
#include "shard/lookup/vector_exchange.h"
#include "shard/tower/tower_cone.h"

/* ---- finding ---- */

static ph_status find_tower(struct ph__sharding *sharding, const struct ph__graph *graph,
    const struct ph__named_value *named, const struct ph__plan_tower *planned)
{
    struct ph__tower_cone cone;
    PH_TRY(ph__tower_cone_find(graph, named, &sharding->arena, &cone));
    sharding->towers[sharding->num_towers++] = (struct ph__tower){.name = planned->of.name,
        .host = planned->host,
        .lookup = graph->nodes[cone.lookup].outputs[0],
        .output = named->value};
    return PH_OK;
}

void ph__find_towers(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const struct ph__graph *graph = &builder->graph;
    const struct ph__plan *plan = sharding->plan;
    ph_status status = ph_builder_status(builder);
    if (status != PH_OK || plan->num_towers == 0)
        return;
    sharding->towers = ph__arena_alloc_array(&sharding->arena, plan->num_towers, sizeof *sharding->towers);
    if (sharding->towers == NULL)
        status = ph__out_of_memory("%zu towers", plan->num_towers);
    for (size_t i = 0; i < graph->num_named && status == PH_OK; i++) {
        const char *name = ph__tower_name(graph->named[i].name);
        const struct ph__plan_tower *planned = name != NULL ? ph__plan_find_tower(plan, name) : NULL;
        if (planned != NULL)
            status = find_tower(sharding, graph, &graph->named[i], planned);
    }
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
}

/* ---- moving ---- */

/* A tower's layers while they are moved. */
struct moving {
    struct ph__sharding *sharding;
    struct ph_builder *builder;
    struct ph__tower *tower;
    struct ph__tower_cone cone;
    ph_value *moved; /* (number of the model's values) the moved layers' value for each; 0: none */
};

/* Adds the node again, to read moved values in place of the model's. */
static void move_node(struct moving *moving, size_t index)
{
    const struct ph__node node = moving->builder->graph.nodes[index];
    ph_value inputs[PH_MAX_OPERANDS], outputs[PH_MAX_OPERANDS];
    for (uint32_t k = 0; k < node.num_inputs; k++)
        inputs[k] = moving->moved[node.inputs[k]] != 0 ? moving->moved[node.inputs[k]] : node.inputs[k];
    ph__emit(moving->builder, node.op, node.name, node.attributes, node.attributes_size, node.num_inputs,
        inputs, node.num_outputs, outputs);
    for (uint32_t k = 0; k < node.num_outputs; k++)
        moving->moved[node.outputs[k]] = outputs[k];
}

/* Adds the host's sums and the layers on them. Returns the tower's vectors for the peers' samples. */
static ph_value add_layers(struct moving *moving)
{
    const struct ph__tower *tower = moving->tower;
    const struct ph__host_attributes attributes = {.sums = tower->exchange->sums};
    ph__emit(moving->builder, &ph__op_host_sums_wait, NULL, &attributes, sizeof attributes,
        tower->num_wait_inputs, tower->wait_inputs, 1, &moving->moved[tower->lookup]);
    for (size_t i = 0; i <= moving->cone.last; i++)
        if (moving->cone.is_inside[i] && i != moving->cone.lookup)
            move_node(moving, i);
    return moving->moved[tower->output];
}

/* Adds a parameter of the tower to its list. */
static void list_parameter(struct moving *moving, ph_value parameter)
{
    struct ph__tower *tower = moving->tower;
    for (size_t i = 0; i < tower->num_parameters; i++)
        if (tower->parameters[i] == parameter)
            return;
    tower->parameters[tower->num_parameters++] = parameter;
}

/* Removes the model's own layers except for the last node. */
static ph_status remove_layers(struct moving *moving)
{
    struct ph__graph *graph = &moving->builder->graph;
    struct ph__tower *tower = moving->tower;
    tower->parameters =
        ph__arena_alloc_array(&moving->sharding->arena, graph->num_declarations, sizeof *tower->parameters);
    if (tower->parameters == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i <= moving->cone.last; i++) {
        struct ph__node *node = &graph->nodes[i];
        if (!moving->cone.is_inside[i])
            continue;
        for (uint32_t k = 0; i != moving->cone.lookup && k < node->num_inputs; k++)
            if (node->inputs[k] != 0 && graph->values[node->inputs[k]].storage == PH_STORAGE_PARAMETER)
                list_parameter(moving, node->inputs[k]);
        node->is_dead = i != moving->cone.last;
    }
    return PH_OK;
}

/* Gives the tower's output memory of its own, which all later values use that shared memory with it. */
static void own_memory(const struct moving *moving)
{
    const struct ph__graph *graph = &moving->builder->graph;
    const ph_value output = moving->tower->output, root = graph->values[output].alias_of;
    for (ph_value value = 1; root != 0 && value < graph->num_values; value++) {
        struct ph__value_info *info = &graph->values[value];
        const bool is_layer = info->producer <= moving->cone.last && moving->cone.is_inside[info->producer];
        if (info->alias_of == root && !is_layer)
            info->alias_of = output;
    }
    graph->values[output].alias_of = 0;
}

/* Turns the tower's last node into the wait for its vectors. */
static void wait_for_vectors(struct moving *moving, const ph_value *inputs)
{
    struct ph_builder *builder = moving->builder;
    own_memory(moving);
    const struct ph__exchange_attributes attributes = {.exchange = moving->tower->exchange};
    struct ph__node *node = &builder->graph.nodes[moving->cone.last];
    node->op = &ph__op_exchange_vectors_wait;
    node->num_inputs = (uint32_t)(PH_EXCHANGE_LOOKUPS + moving->tower->exchange->own_count);
    node->inputs = ph__builder_copy(builder, inputs, node->num_inputs * sizeof *inputs);
    node->attributes = ph__builder_copy(builder, &attributes, sizeof attributes);
    node->attributes_size = sizeof attributes;
}

/* Adds the layers, where they are this host's, and the exchange of their vectors. Returns the number of nodes
 * added, which stand behind the first `front`. */
static size_t move_layers(struct moving *moving, size_t front)
{
    struct ph_builder *builder = moving->builder;
    struct ph__graph *graph = &builder->graph;
    struct ph__vector_exchange *exchange = moving->tower->exchange;
    const struct ph__exchange_attributes attributes = {.exchange = exchange};
    const size_t begin = graph->num_nodes;
    ph_value inputs[PH_EXCHANGE_LOOKUPS + 1] = {0};
    if (exchange->own_count > 0)
        inputs[PH_EXCHANGE_LOOKUPS] = add_layers(moving);
    ph__emit(builder, &ph__op_exchange_vectors_start, NULL, &attributes, sizeof attributes,
        exchange->own_count, inputs + PH_EXCHANGE_LOOKUPS, PH_EXCHANGE_OUTPUTS, inputs);
    exchange->in_flight = inputs[PH_EXCHANGE_IN_FLIGHT];
    ph_status status = ph_builder_status(builder);
    if (status == PH_OK)
        status = remove_layers(moving);
    if (status == PH_OK)
        wait_for_vectors(moving, inputs);
    const size_t count = graph->num_nodes - begin;
    if (status == PH_OK)
        status = ph__graph_move_before(graph, front, begin);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
    return count;
}

static ph_status place_tower(
    struct ph__sharding *sharding, struct ph_builder *builder, struct ph__tower *tower, size_t *front)
{
    struct ph__graph *graph = &builder->graph;
    struct moving moving = {.sharding = sharding, .builder = builder, .tower = tower};
    const struct ph__named_value named = {tower->name, tower->output};
    PH_TRY(ph__tower_cone_find(graph, &named, &graph->arena, &moving.cone));
    moving.moved = ph__arena_alloc_array(&graph->arena, graph->num_values, sizeof *moving.moved);
    if (moving.moved == NULL)
        return PH_ERROR_MEMORY;
    *front += move_layers(&moving, *front);
    for (size_t i = 0; tower->exchange->own_count == 0 && i < tower->num_parameters; i++)
        ph__builder_forget(builder, tower->parameters[i]);
    return ph_builder_status(builder);
}

void ph__place_towers(struct ph__sharding *sharding, struct ph_builder *builder, size_t front)
{
    ph_status status = ph_builder_status(builder);
    for (size_t i = 0; i < sharding->num_towers && status == PH_OK; i++)
        status = place_tower(sharding, builder, &sharding->towers[i], &front);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
}
