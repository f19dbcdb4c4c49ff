/* The builder: a graph under construction. Errors are sticky, so that model code needs no checks: the first
 * one is kept here and comes out of ph_builder_finish (finish.c). */
#include "graph/distribution.h"
#include "graph/graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

ph_status ph_builder_create(enum ph_mode mode, struct ph_builder **builder_out)
{
    struct ph_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL)
        return ph__out_of_memory("a graph builder");
    struct ph__graph *graph = &builder->graph;
    builder->mode = mode;
    builder->scope = "";
    graph->num_values = 1; /* value 0 means none */
    graph->symbols[PH_SYMBOL_BATCH] = (struct ph__symbol){"batch", PH_SYMBOL_BATCH, 1, SIZE_MAX, 1};
    graph->symbols[PH_SYMBOL_IDS] = (struct ph__symbol){"ids", PH_SYMBOL_IDS, 1, SIZE_MAX, 1};
    graph->symbols[PH_SYMBOL_GLOBAL_BATCH] =
        (struct ph__symbol){"global_batch", PH_SYMBOL_GLOBAL_BATCH, 1, SIZE_MAX, 1};
    graph->symbols[PH_SYMBOL_REQUESTS] = (struct ph__symbol){"requests", PH_SYMBOL_REQUESTS, 1, SIZE_MAX, 1};
    graph->symbols[PH_SYMBOL_GLOBAL_IDS] =
        (struct ph__symbol){"global_ids", PH_SYMBOL_GLOBAL_IDS, 1, SIZE_MAX, 1};
    graph->num_symbols = PH_NUM_BATCH_SYMBOLS;
    graph->entries[0] = "forward";
    graph->num_entries = 1;
    ph_status status =
        ph__array_reserve((void **)&graph->values, &graph->values_capacity, 64, sizeof *graph->values);
    if (status != PH_OK) {
        ph_builder_destroy(builder);
        return status;
    }
    memset(graph->values, 0, sizeof *graph->values);
    *builder_out = builder;
    return PH_OK;
}

void ph_builder_destroy(struct ph_builder *builder)
{
    if (builder == NULL)
        return;
    ph__graph_fini(&builder->graph);
    ph__node_names_fini(&builder->node_names);
    ph__name_index_fini(&builder->declared);
    free(builder);
}

enum ph_mode ph_builder_mode(const struct ph_builder *builder)
{
    return builder->mode;
}

void ph_builder_set_precision(struct ph_builder *builder, enum ph_precision precision)
{
    builder->precision = precision;
}

const char *ph_recipe_name(enum ph_recipe recipe)
{
    static const char *const names[] = {
#define X(name, text) #text,
        PH_RECIPES(X)
#undef X
    };
    return names[recipe];
}

void ph_builder_set_recipes(
    struct ph_builder *builder, const struct ph_site_recipe *recipes, size_t num_recipes)
{
    if (builder->status != PH_OK)
        return;
    builder->recipes = ph__arena_alloc_array(&builder->graph.arena, num_recipes, sizeof *builder->recipes);
    if (builder->recipes == NULL) {
        ph__builder_keep_error(builder, PH_ERROR_MEMORY);
        return;
    }
    for (size_t i = 0; i < num_recipes; i++) {
        builder->recipes[i] = recipes[i];
        builder->recipes[i].weight = ph__arena_strdup(&builder->graph.arena, recipes[i].weight);
        if (builder->recipes[i].weight == NULL)
            ph__builder_keep_error(builder, PH_ERROR_MEMORY);
    }
    builder->num_recipes = builder->status == PH_OK ? num_recipes : 0;
}

static const struct ph_site_recipe *find_recipe(const struct ph_builder *builder, const char *weight)
{
    for (size_t i = 0; i < builder->num_recipes; i++)
        if (strcmp(builder->recipes[i].weight, weight) == 0)
            return &builder->recipes[i];
    return NULL;
}

enum ph_recipe ph__builder_recipe(
    const struct ph_builder *builder, const char *weight, bool is_backward, bool *is_named_out)
{
    const struct ph_site_recipe *recipe = find_recipe(builder, weight);
    *is_named_out = recipe != NULL;
    if (recipe == NULL)
        recipe = find_recipe(builder, PH_ALL_SITES);
    if (recipe == NULL)
        return PH_RECIPE_FP32;
    return is_backward ? recipe->backward : recipe->forward;
}

