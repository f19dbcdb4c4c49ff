/* The memory plan: every value of the workspace gets an offset so that values that are never alive together
 * may share bytes. Time is the index of a node in the program (entries one after the other).
 *
 * Buffers are placed largest first, each at the lowest offset that is free during its whole life (greedy by
 * size: Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). An operator
 * that may work in place takes over its input's buffer when it is the input's last reader. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "graph/graph.h"

struct buffer {
    size_t size, offset;
    size_t first, last; /* first writer and last reader */
};

struct planner {
    const struct ph_program *program;
    const struct ph_backend *backend;
    uint64_t *extents; /* capacities by symbol */
    struct ph__memory_plan *plan;
    uint32_t *last_reader;  /* by value: node index, its producer when no node reads it */
    struct buffer *buffers; /* [0, num_buffers) */
    size_t num_buffers;
    size_t *buffer_of;            /* by value; SIZE_MAX: none */
    size_t *scratch_buffer;       /* by node; SIZE_MAX: none */
    size_t *data_bytes;           /* by value, aligned */
    struct ph__operand *operands; /* scratch for one call */
};

static bool is_planned(const struct ph__value_info *info)
{
    return info->storage == PH_STORAGE_WORKSPACE && info->producer != PH_NO_NODE && info->alias_of == 0;
}

/* Builds a node's call with every dimension at capacity, for the operator's size rules. */
static struct ph__call call_at_capacity(struct planner *planner, const struct ph__node *node)
{
    const struct ph__graph *graph = &planner->program->graph;
    struct ph__operand *operand = planner->operands;
    for (uint32_t k = 0; k < node->num_inputs + node->num_outputs; k++, operand++) {
        ph_value value = k < node->num_inputs ? node->inputs[k] : node->outputs[k - node->num_inputs];
        *operand = (struct ph__operand){.type = &graph->values[value].type};
        ph__type_shape(operand->type, planner->extents, &operand->shape);
    }
    return (struct ph__call){.backend = planner->backend,
        .node = node,
        .attributes = node->attributes,
        .inputs = planner->operands,
        .num_inputs = node->num_inputs,
        .outputs = planner->operands + node->num_inputs,
        .num_outputs = node->num_outputs,
        .extents = planner->extents};
}

static ph_status output_size(
    const struct ph__call *call, size_t output, size_t *index_bytes_out, size_t *data_bytes_out)
{
    const struct ph__operand *operand = &call->outputs[output];
    const struct ph_type *type = operand->type;
    size_t elements = type->kind == PH_JAGGED ? operand->shape.dims[1] : ph_shape_elements(&operand->shape);
    size_t data_bytes = 0, index_bytes = ph__type_index_elements(type, &operand->shape) * sizeof(uint32_t);
    if (!ph__size_mul(elements, ph_dtype_size(type->dtype), &data_bytes))
        return ph_fail(PH_ERROR_MEMORY, "'%s' is larger than the address space", call->node->name);
    if (call->node->op->output_bytes != NULL)
        PH_TRY(call->node->op->output_bytes(call, output, &data_bytes));
    *data_bytes_out = ph__size_align(data_bytes);
    *index_bytes_out = ph__size_align(index_bytes);
    return PH_OK;
}

/* Returns the input whose buffer output 0 of this node may take over, or 0. */
static ph_value input_to_take(const struct planner *planner, size_t index, size_t bytes)
{
    const struct ph__graph *graph = &planner->program->graph;
    const struct ph__node *node = &graph->nodes[index];
    if ((node->op->traits & PH_OP_IN_PLACE) == 0 || node->num_inputs == 0)
        return 0;
    ph_value input = ph__graph_root(graph, node->inputs[0]);
    size_t buffer = planner->buffer_of[input];
    bool is_free = buffer != SIZE_MAX && planner->last_reader[input] == index &&
                   !graph->values[input].is_output && planner->buffers[buffer].size == bytes &&
                   planner->buffers[buffer].last == index &&
                   graph->values[input].type.dtype == graph->values[node->outputs[0]].type.dtype;
    for (uint32_t k = 1; k < node->num_inputs; k++)
        is_free = is_free && ph__graph_root(graph, node->inputs[k]) != input;
    return is_free ? input : 0;
}

