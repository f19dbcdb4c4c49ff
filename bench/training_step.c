#include "training_step.h"

#include <stdlib.h>

#include "base/thread/clock.h"
#include "dlrm_case.h"
#include "figures.h"
#include "floor.h"
#include "graph/executor.h"

struct step {
    struct step_options options;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    uint64_t number;
};

static ph_status create_workspace(struct step *step)
{
    const struct ph_distribution *distribution = step->options.distribution;
    const struct ph_batch *first = &step->options.batches[0];
    return distribution != NULL
               ? distribution->create_workspace(distribution->context, step->executor, first->num_samples,
                     first->num_ids, &step->workspace)
               : ph_workspace_create(step->executor, first->num_samples, first->num_ids, &step->workspace);
}

struct step *step_create(const struct step_options *options)
{
    struct step *step = calloc(1, sizeof *step);
    if (step == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a step"));
    step->options = *options;
    if (options->beside != NULL)
        step->store = options->beside->store;
    else
        bench_check(ph_store_create(1, &step->store));
    bench_check(ph_state_create(&step->state));
    bench_check(ph_backend_create(&(struct ph_backend_options){.size = sizeof(struct ph_backend_options),
                                      .num_threads = options->threads},
        &step->backend));
    bench_check(
        ph_executor_create(options->program, step->store, step->state, step->backend, &step->executor));
    bench_check(create_workspace(step));
    bench_check(ph_workspace_set_scalar(step->workspace, "learning_rate", 0.01));
    bench_check(ph_executor_profile(step->executor, true, 0));
    return step;
}

void step_destroy(struct step *step)
{
    ph_workspace_destroy(step->workspace);
    ph_executor_destroy(step->executor);
    ph_backend_destroy(step->backend);
    ph_state_destroy(step->state);
    if (step->options.beside == NULL)
        ph_store_destroy(step->store);
    ph_program_destroy(step->options.program);
    free(step);
}

static ph_status bind(struct step *step)
{
    const struct ph_distribution *distribution = step->options.distribution;
    const struct ph_batch *batch = &step->options.batches[step->number % step->options.num_batches];
    return distribution != NULL
               ? distribution->bind(distribution->context, step->workspace, batch, 1, step->number)
               : ph_workspace_bind(step->workspace, batch, 1, step->number);
}

double step_run(struct step *step, size_t count)
{
    static const char *const entries[] = {"forward", "backward", "update"};
    for (size_t i = 0; i < step_num_nodes(step); i++)
        step->executor->profile[i] = (struct ph__node_profile){0};
    const double begin = ph__clock_seconds();
    for (size_t i = 0; i < count; i++) {
        step->number++;
        bench_check(bind(step));
        bench_check(ph_workspace_set_scalar(step->workspace, "step", (double)step->number));
        for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
            bench_check(ph_workspace_run(step->workspace, entries[k]));
    }
    const double seconds = ph__clock_seconds() - begin;
    for (size_t i = 0; i < step_num_nodes(step); i++) {
        struct ph__cost *cost = &step->executor->profile[i].cost;
        *cost = bench_cost_of_call(cost, count);
    }
    return seconds;
}

size_t step_num_nodes(const struct step *step)
{
    return step->options.program->graph.num_nodes;
}

const char *step_node_name(const struct step *step, size_t node)
{
    return step->options.program->graph.nodes[node].name;
}

double step_seconds(const struct step *step, size_t node)
{
    const struct ph__node_profile *profile = &step->executor->profile[node];
    return profile->num_calls > 0 ? (double)profile->time_ns * 1e-9 / (double)profile->num_calls : 0;
}

const struct ph__cost *step_cost(const struct step *step, size_t node)
{
    return &step->executor->profile[node].cost;
}

struct ph__team *step_team(const struct step *step)
{
    return step->backend->team;
}

ph_real *step_table(const struct step *step)
{
    return dlrm_table(step->store);
}