void ph__builder_add_site(struct ph_builder *builder, const struct ph_site *site)
{
    struct ph__graph *graph = &builder->graph;
    for (size_t i = 0; i < graph->num_sites; i++)
        if (strcmp(graph->sites[i].weight, site->weight) == 0)
            return;
    if (ph__builder_reserve(builder, (void **)&graph->sites, &graph->sites_capacity, graph->num_sites + 1,
            sizeof *graph->sites))
        graph->sites[graph->num_sites++] = *site;
}

ph_status ph_builder_status(const struct ph_builder *builder)
{
    return builder->status;
}

void ph__builder_keep_error(struct ph_builder *builder, ph_status status)
{
    if (builder->status != PH_OK)
        return;
    builder->status = status;
    strncpy(builder->error, ph_error_text(), sizeof builder->error - 1);
}

ph_value ph_builder_fail(struct ph_builder *builder, ph_status status, const char *format, ...)
{
    if (builder->status != PH_OK)
        return 0;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ph_fail(status, "%s", text);
    ph__builder_keep_error(builder, status);
    return 0;
}

bool ph__builder_reserve(
    struct ph_builder *builder, void **items, size_t *capacity, size_t count, size_t size)
{
    ph_status status = ph__array_reserve(items, capacity, count, size);
    if (status != PH_OK)
        ph__builder_keep_error(builder, status);
    return status == PH_OK;
}

void *ph__builder_copy(struct ph_builder *builder, const void *bytes, size_t size)
{
    if (builder->status != PH_OK || size == 0)
        return NULL;
    void *copy = ph__arena_alloc(&builder->graph.arena, size);
    if (copy == NULL)
        ph__builder_keep_error(builder, PH_ERROR_MEMORY);
    else
        memcpy(copy, bytes, size);
    return copy;
}

static const char *copy_text(struct ph_builder *builder, const char *text)
{
    const char *copy = ph__builder_copy(builder, text, strlen(text) + 1);
    return copy != NULL ? copy : "";
}

/* ---- entries, scopes, symbols ---- */

void ph_builder_begin_entry(struct ph_builder *builder, const char *name)
{
    struct ph__graph *graph = &builder->graph;
    if (graph->num_nodes == 0 && graph->num_entries == 1) {
        graph->entries[0] = copy_text(builder, name);
        return;
    }
    for (size_t i = 0; i < graph->num_entries; i++) {
        if (strcmp(graph->entries[i], name) == 0) {
            ph_builder_fail(builder, PH_ERROR_USAGE, "entry '%s' is begun twice", name);
            return;
        }
    }
    if (graph->num_entries == PH_MAX_ENTRIES) {
        ph_builder_fail(
            builder, PH_ERROR_USAGE, "entry '%s': a program has at most %d entries", name, PH_MAX_ENTRIES);
        return;
    }
    builder->entry = (uint32_t)graph->num_entries;
    graph->entries[graph->num_entries++] = copy_text(builder, name);
}

const char *ph__builder_scoped(struct ph_builder *builder, const char *name)
{
    const char *scoped = ph__arena_printf(&builder->graph.arena, "%s%s", builder->scope, name);
    if (scoped == NULL)
        ph__builder_keep_error(builder, PH_ERROR_MEMORY);
    return scoped != NULL ? scoped : "";
}

void ph_builder_push_scope(struct ph_builder *builder, const char *name)
{
    if (builder->num_scopes == sizeof builder->scopes / sizeof *builder->scopes) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "scope '%s' is nested too deeply", name);
        return;
    }
    builder->scopes[builder->num_scopes++] = builder->scope;
    const char *scope = ph__arena_printf(&builder->graph.arena, "%s%s.", builder->scope, name);
    if (scope == NULL)
        ph__builder_keep_error(builder, PH_ERROR_MEMORY);
    else
        builder->scope = scope;
}

void ph_builder_pop_scope(struct ph_builder *builder)
{
    if (builder->num_scopes == 0)
        ph_builder_fail(builder, PH_ERROR_USAGE, "scope popped without a push");
    else
        builder->scope = builder->scopes[--builder->num_scopes];
}

