/* The pass of sharded dense parameters, over a program under construction (units.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "shard/units/units.h"

/* ---- places of nodes ----
 *
 * A pass appends nodes and says before which node each belongs; finishing puts all of them there at once.
 * Nodes of one place stand in the order in which they were placed. */

struct place {
    struct ph__node node;
    size_t before; /* number of a node as it was when the pass began */
    bool stays;    /* the node is that one */
    size_t turn;
};

struct placing {
    struct ph_builder *builder;
    struct place *places; /* (capacity) by node */
    size_t num_former, capacity, num_turns;
};

static void placing_fini(struct placing *placing)
{
    free(placing->places);
}

/* Begins to place up to num_new new nodes. */
static void placing_init(struct placing *placing, struct ph_builder *builder, size_t num_new)
{
    const size_t num_former = builder->graph.num_nodes;
    *placing =
        (struct placing){.builder = builder, .num_former = num_former, .capacity = num_former + num_new};
    placing->places = calloc(placing->capacity + 1, sizeof *placing->places);
    if (placing->places == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: an order of %zu nodes", num_former);
    for (size_t i = 0; placing->places != NULL && i < num_former; i++)
        placing->places[i] = (struct place){.before = i, .stays = true};
}

static void put(struct placing *placing, size_t node, size_t before)
{
    placing->places[node].before = before;
    placing->places[node].stays = false;
    placing->places[node].turn = placing->num_turns++;
}

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    if (a->stays != b->stays)
        return a->stays ? 1 : -1;
    return a->turn < b->turn ? -1 : a->turn > b->turn;
}

static void placing_finish(struct placing *placing)
{
    struct ph__graph *graph = &placing->builder->graph;
    if (ph_builder_status(placing->builder) == PH_OK) {
        for (size_t i = 0; i < graph->num_nodes; i++)
            placing->places[i].node = graph->nodes[i];
        qsort(placing->places, graph->num_nodes, sizeof *placing->places, compare_places);
        for (size_t i = 0; i < graph->num_nodes; i++)
            graph->nodes[i] = placing->places[i].node;
        ph__graph_set_producers(graph, 0);
    }
    placing_fini(placing);
}

/* ---- shards ---- */

/* Makes a parameter this rank's shard of it. */
static void become_shard(struct ph__unit *unit, struct ph_builder *builder, size_t k, ph_value value)
{
    struct ph__graph *graph = &builder->graph;
    const struct ph__unit_parameter *parameter = &unit->plan->parameters[k];
    const size_t own = ph__unit_group(unit)->own;
    const size_t num_rows = parameter->bounds[own + 1] - parameter->bounds[own];
    struct ph__declaration *declaration = &graph->declarations[graph->values[value].source];
    if (declaration->shape.dims[0] != parameter->rows ||
        ph__type_elements_from(&graph->values[value].type, 1) != parameter->columns) {
        ph_builder_fail(builder, PH_ERROR_BUG, "the plan's unit '%s' has another '%s' than the model",
            unit->plan->name, parameter->name);
        return;
    }
    unit->types[k] = graph->values[value].type;
    unit->shards[k] = value;
    graph->values[value].type.dims[0].extent = num_rows;
    declaration->first_row = parameter->bounds[own];
    if (num_rows < parameter->rows)
        declaration->whole = declaration->shape;
    declaration->shape.dims[0] = num_rows;
}

static ph_value find_parameter(const struct ph_builder *builder, const char *name)
{
    const size_t index = ph__name_index_find(&builder->declared, name);
    return index != PH_NO_NAME ? builder->graph.declaration_values[index] : 0;
}

static enum ph_wire_format wire_of(const struct ph__plan_unit *plan, enum ph_wire_format of_job)
{
    static const enum ph_wire_format formats[] = {[PH_UNIT_WIRE_FP32] = PH_WIRE_FP32,
        [PH_UNIT_WIRE_FP16] = PH_WIRE_FP16,
        [PH_UNIT_WIRE_BF16] = PH_WIRE_BF16};
    return plan->wire != PH_UNIT_WIRE_OF_JOB ? formats[plan->wire] : of_job;
}

