/* The greedy planner. Tries a table with every kind that its policy allows, on the least busy ranks or hosts
 * that have room, and keeps the best trial.
 *
 * Whether cutting a table pays shows only when the other tables have their places: cut tables share the work
 * evenly, but send more, above all over the network. So several policies decide when a table that fits uncut
 * is cut, and whether it then stays on one host; each policy gives a plan, and the best plan is kept. The
 * last policy cuts everything by rows over all ranks: where that does not fit, nothing does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/text/number.h"
#include "plan/plan_cost.h"

/* ---- trials ---- */

/* A trial of a planner: one more table, at the places that suit it best, and the ranks' usage with it. The
 * planner remembers a table's best trial: the one after which the busiest rank is least busy and, of equal
 * ones, the one with the least work in all. */
struct trial {
    struct ph__plan_choice choice;
    uint32_t *places;             /* (world_size) behind choice.places */
    struct ph__rank_usage *usage; /* (world_size) of all that is placed, and of this table */
    double busiest, sum;          /* seconds: of the busiest rank, of all together */
    bool fits;                    /* into every rank's memory */
};

struct place_load {
    uint32_t place;
    double seconds; /* of the rank, or of the host's busiest rank */
    uint64_t held_bytes;
};

struct trials {
    const struct ph__plan_machine *machine; /* borrowed, like the next two */
    const struct ph__topology *topology;
    const struct ph__plan_step *step;
    struct ph__rank_usage *usage; /* (world_size) of the tables that are placed */
    struct trial last, best;      /* best.fits is false until a trial fits */
    double *seconds;              /* (world_size) scratch */
    struct place_load *loads;     /* (world_size) scratch */
};

static bool make_room(struct trial *trial, size_t world_size, struct ph__arena *arena)
{
    trial->places = ph__arena_alloc_array(arena, world_size, sizeof *trial->places);
    trial->usage = ph__arena_alloc_array(arena, world_size, sizeof *trial->usage);
    return trial->places != NULL && trial->usage != NULL;
}

/* Begins with nothing placed; the memory is the arena's. */
static ph_status trials_init(const struct ph__plan_machine *machine, const struct ph__topology *topology,
    const struct ph__plan_step *step, struct ph__arena *arena, struct trials *trials_out)
{
    const size_t world_size = topology->world_size;
    struct trials trials = {.machine = machine, .topology = topology, .step = step};
    trials.usage = ph__arena_alloc_array(arena, world_size, sizeof *trials.usage);
    trials.seconds = ph__arena_alloc_array(arena, world_size, sizeof *trials.seconds);
    trials.loads = ph__arena_alloc_array(arena, world_size, sizeof *trials.loads);
    if (trials.usage == NULL || trials.seconds == NULL || trials.loads == NULL ||
        !make_room(&trials.last, world_size, arena) || !make_room(&trials.best, world_size, arena))
        return PH_ERROR_MEMORY;
    *trials_out = trials;
    return PH_OK;
}

/* Removes all tables from the ranks. */
static void trials_clear(struct trials *trials)
{
    memset(trials->usage, 0, trials->topology->world_size * sizeof *trials->usage);
    trials->best.fits = false;
}

static ph_status add_usage(const struct trials *trials, const struct ph__table_facts *table,
    const struct ph__plan_choice *choice, struct ph__rank_usage *usage)
{
    struct ph__plan plan;
    struct ph__table_counts counts;
    PH_TRY(ph__plan_build(trials->topology, table, 1, choice, &plan));
    ph_status status = ph__expected_counts(&plan, 0, table, trials->step, &plan.arena, &counts);
    if (status == PH_OK)
        ph__table_usage(&plan, 0, table, trials->step, &counts, usage);
    ph__plan_fini(&plan);
    return status;
}

static void judge(const struct trials *trials, struct trial *trial)
{
    const uint64_t limit = trials->machine->rank_bytes;
    trial->busiest = trial->sum = 0;
    trial->fits = true;
    ph__usage_seconds(trials->machine, trials->topology, trial->usage, trials->seconds);
    for (size_t rank = 0; rank < trials->topology->world_size; rank++) {
        trial->busiest = fmax(trial->busiest, trials->seconds[rank]);
        trial->sum += trials->seconds[rank];
        trial->fits = trial->fits && (limit == 0 || trial->usage[rank].held_bytes <= limit);
    }
}

static bool is_better(const struct trial *a, const struct trial *b)
{
    if (!a->fits || !b->fits)
        return a->fits;
    return a->busiest < b->busiest || (a->busiest == b->busiest && a->sum < b->sum);
}

/* Returns the seconds of the busiest rank, with the tables placed so far. */
static double trials_busiest(struct trials *trials)
{
    struct trial placed = {.usage = trials->usage};
    judge(trials, &placed);
    return placed.busiest;
}