uint32_t ph__builder_symbol(
    struct ph_builder *builder, const char *name, uint32_t bound, size_t factor, size_t limit)
{
    struct ph__graph *graph = &builder->graph;
    if (graph->num_symbols == PH_MAX_SYMBOLS)
        return ph_builder_fail(
            builder, PH_ERROR_CONFIG, "%s: more than %d run-time dimensions", name, PH_MAX_SYMBOLS);
    assert(bound != 0 && bound < graph->num_symbols && factor > 0);
    graph->symbols[graph->num_symbols] =
        (struct ph__symbol){copy_text(builder, name), bound, factor, limit, 1};
    return (uint32_t)graph->num_symbols++;
}

/* ---- values ---- */

ph_value ph__builder_add_value(struct ph_builder *builder, const struct ph__value_info *info)
{
    struct ph__graph *graph = &builder->graph;
    if (!ph__builder_reserve(
            builder, (void **)&graph->values, &graph->values_capacity, graph->num_values + 1, sizeof *info))
        return 0;
    graph->values[graph->num_values] = *info;
    return (ph_value)graph->num_values++;
}

struct ph_type ph_value_type(const struct ph_builder *builder, ph_value value)
{
    assert(value < builder->graph.num_values);
    return builder->graph.values[value].type;
}

const char *ph_value_name(const struct ph_builder *builder, ph_value value)
{
    assert(value < builder->graph.num_values);
    return value == 0 ? "" : builder->graph.values[value].name;
}

const struct ph__node *ph__builder_producer(const struct ph_builder *builder, ph_value value)
{
    uint32_t producer = value == 0 ? PH_NO_NODE : builder->graph.values[value].producer;
    return producer == PH_NO_NODE ? NULL : &builder->graph.nodes[producer];
}

static ph_value batch_input(
    struct ph_builder *builder, enum ph__batch_input input, const char *name, const struct ph_type *type)
{
    if (builder->status != PH_OK)
        return 0;
    ph_value *known = &builder->graph.batch_inputs[input];
    if (*known == 0)
        *known = ph__builder_add_value(builder, &(struct ph__value_info){.type = *type,
                                                    .name = name,
                                                    .storage = PH_STORAGE_INPUT,
                                                    .producer = PH_NO_NODE,
                                                    .source = input});
    else if (!ph__type_equal(&builder->graph.values[*known].type, type))
        return ph_builder_fail(builder, PH_ERROR_USAGE, "input '%s' is used with two different widths", name);
    return *known;
}

static const struct ph_dim batch_dim = {.extent = 1, .symbol = PH_SYMBOL_BATCH};

static struct ph_type per_sample(size_t width)
{
    return ph__dense_type(2, (struct ph_dim[]){batch_dim, ph__dim(width)});
}

ph_value ph_input_dense(struct ph_builder *builder, size_t num_dense)
{
    struct ph_type type = per_sample(num_dense);
    return batch_input(builder, PH_INPUT_DENSE, "dense", &type);
}

ph_value ph_input_ids(struct ph_builder *builder, size_t num_sparse)
{
    struct ph_type type = {.kind = PH_JAGGED,
        .dtype = PH_I64,
        .num_dims = 2,
        .dims = {ph__dim_of(num_sparse, PH_SYMBOL_BATCH), ph__dim_of(1, PH_SYMBOL_IDS)}};
    return batch_input(builder, PH_INPUT_IDS, "ids", &type);
}

ph_value ph_input_id_weights(struct ph_builder *builder)
{
    struct ph_type type = ph__dense_type(1, (struct ph_dim[]){ph__dim_of(1, PH_SYMBOL_IDS)});
    return batch_input(builder, PH_INPUT_ID_WEIGHTS, "id_weights", &type);
}

ph_value ph_input_labels(struct ph_builder *builder, size_t num_tasks)
{
    struct ph_type type = per_sample(num_tasks);
    return batch_input(builder, PH_INPUT_LABELS, "labels", &type);
}

ph_value ph_input_label_mask(struct ph_builder *builder, size_t num_tasks)
{
    struct ph_type type = per_sample(num_tasks);
    return batch_input(builder, PH_INPUT_LABEL_MASK, "label_mask", &type);
}

ph_value ph_input_teacher(struct ph_builder *builder, size_t num_tasks)
{
    struct ph_type type = per_sample(num_tasks);
    return batch_input(builder, PH_INPUT_TEACHER, "teacher", &type);
}

ph_value ph_input_teacher_mask(struct ph_builder *builder, size_t num_tasks)
{
    struct ph_type type = per_sample(num_tasks);
    return batch_input(builder, PH_INPUT_TEACHER_MASK, "teacher_mask", &type);
}

