#include "plan_exact.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file/stream.h"
#include "figures.h"
#include "plan/plan_choice.h"

enum { MOST_RANKS = 4, MOST_CUTS = 6 };

/* A way to cut a table, and what each of its ranks then has. Parts are equal, but for a row or 4 columns. */
struct cut {
    enum ph__shard_kind kind;
    uint32_t num_parts;
    float description[PH_COST_MOST_WIDTH];
    double columns, replica_ms;
    uint64_t bytes;
};

struct rank {
    float sum[PH_COST_MOST_WIDTH];
    double columns, replicas_ms;
    uint64_t bytes;
    bool is_used;
};

struct choice {
    const struct cut *cut;
    uint32_t mask; /* of its ranks */
};

struct exact {
    const struct plan_task *task;
    struct cut cuts[PLAN_MOST_WHOLE][MOST_CUTS];
    size_t num_cuts[PLAN_MOST_WHOLE];
    struct rank ranks[PLAN_MOST_WHOLE + 1][MOST_RANKS]; /* before each table */
    struct choice chosen[PLAN_MOST_WHOLE], best[PLAN_MOST_WHOLE];
    double best_ms;
};

static void add_cut(struct exact *exact, size_t table, enum ph__shard_kind kind, size_t num_parts)
{
    const struct ph__pricing *pricing = &exact->task->pricing;
    const struct ph__table_facts *facts = &exact->task->facts[table];
    const bool is_copied = kind == PH_SHARD_DATA_PARALLEL;
    const size_t columns = kind == PH_SHARD_COLUMN_WISE ? facts->dim / num_parts : facts->dim;
    const double rows = (double)facts->num_rows / (kind == PH_SHARD_ROW_WISE ? (double)num_parts : 1);
    const struct ph__cost_part part = ph__cost_part(
        pricing, table, rows, columns, is_copied ? 1 / (double)pricing->topology->world_size : 1);
    struct cut *cut = &exact->cuts[table][exact->num_cuts[table]++];
    *cut = (struct cut){.kind = kind,
        .num_parts = is_copied ? (uint32_t)pricing->topology->world_size : (uint32_t)num_parts,
        .columns = is_copied ? 0 : ph__sent_columns(facts, rows, columns),
        .replica_ms = is_copied ? ph__replica_ms(pricing, table) : 0,
        .bytes = ph__table_shard_bytes(facts, (uint64_t)ceil(rows), columns)};
    bench_check(pricing->model->describe(pricing->model->context, &part, 1, cut->description));
}

static void find_cuts(struct exact *exact, bool are_whole)
{
    for (size_t t = 0; t < exact->task->num_tables; t++) {
        add_cut(exact, t, PH_SHARD_TABLE_WISE, 1);
        for (size_t n = 2; n <= exact->task->topology.world_size && !are_whole; n *= 2) {
            if (exact->task->facts[t].dim % (n * PH_SHARD_COLUMNS) == 0)
                add_cut(exact, t, PH_SHARD_COLUMN_WISE, n);
            add_cut(exact, t, PH_SHARD_ROW_WISE, n);
        }
        if (!are_whole)
            add_cut(exact, t, PH_SHARD_DATA_PARALLEL, 1);
    }
}

static void price_leaf(struct exact *exact)
{
    const struct plan_task *task = exact->task;
    const struct rank *ranks = exact->ranks[task->num_tables];
    struct ph__rank_price prices[MOST_RANKS] = {{0}};
    float sums[MOST_RANKS * PH_COST_MOST_WIDTH];
    double compute_ms[MOST_RANKS], ms;
    for (size_t rank = 0; rank < MOST_RANKS; rank++) {
        memcpy(sums + rank * task->model.width, ranks[rank].sum, task->model.width * sizeof *sums);
        prices[rank].columns = ranks[rank].columns;
        prices[rank].replicas_ms = ranks[rank].replicas_ms;
    }
    bench_check(task->model.compute(task->model.context, sums, MOST_RANKS, compute_ms));
    for (size_t rank = 0; rank < MOST_RANKS; rank++)
        prices[rank].compute_ms = compute_ms[rank];
    bench_check(ph__price_exchanges(&task->pricing, prices, &ms));
    if (ms >= exact->best_ms)
        return;
    exact->best_ms = ms;
    memcpy(exact->best, exact->chosen, sizeof exact->best);
}