/* ---- places to try ---- */

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

/* Lists ranks or hosts, the least busy first. */
static size_t list_loads(const struct trials *trials, bool is_host)
{
    const size_t num_local = is_host ? trials->topology->ranks_per_host : 1;
    const size_t count = trials->topology->world_size / num_local;
    ph__usage_seconds(trials->machine, trials->topology, trials->usage, trials->seconds);
    for (size_t place = 0; place < count; place++) {
        struct place_load load = {.place = (uint32_t)place};
        for (size_t rank = place * num_local; rank < (place + 1) * num_local; rank++) {
            load.seconds = fmax(load.seconds, trials->seconds[rank]);
            if (trials->usage[rank].held_bytes > load.held_bytes)
                load.held_bytes = trials->usage[rank].held_bytes;
        }
        trials->loads[place] = load;
    }
    qsort(trials->loads, count, sizeof *trials->loads, by_seconds);
    return count;
}

/* Returns the bytes of the largest shard that the kind makes of the table at num_places places. */
static uint64_t largest_shard(const struct trials *trials, const struct ph__table_facts *table,
    enum ph__shard_kind kind, size_t num_places)
{
    const size_t num_local = trials->topology->ranks_per_host;
    size_t row_runs = 1, column_runs = 1;
    if (kind == PH_SHARD_ROW_WISE)
        row_runs = num_places;
    if (kind == PH_SHARD_TABLE_ROW_WISE || kind == PH_SHARD_GRID)
        row_runs = num_local;
    if (kind == PH_SHARD_COLUMN_WISE || kind == PH_SHARD_GRID)
        column_runs = num_places;
    if (kind == PH_SHARD_TABLE_COLUMN_WISE)
        column_runs = ph__min(num_local, ph__most_column_shards(table));
    const size_t blocks = ph__divide_up(ph__divide_up(table->dim, PH_SHARD_COLUMNS), column_runs);
    return ph__table_shard_bytes(
        table, ph__divide_up(table->num_rows, row_runs), ph__min(blocks * PH_SHARD_COLUMNS, table->dim));
}

/* Chooses the least busy places that have room; where all are wanted, all, with room or not. Returns false
 * when there are too few. */
static bool choose_places(
    const struct trials *trials, const struct ph__table_facts *table, enum ph__shard_kind kind, size_t wanted)
{
    const size_t count = list_loads(trials, ph__shard_kind_is_of_hosts(kind));
    const uint64_t limit = trials->machine->rank_bytes;
    const uint64_t needed = largest_shard(trials, table, kind, wanted);
    size_t num_chosen = 0;
    for (size_t i = 0; i < count && num_chosen < wanted; i++)
        if (wanted == count || limit == 0 || trials->loads[i].held_bytes + needed <= limit)
            trials->last.places[num_chosen++] = trials->loads[i].place;
    qsort(trials->last.places, num_chosen, sizeof *trials->last.places, ascending);
    return num_chosen == wanted;
}

/* ---- trying ---- */

/* Tries a table beside those placed, at the num_places least busy ranks or hosts that have room for it. Tries
 * nothing where there are too few; where num_places is all of them, room does not matter. */
static ph_status trials_try(
    struct trials *trials, const struct ph__table_facts *table, enum ph__shard_kind kind, size_t num_places)
{
    struct trial *last = &trials->last;
    if (num_places > 0 && !choose_places(trials, table, kind, num_places))
        return PH_OK;
    last->choice = (struct ph__plan_choice){kind, last->places, num_places, NULL};
    memcpy(last->usage, trials->usage, trials->topology->world_size * sizeof *last->usage);
    PH_TRY(add_usage(trials, table, &last->choice, last->usage));
    judge(trials, last);
    if (is_better(last, &trials->best)) {
        const struct trial better = *last;
        *last = trials->best;
        trials->best = better;
    }
    return PH_OK;
}

/* Weighs a table alone, whole on rank 0 or copied to all ranks, into trials->last. */
static ph_status trials_weigh(
    struct trials *trials, const struct ph__table_facts *table, enum ph__shard_kind kind)
{
    static const uint32_t first[] = {0};
    const struct ph__plan_choice choice = {kind, first, kind == PH_SHARD_DATA_PARALLEL ? 0 : 1, NULL};
    struct trial *last = &trials->last;
    memset(last->usage, 0, trials->topology->world_size * sizeof *last->usage);
    PH_TRY(add_usage(trials, table, &choice, last->usage));
    judge(trials, last);
    return PH_OK;
}

/* ---- policies ---- */