ph_value ph_input_weights(struct ph_builder *builder)
{
    struct ph_type type = ph__dense_type(1, &batch_dim);
    return batch_input(builder, PH_INPUT_WEIGHTS, "weights", &type);
}

ph_value ph__input_requested_ids(struct ph_builder *builder, size_t num_streams)
{
    struct ph_type type = {.kind = PH_JAGGED,
        .dtype = PH_I64,
        .num_dims = 2,
        .dims = {ph__dim_of(num_streams, PH_SYMBOL_GLOBAL_BATCH), ph__dim_of(1, PH_SYMBOL_REQUESTS)}};
    return batch_input(builder, PH_INPUT_REQUESTED_IDS, "requested_ids", &type);
}

ph_value ph__input_requested_weights(struct ph_builder *builder)
{
    struct ph_type type = ph__dense_type(1, (struct ph_dim[]){ph__dim_of(1, PH_SYMBOL_REQUESTS)});
    return batch_input(builder, PH_INPUT_REQUESTED_WEIGHTS, "requested_weights", &type);
}

ph_value ph_input_scalar(struct ph_builder *builder, const char *name)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->status != PH_OK)
        return 0;
    ph_value known = ph__find_named(graph->scalar_inputs, graph->num_scalar_inputs, name);
    if (known != 0)
        return known;
    if (!ph__builder_reserve(builder, (void **)&graph->scalar_inputs, &graph->scalar_inputs_capacity,
            graph->num_scalar_inputs + 1, sizeof *graph->scalar_inputs))
        return 0;
    const char *copy = copy_text(builder, name);
    ph_value value = ph__builder_add_value(builder,
        &(struct ph__value_info){
            .type = ph__scalar_type(), .name = copy, .storage = PH_STORAGE_SCALAR, .producer = PH_NO_NODE});
    graph->scalar_inputs[graph->num_scalar_inputs++] = (struct ph__named_value){copy, value};
    return value;
}

/* ---- outputs ---- */

void ph_name_value(struct ph_builder *builder, const char *name, ph_value value)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->status != PH_OK || value == 0)
        return;
    const char *scoped = ph__builder_scoped(builder, name);
    if (ph__find_named(graph->named, graph->num_named, scoped) != 0) {
        ph_builder_fail(builder, PH_ERROR_CONFIG, "value '%s' is named twice", scoped);
        return;
    }
    if (ph__builder_reserve(builder, (void **)&graph->named, &graph->named_capacity, graph->num_named + 1,
            sizeof *graph->named))
        graph->named[graph->num_named++] = (struct ph__named_value){scoped, value};
}

size_t ph_builder_num_named_values(const struct ph_builder *builder)
{
    return builder->graph.num_named;
}

ph_value ph_builder_named_value(const struct ph_builder *builder, size_t index, const char **name_out)
{
    *name_out = builder->graph.named[index].name;
    return builder->graph.named[index].value;
}

void ph_output(struct ph_builder *builder, const char *name, ph_value value)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->status != PH_OK || value == 0)
        return;
    if (ph__find_named(graph->outputs, graph->num_outputs, name) != 0) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "output '%s' is named twice", name);
        return;
    }
    if (!ph__builder_reserve(builder, (void **)&graph->outputs, &graph->outputs_capacity,
            graph->num_outputs + 1, sizeof *graph->outputs))
        return;
    graph->outputs[graph->num_outputs++] = (struct ph__named_value){copy_text(builder, name), value};
    graph->values[value].is_output = true;
    if (graph->values[value].alias_of != 0)
        graph->values[graph->values[value].alias_of].is_output = true;
}

/* ---- nodes ---- */

/* Returns scope + name, followed by ".2", ".3" ... where other nodes have that name. */
static const char *unique_name(struct ph_builder *builder, const char *name)
{
    const char *unique = "";
    const ph_status status = ph__node_names_take(
        &builder->node_names, &builder->graph.arena, ph__builder_scoped(builder, name), &unique);
    if (status != PH_OK)
        ph__builder_keep_error(builder, status);
    return unique;
}

static enum ph__storage storage_of(enum ph_kind kind)
{
    switch (kind) {
    case PH_SCALAR:
        return PH_STORAGE_SCALAR;
    case PH_TOKEN:
        return PH_STORAGE_NONE;
    default:
        return PH_STORAGE_WORKSPACE;
    }
}

