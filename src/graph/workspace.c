/* Workspaces: the memory of one batch in flight, and the walk over an entry's nodes.
 *
 * values[] has the place of each value; it changes only when the workspace grows or another batch is bound.
 * Before a node runs, its operands are copied from there and their shapes computed from the current extents,
 * since an operator may decide a dimension (the number of distinct slots of a batch). A run allocates
 * nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/cpu.h"
#include "graph/distribution.h"
#include "graph/wave.h"

static const struct ph__graph *graph_of(const struct ph_workspace *workspace)
{
    return &workspace->executor->program->graph;
}

static bool is_of_numbers(const struct ph_type *type)
{
    return type->dtype == PH_REAL || type->dtype == PH_BF16;
}

/* Sets the place of a value that does not come from the batch. */
static void place_value(struct ph_workspace *workspace, ph_value value)
{
    const struct ph__graph *graph = graph_of(workspace);
    const struct ph__value_info *info = &graph->values[value];
    ph_value root = ph__graph_root(graph, value);
    struct ph__operand *operand = &workspace->values[value];
    operand->type = &info->type;
    switch (info->storage) {
    case PH_STORAGE_PARAMETER:
        operand->parameter = workspace->executor->parameters[info->source];
        operand->data = operand->parameter->memory;
        operand->version = &operand->parameter->version;
        break;
    case PH_STORAGE_STATE:
        operand->data = workspace->executor->states[info->source]->data;
        operand->version = &workspace->executor->states[info->source]->version;
        break;
    case PH_STORAGE_SCALAR:
        operand->scalar = &workspace->scalars[value];
        break;
    case PH_STORAGE_WORKSPACE:
        operand->data = (char *)(is_of_numbers(&info->type) ? workspace->numbers : workspace->memory) +
                        workspace->plan.data_offset[root];
        if (info->type.kind == PH_JAGGED || info->type.kind == PH_SPARSE_ROWS)
            operand->index =
                (uint32_t *)(void *)((char *)workspace->memory + workspace->plan.index_offset[root]);
        break;
    case PH_STORAGE_INPUT:
    case PH_STORAGE_NONE:
        break;
    }
}

/* Bounds the dimensions that operators decide by those of the batch. */
static void derive_capacities(const struct ph__graph *graph, uint64_t capacities[PH_MAX_SYMBOLS])
{
    for (size_t i = PH_NUM_BATCH_SYMBOLS; i < graph->num_symbols; i++) {
        const struct ph__symbol *symbol = &graph->symbols[i];
        const uint64_t bound = ph__divide_up(capacities[symbol->bound], symbol->divisor) * symbol->factor;
        capacities[i] = bound < symbol->limit ? bound : symbol->limit;
    }
}

static void carry_value(
    const struct ph_workspace *workspace, ph_value value, const struct ph__memory_plan *plan, char *memory)
{
    const struct ph__operand *operand = &workspace->values[value];
    const struct ph_type *type = operand->type;
    struct ph_shape shape;
    ph__type_shape(type, workspace->extents, &shape);
    const size_t elements = type->kind == PH_JAGGED ? shape.dims[1] : ph_shape_elements(&shape);
    if (!ph__memory_is_absent(operand->data))
        memcpy(memory + plan->data_offset[value], operand->data, elements * ph_dtype_size(type->dtype));
    if (operand->index != NULL)
        memcpy(memory + plan->index_offset[value], operand->index,
            ph__type_index_elements(type, &shape) * sizeof *operand->index);
}

/* Copies outputs that stay from run to run into the memory that is about to be adopted. */
static void carry_kept(const struct ph_workspace *workspace, const struct ph__memory_plan *plan, char *memory)
{
    const struct ph__graph *graph = graph_of(workspace);
    for (size_t i = 0; i < graph->num_nodes && workspace->memory != NULL; i++) {
        const struct ph__node *node = &graph->nodes[i];
        for (uint32_t k = 0; k < node->num_outputs && (node->op->traits & PH_OP_KEEPS_OUTPUTS) != 0; k++)
            if (graph->values[node->outputs[k]].storage == PH_STORAGE_WORKSPACE)
                carry_value(workspace, node->outputs[k], plan, memory);
    }
}

static void free_memory(struct ph_workspace *workspace)
{
    if (workspace->numbers == workspace->memory) {
        ph__memory_free(workspace->memory, workspace->memory_bytes);
    } else {
        ph__numbers_free(workspace->numbers, workspace->memory_bytes);
        ph__memory_free_sparse(workspace->memory, workspace->memory_bytes);
    }
}

