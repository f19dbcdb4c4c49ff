#include "cli/plan/planning.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/memory/memory.h"
#include "base/text/number.h"
#include "cli/verb/machine_speed.h"
#include "comm/collective/comm.h"
#include "plan/fabric/fabric.h"
#include "plan/plan_choice.h"
#include "plan/plan_cost.h"
#include "plan/plan_units.h"
#include "train/config/training_program.h"

#define MAX_WORLD 4096 /* the planner weighs every pair of ranks */
#define MOST_COLUMNS 8 /* ranks, or hosts, whose links are shown */
#define GB 1000000000u

/* ---- the machine ---- */

/* Takes ranks and hosts of a topology file, of which the flags and the config may take a part. */
static ph_status read_topology(struct cli_planning *planning)
{
    const struct cli_plan_request *request = planning->request;
    const int64_t configured = planning->source.config.parallel.ranks_per_host;
    if (request->is_measured)
        return ph_fail(
            PH_ERROR_USAGE, "--measure takes no topology: leave out --topology, or set parallel.topology=");
    planning->given_title = "of the topology";
    planning->topology = (struct ph__topology){(size_t)request->world_size,
        (size_t)(request->ranks_per_host > 0 ? request->ranks_per_host : configured)};
    return ph__fabric_machine(planning->topology_path, &planning->topology, &planning->given);
}

/* Takes the ranks and hosts of the flags, else those of the ranks that measure, else the config's. */
static ph_status count_ranks(struct cli_planning *planning, const struct ph_comm *comm)
{
    const struct cli_plan_request *request = planning->request;
    const bool is_of_ranks = request->world_size == 0 && comm != NULL && ph_comm_world_size(comm) > 1;
    const bool is_flag = request->ranks_per_host > 0;
    const int64_t world_size = is_of_ranks ? (int64_t)ph_comm_world_size(comm) : request->world_size;
    int64_t num_local = planning->source.config.parallel.ranks_per_host;
    if (world_size == 0)
        return ph_fail(PH_ERROR_USAGE, "plan requires --world N, the number of ranks");
    if (is_flag)
        num_local = request->ranks_per_host;
    else if (is_of_ranks)
        num_local = (int64_t)ph_comm_ranks_per_host(comm);
    num_local = num_local > 0 ? num_local : world_size;
    if (world_size % num_local != 0)
        return ph_fail(PH_ERROR_USAGE, "--world %" PRId64 " is not a multiple of %s %" PRId64, world_size,
            is_flag ? "--ranks-per-host" : "parallel.ranks_per_host", num_local);
    planning->topology = (struct ph__topology){(size_t)world_size, (size_t)num_local};
    return PH_OK;
}

static ph_status settle_topology(struct cli_planning *planning, const struct ph_comm *comm)
{
    const char *flag = planning->request->topology;
    planning->topology_path = flag != NULL ? flag : planning->source.config.parallel.topology;
    PH_TRY(planning->topology_path != NULL ? read_topology(planning) : count_ranks(planning, comm));
    if (planning->topology.world_size > MAX_WORLD)
        return ph_fail(
            PH_ERROR_USAGE, "--world %zu: must be at most %d", planning->topology.world_size, MAX_WORLD);
    return PH_OK;
}

/* Settles the memory that a rank may spend, as a training does: from the flag or the config, else, for a new
 * plan, the rank's share of a host's memory by the topology, else of this machine's. */
static ph_status settle_rank_bytes(struct cli_planning *planning, uint64_t *rank_bytes_out)
{
    const struct cli_plan_request *request = planning->request;
    const int64_t configured = planning->source.config.parallel.memory_bytes;
    uint64_t total_bytes;
    PH_TRY(ph__memory_total_bytes("", &total_bytes));
    planning->share_bytes = planning->given.rank_bytes > 0 ? planning->given.rank_bytes
                                                           : total_bytes / planning->topology.ranks_per_host;
    *rank_bytes_out = (uint64_t)(request->rank_bytes > 0 ? request->rank_bytes : configured);
    if (*rank_bytes_out > 0 || request->plan != NULL)
        return PH_OK;
    *rank_bytes_out = planning->share_bytes;
    planning->is_limited_by_machine = planning->given.rank_bytes == 0;
    return PH_OK;
}

/* Returns the columns of the table that most bytes are read of. */
static size_t busiest_dim(const struct ph__table_list *list)
{
    size_t dim = 1;
    double most = 0;
    for (size_t i = 0; i < list->num_tables; i++) {
        const double reals = list->tables[i].ids_per_sample * (double)list->tables[i].dim;
        if (reals > most) {
            most = reals;
            dim = list->tables[i].dim;
        }
    }
    return dim;
}