static ph_value add_output(
    struct ph_builder *builder, const struct ph__node *node, const struct ph_type *type, size_t k)
{
    struct ph__value_info info = {.type = *type,
        .name = k == 0 ? node->name : ph__arena_printf(&builder->graph.arena, "%s:%zu", node->name, k),
        .storage = storage_of(type->kind),
        .producer = (uint32_t)builder->graph.num_nodes};
    if ((node->op->traits & PH_OP_ALIAS) != 0 && k == 0) {
        const struct ph__value_info *source = &builder->graph.values[node->inputs[0]];
        info.alias_of = source->alias_of != 0 ? source->alias_of : node->inputs[0];
        info.storage = source->storage;
        info.source = source->source;
    }
    if (info.name == NULL) {
        ph__builder_keep_error(builder, PH_ERROR_MEMORY);
        return 0;
    }
    return ph__builder_add_value(builder, &info);
}

static ph_status infer_types(struct ph_builder *builder, const struct ph__node *node, struct ph_type *outputs)
{
    struct ph_type inputs[PH_MAX_OPERANDS];
    for (uint32_t i = 0; i < node->num_inputs; i++)
        inputs[i] = node->inputs[i] != 0 ? builder->graph.values[node->inputs[i]].type : ph__token_type();
    struct ph__infer infer = {.builder = builder,
        .name = node->name,
        .attributes = node->attributes,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_outputs,
        .inputs = inputs,
        .outputs = outputs};
    return node->op->infer(&infer);
}

void ph__emit(struct ph_builder *builder, const struct ph__op *op, const char *name, const void *attributes,
    size_t attributes_size, size_t num_inputs, const ph_value *inputs, size_t num_outputs, ph_value *outputs)
{
    struct ph__graph *graph = &builder->graph;
    for (size_t i = 0; i < num_outputs; i++)
        outputs[i] = 0;
    if (num_inputs > PH_MAX_OPERANDS || num_outputs > PH_MAX_OPERANDS) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "%s has more than %d operands", op->name, PH_MAX_OPERANDS);
        return;
    }
    if (builder->status != PH_OK || !ph__builder_reserve(builder, (void **)&graph->nodes,
                                        &graph->nodes_capacity, graph->num_nodes + 1, sizeof *graph->nodes))
        return;
    struct ph__node node = {.op = op,
        .name = unique_name(builder, name != NULL ? name : op->name),
        .attributes = ph__builder_copy(builder, attributes, attributes_size),
        .attributes_size = attributes_size,
        .num_inputs = (uint32_t)num_inputs,
        .num_outputs = (uint32_t)num_outputs,
        .inputs = ph__builder_copy(builder, inputs, num_inputs * sizeof *inputs),
        .entry = builder->entry};
    node.stream = ph__hash_name(node.name);
    if (builder->status != PH_OK)
        return;
    struct ph_type types[PH_MAX_OPERANDS] = {0};
    ph_status status = infer_types(builder, &node, types);
    if (status != PH_OK) {
        ph__builder_keep_error(builder, status);
        return;
    }
    for (size_t i = 0; i < num_outputs; i++)
        outputs[i] = add_output(builder, &node, &types[i], i);
    node.outputs = ph__builder_copy(builder, outputs, num_outputs * sizeof *outputs);
    if (builder->status == PH_OK)
        graph->nodes[graph->num_nodes++] = node;
}

ph_value ph__emit1(struct ph_builder *builder, const struct ph__op *op, const char *name,
    const void *attributes, size_t attributes_size, size_t num_inputs, const ph_value *inputs)
{
    ph_value output;
    ph__emit(builder, op, name, attributes, attributes_size, num_inputs, inputs, 1, &output);
    return output;
}

ph_value ph__builder_find(const struct ph_builder *builder, const struct ph__op *op, const void *attributes,
    size_t attributes_size, size_t num_inputs, const ph_value *inputs, size_t output)
{
    const struct ph__graph *graph = &builder->graph;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        bool is_equal = node->op == op && node->num_inputs == num_inputs &&
                        node->attributes_size == attributes_size &&
                        (num_inputs == 0 || memcmp(node->inputs, inputs, num_inputs * sizeof *inputs) == 0) &&
                        (attributes_size == 0 || memcmp(node->attributes, attributes, attributes_size) == 0);
        if (is_equal)
            return node->outputs[output];
    }
    return 0;
}
