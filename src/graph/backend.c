/* Creates backends: kernels of the best ISA, the library for products, and the team of threads. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "graph/graph.h"

static ph_status create_team(const struct ph_backend_options *options, struct ph__team **team_out)
{
    if (options->is_fast && options->team != PH_TEAM_OPENMP)
        return ph_fail(
            PH_ERROR_USAGE, "backend: is_fast needs the threads of OpenMP: set team to PH_TEAM_OPENMP");
    return ph__team_create_kind(options->team, options->num_threads, team_out);
}

ph_status ph_backend_create(const struct ph_backend_options *options, struct ph_backend **backend_out)
{
    struct ph_backend_options own;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_backend_options"));
    struct ph_backend *backend = calloc(1, sizeof *backend);
    if (backend == NULL)
        return ph__out_of_memory("a backend");
    enum ph__isa isa = PH_ISA_REF;
    ph_status status = ph__cpu_isa(&isa);
    if (status == PH_OK)
        status = create_team(&own, &backend->team);
    if (status == PH_OK)
        status = ph__gemm_create(backend->team, own.is_fast, &backend->gemm);
    if (status != PH_OK) {
        ph_backend_destroy(backend);
        return status;
    }
    backend->kernels = ph__kernels_for(isa);
    snprintf(backend->description, sizeof backend->description, "%s, %s, %zu threads (%s)%s",
        ph__isa_name(isa), ph__gemm_library(), ph__team_num_threads(backend->team),
        ph__team_name(backend->team), own.is_fast ? ", fast" : "");
    *backend_out = backend;
    return PH_OK;
}

void ph_backend_destroy(struct ph_backend *backend)
{
    if (backend == NULL)
        return;
    ph__gemm_destroy(backend->gemm);
    ph__team_destroy(backend->team);
    free(backend);
}

size_t ph_backend_num_threads(const struct ph_backend *backend)
{
    return ph__team_num_threads(backend->team);
}

const char *ph_backend_describe(const struct ph_backend *backend)
{
    return backend->description;
}

struct block_job {
    size_t count, block;
    ph__range_task task;
    void *argument;
};

static void run_block(void *argument, size_t index, size_t worker)
{
    const struct block_job *job = argument;
    size_t first = index * job->block;
    size_t last = first + job->block < job->count ? first + job->block : job->count;
    job->task(job->argument, first, last, worker);
}

void ph__for_blocks(
    const struct ph_backend *backend, size_t count, size_t block, ph__range_task task, void *argument)
{
    struct block_job job = {count, block, task, argument};
    ph__parallel_for(backend->team, (count + block - 1) / block, run_block, &job);
}