static ph_status create_unit(struct ph__sharding *sharding, struct ph_builder *builder, size_t index)
{
    struct ph__unit *unit = &sharding->units[index];
    const struct ph__plan_unit *plan = &sharding->plan->units.units[index];
    *unit = (struct ph__unit){.sharding = sharding,
        .plan = plan,
        .wire = wire_of(plan, PH_WIRE_FP32),
        .gradient_wire = wire_of(plan, sharding->dense),
        .types = ph__arena_alloc_array(&sharding->arena, plan->num_parameters, sizeof *unit->types),
        .shards = ph__arena_alloc_array(&sharding->arena, plan->num_parameters, sizeof *unit->shards),
        .wholes = ph__arena_alloc_array(&sharding->arena, plan->num_parameters, sizeof *unit->wholes)};
    if (unit->types == NULL || unit->shards == NULL || unit->wholes == NULL)
        return PH_ERROR_MEMORY;
    for (size_t k = 0; k < plan->num_parameters; k++) {
        const ph_value value = find_parameter(builder, plan->parameters[k].name);
        if (value != 0)
            become_shard(unit, builder, k, value);
    }
    return PH_OK;
}

static void create_units(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const size_t num_units = sharding->plan->units.num_units;
    ph_status status = PH_OK;
    sharding->units = ph__arena_alloc_array(&sharding->arena, num_units, sizeof *sharding->units);
    sharding->num_units = num_units;
    if (sharding->units == NULL)
        status = PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_units && status == PH_OK; i++)
        status = create_unit(sharding, builder, i);
    if (status != PH_OK)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu units", num_units);
}

/* ---- readers ---- */

static bool has_value(const ph_value *values, size_t count, ph_value value)
{
    for (size_t k = 0; value != 0 && k < count; k++)
        if (values[k] == value)
            return true;
    return false;
}

/* Returns the first node from `begin` on that reads one of the values; the end of the graph: none does. */
static size_t first_reader(
    const struct ph_builder *builder, size_t begin, const ph_value *values, size_t count)
{
    const struct ph__graph *graph = &builder->graph;
    for (size_t i = begin; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++)
            if (has_value(values, count, graph->nodes[i].inputs[k]))
                return i;
    return graph->num_nodes;
}

/* Lets the nodes [begin, end) read another value; also those that are that value's memory. */
static void replace_reads(
    struct ph_builder *builder, size_t begin, size_t end, ph_value former, ph_value value)
{
    struct ph__graph *graph = &builder->graph;
    for (size_t i = begin; i < end; i++) {
        const struct ph__node *node = &graph->nodes[i];
        for (uint32_t k = 0; k < node->num_inputs; k++)
            if (node->inputs[k] == former)
                node->inputs[k] = value;
        if ((node->op->traits & PH_OP_ALIAS) != 0 && node->inputs[0] == value) {
            struct ph__value_info *alias = &graph->values[node->outputs[0]];
            alias->alias_of = ph__graph_root(graph, value);
            alias->storage = PH_STORAGE_WORKSPACE;
        }
    }
}

/* A unit's turn in an entry: the first node that reads it, and the nodes that gather it. */
struct turn {
    struct ph__unit *unit;
    size_t first;
    size_t start;                             /* wait follows; 0: it has come already */
    ph_value wholes[PH_UNIT_MOST_PARAMETERS]; /* as the entry reads them */
};