/* Gives the workspace this plan and memory; all values but those carried over are lost. */
static void adopt(
    struct ph_workspace *workspace, const struct ph__memory_plan *plan, void *memory, void *numbers)
{
    const struct ph__graph *graph = graph_of(workspace);
    free_memory(workspace);
    ph__memory_plan_fini(&workspace->plan);
    workspace->plan = *plan;
    workspace->memory = memory;
    workspace->numbers = numbers;
    workspace->memory_bytes = (size_t)plan->memory.planned_bytes;
    for (ph_value value = 1; value < graph->num_values; value++)
        place_value(workspace, value);
    memset(workspace->versions, 0, (graph->num_nodes + 1) * sizeof *workspace->versions);
    ph__wave_plan(workspace);
}

/* Allocates memory for a plan. Where numbers are absent, few of the pages for all else are ever used. */
static ph_status allocate(size_t bytes, void **memory_out, void **numbers_out)
{
    static const char what[] = "the workspace";
    if (ph__absent_used() == NULL) {
        PH_TRY(ph__memory_alloc(bytes, what, memory_out));
        *numbers_out = *memory_out;
        return PH_OK;
    }
    PH_TRY(ph__numbers_alloc(bytes, what, numbers_out));
    return ph__memory_alloc_sparse(bytes, what, memory_out);
}

/* Plans for batches of this size and allocates memory, all or nothing: a workspace that cannot grow still
 * serves batches that fit. The old memory is freed last; the new, untouched, adds only address space. */
static ph_status plan_workspace(
    struct ph_workspace *workspace, const uint64_t batch_capacities[PH_NUM_BATCH_SYMBOLS])
{
    const struct ph_executor *executor = workspace->executor;
    uint64_t capacities[PH_MAX_SYMBOLS];
    memcpy(capacities, batch_capacities, PH_NUM_BATCH_SYMBOLS * sizeof *capacities);
    derive_capacities(graph_of(workspace), capacities);
    struct ph__memory_plan plan = {0};
    void *memory = NULL, *numbers = NULL;
    PH_TRY(ph__plan_memory(executor->program, executor->backend, capacities, &plan));
    ph_status status = allocate((size_t)plan.memory.planned_bytes, &memory, &numbers);
    if (status != PH_OK) {
        ph__memory_plan_fini(&plan);
        return status;
    }
    memcpy(workspace->capacities, capacities, sizeof capacities);
    carry_kept(workspace, &plan, memory);
    adopt(workspace, &plan, memory, numbers);
    return PH_OK;
}

ph_status ph__workspace_create(struct ph_executor *executor, size_t batch_size, size_t num_ids,
    const struct ph__requests *requests, struct ph_workspace **workspace_out)
{
    const struct ph__graph *graph = &executor->program->graph;
    const uint64_t capacities[PH_NUM_BATCH_SYMBOLS] = {1, batch_size, num_ids,
        requests != NULL ? requests->num_samples : 0, requests != NULL ? requests->num_ids : 0,
        requests != NULL ? requests->num_global_ids : 0};
    struct ph_workspace *workspace = calloc(1, sizeof *workspace);
    if (workspace == NULL)
        return ph__out_of_memory("a workspace");
    workspace->executor = executor;
    workspace->extents[0] = 1;
    workspace->scalars = calloc(graph->num_values, sizeof *workspace->scalars);
    workspace->values = calloc(graph->num_values, sizeof *workspace->values);
    workspace->versions = calloc(graph->num_nodes + 1, sizeof *workspace->versions);
    workspace->wave_ends = calloc(graph->num_nodes + 1, sizeof *workspace->wave_ends);
    ph_status status = ph__wave_crew_create(executor->backend, &workspace->crew);
    if (workspace->scalars == NULL || workspace->values == NULL || workspace->versions == NULL ||
        workspace->wave_ends == NULL)
        status = ph__out_of_memory("a workspace");
    if (status == PH_OK) {
        workspace->values[0].type = &graph->values[0].type;
        status = plan_workspace(workspace, capacities);
    }
    if (status != PH_OK) {
        ph_workspace_destroy(workspace);
        return status;
    }
    *workspace_out = workspace;
    return PH_OK;
}

ph_status ph_workspace_create(
    struct ph_executor *executor, size_t batch_size, size_t num_ids, struct ph_workspace **workspace_out)
{
    return ph__workspace_create(executor, batch_size, num_ids, NULL, workspace_out);
}

