/* The greedy planner. A table is tried with every kind that its policy allows, at the ranks or hosts that are least busy by
 * then and have room; the trial after which the busiest rank is least busy stays, of equal ones that with the least work in all.
 *
 * Whether cutting a table pays shows only when the others have found their places: cut tables share the work evenly and send
 * more, over the network most. So there are several policies of when a table is cut that need not be, and whether it then stays
 * on its host; each gives a plan, and the best stays. The last cuts everything by rows over all ranks: where that does not fit,
 * nothing does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sizes.h"
#include "plan/plan_cost.h"

struct policy {
    double cut_above; /* times a rank's fair share of the whole cost: tables that cost more may be cut */
    bool stays_on_host;
    bool is_rows_only;
};

static const struct policy policies[] = {
    {INFINITY, false, false},
    {1, true, false},
    {1, false, false},
    {.5, true, false},
    {.5, false, false},
    {.25, true, false},
    {.25, false, false},
    {0, true, false},
    {0, false, false},
    {0, false, true},
};

struct place_load {
    uint32_t place;
    double seconds; /* of the rank, or of the host's busiest one */
    uint64_t held_bytes;
};

struct trial {
    struct ph_plan_choice choice;
    struct ph_rank_usage *usage; /* (world_size) behind it */
    double busiest, sum;         /* seconds */
    bool fits;
};

struct search {
    const struct ph_plan_machine *machine;
    const struct ph_topology *topology;
    const struct ph_plan_step *step;
    const struct ph_table_facts *tables;
    size_t num_tables;
    struct ph_arena arena;
    double *costs, fair_share;   /* (num_tables) seconds of each by itself on one rank */
    bool *is_better_copied;      /* (num_tables) data_parallel is less work for all ranks together */
    uint32_t *order;             /* (num_tables) by falling cost */
    double *seconds;             /* (world_size) scratch */
    struct place_load *loads;    /* (world_size) scratch */
    struct ph_rank_usage *usage; /* (world_size) of what is placed */
    struct trial trial, best;    /* of the table at hand */
    uint32_t *trial_places, *best_places;
    struct ph_plan_choice *choices; /* (num_tables) of the policy at hand */
    uint32_t *places;               /* (num_tables, world_size) of these */
};

static size_t num_hosts(const struct search *search)
{
    return search->topology->world_size / search->topology->ranks_per_host;
}

/* ---- a trial ------------------------------------------------------------------------------------------------ */

static ph_status add_usage(const struct search *search, const struct ph_table_facts *table,
    const struct ph_plan_choice *choice, struct ph_rank_usage *usage)
{
    struct ph_plan plan;
    struct ph_table_counts counts;
    PH_TRY(ph__plan_build(search->topology, table, 1, choice, &plan));
    ph_status status = ph__expected_counts(&plan, 0, table, search->step, &plan.arena, &counts);
    if (status == PH_OK)
        ph__table_usage(&plan, 0, table, search->step, &counts, usage);
    ph__plan_fini(&plan);
    return status;
}

static void judge(const struct search *search, struct trial *trial)
{
    const uint64_t limit = search->machine->rank_bytes;
    trial->busiest = trial->sum = 0;
    trial->fits = true;
    ph__usage_seconds(search->machine, search->topology, trial->usage, search->seconds);
    for (size_t rank = 0; rank < search->topology->world_size; rank++) {
        trial->busiest = fmax(trial->busiest, search->seconds[rank]);
        trial->sum += search->seconds[rank];
        trial->fits = trial->fits && (limit == 0 || trial->usage[rank].held_bytes <= limit);
    }
}

static bool is_better(const struct trial *a, const struct trial *b)
{
    if (!a->fits || !b->fits)
        return a->fits;
    return a->busiest < b->busiest || (a->busiest == b->busiest && a->sum < b->sum);
}

/* ---- where it is tried -------------------------------------------------------------------------------------- */

