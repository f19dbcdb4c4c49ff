#include "plan_baselines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "plan/plan_choice.h"

/* Places under way: what ranks have so far, and each table's rank, or ALL for rows over all ranks. */
enum { ALL = PLAN_MOST_RANKS };
struct places {
    double loads[PLAN_MOST_RANKS];
    uint64_t bytes[PLAN_MOST_RANKS];
    uint32_t ranks[PLAN_POOL];
};

static uint64_t whole_bytes(const struct plan_task *task, size_t table)
{
    return ph__table_shard_bytes(&task->facts[table], task->facts[table].num_rows, task->facts[table].dim);
}

static int heaviest_first(const void *a, const void *b, void *context)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const double *weights = context;
    if (weights[left] != weights[right])
        return weights[left] > weights[right] ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void sort_by(double *weights, size_t count, uint32_t *order_out)
{
    for (uint32_t i = 0; i < count; i++)
        order_out[i] = i;
    qsort_r(order_out, count, sizeof *order_out, heaviest_first, weights);
}

/* Lays whole tables, the heaviest first, each on the lightest rank that has room. Tables with the rank ALL
 * have their places. */
static bool lay_whole(struct plan_task *task, double *weights, struct places *places)
{
    const size_t world_size = task->topology.world_size;
    uint32_t order[PLAN_POOL];
    sort_by(weights, task->num_tables, order);
    for (size_t i = 0; i < task->num_tables; i++) {
        const uint64_t bytes = whole_bytes(task, order[i]);
        size_t best = world_size;
        if (places->ranks[order[i]] == ALL)
            continue;
        for (size_t rank = 0; rank < world_size; rank++)
            if (places->bytes[rank] + bytes <= task->machine.rank_bytes &&
                (best == world_size || places->loads[rank] < places->loads[best]))
                best = rank;
        if (best == world_size)
            return false;
        places->ranks[order[i]] = (uint32_t)best;
        places->loads[best] += weights[order[i]];
        places->bytes[best] += bytes;
    }
    return true;
}

static void build(const struct plan_task *task, const struct places *places, struct ph__plan *plan_out)
{
    struct ph__plan_choice choices[PLAN_POOL];
    uint32_t all[PLAN_MOST_RANKS];
    for (uint32_t rank = 0; rank < PLAN_MOST_RANKS; rank++)
        all[rank] = rank;
    for (size_t t = 0; t < task->num_tables; t++)
        choices[t] = places->ranks[t] == ALL
                         ? (struct ph__plan_choice){PH_SHARD_ROW_WISE, all, task->topology.world_size, NULL}
                         : (struct ph__plan_choice){PH_SHARD_TABLE_WISE, &places->ranks[t], 1, NULL};
    bench_check(ph__plan_build(&task->topology, task->facts, task->num_tables, choices, plan_out));
}

static bool plan_by(struct plan_task *task, double (*weigh)(const struct plan_task *task, size_t table),
    struct ph__plan *plan_out)
{
    struct places places = {0};
    double weights[PLAN_POOL];
    for (size_t t = 0; t < task->num_tables; t++)
        weights[t] = weigh(task, t);
    if (!lay_whole(task, weights, &places))
        return false;
    build(task, &places, plan_out);
    return true;
}

/* ---- random, and the four heuristics of NeuroShard's comparison ---- */

static bool plan_random(struct plan_task *task, struct ph__plan *plan_out)
{
    struct places places = {0};
    for (size_t t = 0; t < task->num_tables; t++) {
        uint32_t fitting[PLAN_MOST_RANKS];
        size_t count = 0;
        for (uint32_t rank = 0; rank < task->topology.world_size; rank++)
            if (places.bytes[rank] + whole_bytes(task, t) <= task->machine.rank_bytes)
                fitting[count++] = rank;
        if (count == 0)
            return false;
        places.ranks[t] = fitting[ph__rng_below(&task->rng, count)];
        places.bytes[places.ranks[t]] += whole_bytes(task, t);
    }
    build(task, &places, plan_out);
    return true;
}

static double dim(const struct plan_task *task, size_t table)
{
    return (double)task->facts[table].dim;
}

static double bytes(const struct plan_task *task, size_t table)
{
    return (double)whole_bytes(task, table);
}

static double lookups(const struct plan_task *task, size_t table)
{
    return dim(task, table) * task->facts[table].ids_per_sample;
}

static double lookups_rows(const struct plan_task *task, size_t table)
{
    return lookups(task, table) * log10((double)task->facts[table].num_rows);
}

static bool plan_by_dim(struct plan_task *task, struct ph__plan *plan_out)
{
    return plan_by(task, dim, plan_out);
}

