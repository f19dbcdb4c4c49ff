/* Plans and runs waves: finds the nodes that form them, and gives each thread of the team its own backend. */
#include "graph/wave.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"

/* ---- the plan ---- */

/* Waves of an entry's nodes (graph/wave.h).
 *
 * Nodes depend on each other where one writes a place that the other touches. A place is a range of memory:
 * the bytes of a value or, for a value without bytes, the workspace's record of it.
 *
 * The size of a node is its work at capacity, by the cost rules: bytes, or FLOPs where they are more. One
 * thread does some eight of either a nanosecond. The graph does not know how many tasks a node would be cut
 * into, so a wave must pay if no node is cut, and must cost next to nothing if all are. */

/* Work of the largest node of a wave: little more than operators leave uncut. */
static const double most_node_work = 512 << 10;
/* Least gain of a wave: entering and leaving a region takes the work of some tens of kilobytes. */
static const double least_gain = 32 << 10;

struct place {
    const char *begin, *end;
    bool is_written;
};

enum { MOST_PLACES = 2 * PH_MAX_OPERANDS * (PH_MAX_DIMS + 3) + 1 };

struct places {
    size_t count;
    struct place at[MOST_PLACES];
};

static void add_place(struct places *places, const void *begin, size_t bytes, bool is_written)
{
    places->at[places->count++] = (struct place){begin, (const char *)begin + bytes, is_written};
}

/* Adds the dimensions that operators decide; a node decides those of its outputs. */
static void add_symbols(
    const struct ph_workspace *workspace, const struct ph_type *type, bool is_output, struct places *places)
{
    for (uint32_t i = 0; i < type->num_dims; i++)
        if (type->dims[i].symbol >= PH_NUM_BATCH_SYMBOLS)
            add_place(
                places, &workspace->extents[type->dims[i].symbol], sizeof *workspace->extents, is_output);
}

static void add_value(const struct ph_workspace *workspace, const struct ph__node *node, ph_value value,
    bool is_output, struct places *places)
{
    const struct ph__graph *graph = &workspace->executor->program->graph;
    if (value == 0)
        return;
    const ph_value root = ph__graph_root(graph, value);
    const struct ph__operand *operand = &workspace->values[root];
    const bool has_effect = (node->op->traits & PH_OP_HAS_EFFECT) != 0;
    add_place(places, operand, sizeof *operand, is_output);
    add_symbols(workspace, &graph->values[value].type, is_output, places);
    if (operand->version != NULL)
        add_place(places, operand->version, sizeof *operand->version, is_output || has_effect);
    if (graph->values[root].storage == PH_STORAGE_WORKSPACE)
        add_place(places, operand->data, workspace->plan.value_bytes[root], is_output);
}

static void find_places(const struct ph_workspace *workspace, size_t index, struct places *places_out)
{
    const struct ph__node *node = &workspace->executor->program->graph.nodes[index];
    places_out->count = 0;
    for (uint32_t k = 0; k < node->num_inputs; k++)
        add_value(workspace, node, node->inputs[k], false, places_out);
    for (uint32_t k = 0; k < node->num_outputs; k++)
        add_value(workspace, node, node->outputs[k], true, places_out);
    if (workspace->plan.scratch_bytes[index] > 0)
        add_place(places_out, (const char *)workspace->memory + workspace->plan.scratch_offset[index],
            workspace->plan.scratch_bytes[index], true);
}

static bool depend(const struct places *a, const struct places *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if ((a->at[i].is_written || b->at[k].is_written) && a->at[i].begin < b->at[k].end &&
                b->at[k].begin < a->at[i].end)
                return true;
    return false;
}

/* Returns true for an alias, which runs nothing and so conflicts with no node. */
static bool is_alias(const struct ph_workspace *workspace, size_t index)
{
    return (workspace->executor->program->graph.nodes[index].op->traits & PH_OP_ALIAS) != 0;
}

static double work_of(struct ph_workspace *workspace, size_t index)
{
    struct ph__operand operands[2 * PH_MAX_OPERANDS];
    struct ph__call call;
    struct ph__cost cost = {0};
    ph__workspace_call(workspace, index, workspace->capacities, operands, &call);
    call.node->op->cost(&call, &cost);
    return cost.bytes > cost.flops ? cost.bytes : cost.flops;
}

static bool is_independent(const struct ph_workspace *workspace, size_t first, size_t index)
{
    struct places its, others;
    find_places(workspace, index, &its);
    for (size_t i = first; i < index; i++) {
        if (is_alias(workspace, i))
            continue;
        find_places(workspace, i, &others);
        if (depend(&its, &others))
            return false;
    }
    return true;
}

/* Returns true when nodes with this sum of work, and this most in one node, are faster side by side. */
static bool pays(const struct ph_workspace *workspace, double sum, double most)
{
    const double share = sum / (double)ph__team_num_threads(workspace->executor->backend->team);
    return sum - (most > share ? most : share) >= least_gain && most - share <= least_gain;
}