/* Measures on all ranks; the first rank's figures count. */
static ph_status measure_machine(
    const struct ph__train_job *job, struct ph_comm *comm, struct cli_planning *planning)
{
    struct ph__plan_machine *measured = &planning->given;
    struct ph__team *team;
    planning->given_title = "measured here";
    PH_TRY(ph__team_create(job->run.num_threads, &team));
    const ph_status status = cli_memory_speed_measure(
        busiest_dim(&planning->list), ph__comm_num_neighbours(comm), team, &measured->memory_bytes_per_s);
    ph__team_destroy(team);
    PH_TRY(status);
    PH_TRY(cli_link_speeds_measure(comm, measured));
    return ph__comm_broadcast_once(comm, "measurements of the machine", 0, measured, sizeof *measured);
}

/* Takes the nominal machine, with the given figures where there are any. */
static ph_status settle_machine(struct cli_planning *planning)
{
    uint64_t rank_bytes;
    PH_TRY(settle_rank_bytes(planning, &rank_bytes));
    planning->machine = ph__plan_machine_nominal(rank_bytes);
    if (planning->given_title != NULL)
        ph__plan_machine_take(&planning->machine, &planning->given);
    return PH_OK;
}

/* ---- refusals ---- */

/* Returns the table with the largest row. */
static const struct ph__table_facts *widest(const struct ph__table_list *list, uint64_t *row_bytes_out)
{
    const struct ph__table_facts *widest = NULL;
    *row_bytes_out = 0;
    for (size_t i = 0; i < list->num_tables; i++) {
        const uint64_t bytes = ph__table_shard_bytes(&list->tables[i], 1, list->tables[i].dim);
        if (bytes > *row_bytes_out)
            widest = &list->tables[i];
        *row_bytes_out = bytes > *row_bytes_out ? bytes : *row_bytes_out;
    }
    return widest;
}

/* Says which world would hold the tables, or why none does. */
static ph_status advise(const struct cli_planning *planning, char *text, size_t size)
{
    const struct ph__search_options options = {
        .placing = {.pricing = &planning->basis.pricing, .limits = planning->basis.limits.limits}};
    char row[PH_NUMBER_TEXT_BYTES], limit[PH_NUMBER_TEXT_BYTES];
    uint64_t row_bytes;
    size_t world_size;
    const struct ph__table_facts *table = widest(&planning->list, &row_bytes);
    if (planning->machine.rank_bytes > 0 && row_bytes > planning->machine.rank_bytes) {
        snprintf(text, size, "one row of table '%s' takes %s, more than the %s of a rank", table->name,
            ph__bytes_text(row_bytes, row), ph__bytes_text(planning->machine.rank_bytes, limit));
        return PH_OK;
    }
    PH_TRY(ph__plan_smallest_world(&options, MAX_WORLD, &world_size));
    if (world_size > 0)
        snprintf(text, size, "%zu ranks with as much memory each would hold the tables", world_size);
    else
        snprintf(text, size, "no number of ranks up to %d would hold the tables", MAX_WORLD);
    return PH_OK;
}

static ph_status refuse(const struct cli_planning *planning)
{
    char why[1024], advice[512];
    snprintf(why, sizeof why, "%s", ph_error_text());
    if (advise(planning, advice, sizeof advice) != PH_OK)
        return ph_fail(PH_ERROR_MEMORY, "%s", why);
    if (planning->is_limited_by_machine)
        return ph_fail(PH_ERROR_MEMORY,
            "%s, its share of this machine's memory; for ranks of another machine, give --rank-memory BYTES; "
            "%s",
            why, advice);
    return ph_fail(PH_ERROR_MEMORY, "%s; %s", why, advice);
}

/* ---- planning ---- */

static bool is_by_model(const struct cli_plan_request *request)
{
    return request->is_searched || request->cost != NULL || request->run != NULL;
}

static ph_status place(struct cli_planning *planning, struct ph__plan *plan_out)
{
    const struct ph__table_list *list = &planning->list;
    if (is_by_model(planning->request))
        return cli_plan_search(planning, plan_out);
    return ph__plan_greedy(
        &planning->machine, &planning->topology, &planning->step, list->tables, list->num_tables, plan_out);
}

static ph_status make(const struct ph__train_job *job, struct cli_planning *planning)
{
    ph_status status = place(planning, &planning->plan);
    if (status == PH_OK)
        status = ph__table_list_make_units(&planning->list, job, planning->share_bytes, &planning->plan);
    return status == PH_ERROR_MEMORY ? refuse(planning) : status;
}

static ph_status read_plan(const struct cli_planning *planning, const char *path, struct ph__plan *plan_out)
{
    enum ph__dense_mode mode;
    const enum ph__dense_mode *named =
        ph__named_dense_mode(planning->source.config.parallel.dense_mode, &mode);
    PH_TRY(ph__table_list_read_plan(path, &planning->topology, &planning->list, named, plan_out));
    return ph__plan_check_bytes(plan_out, planning->list.tables, planning->machine.rank_bytes);
}