static int by_seconds(const void *a, const void *b)
{
    const struct place_load *left = a, *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Ranks or hosts, the least busy first. */
static size_t list_loads(const struct search *search, bool is_host)
{
    const size_t num_local = is_host ? search->topology->ranks_per_host : 1;
    const size_t count = search->topology->world_size / num_local;
    ph__usage_seconds(search->machine, search->topology, search->usage, search->seconds);
    for (size_t place = 0; place < count; place++) {
        struct place_load load = {.place = (uint32_t)place};
        for (size_t rank = place * num_local; rank < (place + 1) * num_local; rank++) {
            load.seconds = fmax(load.seconds, search->seconds[rank]);
            if (search->usage[rank].held_bytes > load.held_bytes)
                load.held_bytes = search->usage[rank].held_bytes;
        }
        search->loads[place] = load;
    }
    qsort(search->loads, count, sizeof *search->loads, by_seconds);
    return count;
}

/* Bytes of the largest shard that the kind makes of the table at so many places. */
static uint64_t largest_shard(const struct search *search, const struct ph_table_facts *table,
    enum ph_shard_kind kind, size_t num_places)
{
    const size_t num_local = search->topology->ranks_per_host;
    size_t row_runs = 1, column_runs = 1;
    if (kind == PH_SHARD_ROW_WISE)
        row_runs = num_places;
    if (kind == PH_SHARD_TABLE_ROW_WISE || kind == PH_SHARD_GRID)
        row_runs = num_local;
    if (kind == PH_SHARD_COLUMN_WISE || kind == PH_SHARD_GRID)
        column_runs = num_places;
    if (kind == PH_SHARD_TABLE_COLUMN_WISE)
        column_runs = ph__min(num_local, ph__column_parts(table->dim));
    const size_t blocks = ph__divide_up(ph__divide_up(table->dim, PH_SHARD_COLUMNS), column_runs);
    return ph__part_bytes(
        table, ph__divide_up(table->num_rows, row_runs), ph__min(blocks * PH_SHARD_COLUMNS, table->dim));
}

/* The least busy places that have room; where all are wanted, all. false: there are not as many. */
static bool choose_places(
    const struct search *search, const struct ph_table_facts *table, enum ph_shard_kind kind, size_t wanted)
{
    const enum ph_place place = ph__shard_kind_place(kind);
    const size_t count = list_loads(search, place == PH_PLACE_HOST || place == PH_PLACE_HOSTS);
    const uint64_t limit = search->machine->rank_bytes;
    const uint64_t needed = largest_shard(search, table, kind, wanted);
    size_t num_chosen = 0;
    for (size_t i = 0; i < count && num_chosen < wanted; i++)
        if (wanted == count || limit == 0 || search->loads[i].held_bytes + needed <= limit)
            search->trial_places[num_chosen++] = search->loads[i].place;
    qsort(search->trial_places, num_chosen, sizeof *search->trial_places, ascending);
    return num_chosen == wanted;
}

static void keep_trial(struct search *search)
{
    const struct trial trial = search->trial;
    uint32_t *places = search->trial_places;
    search->trial = search->best;
    search->best = trial;
    search->trial_places = search->best_places;
    search->best_places = places;
    search->best.choice.places = places;
}

static ph_status try_kind(struct search *search, size_t table, enum ph_shard_kind kind, size_t num_places)
{
    const struct ph_table_facts *facts = &search->tables[table];
    struct trial *trial = &search->trial;
    if (num_places > 0 && !choose_places(search, facts, kind, num_places))
        return PH_OK;
    trial->choice = (struct ph_plan_choice){kind, search->trial_places, num_places};
    memcpy(trial->usage, search->usage, search->topology->world_size * sizeof *trial->usage);
    PH_TRY(add_usage(search, facts, &trial->choice, trial->usage));
    judge(search, trial);
    if (is_better(trial, &search->best))
        keep_trial(search);
    return PH_OK;
}

/* 2, 4, ... places, and all of them. */
static ph_status try_counts(struct search *search, size_t table, enum ph_shard_kind kind, size_t most)
{
    for (size_t count = 2; count < most; count *= 2)
        PH_TRY(try_kind(search, table, kind, count));
    return most > 1 ? try_kind(search, table, kind, most) : PH_OK;
}

static bool has_host_kinds(const struct search *search)
{
    return num_hosts(search) > 1 && search->topology->ranks_per_host > 1;
}

static ph_status try_on_host(struct search *search, size_t table)
{
    PH_TRY(try_kind(search, table, PH_SHARD_TABLE_ROW_WISE, 1));
    if (ph__column_parts(search->tables[table].dim) == 1)
        return PH_OK;
    return try_kind(search, table, PH_SHARD_TABLE_COLUMN_WISE, 1);
}

static ph_status try_everywhere(struct search *search, size_t table)
{
    const size_t world_size = search->topology->world_size;
    const size_t columns = ph__column_parts(search->tables[table].dim);
    PH_TRY(try_counts(search, table, PH_SHARD_COLUMN_WISE, ph__min(columns, world_size)));
    PH_TRY(try_counts(search, table, PH_SHARD_ROW_WISE, world_size));
    if (!has_host_kinds(search))
        return PH_OK;
    return try_counts(search, table, PH_SHARD_GRID, ph__min(columns, num_hosts(search)));
}

static ph_status try_table(struct search *search, size_t table, const struct policy *policy)
{
    const bool may_be_cut = search->costs[table] > policy->cut_above * search->fair_share;
    search->best.fits = false;
    if (policy->is_rows_only)
        return try_kind(search, table, PH_SHARD_ROW_WISE, search->topology->world_size);
    PH_TRY(try_kind(search, table, PH_SHARD_TABLE_WISE, 1));
    if (search->is_better_copied[table])
        PH_TRY(try_kind(search, table, PH_SHARD_DATA_PARALLEL, 0));
    if ((may_be_cut || !search->best.fits) && has_host_kinds(search))
        PH_TRY(try_on_host(search, table));
    if ((may_be_cut && !policy->stays_on_host) || !search->best.fits)
        PH_TRY(try_everywhere(search, table));
    return PH_OK;
}

/* ---- a policy ----------------------------------------------------------------------------------------------- */

static void place_best(struct search *search, size_t table)
{
    struct ph_plan_choice *choice = &search->choices[table];
    uint32_t *places = search->places + table * search->topology->world_size;
    *choice = search->best.choice;
    memcpy(places, search->best_places, choice->num_places * sizeof *places);
    choice->places = places;
    memcpy(search->usage, search->best.usage, search->topology->world_size * sizeof *search->usage);
}

/* Of rows over all ranks, which was tried last. */
static ph_status refuse_table(const struct search *search, size_t table)
{
    const struct ph_table_facts *facts = &search->tables[table];
    const uint64_t limit = search->machine->rank_bytes;
    char whole[PH_NUMBER_TEXT_BYTES], missing[PH_NUMBER_TEXT_BYTES], taken[PH_NUMBER_TEXT_BYTES],
        allowed[PH_NUMBER_TEXT_BYTES];
    size_t fullest = 0;
    for (size_t rank = 0; rank < search->topology->world_size; rank++)
        if (search->trial.usage[rank].held_bytes > search->trial.usage[fullest].held_bytes)
            fullest = rank;
    return ph_fail(PH_ERROR_MEMORY,
        "table '%s' (%s with its optimizer's slots) fits nowhere: cut by rows over all %zu ranks, %s are "
        "missing on rank %zu, where other tables take %s of %s",
        facts->name, ph__bytes_text(ph__part_bytes(facts, facts->num_rows, facts->dim), whole),
        search->topology->world_size,
        ph__bytes_text(search->trial.usage[fullest].held_bytes - limit, missing), fullest,
        ph__bytes_text(search->usage[fullest].held_bytes, taken), ph__bytes_text(limit, allowed));
}

/* num_placed_out < num_tables: the table order[num_placed] fits nowhere. */
static ph_status run_policy(struct search *search, const struct policy *policy, size_t *num_placed_out)
{
    memset(search->usage, 0, search->topology->world_size * sizeof *search->usage);
    size_t i = 0;
    for (; i < search->num_tables; i++) {
        const size_t table = search->order[i];
        PH_TRY(try_table(search, table, policy));
        if (!search->best.fits)
            break;
        place_best(search, table);
    }
    *num_placed_out = i;
    return PH_OK;
}

static double busiest_rank(const struct search *search)
{
    struct trial trial = {.usage = search->usage};
    judge(search, &trial);
    return trial.busiest;
}

static ph_status build_best(struct search *search, struct ph_plan *plan_out)
{
    double least = INFINITY;
    bool has_plan = false;
    struct ph_plan best = {0};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        size_t num_placed;
        ph_status status = run_policy(search, &policies[i], &num_placed);
        const bool is_whole = status == PH_OK && num_placed == search->num_tables;
        if (is_whole && (!has_plan || busiest_rank(search) < least)) {
            ph__plan_fini(&best);
            status =
                ph__plan_build(search->topology, search->tables, search->num_tables, search->choices, &best);
            least = busiest_rank(search);
            has_plan = true;
        } else if (status == PH_OK && !is_whole && policies[i].is_rows_only && !has_plan) {
            status = refuse_table(search, search->order[num_placed]);
        }
        if (status != PH_OK) {
            ph__plan_fini(&best);
            return status;
        }
    }
    *plan_out = best;
    return PH_OK;
}

