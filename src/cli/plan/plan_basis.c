#include <math.h>
#include <stdio.h>

#include "cli/output.h"
#include "cli/plan/planning.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "train/cost/cost_folder.h"

/* ---- what a search goes by ---- */

static ph_status load_costs(struct cli_planning *planning)
{
    struct cli_plan_basis *basis = &planning->basis;
    const struct cli_plan_request *request = planning->request;
    PH_TRY(ph__cost_load(request->cost, request->may_be_foreign, &basis->nets, &basis->facts));
    basis->model = ph__cost_nets_model(basis->nets);
    if (basis->facts.batch_size == planning->step.batch_size)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "%s: costs of batches of %llu samples, and the job's have %zu: learn them by phloem plan %s --learn "
        "%s",
        request->cost, (unsigned long long)basis->facts.batch_size, planning->step.batch_size, request->path,
        request->cost);
}

ph_status cli_plan_basis_init(struct cli_planning *planning)
{
    const struct cli_plan_request *request = planning->request;
    const struct ph__table_list *list = &planning->list;
    struct cli_plan_basis *basis = &planning->basis;
    basis->analytic = (struct ph__analytic_cost){planning->machine, planning->step};
    basis->model = ph__analytic_model(&basis->analytic);
    basis->pricing = (struct ph__pricing){.model = &basis->model,
        .machine = &planning->machine,
        .topology = &planning->topology,
        .step = &planning->step,
        .tables = list->tables,
        .num_tables = list->num_tables};
    if (request->cost != NULL)
        PH_TRY(load_costs(planning));
    if (request->limits != NULL)
        PH_TRY(ph__limits_read(request->limits, &planning->topology, planning->machine.rank_bytes,
            list->tables, list->num_tables, &basis->limits));
    basis->pricing.slowness = basis->limits.slowness;
    if (request->run != NULL) {
        PH_TRY(ph__kept_costs_learn(request->run, request->may_be_foreign, &basis->pricing, &basis->learnt));
        basis->pricing.model = &basis->learnt.model;
    }
    return request->from != NULL
               ? ph__table_list_read_plan(request->from, &planning->topology, list, NULL, &basis->from)
               : PH_OK;
}

void cli_plan_basis_fini(struct cli_plan_basis *basis)
{
    ph__learnt_costs_fini(&basis->learnt);
    ph__cost_nets_destroy(basis->nets);
    ph__limits_fini(&basis->limits);
    ph__plan_fini(&basis->from);
}

ph_status cli_plan_limits_add(const struct cli_planning *planning, uint64_t bytes, struct ph__arena *arena,
    struct ph__plan_limits *limits)
{
    const struct ph__topology *topology = &planning->topology;
    const uint64_t *former = limits->rank_bytes;
    uint64_t *more = ph__arena_alloc_array(arena, topology->world_size, sizeof *more);
    if (more == NULL)
        return PH_ERROR_MEMORY;
    for (size_t rank = 0; former != NULL && rank < topology->world_size; rank++)
        more[rank] = former[rank] > 0 ? former[rank] + bytes : 0;
    limits->rank_bytes = former != NULL ? more : NULL;
    limits->host_bytes += limits->host_bytes > 0 ? bytes * topology->ranks_per_host : 0;
    return PH_OK;
}

/* ---- the search ---- */

struct watch {
    struct cli_progress progress;
    bool is_quiet;
    const volatile int *signal;
};

static bool watch_search(void *context, const struct ph__search_progress *progress)
{
    struct watch *watch = context;
    char line[160];
    if (isfinite(progress->ms))
        snprintf(line, sizeof line, "level %zu: %zu ways to cut the tables, the best takes %.3f ms a step",
            progress->level, progress->num_tried, progress->ms);
    else
        snprintf(line, sizeof line, "level %zu: %zu ways to cut the tables, the best is %.1f MB short",
            progress->level, progress->num_tried, (double)progress->short_bytes / 1e6);
    if (!watch->is_quiet)
        cli_progress_show_text(&watch->progress, line);
    return *watch->signal != 0;
}

ph_status cli_plan_search(struct cli_planning *planning, struct ph__plan *plan_out)
{
    const struct cli_plan_request *request = planning->request;
    const struct cli_plan_basis *basis = &planning->basis;
    struct watch watch = {cli_progress_on(stderr), request->is_quiet, cli_stop_signal()};
    const struct ph__search_options options = {.placing = {.pricing = &basis->pricing,
                                                   .limits = basis->limits.limits,
                                                   .from = request->from != NULL ? &basis->from : NULL,
                                                   .ms_per_moved_gb = request->move_ms},
        .progress = watch_search,
        .context = &watch};
    double slowest_ms;
    const ph_status status = ph__plan_search(&options, plan_out, &slowest_ms);
    cli_progress_end(&watch.progress);
    if (status == PH_OK && *watch.signal != 0)
        cli_print_note(NULL, "the search was interrupted: this is the best plan so far");
    return status;
}
