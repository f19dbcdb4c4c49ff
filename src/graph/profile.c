/* The profile of an executor: each operator's time, and its work by its cost rule; and the time of operators
 * that are watched. */
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "graph/executor.h"

/* Updates output shapes, for dimensions that the operator has just decided. */
static void refresh_shapes(const struct ph__call *call)
{
    for (size_t k = 0; k < call->num_outputs; k++)
        ph__type_shape(call->outputs[k].type, call->extents, &call->outputs[k].shape);
}

static ph_status profile_call(struct ph_executor *executor, size_t node, size_t thread, struct ph__call *call)
{
    uint64_t start = ph__clock_ns();
    PH_TRY(ph__call_run(call));
    uint64_t duration = ph__clock_ns() - start;
    refresh_shapes(call);
    struct ph__cost cost = {0};
    call->node->op->cost(call, &cost);
    struct ph__node_profile *profile = &executor->profile[node];
    profile->num_calls++;
    profile->time_ns += duration;
    profile->cost.flops += cost.flops;
    profile->cost.bytes += cost.bytes;
    profile->cost.gathered_bytes += cost.gathered_bytes;
    profile->cost.revisited_bytes += cost.revisited_bytes;
    profile->cost.updated_bytes += cost.updated_bytes;
    ph__trace_add(executor->trace, call->node->name, call->node->op->name, (uint32_t)thread, start, duration);
    return PH_OK;
}

/* ---- watches ---- */

ph_status ph__executor_watch(
    struct ph_executor *executor, size_t (*group_of)(const struct ph__graph *, const struct ph__node *))
{
    const struct ph__graph *graph = &executor->program->graph;
    if (executor->watches == NULL)
        executor->watches = calloc(graph->num_nodes + 1, sizeof *executor->watches);
    if (executor->watches == NULL)
        return ph__out_of_memory("cannot watch operators");
    for (size_t node = 0; node < graph->num_nodes; node++)
        executor->watches[node].group = group_of(graph, &graph->nodes[node]);
    return PH_OK;
}

uint64_t ph__executor_watched_ns(const struct ph_executor *executor, size_t group)
{
    uint64_t time_ns = 0;
    for (size_t node = 0; executor->watches != NULL && node < executor->program->graph.num_nodes; node++)
        time_ns += executor->watches[node].group == group ? executor->watches[node].time_ns : 0;
    return time_ns;
}

static ph_status run_call(struct ph_executor *executor, size_t node, size_t thread, struct ph__call *call)
{
    return executor->is_profiling ? profile_call(executor, node, thread, call) : ph__call_run(call);
}

ph_status ph__executor_call(struct ph_executor *executor, size_t node, size_t thread, struct ph__call *call)
{
    struct ph__node_watch *watch = executor->watches != NULL ? &executor->watches[node] : NULL;
    if (watch == NULL || watch->group == 0)
        return run_call(executor, node, thread, call);
    const uint64_t began = ph__clock_ns();
    PH_TRY(run_call(executor, node, thread, call));
    watch->time_ns += ph__clock_ns() - began;
    return PH_OK;
}

/* ---- the profile ---- */

void ph__profile_clear(struct ph_executor *executor)
{
    memset(executor->profile, 0, executor->program->graph.num_nodes * sizeof *executor->profile);
}

ph_status ph_executor_profile(struct ph_executor *executor, bool is_on, size_t trace_events)
{
    if (is_on && trace_events > 0 && executor->trace == NULL)
        PH_TRY(ph__trace_create(trace_events, &executor->trace));
    executor->is_profiling = is_on;
    return PH_OK;
}

void ph_executor_cost(const struct ph_executor *executor, double *flops_out, double *bytes_out)
{
    *flops_out = *bytes_out = 0;
    for (size_t i = 0; i < executor->program->graph.num_nodes; i++) {
        *flops_out += executor->profile[i].cost.flops;
        *bytes_out += executor->profile[i].cost.bytes;
    }
}

struct profile_row {
    const char *name, *op;
    struct ph__node_profile profile;
};

static int by_time_descending(const void *left, const void *right)
{
    const struct profile_row *a = left, *b = right;
    return a->profile.time_ns < b->profile.time_ns ? 1 : a->profile.time_ns > b->profile.time_ns ? -1 : 0;
}

static ph_status write_row(struct ph__writer *writer, const struct profile_row *row, uint64_t total_ns)
{
    double seconds = (double)row->profile.time_ns * 1e-9;
    double per_second = seconds > 0 ? 1e-9 / seconds : 0;
    double share = total_ns > 0 ? 100.0 * (double)row->profile.time_ns / (double)total_ns : 0;
    return ph__writer_printf(writer, "%-34s %-26s %8llu %10.2f %6.1f%% %9.2f %8.2f\n", row->name, row->op,
        (unsigned long long)row->profile.num_calls, 1e3 * seconds, share,
        row->profile.cost.flops * per_second, row->profile.cost.bytes * per_second);
}

/* Writes rows (count; one for each node that has run), dearest first, and their total. */
static ph_status write_rows(
    struct ph__writer *writer, const struct profile_row *rows, size_t count, const struct profile_row *total)
{
    PH_TRY(ph__writer_printf(writer, "%-34s %-26s %8s %10s %7s %9s %8s\n", "node", "operator", "calls", "ms",
        "share", "GFLOP/s", "GB/s"));
    for (size_t i = 0; i < count; i++)
        PH_TRY(write_row(writer, &rows[i], total->profile.time_ns));
    return write_row(writer, total, total->profile.time_ns);
}

ph_status ph__profile_write(const struct ph_executor *executor, struct ph__writer *writer)
{
    const struct ph__graph *graph = &executor->program->graph;
    struct profile_row *rows = calloc(graph->num_nodes + 1, sizeof *rows);
    if (rows == NULL)
        return ph__out_of_memory("cannot print a profile");
    size_t count = 0;
    struct profile_row total = {.name = "total", .op = ""};
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node_profile *profile = &executor->profile[i];
        if (profile->num_calls == 0)
            continue;
        rows[count++] = (struct profile_row){graph->nodes[i].name, graph->nodes[i].op->name, *profile};
        total.profile.num_calls += profile->num_calls;
        total.profile.time_ns += profile->time_ns;
        total.profile.cost.flops += profile->cost.flops;
        total.profile.cost.bytes += profile->cost.bytes;
    }
    qsort(rows, count, sizeof *rows, by_time_descending);
    const ph_status status = write_rows(writer, rows, count, &total);
    free(rows);
    return status;
}

ph_status ph_executor_write_profile(const struct ph_executor *executor, const char *path)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, ph__profile_write(executor, writer));
}

ph_status ph_executor_write_trace(const struct ph_executor *executor, const char *path)
{
    if (executor->trace == NULL)
        return ph_fail(PH_ERROR_USAGE, "the executor has no trace; ask for one before the run");
    return ph__trace_write(executor->trace, path);
}