/* ---- the search --------------------------------------------------------------------------------------------- */

/* What the table would be by itself. */
static ph_status weigh(struct search *search, size_t table, enum ph_shard_kind kind, size_t num_places)
{
    static const uint32_t first[] = {0};
    const struct ph_plan_choice choice = {kind, first, num_places};
    struct trial *trial = &search->trial;
    memset(trial->usage, 0, search->topology->world_size * sizeof *trial->usage);
    PH_TRY(add_usage(search, &search->tables[table], &choice, trial->usage));
    judge(search, trial);
    return PH_OK;
}

static ph_status weigh_tables(struct search *search)
{
    for (size_t i = 0; i < search->num_tables; i++) {
        PH_TRY(weigh(search, i, PH_SHARD_TABLE_WISE, 1));
        const double whole_sum = search->trial.sum;
        search->costs[i] = search->trial.busiest;
        search->fair_share += search->costs[i] / (double)search->topology->world_size;
        PH_TRY(weigh(search, i, PH_SHARD_DATA_PARALLEL, 0));
        search->is_better_copied[i] = search->trial.sum < whole_sum;
    }
    return PH_OK;
}

/* Of equal costs the first table comes first. */
static int by_cost(const void *a, const void *b, void *context)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const double *costs = context;
    if (costs[left] != costs[right])
        return costs[left] > costs[right] ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void *room_for(struct search *search, size_t count, size_t size, ph_status *status)
{
    void *room = *status == PH_OK ? ph__arena_alloc_array(&search->arena, count, size) : NULL;
    if (room == NULL)
        *status = PH_ERROR_MEMORY;
    return room;
}