struct policy {
    double cut_above; /* times a rank's fair share of the whole cost: costlier tables may be cut */
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

struct search {
    struct trials trials;
    const struct ph__topology *topology;
    const struct ph__table_facts *tables;
    size_t num_tables;
    struct ph__arena arena;
    double *costs, fair_share;       /* (num_tables) seconds of each table alone on one rank */
    bool *is_better_copied;          /* (num_tables) data_parallel is less work for all ranks together */
    uint32_t *order;                 /* (num_tables) by falling cost */
    struct ph__plan_choice *choices; /* (num_tables) of the current policy */
    uint32_t *places;                /* (num_tables, world_size) of the choices */
};

/* ---- a table ---- */

static ph_status try_kind(struct search *search, size_t table, enum ph__shard_kind kind, size_t num_places)
{
    return trials_try(&search->trials, &search->tables[table], kind, num_places);
}

/* Tries 2, 4, ... places, and `most`. */
static ph_status try_counts(struct search *search, size_t table, enum ph__shard_kind kind, size_t most)
{
    for (size_t count = 2; count < most; count *= 2)
        PH_TRY(try_kind(search, table, kind, count));
    return most > 1 ? try_kind(search, table, kind, most) : PH_OK;
}

static bool has_host_kinds(const struct search *search)
{
    return ph__num_hosts(search->topology) > 1 && search->topology->ranks_per_host > 1;
}

static ph_status try_on_host(struct search *search, size_t table)
{
    PH_TRY(try_kind(search, table, PH_SHARD_TABLE_ROW_WISE, 1));
    if (ph__most_column_shards(&search->tables[table]) == 1)
        return PH_OK;
    return try_kind(search, table, PH_SHARD_TABLE_COLUMN_WISE, 1);
}

static ph_status try_everywhere(struct search *search, size_t table)
{
    const size_t world_size = search->topology->world_size;
    const size_t columns = ph__most_column_shards(&search->tables[table]);
    PH_TRY(try_counts(search, table, PH_SHARD_COLUMN_WISE, ph__min(columns, world_size)));
    PH_TRY(try_counts(search, table, PH_SHARD_ROW_WISE, world_size));
    if (!has_host_kinds(search))
        return PH_OK;
    return try_counts(search, table, PH_SHARD_GRID, ph__min(columns, ph__num_hosts(search->topology)));
}

static ph_status try_table(struct search *search, size_t table, const struct policy *policy)
{
    const bool may_be_cut = search->costs[table] > policy->cut_above * search->fair_share;
    if (policy->is_rows_only)
        return try_kind(search, table, PH_SHARD_ROW_WISE, search->topology->world_size);
    PH_TRY(try_kind(search, table, PH_SHARD_TABLE_WISE, 1));
    if (search->is_better_copied[table])
        PH_TRY(try_kind(search, table, PH_SHARD_DATA_PARALLEL, 0));
    if ((may_be_cut || !search->trials.best.fits) && has_host_kinds(search))
        PH_TRY(try_on_host(search, table));
    if ((may_be_cut && !policy->stays_on_host) || !search->trials.best.fits)
        PH_TRY(try_everywhere(search, table));
    return PH_OK;
}

/* ---- a policy ---- */

/* Places the table as in its best trial. */
static void place_best(struct search *search, size_t table)
{
    const size_t world_size = search->topology->world_size;
    struct trials *trials = &search->trials;
    struct ph__plan_choice *choice = &search->choices[table];
    uint32_t *places = search->places + table * world_size;
    *choice = trials->best.choice;
    memcpy(places, choice->places, choice->num_places * sizeof *places);
    choice->places = places;
    memcpy(trials->usage, trials->best.usage, world_size * sizeof *trials->usage);
    trials->best.fits = false; /* for the next table */
}

/* Refuses a table that did not fit by rows over all ranks, which was tried last. */
static ph_status refuse_table(const struct search *search, size_t table)
{
    const struct ph__table_facts *facts = &search->tables[table];
    const uint64_t limit = search->trials.machine->rank_bytes;
    char whole[PH_NUMBER_TEXT_BYTES], missing[PH_NUMBER_TEXT_BYTES], taken[PH_NUMBER_TEXT_BYTES],
        allowed[PH_NUMBER_TEXT_BYTES];
    const struct ph__rank_usage *after = search->trials.last.usage;
    size_t fullest = 0;
    for (size_t rank = 0; rank < search->topology->world_size; rank++)
        if (after[rank].held_bytes > after[fullest].held_bytes)
            fullest = rank;
    return ph_fail(PH_ERROR_MEMORY,
        "table '%s' (%s with its optimizer's slots) does not fit: even cut by rows over all %zu ranks, it "
        "lacks %s on rank %zu, where other tables take %s of %s",
        facts->name, ph__bytes_text(ph__table_shard_bytes(facts, facts->num_rows, facts->dim), whole),
        search->topology->world_size, ph__bytes_text(after[fullest].held_bytes - limit, missing), fullest,
        ph__bytes_text(search->trials.usage[fullest].held_bytes, taken), ph__bytes_text(limit, allowed));
}

/* Runs a policy. *num_placed_out < num_tables: the table order[*num_placed_out] fits nowhere. */
static ph_status run_policy(struct search *search, const struct policy *policy, size_t *num_placed_out)
{
    trials_clear(&search->trials);
    size_t i = 0;
    for (; i < search->num_tables; i++) {
        const size_t table = search->order[i];
        PH_TRY(try_table(search, table, policy));
        if (!search->trials.best.fits)
            break;
        place_best(search, table);
    }
    *num_placed_out = i;
    return PH_OK;
}

/* Keeps the policy's plan where it is better than the best so far, or the first. */
static ph_status keep_better(struct search *search, bool *has_plan, double *least, struct ph__plan *best)
{
    const double busiest = trials_busiest(&search->trials);
    struct ph__plan plan;
    if (*has_plan && busiest >= *least)
        return PH_OK;
    PH_TRY(ph__plan_build(search->topology, search->tables, search->num_tables, search->choices, &plan));
    ph__plan_fini(best);
    *best = plan;
    *least = busiest;
    *has_plan = true;
    return PH_OK;
}

static ph_status build_best(struct search *search, struct ph__plan *best)
{
    double least = INFINITY;
    bool has_plan = false;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        size_t num_placed;
        PH_TRY(run_policy(search, &policies[i], &num_placed));
        if (num_placed == search->num_tables)
            PH_TRY(keep_better(search, &has_plan, &least, best));
        else if (policies[i].is_rows_only && !has_plan)
            return refuse_table(search, search->order[num_placed]);
    }
    return PH_OK;
}