void ph_workspace_destroy(struct ph_workspace *workspace)
{
    if (workspace == NULL)
        return;
    ph__memory_plan_fini(&workspace->plan);
    free_memory(workspace);
    free(workspace->scalars);
    free(workspace->values);
    free(workspace->versions);
    free(workspace->wave_ends);
    ph__wave_crew_destroy(workspace->crew);
    free(workspace);
}

struct ph_memory_usage ph_workspace_memory(const struct ph_workspace *workspace)
{
    struct ph_memory_usage usage = workspace->plan.memory;
    usage.num_growths = workspace->num_growths;
    return usage;
}

/* ---- binding a batch ---- */

/* Returns a capacity that grows by half at least, so that slowly growing batches do not plan each time. */
static uint64_t grown_capacity(uint64_t capacity, uint64_t needed)
{
    if (needed <= capacity)
        return capacity;
    uint64_t grown = capacity + capacity / 2;
    return grown > needed ? grown : needed;
}

static ph_status grow(struct ph_workspace *workspace, const uint64_t needed[PH_NUM_BATCH_SYMBOLS])
{
    uint64_t capacities[PH_NUM_BATCH_SYMBOLS];
    for (size_t i = 0; i < PH_NUM_BATCH_SYMBOLS; i++)
        capacities[i] = grown_capacity(workspace->capacities[i], needed[i]);
    if (memcmp(capacities, workspace->capacities, sizeof capacities) == 0)
        return PH_OK;
    PH_TRY(plan_workspace(workspace, capacities));
    workspace->num_growths++;
    return PH_OK;
}

static ph_status check_width(
    const struct ph__graph *graph, enum ph__batch_input input, size_t width, const char *what)
{
    ph_value value = graph->batch_inputs[input];
    if (value == 0)
        return PH_OK;
    const struct ph_type *type = &graph->values[value].type;
    size_t wanted = type->kind == PH_JAGGED ? type->dims[0].extent : type->dims[1].extent;
    if (width == wanted)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "the batch has %zu %s, but the model needs %zu", width, what, wanted);
}

static ph_status check_requests(const struct ph__graph *graph, const struct ph__requests *requests)
{
    if (requests == NULL && graph->batch_inputs[PH_INPUT_REQUESTED_IDS] != 0)
        return ph_fail(PH_ERROR_USAGE, "the program is for several ranks; bind it with their requests");
    return requests != NULL
               ? check_width(graph, PH_INPUT_REQUESTED_IDS, requests->num_streams, "streams of requests")
               : PH_OK;
}

static ph_status check_batch(const struct ph__graph *graph, const struct ph_batch *batch)
{
    PH_TRY(check_width(graph, PH_INPUT_DENSE, batch->num_dense, "dense features"));
    PH_TRY(check_width(graph, PH_INPUT_IDS, batch->num_sparse, "sparse features"));
    PH_TRY(check_width(graph, PH_INPUT_LABELS, batch->num_tasks, "labels"));
    PH_TRY(check_width(graph, PH_INPUT_LABEL_MASK, batch->num_tasks, "labels"));
    return check_width(graph, PH_INPUT_TEACHER, batch->teacher != NULL ? batch->num_tasks : 0, "teachers");
}

/* Binds an input; the batch is only read, but operands are not const because outputs share their type. */
static void bind_input(
    struct ph_workspace *workspace, enum ph__batch_input input, const void *data, const void *index)
{
    ph_value value = graph_of(workspace)->batch_inputs[input];
    if (value == 0)
        return;
    const struct ph__graph *graph = graph_of(workspace);
    for (ph_value alias = value; alias < graph->num_values; alias++) {
        if (alias != value && graph->values[alias].alias_of != value)
            continue;
        workspace->values[alias].data = (void *)(uintptr_t)data;
        workspace->values[alias].index = (uint32_t *)(uintptr_t)index;
    }
}

static void bind_requests(struct ph_workspace *workspace, const struct ph__requests *requests)
{
    workspace->extents[PH_SYMBOL_GLOBAL_BATCH] = requests->num_samples;
    workspace->extents[PH_SYMBOL_REQUESTS] = requests->num_ids;
    workspace->extents[PH_SYMBOL_GLOBAL_IDS] = requests->num_global_ids;
    bind_input(workspace, PH_INPUT_REQUESTED_IDS, requests->ids, requests->offsets);
    bind_input(workspace, PH_INPUT_REQUESTED_WEIGHTS, requests->weights, NULL);
}

