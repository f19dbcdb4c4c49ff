/* Running waves: the threads of the team, each with what it takes to run a node by itself. */
#include "graph/wave.h"

#include <stdio.h>
#include <stdlib.h>

struct worker {
    struct ph_backend backend; /* a team of one thread, no library */
    struct ph_operand operands[2 * PH_MAX_OPERANDS];
    ph_status status; /* of `failed`, the first of its nodes in this wave that has; PH_OK: none */
    size_t failed;
    char error[1024];
};

struct ph_wave_crew {
    size_t num_workers;
    struct worker workers[]; /* each is its thread's while a wave runs, and the caller's behind it */
};

ph_status ph__wave_crew_create(const struct ph_backend *backend, struct ph_wave_crew **crew_out)
{
    const size_t num_workers = ph__team_num_threads(backend->team);
    *crew_out = NULL;
    if (num_workers == 1)
        return PH_OK;
    struct ph_wave_crew *crew = calloc(1, sizeof *crew + num_workers * sizeof crew->workers[0]);
    if (crew == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to run nodes side by side");
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

void ph__wave_crew_destroy(struct ph_wave_crew *crew)
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

/* An error's text belongs to the thread that met it: it is carried to the caller's. */
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

static ph_status first_failure(const struct ph_wave_crew *crew)
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
    struct ph_wave_crew *crew = workspace->crew;
    for (size_t i = 0; i < crew->num_workers; i++)
        crew->workers[i].status = PH_OK;
    ph__parallel_for(workspace->executor->backend->team, end - first, run_member, &wave);
    return first_failure(crew);
}
