/* Declares a program's parameters, tables and states, and the losses that a model adds. */
#include <assert.h>
#include <string.h>

#include "base/memory/memory.h"
#include "graph/graph.h"

const struct ph__declaration *ph__builder_declaration(const struct ph_builder *builder, ph_value parameter)
{
    const struct ph__value_info *info = &builder->graph.values[parameter];
    return info->storage == PH_STORAGE_PARAMETER && info->alias_of == 0
               ? &builder->graph.declarations[info->source]
               : NULL;
}

/* Adds a declared name. Returns false after failure, which sticks. */
static bool add_declared(struct ph_builder *builder, const char *name)
{
    const ph_status status = ph__name_index_add(&builder->declared, name);
    if (status != PH_OK)
        ph__builder_keep_error(builder, status);
    return status == PH_OK;
}

ph_value ph__builder_declare(struct ph_builder *builder, const struct ph__declaration *declaration)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->status != PH_OK)
        return 0;
    if (ph__name_index_find(&builder->declared, declaration->name) != PH_NO_NAME)
        return ph_builder_fail(
            builder, PH_ERROR_CONFIG, "parameter '%s' is declared twice", declaration->name);
    size_t count = graph->num_declarations + 1;
    if (!ph__builder_reserve(builder, (void **)&graph->declarations, &graph->declarations_capacity, count,
            sizeof *declaration) ||
        !ph__builder_reserve(builder, (void **)&graph->declaration_values,
            &graph->declaration_values_capacity, count, sizeof *graph->declaration_values) ||
        !add_declared(builder, declaration->name))
        return 0;
    struct ph__value_info info = {.name = declaration->name,
        .storage = PH_STORAGE_PARAMETER,
        .producer = PH_NO_NODE,
        .source = (uint32_t)graph->num_declarations,
        .type = {.kind = PH_DENSE, .dtype = PH_REAL, .num_dims = (uint32_t)declaration->shape.num_dims}};
    for (size_t i = 0; i < declaration->shape.num_dims; i++)
        info.type.dims[i] = ph__dim(declaration->shape.dims[i]);
    ph_value value = ph__builder_add_value(builder, &info);
    graph->declarations[graph->num_declarations] = *declaration;
    graph->declaration_values[graph->num_declarations++] = value;
    return value;
}

ph_value ph_parameter(
    struct ph_builder *builder, const char *name, size_t num_dims, const size_t *dims, struct ph_init init)
{
    if (num_dims > PH_MAX_DIMS)
        return ph_builder_fail(
            builder, PH_ERROR_USAGE, "parameter '%s' has more than %d dimensions", name, PH_MAX_DIMS);
    struct ph__declaration declaration = {
        .name = ph__builder_scoped(builder, name), .shape = {.num_dims = num_dims}, .init = init};
    for (size_t i = 0; i < num_dims; i++)
        declaration.shape.dims[i] = dims[i];
    return ph__builder_declare(builder, &declaration);
}

/* A table under construction. */
struct slice_list {
    struct ph__declaration *table;
    struct ph_table_slice *slices; /* slices of the table */
    struct ph__name_index names;   /* names of the slices, in their order */
};

/* Gives a feature its slice: a new one, unless an earlier feature's slice has this name. */
static ph_status add_slice(struct slice_list *list, struct ph_table_slice given, size_t *slice_out)
{
    struct ph__declaration *table = list->table;
    size_t *rows = &table->shape.dims[0];
    const size_t known = ph__name_index_find(&list->names, given.name);
    *slice_out = known != PH_NO_NAME ? known : table->num_slices;
    if (known != PH_NO_NAME && list->slices[known].num_rows != given.num_rows)
        return ph_fail(PH_ERROR_CONFIG, "table '%s': slice '%s' is declared with both %zu and %zu rows",
            table->name, given.name, list->slices[known].num_rows, given.num_rows);
    if (known != PH_NO_NAME)
        return PH_OK;
    PH_TRY(ph__name_index_add(&list->names, given.name));
    list->slices[table->num_slices++] = given;
    if (!ph__size_add(*rows, given.num_rows, rows) || *rows > UINT32_MAX)
        return ph_fail(PH_ERROR_CONFIG, "table '%s' has more than 2^32 - 1 rows", table->name);
    return PH_OK;
}