/* Finds the loads of a plan, in the list's arena, and explains them. */
static ph_status explain(struct cli_planning *planning, const struct ph__plan *plan,
    struct ph__plan_load **loads_out, struct ph__plan_explanation *explanation_out)
{
    struct ph__table_list *list = &planning->list;
    const size_t world_size = planning->topology.world_size;
    struct ph__plan_load *loads = ph__arena_alloc_array(&list->arena, world_size, sizeof *loads);
    struct ph__rank_price *prices = ph__arena_alloc_array(&list->arena, world_size, sizeof *prices);
    double slowest_ms;
    if (loads == NULL || prices == NULL)
        return PH_ERROR_MEMORY;
    *loads_out = loads;
    PH_TRY(ph__plan_loads(plan, &planning->machine, &planning->step, list->tables, loads));
    if (is_by_model(planning->request)) {
        PH_TRY(ph__plan_price(&planning->basis.pricing, plan, prices, &slowest_ms));
        ph__prices_to_loads(prices, world_size, loads);
    }
    return ph__plan_explain(&planning->basis.pricing, plan, loads, explanation_out);
}

/* Plans once more with another GB a rank, and on each host as many as it has ranks. */
static ph_status weigh_memory(struct cli_planning *planning)
{
    struct cli_planning richer = *planning;
    struct ph__plan plan = {0};
    struct ph__plan_load *loads;
    struct ph__plan_explanation explanation;
    if (planning->machine.rank_bytes == 0)
        return PH_OK;
    richer.list.arena = (struct ph__arena){0};
    richer.machine.rank_bytes += GB;
    richer.basis.pricing.machine = &richer.machine;
    ph_status status = cli_plan_limits_add(planning, GB, &richer.list.arena, &richer.basis.limits.limits);
    if (status == PH_OK)
        status = place(&richer, &plan);
    if (status == PH_OK)
        status = explain(&richer, &plan, &loads, &explanation);
    if (status == PH_OK)
        planning->gb_ms = fmax(0, planning->explanation.slowest_ms - explanation.slowest_ms);
    ph__plan_fini(&plan);
    ph__arena_fini(&richer.list.arena);
    return status;
}

static ph_status find_plan(struct cli_planning *planning, const struct ph__train_job *job)
{
    const struct cli_plan_request *request = planning->request;
    PH_TRY(request->plan != NULL ? read_plan(planning, request->plan, &planning->plan) : make(job, planning));
    PH_TRY(explain(planning, &planning->plan, &planning->loads, &planning->explanation));
    if (request->other_plan == NULL)
        return request->plan == NULL ? weigh_memory(planning) : PH_OK;
    PH_TRY(read_plan(planning, request->other_plan, &planning->other));
    return explain(planning, &planning->other, &planning->other_loads, &planning->other_explanation);
}

/* Finds the links' bytes, by the collective that a training on the topology would choose. */
static ph_status find_links(struct cli_planning *planning, const struct ph__train_job *job)
{
    struct ph__arena *arena = &planning->list.arena;
    const size_t world_size = planning->topology.world_size;
    struct ph__plan_dense dense = ph__plan_dense_of_job(job, &planning->list);
    struct ph_parallel_settings parallel = *job->parallel;
    struct ph__train_job placed = *job;
    uint32_t *groups = ph__arena_alloc_array(arena, world_size, sizeof *groups);
    if (groups == NULL)
        return PH_ERROR_MEMORY;
    parallel.topology = planning->topology_path;
    placed.parallel = &parallel;
    PH_TRY(ph__collectives_settle(&placed, &planning->topology, &planning->collectives, groups));
    PH_TRY(ph__collectives_of_plan(&planning->collectives, groups, world_size, arena, &dense.sums));
    return ph__plan_links_find(&planning->plan, &planning->step, &dense, planning->list.tables, MOST_COLUMNS,
        arena, &planning->links);
}

ph_status cli_planning_run(
    struct cli_planning *planning, const struct ph__train_job *job, struct ph_comm *comm)
{
    PH_TRY(settle_topology(planning, comm));
    PH_TRY(ph__table_list_of_job(job, &planning->list));
    if (comm != NULL)
        PH_TRY(measure_machine(job, comm, planning));
    if (comm != NULL && ph_comm_rank(comm) > 0)
        return PH_OK;
    PH_TRY(settle_machine(planning));
    planning->gb_ms = NAN;
    planning->step = ph__plan_step_of_job(job);
    planning->num_micro_batches = ph__num_micro_batches(job->train);
    PH_TRY(cli_plan_basis_init(planning));
    PH_TRY(find_plan(planning, job));
    if (planning->request->fast_bytes > 0)
        PH_TRY(ph__tiers_find(&planning->plan, &planning->step, planning->list.tables,
            (uint64_t)planning->request->fast_bytes, &planning->list.arena, &planning->tiers));
    return find_links(planning, job);
}

void cli_planning_fini(struct cli_planning *planning)
{
    ph__memory_report_fini(&planning->memory);
    cli_plan_basis_fini(&planning->basis);
    ph__plan_fini(&planning->other);
    ph__plan_fini(&planning->plan);
    ph__table_list_fini(&planning->list);
    cli_source_close(&planning->source);
}