static bool plan_by_bytes(struct plan_task *task, struct ph__plan *plan_out)
{
    return plan_by(task, bytes, plan_out);
}

static bool plan_by_lookups(struct plan_task *task, struct ph__plan *plan_out)
{
    return plan_by(task, lookups, plan_out);
}

static bool plan_by_lookups_rows(struct plan_task *task, struct ph__plan *plan_out)
{
    return plan_by(task, lookups_rows, plan_out);
}

/* ---- TorchRec's rules ---- */

/* Returns the seconds of a table's shard, whole or one of world_size cuts of its rows: ids and rows that are
 * read, and vectors that are written, at the memory's rate; backward takes twice as long; vectors travel each
 * way at the rate within a host. */
static double torchrec_seconds(const struct plan_task *task, size_t table, size_t num_cuts)
{
    const double ids = task->facts[table].ids_per_sample * PLAN_BATCH / (double)num_cuts;
    const double vector = (double)(task->facts[table].dim * sizeof(ph_real)), sent = PLAN_BATCH * vector;
    const double touched = ids * ((double)sizeof(int64_t) + vector) + sent;
    return 3 * touched / task->machine.memory_bytes_per_s + 2 * sent / task->machine.host_bytes_per_s;
}

/* Lays a proposal: tables with the rank ALL cut by rows, the others whole. Returns its slowest rank's
 * seconds; INFINITY: it does not fit. */
static double lay_proposal(struct plan_task *task, double *whole, struct places *places)
{
    const size_t world_size = task->topology.world_size;
    double slowest = 0;
    for (size_t t = 0; t < task->num_tables; t++)
        for (size_t rank = 0; places->ranks[t] == ALL && rank < world_size; rank++) {
            places->loads[rank] += torchrec_seconds(task, t, world_size);
            places->bytes[rank] += ph__table_shard_bytes(
                &task->facts[t], (task->facts[t].num_rows + world_size - 1) / world_size, task->facts[t].dim);
        }
    for (size_t rank = 0; rank < world_size; rank++)
        if (places->bytes[rank] > task->machine.rank_bytes)
            return (double)INFINITY;
    if (!lay_whole(task, whole, places))
        return (double)INFINITY;
    for (size_t rank = 0; rank < world_size; rank++)
        slowest = fmax(slowest, places->loads[rank]);
    return slowest;
}

/* Proposes whole tables, and then cuts one table after the other by rows, that first whose cost grows least.
 * Cuts of columns are at least 128 wide, so that no table here has any. No memory is held in reserve. */
static bool plan_torchrec(struct plan_task *task, struct ph__plan *plan_out)
{
    double whole[PLAN_POOL], saved[PLAN_POOL], best_seconds = INFINITY;
    uint32_t order[PLAN_POOL];
    struct places best = {0};
    for (size_t t = 0; t < task->num_tables; t++) {
        const double world_size = (double)task->topology.world_size;
        whole[t] = torchrec_seconds(task, t, 1);
        saved[t] = whole[t] - world_size * torchrec_seconds(task, t, task->topology.world_size);
    }
    sort_by(saved, task->num_tables, order);
    for (size_t num_cut = 0; num_cut <= task->num_tables; num_cut++) {
        struct places places = {0};
        for (size_t i = 0; i < num_cut; i++)
            places.ranks[order[i]] = ALL;
        const double seconds = lay_proposal(task, whole, &places);
        if (seconds < best_seconds) {
            best = places;
            best_seconds = seconds;
        }
    }
    if (isinf(best_seconds))
        return false;
    build(task, &best, plan_out);
    return true;
}

/* ---- our own ---- */

static bool plan_greedily(struct plan_task *task, struct ph__plan *plan_out)
{
    return ph__plan_greedy(&task->machine, &task->topology, &task->step, task->facts, task->num_tables,
               plan_out) == PH_OK;
}

static bool plan_by_search(struct plan_task *task, struct ph__plan *plan_out)
{
    const struct ph__search_options options = {.placing.pricing = &task->pricing};
    double ms;
    return ph__plan_search(&options, plan_out, &ms) == PH_OK;
}

const struct plan_method plan_methods[PLAN_NUM_METHODS] = {{"random", plan_random}, {"dim", plan_by_dim},
    {"bytes", plan_by_bytes}, {"dim*pooling", plan_by_lookups},
    {"dim*pooling*log10(rows)", plan_by_lookups_rows}, {"torchrec_rules", plan_torchrec},
    {"greedy", plan_greedily}, {"search", plan_by_search}};