ph_value ph_table(struct ph_builder *builder, const char *name, size_t num_features,
    const struct ph_table_slice *slices, size_t dim, struct ph_init init)
{
    if (builder->status != PH_OK)
        return 0;
    struct ph__arena *arena = &builder->graph.arena;
    struct ph_table_slice *copies = ph__arena_alloc_array(arena, num_features, sizeof *copies);
    size_t *feature_slices = ph__arena_alloc_array(arena, num_features, sizeof *feature_slices);
    if (copies == NULL || feature_slices == NULL)
        return ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: table '%s'", name);
    struct ph__declaration declaration = {.name = ph__builder_scoped(builder, name),
        .is_table = true,
        .shape = {.num_dims = 2, .dims = {0, dim}},
        .init = init,
        .slices = copies,
        .num_features = num_features,
        .feature_slices = feature_slices};
    struct slice_list list = {.table = &declaration, .slices = copies};
    ph_status status = PH_OK;
    for (size_t i = 0; i < num_features && status == PH_OK; i++) {
        const struct ph_table_slice slice = {ph__builder_scoped(builder, slices[i].name), slices[i].num_rows};
        status = add_slice(&list, slice, &feature_slices[i]);
    }
    ph__name_index_fini(&list.names);
    if (status != PH_OK)
        ph__builder_keep_error(builder, status);
    return ph__builder_declare(builder, &declaration);
}

void ph__builder_forget(struct ph_builder *builder, ph_value parameter)
{
    struct ph__graph *graph = &builder->graph;
    const struct ph__value_info *info = &graph->values[parameter];
    if (builder->status != PH_OK || info->storage != PH_STORAGE_PARAMETER)
        return;
    const size_t index = info->source, behind = graph->num_declarations - index - 1;
    memmove(
        graph->declarations + index, graph->declarations + index + 1, behind * sizeof *graph->declarations);
    memmove(graph->declaration_values + index, graph->declaration_values + index + 1,
        behind * sizeof *graph->declaration_values);
    graph->num_declarations--;
    ph__name_index_fini(&builder->declared);
    for (size_t i = 0; i < graph->num_declarations; i++)
        if (!add_declared(builder, graph->declarations[i].name))
            return;
    for (ph_value value = 1; value < graph->num_values; value++) {
        struct ph__value_info *other = &graph->values[value];
        if (other->storage == PH_STORAGE_PARAMETER && other->source == index)
            other->storage = PH_STORAGE_NONE; /* also for its aliases */
        else if (other->storage == PH_STORAGE_PARAMETER && other->source > index)
            other->source--;
    }
}

size_t ph_builder_num_parameters(const struct ph_builder *builder)
{
    return builder->graph.num_declarations;
}

ph_value ph_builder_parameter(const struct ph_builder *builder, size_t index)
{
    assert(index < builder->graph.num_declarations);
    return builder->graph.declaration_values[index];
}

ph_value ph_state_value(struct ph_builder *builder, const char *name, size_t n, double initial)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->status != PH_OK ||
        !ph__builder_reserve(builder, (void **)&graph->states, &graph->states_capacity, graph->num_states + 1,
            sizeof *graph->states))
        return 0;
    const char *scoped = ph__builder_scoped(builder, name);
    for (size_t i = 0; i < graph->num_states; i++)
        if (strcmp(graph->states[i].name, scoped) == 0)
            return ph_builder_fail(builder, PH_ERROR_CONFIG, "state '%s' is declared twice", scoped);
    ph_value value = ph__builder_add_value(
        builder, &(struct ph__value_info){.type = ph__dense_type(1, (struct ph_dim[]){ph__dim(n)}),
                     .name = scoped,
                     .storage = PH_STORAGE_STATE,
                     .producer = PH_NO_NODE,
                     .source = (uint32_t)graph->num_states});
    graph->states[graph->num_states++] = (struct ph__state_declaration){scoped, n, initial, value};
    return value;
}

/* ---- losses ---- */

/* Losses that a model adds to the loss of the labels. */

void ph_add_loss(struct ph_builder *builder, const char *name, ph_value loss, double weight)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->mode != PH_TRAINING || builder->status != PH_OK)
        return;
    if (loss == 0 || graph->values[loss].type.kind != PH_SCALAR) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "loss '%s' is not a scalar", name);
        return;
    }
    if (ph__array_reserve((void **)&graph->losses, &graph->losses_capacity, graph->num_losses + 1,
            sizeof *graph->losses) != PH_OK) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: loss '%s'", name);
        return;
    }
    graph->losses[graph->num_losses++] = (struct ph__added_loss){loss, weight};
    ph_output(builder, name, loss);
}

size_t ph_builder_num_losses(const struct ph_builder *builder)
{
    return builder->graph.num_losses;
}

ph_value ph_builder_loss(const struct ph_builder *builder, size_t index, double *weight_out)
{
    assert(index < builder->graph.num_losses);
    *weight_out = builder->graph.losses[index].weight;
    return builder->graph.losses[index].loss;
}