const int64_t *ph__workspace_requested_ids(const struct ph_workspace *workspace, size_t *num_ids_out)
{
    const ph_value value = graph_of(workspace)->batch_inputs[PH_INPUT_REQUESTED_IDS];
    *num_ids_out = value != 0 ? workspace->extents[PH_SYMBOL_REQUESTS] : 0;
    return value != 0 ? workspace->values[value].data : NULL;
}

static void bind_batch(struct ph_workspace *workspace, const struct ph_batch *batch)
{
    workspace->extents[PH_SYMBOL_BATCH] = batch->num_samples;
    workspace->extents[PH_SYMBOL_IDS] = batch->num_ids;
    bind_input(workspace, PH_INPUT_DENSE, batch->dense, NULL);
    bind_input(workspace, PH_INPUT_IDS, batch->ids, batch->offsets);
    bind_input(workspace, PH_INPUT_ID_WEIGHTS, batch->id_weights, NULL);
    bind_input(workspace, PH_INPUT_LABELS, batch->labels, NULL);
    bind_input(workspace, PH_INPUT_LABEL_MASK, batch->label_mask, NULL);
    bind_input(workspace, PH_INPUT_TEACHER, batch->teacher, NULL);
    bind_input(workspace, PH_INPUT_TEACHER_MASK, batch->teacher_mask, NULL);
    bind_input(workspace, PH_INPUT_WEIGHTS, batch->weights, NULL);
}

ph_status ph__workspace_bind(struct ph_workspace *workspace, const struct ph_batch *batch,
    const struct ph__requests *requests, uint64_t seed, uint64_t step)
{
    static const struct ph__requests none = {0};
    PH_TRY(check_batch(graph_of(workspace), batch));
    PH_TRY(check_requests(graph_of(workspace), requests));
    requests = requests != NULL ? requests : &none;
    PH_TRY(grow(workspace, (const uint64_t[PH_NUM_BATCH_SYMBOLS]){1, batch->num_samples, batch->num_ids,
                               requests->num_samples, requests->num_ids, requests->num_global_ids}));
    bind_batch(workspace, batch);
    bind_requests(workspace, requests);
    workspace->run = (struct ph__run){.seed = seed, .step = step, .first_sample = batch->first_sample};
    workspace->is_bound = true;
    return PH_OK;
}

ph_status ph_workspace_bind(
    struct ph_workspace *workspace, const struct ph_batch *batch, uint64_t seed, uint64_t step)
{
    return ph__workspace_bind(workspace, batch, NULL, seed, step);
}

ph_status ph_workspace_set_scalar(struct ph_workspace *workspace, const char *name, double value)
{
    const struct ph__graph *graph = graph_of(workspace);
    ph_value input = ph__find_named(graph->scalar_inputs, graph->num_scalar_inputs, name);
    if (input == 0)
        return ph_fail(PH_ERROR_USAGE, "the program has no scalar input '%s'", name);
    workspace->scalars[input] = value;
    return PH_OK;
}

/* ---- running ---- */

static void load_operand(const struct ph_workspace *workspace, ph_value value, const uint64_t *extents,
    struct ph__operand *operand_out)
{
    *operand_out = workspace->values[value];
    ph__type_shape(operand_out->type, extents, &operand_out->shape);
}

void ph__workspace_call(struct ph_workspace *workspace, size_t index, uint64_t *extents,
    struct ph__operand operands[2 * PH_MAX_OPERANDS], struct ph__call *call_out)
{
    const struct ph__node *node = &graph_of(workspace)->nodes[index];
    struct ph__operand *operand = operands;
    for (uint32_t k = 0; k < node->num_inputs; k++)
        load_operand(workspace, node->inputs[k], extents, operand++);
    for (uint32_t k = 0; k < node->num_outputs; k++)
        load_operand(workspace, node->outputs[k], extents, operand++);
    *call_out = (struct ph__call){.backend = workspace->executor->backend,
        .node = node,
        .attributes = node->attributes,
        .run = &workspace->run,
        .inputs = operands,
        .num_inputs = node->num_inputs,
        .outputs = operands + node->num_inputs,
        .num_outputs = node->num_outputs,
        .scratch = (char *)workspace->memory + workspace->plan.scratch_offset[index],
        .extents = extents};
}