/* Lays the cut on these ranks (a bit mask); returns false where one has no room, or an empty rank stays
 * behind a later one that was empty too: ranks of one host are alike. */
static bool lay(struct exact *exact, size_t table, const struct cut *cut, uint32_t mask)
{
    const struct rank *before = exact->ranks[table];
    struct rank *ranks = exact->ranks[table + 1];
    bool was_passed = false;
    memcpy(ranks, before, sizeof exact->ranks[table]);
    for (size_t rank = 0; rank < MOST_RANKS; rank++) {
        if ((mask >> rank & 1) == 0) {
            was_passed = was_passed || !before[rank].is_used;
            continue;
        }
        if ((was_passed && !before[rank].is_used) ||
            before[rank].bytes + cut->bytes > exact->task->machine.rank_bytes)
            return false;
        for (size_t i = 0; i < exact->task->model.width; i++)
            ranks[rank].sum[i] += cut->description[i];
        ranks[rank].columns += cut->columns;
        ranks[rank].replicas_ms += cut->replica_ms;
        ranks[rank].bytes += cut->bytes;
        ranks[rank].is_used = true;
    }
    return true;
}

static void branch(struct exact *exact, size_t table)
{
    if (table == exact->task->num_tables) {
        price_leaf(exact);
        return;
    }
    for (size_t c = 0; c < exact->num_cuts[table]; c++) {
        const struct cut *cut = &exact->cuts[table][c];
        for (uint32_t mask = 1; mask < 1u << MOST_RANKS; mask++)
            if ((uint32_t)__builtin_popcount(mask) == cut->num_parts && lay(exact, table, cut, mask)) {
                exact->chosen[table] = (struct choice){cut, mask};
                branch(exact, table + 1);
            }
    }
}

/* Prices the plan of the best choices as any other plan is. */
static double price_best(const struct exact *exact)
{
    const struct plan_task *task = exact->task;
    struct ph__plan_choice choices[PLAN_MOST_WHOLE];
    uint32_t ranks[PLAN_MOST_WHOLE][MOST_RANKS];
    struct ph__plan plan;
    for (size_t t = 0; t < task->num_tables; t++) {
        const struct cut *cut = exact->best[t].cut;
        const bool is_copied = cut->kind == PH_SHARD_DATA_PARALLEL;
        size_t count = 0;
        for (uint32_t rank = 0; rank < MOST_RANKS; rank++)
            if (exact->best[t].mask >> rank & 1)
                ranks[t][count++] = rank;
        choices[t] = (struct ph__plan_choice){cut->kind, ranks[t], is_copied ? 0 : count, NULL};
    }
    bench_check(ph__plan_build(&task->topology, task->facts, task->num_tables, choices, &plan));
    const double ms = plan_task_price(task, &plan);
    ph__plan_fini(&plan);
    return ms;
}

double plan_exact(const struct plan_task *task, bool are_whole)
{
    static struct exact exact;
    assert(task->topology.world_size == MOST_RANKS);
    assert(task->num_tables <= (size_t)(are_whole ? PLAN_MOST_WHOLE : PLAN_MOST_CUT));
    memset(&exact, 0, sizeof exact);
    exact.task = task;
    exact.best_ms = INFINITY;
    find_cuts(&exact, are_whole);
    branch(&exact, 0);
    return isinf(exact.best_ms) ? exact.best_ms : price_best(&exact);
}