static int compare_turns(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Returns true for a node that packs the unit's weights, which may do so as soon as they have come. */
static bool packs(const struct ph__node *node, const struct turn *turn)
{
    bool is_of_unit = (node->op->traits & PH_OP_ONCE_PER_VERSION) != 0;
    for (uint32_t k = 0; is_of_unit && k < node->num_inputs; k++)
        is_of_unit = has_value(turn->wholes, turn->unit->plan->num_parameters, node->inputs[k]);
    return is_of_unit;
}

/* Puts a unit's packing before its first reader, behind what has been put there. */
static void put_packing(struct placing *placing, size_t begin, const struct turn *turn)
{
    for (size_t i = begin; i < placing->num_former; i++)
        if (packs(&placing->builder->graph.nodes[i], turn))
            put(placing, i, turn->first);
}

/* Puts each unit's gather before its first reader, with the next unit's start behind its packing. */
static void put_gathers(
    struct placing *placing, size_t begin, size_t prefetch, const struct turn *turns, size_t count)
{
    for (size_t t = 0; t < count; t++) {
        if (turns[t].start != 0) {
            if (t == 0 || prefetch == 0)
                put(placing, turns[t].start, turns[t].first);
            put(placing, turns[t].start + 1, turns[t].first);
        }
        put_packing(placing, begin, &turns[t]);
        if (t + 1 < count && prefetch > 0 && turns[t + 1].start != 0)
            put(placing, turns[t + 1].start, turns[t].first);
    }
}

/* ---- forward ---- */

static void gather_forward(struct ph_builder *builder, struct turn *turn, bool is_kept)
{
    struct ph__unit *unit = turn->unit;
    struct ph__unit_attributes attributes;
    ph_value wholes[PH_UNIT_MOST_PARAMETERS];
    memset(&attributes, 0, sizeof attributes);
    attributes.unit = unit;
    attributes.channel = PH_CHANNEL_UNIT_GATHERS + (uint32_t)(unit->turn % PH_UNIT_CHANNELS);
    for (size_t k = 0; k < unit->plan->num_parameters; k++)
        if (unit->shards[k] != 0)
            attributes.parameters[attributes.count++] = (uint32_t)k;
    turn->start = builder->graph.num_nodes;
    ph__unit_gather(builder, &attributes, is_kept, wholes);
    for (size_t i = 0; i < attributes.count; i++)
        unit->wholes[attributes.parameters[i]] = wholes[i];
    memcpy(turn->wholes, unit->wholes, unit->plan->num_parameters * sizeof *turn->wholes);
}

/* Lists the units that forward reads, in the order of their first readers. Returns their number. */
static size_t take_turns(struct ph__sharding *sharding, const struct ph_builder *builder, struct turn *turns)
{
    size_t count = 0;
    for (size_t i = 0; i < sharding->num_units; i++) {
        struct ph__unit *unit = &sharding->units[i];
        turns[count] = (struct turn){
            .unit = unit, .first = first_reader(builder, 0, unit->shards, unit->plan->num_parameters)};
        count += turns[count].first < builder->graph.num_nodes;
    }
    qsort(turns, count, sizeof *turns, compare_turns);
    for (size_t t = 0; t < count; t++) {
        turns[t].unit->turn = t;
        turns[t].unit->is_last = t + 1 == count;
    }
    return count;
}

/* Gathers units and lets forward, the nodes before `end`, read whole parameters. */
static void gather_turns(
    struct ph_builder *builder, size_t end, bool is_kept, struct turn *turns, size_t count)
{
    for (size_t t = 0; t < count; t++) {
        const struct ph__unit *unit = turns[t].unit;
        gather_forward(builder, &turns[t], is_kept);
        for (size_t k = 0; ph_builder_status(builder) == PH_OK && k < unit->plan->num_parameters; k++)
            if (unit->shards[k] != 0)
                replace_reads(builder, 0, end, unit->shards[k], unit->wholes[k]);
    }
}

void ph__units_spread(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const struct ph__dense_settings *settings = &sharding->plan->units.settings;
    const bool is_kept = settings->mode == PH_DENSE_ZERO1 && ph_builder_mode(builder) == PH_TRAINING;
    struct placing placing;
    if (sharding->plan->units.num_units == 0 || ph_builder_status(builder) != PH_OK)
        return;
    create_units(sharding, builder);
    struct turn *turns = calloc(sharding->num_units + 1, sizeof *turns);
    placing_init(&placing, builder, 2 * sharding->num_units);
    if (turns == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu units", sharding->num_units);
    if (ph_builder_status(builder) == PH_OK) {
        const size_t count = take_turns(sharding, builder, turns);
        gather_turns(builder, placing.num_former, is_kept, turns, count);
        if (ph_builder_status(builder) == PH_OK)
            put_gathers(&placing, 0, settings->prefetch, turns, count);
    }
    placing_finish(&placing);
    free(turns);
}

ph_value ph__units_whole(const struct ph__sharding *sharding, ph_value parameter)
{
    for (size_t u = 0; u < sharding->num_units; u++)
        for (size_t k = 0; k < sharding->units[u].plan->num_parameters; k++)
            if (sharding->units[u].shards[k] == parameter && sharding->units[u].wholes[k] != 0)
                return sharding->units[u].wholes[k];
    return parameter;
}

/* ---- backward ---- */

static size_t entry_begin(const struct ph_builder *builder)
{
    size_t begin = builder->graph.num_nodes;
    while (begin > 0 && builder->graph.nodes[begin - 1].entry == builder->entry)
        begin--;
    return begin;
}

/* Gathers those parameters of a unit that nodes from `begin` on read. */
static void gather_backward(struct ph_builder *builder, size_t begin, size_t end, struct turn *turn)
{
    const struct ph__unit *unit = turn->unit;
    struct ph__unit_attributes attributes;
    ph_value wholes[PH_UNIT_MOST_PARAMETERS];
    memset(&attributes, 0, sizeof attributes);
    attributes.unit = unit;
    attributes.channel =
        PH_CHANNEL_UNIT_GATHERS + (uint32_t)((unit->sharding->num_units - unit->turn) % PH_UNIT_CHANNELS);
    for (size_t k = 0; k < unit->plan->num_parameters; k++)
        if (unit->plan->parameters[k].is_read_backward && unit->wholes[k] != 0)
            attributes.parameters[attributes.count++] = (uint32_t)k;
    turn->start = builder->graph.num_nodes;
    ph__unit_gather(builder, &attributes, false, wholes);
    for (size_t i = 0; i < attributes.count && ph_builder_status(builder) == PH_OK; i++) {
        turn->wholes[attributes.parameters[i]] = wholes[i];
        replace_reads(builder, begin, end, unit->wholes[attributes.parameters[i]], wholes[i]);
    }
}

/* Lists the units that the current entry reads, in the order of their first readers. Returns their number. */
static size_t take_backward_turns(
    const struct ph__sharding *sharding, const struct ph_builder *builder, size_t begin, struct turn *turns)
{
    size_t count = 0;
    for (size_t i = 0; i < sharding->num_units; i++) {
        struct ph__unit *unit = &sharding->units[i];
        turns[count] = (struct turn){
            .unit = unit, .first = first_reader(builder, begin, unit->wholes, unit->plan->num_parameters)};
        memcpy(turns[count].wholes, unit->wholes, unit->plan->num_parameters * sizeof *unit->wholes);
        count += turns[count].first < builder->graph.num_nodes;
    }
    qsort(turns, count, sizeof *turns, compare_turns);
    return count;
}

/* Returns true when a unit's whole parameters stay until backward: in modes that keep them, and those of the
 * unit that forward used last. */
static bool stays(const struct ph__sharding *sharding, const struct ph__unit *unit)
{
    const enum ph__dense_mode mode = sharding->plan->units.settings.mode;
    return (mode != PH_DENSE_FULL && mode != PH_DENSE_HYBRID) || unit->is_last;
}

void ph__units_gather_again(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const size_t begin = entry_begin(builder);
    struct placing placing;
    if (sharding->num_units == 0 || ph_builder_status(builder) != PH_OK)
        return;
    struct turn *turns = calloc(sharding->num_units + 1, sizeof *turns);
    placing_init(&placing, builder, 2 * sharding->num_units);
    if (turns == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu units", sharding->num_units);
    if (ph_builder_status(builder) == PH_OK) {
        const size_t count = take_backward_turns(sharding, builder, begin, turns);
        for (size_t t = 0; t < count; t++)
            if (!stays(sharding, turns[t].unit))
                gather_backward(builder, begin, placing.num_former, &turns[t]);
        if (ph_builder_status(builder) == PH_OK)
            put_gathers(&placing, begin, sharding->plan->units.settings.prefetch, turns, count);
    }
    placing_finish(&placing);
    free(turns);
}

/* ---- gradients ---- */

/* A unit's gradients: the first and the last node that makes one, and the nodes that reduce them. */
struct reduction {
    const struct ph__unit *unit;
    struct ph__unit_attributes attributes;
    size_t
        places[PH_UNIT_MOST_PARAMETERS]; /* among the gradients of the call, beside attributes.parameters */
    size_t first, last, start;           /* wait follows start */
};

static int compare_reductions(const void *left, const void *right)
{
    const struct reduction *a = left, *b = right;
    return a->last < b->last ? -1 : a->last > b->last;
}

static size_t index_of(const ph_value *values, size_t count, ph_value value)
{
    size_t i = 0;
    while (i < count && values[i] != value)
        i++;
    return i;
}

static void add_gradient(
    const struct ph_builder *builder, struct reduction *reduction, size_t k, size_t place, ph_value gradient)
{
    const size_t producer = builder->graph.values[gradient].producer;
    reduction->places[reduction->attributes.count] = place;
    reduction->attributes.parameters[reduction->attributes.count++] = (uint32_t)k;
    reduction->first = ph__min(reduction->first, producer);
    reduction->last = ph__max(reduction->last, producer);
}

/* Lists the units that have gradients of whole parameters, in the order in which these are complete. */
static size_t list_reductions(const struct ph__sharding *sharding, const struct ph_builder *builder,
    size_t count, const ph_value *parameters, const ph_value *gradients, struct reduction *reductions)
{
    size_t num_reductions = 0;
    for (size_t u = 0; u < sharding->num_units; u++) {
        const struct ph__unit *unit = &sharding->units[u];
        struct reduction *reduction = &reductions[num_reductions];
        memset(reduction, 0, sizeof *reduction);
        reduction->unit = reduction->attributes.unit = unit;
        reduction->first = SIZE_MAX;
        for (size_t k = 0; k < unit->plan->num_parameters; k++) {
            const size_t place = index_of(parameters, count, unit->shards[k]);
            if (unit->shards[k] != 0 && place < count && gradients[place] != 0)
                add_gradient(builder, reduction, k, place, gradients[place]);
        }
        num_reductions += reduction->attributes.count > 0;
    }
    qsort(reductions, num_reductions, sizeof *reductions, compare_reductions);
    return num_reductions;
}

static void emit_reduction(
    struct ph_builder *builder, struct reduction *reduction, size_t turn, ph_value *gradients)
{
    ph_value own[PH_UNIT_MOST_PARAMETERS];
    for (size_t i = 0; i < reduction->attributes.count; i++)
        own[i] = gradients[reduction->places[i]];
    reduction->attributes.channel = PH_CHANNEL_UNIT_REDUCTIONS + (uint32_t)(turn % PH_UNIT_CHANNELS);
    reduction->start = builder->graph.num_nodes;
    ph__unit_reduce(builder, &reduction->attributes, own);
    for (size_t i = 0; i < reduction->attributes.count; i++)
        gradients[reduction->places[i]] = own[i];
}

/* Puts each start behind its last gradient, and its wait before the next unit makes its first gradient or,
 * where units make theirs in turns, before the next start: one reduction is in flight. */
static void put_reductions(struct placing *placing, const struct reduction *reductions, size_t count)
{
    for (size_t t = 0; t < count; t++) {
        const struct reduction *next = t + 1 < count ? &reductions[t + 1] : NULL;
        size_t before = placing->num_former;
        if (next != NULL)
            before = next->first > reductions[t].last ? next->first : next->last + 1;
        put(placing, reductions[t].start, reductions[t].last + 1);
        put(placing, reductions[t].start + 1, before);
    }
}

void ph__units_reduce(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients)
{
    struct placing placing;
    if (sharding->num_units == 0 || ph_builder_status(builder) != PH_OK)
        return;
    struct reduction *reductions = calloc(sharding->num_units + 1, sizeof *reductions);
    placing_init(&placing, builder, 2 * sharding->num_units);
    if (reductions == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu units", sharding->num_units);
    if (ph_builder_status(builder) == PH_OK) {
        const size_t num = list_reductions(sharding, builder, count, parameters, gradients, reductions);
        for (size_t t = 0; t < num; t++)
            emit_reduction(builder, &reductions[t], t, gradients);
        if (ph_builder_status(builder) == PH_OK)
            put_reductions(&placing, reductions, num);
    }
    placing_finish(&placing);
    free(reductions);
}
