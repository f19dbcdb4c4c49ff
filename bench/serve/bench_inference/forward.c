#include "forward.h"

#include <stdlib.h>

#include "figures.h"
#include "floor.h"
#include "graph/executor.h"

struct forward {
    const struct dlrm_data *data;
    struct ph_program *program;
    struct ph_store *store;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    size_t next; /* index of the next batch */
};

struct forward *forward_create(const struct dlrm_data *data, enum ph_precision precision,
    struct ph_store *store, struct ph_state *state, size_t threads)
{
    struct forward *forward = calloc(1, sizeof *forward);
    if (forward == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: an inference"));
    forward->data = data;
    forward->store = store;
    forward->program = dlrm_inference_program(&data->of, precision);
    bench_check(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = threads},
        &forward->backend));
    bench_check(ph_executor_create(forward->program, store, state, forward->backend, &forward->executor));
    bench_check(ph_workspace_create(
        forward->executor, data->of.batch, data->batches[0].num_ids, &forward->workspace));
    return forward;
}

void forward_destroy(struct forward *forward)
{
    ph_workspace_destroy(forward->workspace);
    ph_executor_destroy(forward->executor);
    ph_backend_destroy(forward->backend);
    ph_program_destroy(forward->program);
    free(forward);
}

void forward_call(struct forward *forward)
{
    const struct ph_batch *batch = &forward->data->batches[forward->next++ % DLRM_NUM_BATCHES];
    const ph_real *probabilities;
    struct ph_shape shape;
    bench_check(ph_workspace_bind(forward->workspace, batch, 0, 0));
    bench_check(ph_workspace_run(forward->workspace, "forward"));
    bench_check(ph_workspace_output(forward->workspace, "probability", &probabilities, &shape));
}

void forward_profile(struct forward *forward, size_t calls)
{
    for (size_t node = 0; node < forward_num_nodes(forward); node++)
        forward->executor->profile[node] = (struct ph__node_profile){0};
    bench_check(ph_executor_profile(forward->executor, true, 0));
    for (size_t i = 0; i < calls; i++)
        forward_call(forward);
    bench_check(ph_executor_profile(forward->executor, false, 0));
    for (size_t node = 0; node < forward_num_nodes(forward); node++) {
        struct ph__cost *cost = &forward->executor->profile[node].cost;
        *cost = bench_cost_of_call(cost, calls);
    }
}

size_t forward_num_nodes(const struct forward *forward)
{
    return forward->program->graph.num_nodes;
}

const char *forward_node_name(const struct forward *forward, size_t node)
{
    return forward->program->graph.nodes[node].name;
}

double forward_seconds(const struct forward *forward, size_t node)
{
    const struct ph__node_profile *profile = &forward->executor->profile[node];
    return profile->num_calls > 0 ? (double)profile->time_ns * 1e-9 / (double)profile->num_calls : 0;
}

const struct ph__cost *forward_cost(const struct forward *forward, size_t node)
{
    return &forward->executor->profile[node].cost;
}

struct ph__team *forward_team(const struct forward *forward)
{
    return forward->backend->team;
}

ph_real *forward_table(const struct forward *forward)
{
    return dlrm_table(forward->store);
}