double plan_exact_search(const struct plan_task *task, bool are_whole)
{
    static const uint32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct ph__table_group alone[PLAN_MOST_WHOLE]; /* a group that lies together is not cut */
    struct ph__search_options options = {.placing.pricing = &task->pricing};
    struct ph__plan plan;
    double ms;
    for (size_t t = 0; t < task->num_tables; t++)
        alone[t] = (struct ph__table_group){&numbers[t], 1, false};
    if (are_whole)
        options.placing.limits = (struct ph__plan_limits){.groups = alone, .num_groups = task->num_tables};
    if (ph__plan_search(&options, &plan, &ms) != PH_OK)
        return NAN;
    ms = plan_task_price(task, &plan);
    ph__plan_fini(&plan);
    return ms;
}

/* ---- the same for a solver ---- */

static double table_ms(const struct plan_task *task, size_t table)
{
    const struct ph__cost_model *model = &task->model; /* analytic */
    const struct ph__cost_part part =
        ph__cost_part(&task->pricing, table, (double)task->facts[table].num_rows, task->facts[table].dim, 1);
    float description[PH_COST_MOST_WIDTH];
    double ms;
    bench_check(model->describe(model->context, &part, 1, description));
    bench_check(model->compute(model->context, description, 1, &ms));
    return ms;
}

static double table_columns(const struct plan_task *task, size_t table)
{
    const struct ph__table_facts *facts = &task->facts[table];
    return ph__sent_columns(facts, (double)facts->num_rows, facts->dim);
}

/* Writes that both times are at least the rank's: updates and what its columns send (or receive), and lookups
 * and the same. column_ms > 0: a column that it has; < 0: a column that others have, of which all_ms is the
 * sum. */
static void write_bounds(
    const struct plan_task *task, struct ph__writer *writer, size_t rank, double column_ms, double all_ms)
{
    const double shares[] = {1 - task->model.lookup_share, task->model.lookup_share};
    for (size_t i = 0; i < 2; i++) {
        bench_check(ph__writer_printf(writer, " z%zu", i));
        for (size_t t = 0; t < task->num_tables; t++)
            bench_check(ph__writer_printf(writer, " %+.17g x%zu_%zu",
                -shares[i] * table_ms(task, t) - column_ms * table_columns(task, t), t, rank));
        bench_check(ph__writer_printf(writer, " >= %.17g\n", all_ms));
    }
}

static void write_rank(const struct plan_task *task, struct ph__writer *writer, size_t rank)
{
    const double world_size = (double)task->topology.world_size;
    const double ms =
        1e3 * PLAN_BATCH / world_size * (double)sizeof(ph_real) / task->machine.host_bytes_per_s;
    double columns = 0;
    for (size_t t = 0; t < task->num_tables; t++)
        columns += table_columns(task, t);
    write_bounds(task, writer, rank, ms * (world_size - 1), 0);
    write_bounds(task, writer, rank, -ms, ms * columns);
    for (size_t t = 0; t < task->num_tables; t++)
        bench_check(ph__writer_printf(writer, " + %.0f x%zu_%zu",
            (double)task->facts[t].num_rows * (double)task->facts[t].weight_bytes, t, rank));
    bench_check(ph__writer_printf(writer, " <= %.0f\n", (double)task->machine.rank_bytes));
}

void plan_exact_write(const struct plan_task *task, const char *path)
{
    struct ph__writer *writer;
    bench_check(ph__writer_open(path, &writer));
    bench_check(ph__writer_printf(writer, "Minimize\n z0 + z1\nSubject To\n"));
    for (size_t rank = 0; rank < task->topology.world_size; rank++)
        write_rank(task, writer, rank);
    for (size_t t = 0; t < task->num_tables; t++) {
        for (size_t rank = 0; rank < task->topology.world_size; rank++)
            bench_check(ph__writer_printf(writer, " + x%zu_%zu", t, rank));
        bench_check(ph__writer_printf(writer, " = 1\n"));
    }
    bench_check(ph__writer_printf(writer, "Binary\n"));
    for (size_t t = 0; t < task->num_tables; t++)
        for (size_t rank = 0; rank < task->topology.world_size; rank++)
            bench_check(ph__writer_printf(writer, " x%zu_%zu\n", t, rank));
    bench_check(ph__writer_printf(writer, "End\n"));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
}
