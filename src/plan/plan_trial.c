#include "plan/plan_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

struct ph_place_load {
    uint32_t place;
    double seconds; /* of the rank, or of the host's busiest one */
    uint64_t held_bytes;
};

static ph_status add_usage(const struct ph_trials *trials, const struct ph_table_facts *table,
    const struct ph_plan_choice *choice, struct ph_rank_usage *usage)
{
    struct ph_plan plan;
    struct ph_table_counts counts;
    PH_TRY(ph__plan_build(trials->topology, table, 1, choice, &plan));
    ph_status status = ph__expected_counts(&plan, 0, table, trials->step, &plan.arena, &counts);
    if (status == PH_OK)
        ph__table_usage(&plan, 0, table, trials->step, &counts, usage);
    ph__plan_fini(&plan);
    return status;
}

static void judge(const struct ph_trials *trials, struct ph_trial *trial)
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

static bool is_better(const struct ph_trial *a, const struct ph_trial *b)
{
    if (!a->fits || !b->fits)
        return a->fits;
    return a->busiest < b->busiest || (a->busiest == b->busiest && a->sum < b->sum);
}

/* ---- where it is tried -------------------------------------------------------------------------------------- */

static int by_seconds(const void *a, const void *b)
{
    const struct ph_place_load *left = a, *right = b;
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
static size_t list_loads(const struct ph_trials *trials, bool is_host)
{
    const size_t num_local = is_host ? trials->topology->ranks_per_host : 1;
    const size_t count = trials->topology->world_size / num_local;
    ph__usage_seconds(trials->machine, trials->topology, trials->usage, trials->seconds);
    for (size_t place = 0; place < count; place++) {
        struct ph_place_load load = {.place = (uint32_t)place};
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

/* Bytes of the largest shard that the kind makes of the table at so many places. */
static uint64_t largest_shard(const struct ph_trials *trials, const struct ph_table_facts *table,
    enum ph_shard_kind kind, size_t num_places)
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
        column_runs = ph__min(num_local, ph__column_parts(table));
    const size_t blocks = ph__divide_up(ph__divide_up(table->dim, PH_SHARD_COLUMNS), column_runs);
    return ph__part_bytes(
        table, ph__divide_up(table->num_rows, row_runs), ph__min(blocks * PH_SHARD_COLUMNS, table->dim));
}

/* The least busy places that have room; where all are wanted, all. false: there are not as many. */
static bool choose_places(const struct ph_trials *trials, const struct ph_table_facts *table,
    enum ph_shard_kind kind, size_t wanted)
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

ph_status ph__trials_try(
    struct ph_trials *trials, const struct ph_table_facts *table, enum ph_shard_kind kind, size_t num_places)
{
    struct ph_trial *last = &trials->last;
    if (num_places > 0 && !choose_places(trials, table, kind, num_places))
        return PH_OK;
    last->choice = (struct ph_plan_choice){kind, last->places, num_places};
    memcpy(last->usage, trials->usage, trials->topology->world_size * sizeof *last->usage);
    PH_TRY(add_usage(trials, table, &last->choice, last->usage));
    judge(trials, last);
    if (is_better(last, &trials->best)) {
        const struct ph_trial better = *last;
        *last = trials->best;
        trials->best = better;
    }
    return PH_OK;
}

void ph__trials_place_best(struct ph_trials *trials)
{
    memcpy(trials->usage, trials->best.usage, trials->topology->world_size * sizeof *trials->usage);
    trials->best.fits = false; /* of the next table */
}

ph_status ph__trials_weigh(
    struct ph_trials *trials, const struct ph_table_facts *table, enum ph_shard_kind kind)
{
    static const uint32_t first[] = {0};
    const struct ph_plan_choice choice = {kind, first, kind == PH_SHARD_DATA_PARALLEL ? 0 : 1};
    struct ph_trial *last = &trials->last;
    memset(last->usage, 0, trials->topology->world_size * sizeof *last->usage);
    PH_TRY(add_usage(trials, table, &choice, last->usage));
    judge(trials, last);
    return PH_OK;
}

double ph__trials_busiest(struct ph_trials *trials)
{
    struct ph_trial placed = {.usage = trials->usage};
    judge(trials, &placed);
    return placed.busiest;
}

void ph__trials_clear(struct ph_trials *trials)
{
    memset(trials->usage, 0, trials->topology->world_size * sizeof *trials->usage);
    trials->best.fits = false;
}

static bool make_room(struct ph_trial *trial, size_t world_size, struct ph_arena *arena)
{
    trial->places = ph__arena_alloc_array(arena, world_size, sizeof *trial->places);
    trial->usage = ph__arena_alloc_array(arena, world_size, sizeof *trial->usage);
    return trial->places != NULL && trial->usage != NULL;
}

ph_status ph__trials_init(const struct ph_plan_machine *machine, const struct ph_topology *topology,
    const struct ph_plan_step *step, struct ph_arena *arena, struct ph_trials *trials_out)
{
    const size_t world_size = topology->world_size;
    struct ph_trials trials = {.machine = machine, .topology = topology, .step = step};
    trials.usage = ph__arena_alloc_array(arena, world_size, sizeof *trials.usage);
    trials.seconds = ph__arena_alloc_array(arena, world_size, sizeof *trials.seconds);
    trials.loads = ph__arena_alloc_array(arena, world_size, sizeof *trials.loads);
    if (trials.usage == NULL || trials.seconds == NULL || trials.loads == NULL ||
        !make_room(&trials.last, world_size, arena) || !make_room(&trials.best, world_size, arena))
        return PH_ERROR_MEMORY;
    *trials_out = trials;
    return PH_OK;
}