/* Returns the end of the longest wave that begins at `first`; the next node where there is none. */
static size_t wave_from(struct ph_workspace *workspace, size_t first, size_t entry_end)
{
    const struct ph__node *nodes = workspace->executor->program->graph.nodes;
    double sum = 0, most = 0;
    size_t wave_end = first + 1;
    for (size_t i = first; i < entry_end; i++) {
        if (is_alias(workspace, i))
            continue;
        if ((nodes[i].op->traits & PH_OP_CALLS_LIBRARY) != 0)
            break;
        const double work = work_of(workspace, i);
        if (work > most_node_work || !is_independent(workspace, first, i))
            break;
        sum += work;
        most = work > most ? work : most;
        if (pays(workspace, sum, most))
            wave_end = i + 1;
    }
    return wave_end;
}

void ph__wave_plan(struct ph_workspace *workspace)
{
    const struct ph_program *program = workspace->executor->program;
    for (size_t i = 0; i < program->graph.num_nodes; i++)
        workspace->wave_ends[i] = (uint32_t)i + 1;
    if (workspace->crew == NULL)
        return;
    for (size_t entry = 0; entry < program->graph.num_entries; entry++)
        for (size_t i = program->entry_begin[entry]; i < program->entry_begin[entry + 1];
             i = workspace->wave_ends[i])
            workspace->wave_ends[i] = (uint32_t)wave_from(workspace, i, program->entry_begin[entry + 1]);
}

/* ---- the run ---- */

struct worker {
    struct ph_backend backend; /* a team of one thread, no library */
    struct ph__operand operands[2 * PH_MAX_OPERANDS];
    ph_status status; /* status of `failed`, its first node in this wave that failed; PH_OK: none */
    size_t failed;
    char error[1024];
};

struct ph__wave_crew {
    size_t num_workers;
    struct worker workers[]; /* each belongs to its thread while a wave runs, otherwise to the caller */
};

ph_status ph__wave_crew_create(const struct ph_backend *backend, struct ph__wave_crew **crew_out)
{
    const size_t num_workers = ph__team_num_threads(backend->team);
    *crew_out = NULL;
    if (num_workers == 1 || backend->simulator != NULL)
        return PH_OK;
    struct ph__wave_crew *crew = calloc(1, sizeof *crew + num_workers * sizeof crew->workers[0]);
    if (crew == NULL)
        return ph__out_of_memory("cannot run nodes side by side");
    crew->num_workers = num_workers;
    ph_status status = PH_OK;
    for (size_t i = 0; i < num_workers && status == PH_OK; i++) {
        crew->workers[i].backend.kernels = backend->kernels;
        status = ph__team_create(1, &crew->workers[i].backend.team);
    }
    if (status != PH_OK) {
        ph__wave_crew_destroy(crew);
        return status;
    }
    *crew_out = crew;
    return PH_OK;
}

void ph__wave_crew_destroy(struct ph__wave_crew *crew)
{
    if (crew == NULL)
        return;
    for (size_t i = 0; i < crew->num_workers; i++)
        ph__team_destroy(crew->workers[i].backend.team);
    free(crew);
}

struct wave {
    struct ph_workspace *workspace;
    size_t first;
};

/* Runs a member and keeps its error's text for the caller, since the text belongs to this thread. */
static void run_member(void *argument, size_t task, size_t thread)
{
    const struct wave *wave = argument;
    struct worker *worker = &wave->workspace->crew->workers[thread];
    const size_t node = wave->first + task;
    const ph_status status =
        ph__workspace_run_node(wave->workspace, node, &worker->backend, worker->operands, thread);
    if (status == PH_OK || (worker->status != PH_OK && worker->failed < node))
        return;
    worker->status = status;
    worker->failed = node;
    snprintf(worker->error, sizeof worker->error, "%s", ph_error_text());
}

static ph_status first_failure(const struct ph__wave_crew *crew)
{
    const struct worker *first = NULL;
    for (size_t i = 0; i < crew->num_workers; i++) {
        const struct worker *worker = &crew->workers[i];
        if (worker->status != PH_OK && (first == NULL || worker->failed < first->failed))
            first = worker;
    }
    return first == NULL ? PH_OK : ph_fail(first->status, "%s", first->error);
}

ph_status ph__wave_run(struct ph_workspace *workspace, size_t first, size_t end)
{
    struct wave wave = {workspace, first};
    struct ph__wave_crew *crew = workspace->crew;
    for (size_t i = 0; i < crew->num_workers; i++)
        crew->workers[i].status = PH_OK;
    ph__parallel_for(workspace->executor->backend->team, end - first, run_member, &wave);
    return first_failure(crew);
}