/* ---- the search ---- */

static ph_status weigh_tables(struct search *search)
{
    const struct trial *alone = &search->trials.last;
    for (size_t i = 0; i < search->num_tables; i++) {
        PH_TRY(trials_weigh(&search->trials, &search->tables[i], PH_SHARD_TABLE_WISE));
        const double whole_sum = alone->sum;
        search->costs[i] = alone->busiest;
        search->fair_share += search->costs[i] / (double)search->topology->world_size;
        PH_TRY(trials_weigh(&search->trials, &search->tables[i], PH_SHARD_DATA_PARALLEL));
        search->is_better_copied[i] = alone->sum < whole_sum;
    }
    return PH_OK;
}

/* Orders tables by falling cost; of equal costs the first table comes first. */
static int by_cost(const void *a, const void *b, void *context)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const double *costs = context;
    if (costs[left] != costs[right])
        return costs[left] > costs[right] ? -1 : 1;
    return left < right ? -1 : left > right;
}

static ph_status begin_search(struct search *search)
{
    struct ph__arena *arena = &search->arena;
    const size_t num_tables = search->num_tables, world_size = search->topology->world_size;
    search->costs = ph__arena_alloc_array(arena, num_tables, sizeof *search->costs);
    search->is_better_copied = ph__arena_alloc_array(arena, num_tables, sizeof *search->is_better_copied);
    search->order = ph__arena_alloc_array(arena, num_tables, sizeof *search->order);
    search->choices = ph__arena_alloc_array(arena, num_tables, sizeof *search->choices);
    search->places = ph__arena_alloc_array(arena, num_tables, world_size * sizeof *search->places);
    if (search->costs == NULL || search->is_better_copied == NULL || search->order == NULL ||
        search->choices == NULL || search->places == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables; i++)
        search->order[i] = (uint32_t)i;
    PH_TRY(weigh_tables(search));
    qsort_r(search->order, num_tables, sizeof *search->order, by_cost, search->costs);
    return PH_OK;
}

ph_status ph__plan_greedy(const struct ph__plan_machine *machine, const struct ph__topology *topology,
    const struct ph__plan_step *step, const struct ph__table_facts *tables, size_t num_tables,
    struct ph__plan *plan_out)
{
    struct search search = {.topology = topology, .tables = tables, .num_tables = num_tables};
    struct ph__plan plan = {0};
    ph_status status = trials_init(machine, topology, step, &search.arena, &search.trials);
    if (status == PH_OK)
        status = begin_search(&search);
    if (status == PH_OK)
        status = build_best(&search, &plan);
    if (status == PH_OK)
        status = ph__plan_towers_on_hosts(machine, step, tables, &plan);
    ph__arena_fini(&search.arena);
    if (status == PH_OK)
        *plan_out = plan;
    else
        ph__plan_fini(&plan);
    return status;
}
