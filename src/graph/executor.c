/* Executors: a program bound to its store, state and backend. */
#include "graph/executor.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "graph/distribution.h"

/* Time between two polls within a node: a poll takes a microsecond or so, and a message longer. */
#define TASK_POLL_NS 100000u

static ph_status bind_parameters(struct ph_executor *executor, struct ph_store *store, struct ph_state *state)
{
    const struct ph__graph *graph = &executor->program->graph;
    for (size_t i = 0; i < graph->num_declarations; i++)
        PH_TRY(
            ph__store_add(store, &graph->declarations[i], executor->backend->team, &executor->parameters[i]));
    for (size_t i = 0; i < graph->num_states; i++)
        PH_TRY(ph__state_add(state, graph->states[i].name, graph->states[i].elements,
            (ph_real)graph->states[i].initial, &executor->states[i]));
    return PH_OK;
}

/* Fails for a table that is not held as fp32 unless the operator reads row formats. */
static ph_status check_row_formats(const struct ph__node *node, struct ph_parameter *const *parameters)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph_parameter *parameter = parameters[k];
        if (parameter != NULL && parameter->row_format != PH_ROWS_FP32 &&
            (node->op->traits & PH_OP_READS_ROW_FORMATS) == 0)
            return ph_fail(PH_ERROR_USAGE, "table '%s' is held as %s, which operator '%s' cannot read",
                parameter->name, ph_row_format_name(parameter->row_format), node->op->name);
    }
    return PH_OK;
}

static ph_status prepare_nodes(struct ph_executor *executor, struct ph_store *store)
{
    const struct ph__graph *graph = &executor->program->graph;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        struct ph_parameter *parameters[PH_MAX_OPERANDS] = {0};
        for (uint32_t k = 0; k < node->num_inputs; k++) {
            const struct ph__value_info *info = &graph->values[node->inputs[k]];
            if (node->inputs[k] != 0 && info->storage == PH_STORAGE_PARAMETER)
                parameters[k] = executor->parameters[info->source];
        }
        PH_TRY(check_row_formats(node, parameters));
        if (node->op->prepare != NULL)
            PH_TRY(node->op->prepare(node, store, parameters));
    }
    return PH_OK;
}

ph_status ph_executor_create(struct ph_program *program, struct ph_store *store, struct ph_state *state,
    struct ph_backend *backend, struct ph_executor **executor_out)
{
    const struct ph__graph *graph = &program->graph;
    struct ph_executor *executor = calloc(1, sizeof *executor);
    if (executor == NULL)
        return ph__out_of_memory("an executor");
    executor->program = program;
    executor->backend = backend;
    executor->parameters = calloc(graph->num_declarations + 1, sizeof(struct ph_parameter *));
    executor->states = calloc(graph->num_states + 1, sizeof(struct ph__state_array *));
    executor->profile = calloc(graph->num_nodes + 1, sizeof *executor->profile);
    ph_status status = PH_OK;
    if (executor->parameters == NULL || executor->states == NULL || executor->profile == NULL)
        status = ph__out_of_memory("an executor");
    if (status == PH_OK)
        status = bind_parameters(executor, store, state);
    if (status == PH_OK)
        status = prepare_nodes(executor, store);
    if (status != PH_OK) {
        ph_executor_destroy(executor);
        return status;
    }
    *executor_out = executor;
    return PH_OK;
}

void ph_executor_destroy(struct ph_executor *executor)
{
    if (executor == NULL)
        return;
    ph__trace_destroy(executor->trace);
    free(executor->watches);
    free(executor->profile);
    free(executor->states);
    free(executor->parameters);
    free(executor);
}

/* ---- polling ---- */

void ph__executor_poll(struct ph_executor *executor, ph_status (*poll)(void *context), void *context)
{
    executor->poll = poll;
    executor->poll_context = context;
}

ph_status ph__executor_poll_now(struct ph_executor *executor)
{
    const ph_status status = executor->poll(executor->poll_context);
    executor->polled_ns = ph__clock_ns();
    return status;
}

/* Polls after a task. An error is dropped here: the poll after the node returns it again. */
static void poll_in_node(void *context)
{
    struct ph_executor *executor = context;
    if (ph__clock_ns() - executor->polled_ns >= TASK_POLL_NS)
        (void)ph__executor_poll_now(executor);
}

void ph__executor_poll_tasks(struct ph_executor *executor, bool is_on)
{
    if (executor->poll != NULL && executor->backend->simulator == NULL)
        ph__team_set_poll(executor->backend->team, is_on ? poll_in_node : NULL, executor);
}

/* ---- memory that a program needs ---- */

ph_status ph_program_missing_bytes(
    const struct ph_program *program, const struct ph_store *store, uint64_t *bytes_out)
{
    const struct ph__graph *graph = &program->graph;
    uint64_t bytes = 0;
    for (size_t i = 0; i < graph->num_declarations; i++)
        bytes += ph__store_missing_bytes(store, &graph->declarations[i]);
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        if (node->op->slot_bytes != NULL)
            bytes += node->op->slot_bytes(node, &graph->declarations[graph->values[node->inputs[0]].source]);
    }
    *bytes_out = bytes;
    return PH_OK;
}