static ph_status begin_search(struct search *search)
{
    const size_t world_size = search->topology->world_size, num_tables = search->num_tables;
    ph_status status = PH_OK;
    search->costs = room_for(search, num_tables, sizeof *search->costs, &status);
    search->is_better_copied = room_for(search, num_tables, sizeof *search->is_better_copied, &status);
    search->order = room_for(search, num_tables, sizeof *search->order, &status);
    search->seconds = room_for(search, world_size, sizeof *search->seconds, &status);
    search->loads = room_for(search, world_size, sizeof *search->loads, &status);
    search->usage = room_for(search, world_size, sizeof *search->usage, &status);
    search->trial.usage = room_for(search, world_size, sizeof *search->usage, &status);
    search->best.usage = room_for(search, world_size, sizeof *search->usage, &status);
    search->trial_places = room_for(search, world_size, sizeof *search->trial_places, &status);
    search->best_places = room_for(search, world_size, sizeof *search->best_places, &status);
    search->choices = room_for(search, num_tables, sizeof *search->choices, &status);
    search->places = room_for(search, num_tables, world_size * sizeof *search->places, &status);
    PH_TRY(status);
    for (size_t i = 0; i < num_tables; i++)
        search->order[i] = (uint32_t)i;
    PH_TRY(weigh_tables(search));
    qsort_r(search->order, num_tables, sizeof *search->order, by_cost, search->costs);
    return PH_OK;
}

ph_status ph__plan_greedy(const struct ph_plan_machine *machine, const struct ph_topology *topology,
    const struct ph_plan_step *step, const struct ph_table_facts *tables, size_t num_tables,
    struct ph_plan *plan_out)
{
    struct search search = {
        .machine = machine, .topology = topology, .step = step, .tables = tables, .num_tables = num_tables};
    ph_status status = begin_search(&search);
    if (status == PH_OK)
        status = build_best(&search, plan_out);
    ph__arena_fini(&search.arena);
    return status;
}
