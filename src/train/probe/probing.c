#include "train/probe/probing.h"

#include "base/file/file.h"

enum { LOOKS_PER_WEIGHT = 10 };

ph_status ph__probing_init(struct ph__probing *probing, uint64_t interval, const struct ph_program *program,
    struct ph_backend *backend)
{
    *probing = (struct ph__probing){.backend = backend, .interval = interval};
    if (interval == 0)
        return PH_OK;
    PH_TRY(ph__probe_create(program, backend->gemm, &probing->probe));
    if (probing->probe->num_products > 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "train.probe_steps: the model has no product whose weight is whole in this process; set it to 0");
}

void ph__probing_fini(struct ph__probing *probing)
{
    ph__probe_destroy(probing->probe);
    *probing = (struct ph__probing){.probe = NULL};
}

uint64_t ph__probing_bytes(const struct ph__probing *probing)
{
    return probing->probe != NULL ? ph__probe_bytes(probing->probe) : 0;
}

double ph__probing_seconds(const struct ph__probing *probing)
{
    return probing->probe != NULL ? probing->probe->seconds : 0;
}

void ph__probing_begin_step(struct ph__probing *probing, uint64_t step)
{
    probing->is_looking = probing->interval > 0 && step % probing->interval == 0;
}

ph_status ph__probing_run(struct ph__probing *probing, struct ph_workspace *workspace, const char *entry)
{
    if (!probing->is_looking)
        return ph_workspace_run(workspace, entry);
    probing->backend->simulator = ph__probe_hook(probing->probe);
    const ph_status status = ph_workspace_run(workspace, entry);
    probing->backend->simulator = NULL;
    return status;
}

ph_status ph__probing_end_step(struct ph__probing *probing, const struct ph_store *store)
{
    if (!probing->is_looking)
        return PH_OK;
    probing->is_looking = false;
    return probing->num_looks++ % LOOKS_PER_WEIGHT == 0 ? ph__probe_see_weight(probing->probe, store) : PH_OK;
}

ph_status ph__probing_write(const struct ph__probing *probing, uint64_t num_steps, const char *folder)
{
    struct ph__arena arena = {0};
    if (probing->num_looks == 0)
        return PH_OK;
    const char *path = ph__path_join(&arena, folder, PH_PROBE_FILE);
    const ph_status status =
        path != NULL ? ph__probe_write(probing->probe, num_steps, path) : PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status;
}