static ph_status add_node_buffers(struct planner *planner, size_t index)
{
    const struct ph__graph *graph = &planner->program->graph;
    const struct ph__node *node = &graph->nodes[index];
    struct ph__call call = call_at_capacity(planner, node);
    bool is_kept = (node->op->traits & PH_OP_KEEPS_OUTPUTS) != 0 || ph__graph_keeps_result(graph, node);
    for (uint32_t k = 0; k < node->num_outputs; k++) {
        ph_value value = node->outputs[k];
        if (!is_planned(&graph->values[value]))
            continue;
        size_t index_bytes = 0, data_bytes = 0;
        PH_TRY(output_size(&call, k, &index_bytes, &data_bytes));
        planner->data_bytes[value] = data_bytes;
        planner->plan->memory.no_reuse_bytes += data_bytes + index_bytes;
        size_t last =
            is_kept || graph->values[value].is_output ? graph->num_nodes : planner->last_reader[value];
        planner->plan->first[value] = is_kept ? 0 : (uint32_t)index;
        planner->plan->last[value] = (uint32_t)last;
        ph_value taken = k == 0 ? input_to_take(planner, index, data_bytes + index_bytes) : 0;
        if (taken != 0) {
            planner->buffer_of[value] = planner->buffer_of[taken];
            planner->buffers[planner->buffer_of[taken]].last = last;
            continue;
        }
        planner->buffer_of[value] = planner->num_buffers;
        planner->buffers[planner->num_buffers++] =
            (struct buffer){.size = data_bytes + index_bytes, .first = is_kept ? 0 : index, .last = last};
    }
    size_t scratch = node->op->scratch_bytes != NULL ? ph__size_align(node->op->scratch_bytes(&call)) : 0;
    if (scratch != 0) {
        planner->plan->memory.no_reuse_bytes += scratch;
        planner->scratch_buffer[index] = planner->num_buffers;
        planner->buffers[planner->num_buffers++] =
            (struct buffer){.size = scratch, .first = index, .last = index};
    }
    return PH_OK;
}

static void find_last_readers(struct planner *planner)
{
    const struct ph__graph *graph = &planner->program->graph;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        for (uint32_t k = 0; k < node->num_outputs; k++)
            planner->last_reader[node->outputs[k]] = (uint32_t)i;
        for (uint32_t k = 0; k < node->num_inputs; k++)
            planner->last_reader[ph__graph_root(graph, node->inputs[k])] = (uint32_t)i;
    }
}