/* Returns true if a kept result still fits the parameters and state it was made from. Versions only grow, so
 * their sum changes with any of them. */
static bool is_current(struct ph_workspace *workspace, size_t index, const struct ph__call *call)
{
    if (!ph__graph_keeps_result(graph_of(workspace), call->node))
        return false;
    uint64_t version = 1;
    for (size_t k = 0; k < call->num_inputs; k++)
        version += call->inputs[k].version != NULL ? *call->inputs[k].version : 0;
    bool is_current = workspace->versions[index] == version;
    workspace->versions[index] = version;
    return is_current;
}

ph_status ph__workspace_run_node(struct ph_workspace *workspace, size_t index,
    const struct ph_backend *backend, struct ph__operand operands[2 * PH_MAX_OPERANDS], size_t thread)
{
    struct ph_executor *executor = workspace->executor;
    const struct ph__op *op = graph_of(workspace)->nodes[index].op;
    if ((op->traits & PH_OP_ALIAS) != 0)
        return PH_OK;
    struct ph__call call;
    ph__workspace_call(workspace, index, workspace->extents, operands, &call);
    call.backend = backend;
    if (is_current(workspace, index, &call))
        return PH_OK;
    return ph__executor_call(executor, index, thread, &call);
}

/* Runs the wave or the node at `index`, then polls. */
static ph_status run_from(struct ph_workspace *workspace, size_t index)
{
    const struct ph_executor *executor = workspace->executor;
    const size_t end = workspace->wave_ends[index];
    if (end > index + 1)
        PH_TRY(ph__wave_run(workspace, index, end));
    else
        PH_TRY(ph__workspace_run_node(workspace, index, executor->backend, workspace->operands, 0));
    return executor->poll != NULL ? ph__executor_poll_now(workspace->executor) : PH_OK;
}

static ph_status find_entry(const struct ph__graph *graph, const char *name, size_t *entry_out)
{
    for (size_t i = 0; i < graph->num_entries; i++) {
        if (strcmp(graph->entries[i], name) == 0) {
            *entry_out = i;
            return PH_OK;
        }
    }
    return ph_fail(PH_ERROR_USAGE, "the program has no entry '%s'", name);
}

ph_status ph_workspace_run(struct ph_workspace *workspace, const char *entry)
{
    size_t index = 0;
    PH_TRY(find_entry(graph_of(workspace), entry, &index));
    if (!workspace->is_bound)
        return ph_fail(PH_ERROR_USAGE, "entry '%s' needs a batch; bind one before the run", entry);
    const uint32_t *begin = workspace->executor->program->entry_begin;
    fenv_t former;
    ph__cpu_float_enter(true, &former); /* for this thread and the team's tasks */
    ph__executor_poll_tasks(workspace->executor, true);
    ph_status status = PH_OK;
    for (size_t node = begin[index]; status == PH_OK && node < begin[index + 1];
         node = workspace->wave_ends[node])
        status = run_from(workspace, node);
    ph__executor_poll_tasks(workspace->executor, false);
    ph__cpu_float_leave(&former);
    return status;
}

static ph_status find_output(const struct ph_workspace *workspace, const char *name, ph_value *value_out)
{
    const struct ph__graph *graph = graph_of(workspace);
    *value_out = ph__find_named(graph->outputs, graph->num_outputs, name);
    return *value_out != 0 ? PH_OK : ph_fail(PH_ERROR_USAGE, "the program has no output '%s'", name);
}

ph_status ph_workspace_scalar(const struct ph_workspace *workspace, const char *name, double *value_out)
{
    ph_value value = 0;
    PH_TRY(find_output(workspace, name, &value));
    if (workspace->values[value].type->kind != PH_SCALAR)
        return ph_fail(PH_ERROR_USAGE, "output '%s' is not a scalar", name);
    *value_out = workspace->scalars[value];
    return PH_OK;
}

ph_status ph_workspace_output(const struct ph_workspace *workspace, const char *name,
    const ph_real **data_out, struct ph_shape *shape_out)
{
    ph_value value = 0;
    PH_TRY(find_output(workspace, name, &value));
    struct ph__operand operand;
    load_operand(workspace, value, workspace->extents, &operand);
    if (operand.type->kind != PH_DENSE || operand.type->dtype != PH_REAL)
        return ph_fail(PH_ERROR_USAGE, "output '%s' is not an array of reals", name);
    *data_out = operand.data;
    *shape_out = operand.shape;
    return PH_OK;
}