static bool is_alive_with(const struct buffer *a, const struct buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int by_size_descending(const void *left, const void *right)
{
    const struct buffer *a = *(struct buffer *const *)left, *b = *(struct buffer *const *)right;
    if (a->size != b->size)
        return a->size < b->size ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Returns the lowest offset with a gap between the placed buffers (ascending by offset) that are alive at the
 * same time. */
static size_t free_offset(const struct buffer *wanted, struct buffer *const *placed, size_t num_placed)
{
    size_t offset = 0;
    for (size_t i = 0; i < num_placed; i++) {
        if (!is_alive_with(wanted, placed[i]))
            continue;
        if (placed[i]->offset >= offset + wanted->size)
            break;
        if (placed[i]->offset + placed[i]->size > offset)
            offset = placed[i]->offset + placed[i]->size;
    }
    return offset;
}

static ph_status place_buffers(struct planner *planner)
{
    size_t count = planner->num_buffers;
    struct buffer **order = calloc(2 * count + 1, sizeof *order);
    if (order == NULL)
        return ph__out_of_memory("the memory plan");
    struct buffer **placed = order + count;
    for (size_t i = 0; i < count; i++)
        order[i] = &planner->buffers[i];
    qsort(order, count, sizeof *order, by_size_descending);
    for (size_t i = 0; i < count; i++) {
        order[i]->offset = free_offset(order[i], placed, i);
        size_t at = i;
        for (; at > 0 && placed[at - 1]->offset > order[i]->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = order[i];
        size_t end = order[i]->offset + order[i]->size;
        if (end > planner->plan->memory.planned_bytes)
            planner->plan->memory.planned_bytes = end;
    }
    free(order);
    return PH_OK;
}

static uint64_t most_live_bytes(const struct planner *planner)
{
    uint64_t most = 0;
    for (size_t time = 0; time < planner->program->graph.num_nodes; time++) {
        uint64_t live = 0;
        for (size_t i = 0; i < planner->num_buffers; i++)
            if (planner->buffers[i].first <= time && time <= planner->buffers[i].last)
                live += planner->buffers[i].size;
        most = live > most ? live : most;
    }
    return most;
}

static void write_places(struct planner *planner)
{
    const struct ph__graph *graph = &planner->program->graph;
    struct ph__memory_plan *plan = planner->plan;
    for (ph_value value = 1; value < graph->num_values; value++) {
        if (planner->buffer_of[value] == SIZE_MAX)
            continue;
        const struct buffer *buffer = &planner->buffers[planner->buffer_of[value]];
        plan->data_offset[value] = buffer->offset;
        plan->index_offset[value] = buffer->offset + planner->data_bytes[value];
        plan->value_bytes[value] = buffer->size;
    }
    for (size_t i = 0; i < graph->num_nodes; i++) {
        if (planner->scratch_buffer[i] == SIZE_MAX)
            continue;
        plan->scratch_offset[i] = planner->buffers[planner->scratch_buffer[i]].offset;
        plan->scratch_bytes[i] = planner->buffers[planner->scratch_buffer[i]].size;
    }
}

static ph_status plan_buffers(struct planner *planner)
{
    const struct ph__graph *graph = &planner->program->graph;
    for (ph_value value = 0; value < graph->num_values; value++)
        planner->buffer_of[value] = SIZE_MAX;
    for (size_t i = 0; i < graph->num_nodes; i++)
        planner->scratch_buffer[i] = SIZE_MAX;
    find_last_readers(planner);
    for (size_t i = 0; i < graph->num_nodes; i++)
        PH_TRY(add_node_buffers(planner, i));
    PH_TRY(place_buffers(planner));
    planner->plan->memory.live_bytes = most_live_bytes(planner);
    write_places(planner);
    return PH_OK;
}

static void planner_fini(struct planner *planner)
{
    free(planner->buffers);
    free(planner->last_reader);
    free(planner->buffer_of);
    free(planner->scratch_buffer);
    free(planner->data_bytes);
    free(planner->operands);
}

static ph_status planner_init(struct planner *planner)
{
    size_t values = planner->program->graph.num_values, nodes = planner->program->graph.num_nodes;
    planner->buffers = calloc(values + nodes, sizeof *planner->buffers);
    planner->last_reader = calloc(values, sizeof *planner->last_reader);
    planner->buffer_of = calloc(values, sizeof *planner->buffer_of);
    planner->scratch_buffer = calloc(nodes + 1, sizeof *planner->scratch_buffer);
    planner->data_bytes = calloc(values, sizeof *planner->data_bytes);
    planner->operands = calloc(2 * PH_MAX_OPERANDS, sizeof *planner->operands);
    struct ph__memory_plan *plan = planner->plan;
    plan->data_offset = calloc(values, sizeof *plan->data_offset);
    plan->index_offset = calloc(values, sizeof *plan->index_offset);
    plan->value_bytes = calloc(values, sizeof *plan->value_bytes);
    plan->first = calloc(values, sizeof *plan->first);
    plan->last = calloc(values, sizeof *plan->last);
    plan->scratch_offset = calloc(nodes + 1, sizeof *plan->scratch_offset);
    plan->scratch_bytes = calloc(nodes + 1, sizeof *plan->scratch_bytes);
    bool is_complete = planner->buffers != NULL && planner->last_reader != NULL &&
                       planner->buffer_of != NULL && planner->scratch_buffer != NULL &&
                       planner->data_bytes != NULL && planner->operands != NULL &&
                       plan->data_offset != NULL && plan->index_offset != NULL && plan->value_bytes != NULL &&
                       plan->first != NULL && plan->last != NULL && plan->scratch_offset != NULL &&
                       plan->scratch_bytes != NULL;
    return is_complete ? PH_OK : ph__out_of_memory("the memory plan");
}

ph_status ph__plan_memory(const struct ph_program *program, const struct ph_backend *backend,
    const uint64_t *capacities, struct ph__memory_plan *plan_out)
{
    struct ph__memory_plan made = {0};
    uint64_t extents[PH_MAX_SYMBOLS];
    memcpy(extents, capacities, sizeof extents);
    struct planner planner = {.program = program, .backend = backend, .extents = extents, .plan = &made};
    ph_status status = planner_init(&planner);
    if (status == PH_OK)
        status = plan_buffers(&planner);
    planner_fini(&planner);
    if (status == PH_OK)
        *plan_out = made;
    else
        ph__memory_plan_fini(&made);
    return status;
}

void ph__memory_plan_fini(struct ph__memory_plan *plan)
{
    free(plan->data_offset);
    free(plan->index_offset);
    free(plan->value_bytes);
    free(plan->first);
    free(plan->last);
    free(plan->scratch_offset);
    free(plan->scratch_bytes);
    *plan = (struct ph__memory_plan){0};
}

/* ---- sums ---- */

/* Returns true when output 0 of the node has taken over the value's memory, as it may that of input 0. */
static bool is_taken_over(
    const struct ph_program *program, const struct ph__memory_plan *plan, size_t index, ph_value value)
{
    const struct ph__node *node = &program->graph.nodes[index];
    return (node->op->traits & PH_OP_IN_PLACE) != 0 && node->num_inputs > 0 &&
           ph__graph_root(&program->graph, node->inputs[0]) == value &&
           plan->value_bytes[node->outputs[0]] > 0 &&
           plan->data_offset[node->outputs[0]] == plan->data_offset[value];
}

void ph__memory_plan_sum(const struct ph_program *program, const struct ph__memory_plan *plan,
    size_t num_classes, ph__value_class class_of, uint64_t *bytes_out)
{
    const struct ph__graph *graph = &program->graph;
    memset(bytes_out, 0, graph->num_nodes * (num_classes + 1) * sizeof *bytes_out);
    for (ph_value value = 1; value < graph->num_values; value++) {
        const size_t class = plan->value_bytes[value] > 0 ? class_of(graph, value) : 0;
        for (size_t i = plan->first[value]; plan->value_bytes[value] > 0 && i <= plan->last[value]; i++)
            if (i < graph->num_nodes && !is_taken_over(program, plan, i, value))
                bytes_out[i * (num_classes + 1) + class] += plan->value_bytes[value];
    }
    for (size_t i = 0; i < graph->num_nodes; i++)
        bytes_out[i * (num_classes + 1) + num_classes] += plan->scratch_bytes[i];
}
