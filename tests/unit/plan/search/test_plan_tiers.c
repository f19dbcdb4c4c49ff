/* Cuts between fast and slow memory: against counts of drawn ids, and against all choices there are. */
#include "unit/plan/plan_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/synth/synth_teacher.h"
#include "plan/search/plan_tiers.h"
#include "train/cost/cost_tables.h"

/* ---- tables of drawn ids ---- */

enum { EQUAL_TABLES = 5, DRAWN_ROWS = 100000, DRAWN_IDS = 1000000, ROW_BYTES = 68 };

/* A table whose ids are drawn twice: once to count reads, and once to try cuts. */
struct drawn_table {
    struct ph__zipf zipf;
    uint32_t *rows;   /* (num_rows) row of each item of the law, in no order */
    uint32_t *counts; /* (num_rows) reads of each row */
    uint32_t *fresh;  /* (num_rows) the same, by as many other ids */
    uint32_t *order;  /* (num_rows) rows by falling counts */
    size_t num_rows, num_ids;
    struct ph__access_step *steps; /* one for each count */
    size_t num_steps;
};

static uint32_t draw_row(const struct drawn_table *table, struct ph__rng_sequence *rng)
{
    return table->rows[ph__zipf_draw(&table->zipf, rng) - 1];
}

static const uint32_t *counts_to_sort_by;

static int by_falling_count(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const uint32_t of_left = counts_to_sort_by[left], of_right = counts_to_sort_by[right];
    if (of_left != of_right)
        return of_left > of_right ? -1 : 1;
    return left < right ? -1 : 1;
}

static void step_by_counts(struct drawn_table *table)
{
    table->steps = calloc(table->num_rows, sizeof *table->steps);
    assert_non_null(table->steps);
    table->num_steps = 0;
    for (size_t i = 0; i < table->num_rows; i++) {
        const uint32_t count = table->counts[table->order[i]];
        if (i > 0 && count != table->counts[table->order[i - 1]])
            table->num_steps++;
        table->steps[table->num_steps].rows++;
        table->steps[table->num_steps].reads += count;
    }
    table->num_steps++;
}

static void draw_table(
    struct drawn_table *table, double exponent, size_t num_rows, size_t num_ids, struct ph__rng_sequence *rng)
{
    *table = (struct drawn_table){.rows = calloc(num_rows, sizeof *table->rows),
        .counts = calloc(num_rows, sizeof *table->counts),
        .fresh = calloc(num_rows, sizeof *table->fresh),
        .order = calloc(num_rows, sizeof *table->order),
        .num_rows = num_rows,
        .num_ids = num_ids};
    assert_non_null(table->rows);
    assert_non_null(table->counts);
    assert_non_null(table->fresh);
    assert_non_null(table->order);
    ph__zipf_init(&table->zipf, exponent, num_rows);
    for (size_t i = 0; i < num_rows; i++)
        table->rows[i] = table->order[i] = (uint32_t)i;
    ph__rng_shuffle(rng, table->rows, num_rows);
    for (size_t i = 0; i < num_ids; i++)
        table->counts[draw_row(table, rng)]++;
    for (size_t i = 0; i < num_ids; i++)
        table->fresh[draw_row(table, rng)]++;
    counts_to_sort_by = table->counts;
    qsort(table->order, num_rows, sizeof *table->order, by_falling_count);
    step_by_counts(table);
}

static void free_table(struct drawn_table *table)
{
    free(table->rows);
    free(table->counts);
    free(table->fresh);
    free(table->order);
    free(table->steps);
}

/* Counts the reads of slow memory by the fresh ids when the first fast_rows of the order are fast. */
static double slow_reads(const struct drawn_table *table, uint64_t fast_rows)
{
    double reads = 0;
    for (size_t i = fast_rows; i < table->num_rows; i++)
        reads += table->fresh[table->order[i]];
    return reads;
}

/* Returns the share of reads that go to slow memory when all but the first rows of a power law are slow. */
static double slow_share(double exponent, size_t num_rows, size_t fast_rows)
{
    double all = 0, slow = 0;
    for (size_t i = num_rows; i > 0; i--) {
        all += pow((double)i, -exponent);
        slow = i == fast_rows + 1 ? all : slow;
    }
    return slow / all;
}

struct comparison {
    double cut, whole; /* slow reads by fresh ids, of all tables */
};

static struct comparison compare_equal_tables(double exponent)
{
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    struct drawn_table drawn[EQUAL_TABLES];
    struct ph__tier_table tables[EQUAL_TABLES];
    struct ph__tier_cut cuts[EQUAL_TABLES], wholes[EQUAL_TABLES];
    struct comparison comparison = {0};
    for (size_t i = 0; i < EQUAL_TABLES; i++) {
        draw_table(&drawn[i], exponent, DRAWN_ROWS, DRAWN_IDS, &rng);
        tables[i] = (struct ph__tier_table){"equal", ROW_BYTES, drawn[i].steps, drawn[i].num_steps};
    }
    const uint64_t fast_bytes = (uint64_t)EQUAL_TABLES * DRAWN_ROWS * ROW_BYTES / 5;
    assert_ok(ph__tiers_cut(tables, EQUAL_TABLES, fast_bytes, cuts));
    assert_ok(ph__tiers_choose_whole(tables, EQUAL_TABLES, fast_bytes, wholes));
    for (size_t i = 0; i < EQUAL_TABLES; i++) {
        comparison.cut += slow_reads(&drawn[i], cuts[i].fast_rows);
        comparison.whole += slow_reads(&drawn[i], wholes[i].fast_rows);
        free_table(&drawn[i]);
    }
    return comparison;
}

static void a_cut_reads_slow_memory_at_least_five_times_less_than_whole_tables(void **state)
{
    (void)state;
    const struct comparison comparison = compare_equal_tables(1.05);
    const double best = slow_share(1.05, DRAWN_ROWS, DRAWN_ROWS / 5);
    const double all = (double)EQUAL_TABLES * DRAWN_IDS;
    print_message(
        "%d equal tables of %d rows, zipf 1.05, 20 %% fast: slow reads %.4f of all by cuts, %.4f by whole "
        "tables, %.2f times fewer; %.2f times if the law were known, %.2f times with a million rows\n",
        EQUAL_TABLES, DRAWN_ROWS, comparison.cut / all, comparison.whole / all,
        comparison.whole / comparison.cut, .8 / best, .8 / slow_share(1.05, 1000000, 200000));
    assert_true(comparison.whole >= 5 * comparison.cut);
    assert_true(comparison.whole <= 1.01 * comparison.cut * .8 / best);
}

static void a_cut_of_uniform_ids_gains_nothing(void **state)
{
    (void)state;
    const struct comparison comparison = compare_equal_tables(0);
    print_message(
        "uniform ids: slow reads %.3f times fewer than by whole tables\n", comparison.whole / comparison.cut);
    assert_near(comparison.whole / comparison.cut, 1, .01, 0);
}

/* ---- steps of the planner's facts ---- */

/* Compares what the bins of a batch's counts say of the next batch with that batch. */
static void try_steps_of_facts(double exponent, size_t num_rows, size_t num_ids, double tolerance)
{
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    struct drawn_table drawn;
    struct ph__access_step steps[PH_MOST_ACCESS_STEPS];
    struct ph__tier_cut cut;
    double accesses[PH_ACCESS_BINS], rows = 0, reads = 0;
    int64_t *ids = calloc(num_ids, sizeof *ids);
    size_t count = 0;
    assert_non_null(ids);
    draw_table(&drawn, exponent, num_rows, num_ids, &rng);
    for (size_t row = 0; row < num_rows; row++)
        for (uint32_t i = 0; i < drawn.counts[row]; i++)
            ids[count++] = (int64_t)row;
    ph__accesses_count(ids, num_ids, accesses);
    const struct ph__table_facts facts = {
        .name = "drawn", .num_rows = num_rows, .dim = 16, .ids_per_sample = 1, .accesses = accesses};
    const size_t num_steps = ph__access_steps(&facts, (double)num_rows, (double)num_ids, steps);
    for (size_t i = 0; i < num_steps; i++) {
        rows += steps[i].rows;
        reads += steps[i].reads;
        assert_true(i == 0 || steps[i].reads * steps[i - 1].rows < steps[i - 1].reads * steps[i].rows);
    }
    assert_near(rows, (double)num_rows, 0, 1e-9);
    assert_near(reads, (double)num_ids, 0, 1e-9);
    const struct ph__tier_table table = {"drawn", ROW_BYTES, steps, num_steps};
    assert_ok(ph__tiers_cut(&table, 1, num_rows * ROW_BYTES / 5, &cut));
    const double counted = slow_reads(&drawn, cut.fast_rows);
    print_message("zipf %.2f, %zu rows, %zu ids: slow share %.4f by the bins, %.4f of the next batch\n",
        exponent, num_rows, num_ids, cut.slow_reads / (double)num_ids, counted / (double)num_ids);
    assert_near(cut.slow_reads / (double)num_ids, counted / (double)num_ids, tolerance, 0);
    free_table(&drawn);
    free(ids);
}

static void bins_of_a_batch_tell_the_slow_reads_of_the_next(void **state)
{
    (void)state;
    try_steps_of_facts(1.05, 100000, 20000, .05);
    try_steps_of_facts(1.05, 100000, 200000, .05);
    try_steps_of_facts(1.05, 100000, 1000000, .05);
    try_steps_of_facts(.6, 100000, 50000, .05);
    try_steps_of_facts(0, 100000, 10000, .05);
    try_steps_of_facts(0, 100000, 100000, .05);
}

static void unknown_accesses_are_uniform(void **state)
{
    (void)state;
    struct ph__access_step steps[PH_MOST_ACCESS_STEPS];
    const struct ph__table_facts facts = {.num_rows = 1000, .ids_per_sample = 2};
    assert_int_equal(ph__access_steps(&facts, 500, 3000, steps), 1);
    assert_true(steps[0].rows == 500 && steps[0].reads == 3000);
}

static void rows_of_a_batch_that_reads_none_twice_are_alike(void **state)
{
    (void)state;
    struct ph__access_step steps[PH_MOST_ACCESS_STEPS];
    const double accesses[PH_ACCESS_BINS] = {1};
    const struct ph__table_facts facts = {.num_rows = 1000, .ids_per_sample = 2, .accesses = accesses};
    assert_int_equal(ph__access_steps(&facts, 1000, 300, steps), 1);
    assert_true(steps[0].rows == 1000 && steps[0].reads == 300);
}

/* ---- all choices ---- */

enum { FEW_TABLES = 6, FEW_STEPS = 3, TRIALS = 200 };

struct few {
    struct ph__tier_table tables[FEW_TABLES];
    struct ph__access_step steps[FEW_TABLES][FEW_STEPS];
    size_t num_tables;
    uint64_t fast_bytes;
};

/* Draws tables of at most two rows a step. */
static void draw_few(struct few *few, bool has_equal_rows, struct ph__rng_sequence *rng)
{
    uint64_t all_bytes = 0;
    few->num_tables = 1 + ph__rng_below(rng, FEW_TABLES);
    for (size_t i = 0; i < few->num_tables; i++) {
        const uint64_t row_bytes = has_equal_rows ? 8 : 1 + ph__rng_below(rng, 20);
        double a_row = 100;
        few->tables[i] =
            (struct ph__tier_table){"few", row_bytes, few->steps[i], 1 + ph__rng_below(rng, FEW_STEPS)};
        for (size_t step = 0; step < few->tables[i].num_steps; step++) {
            const double rows = 1 + (double)ph__rng_below(rng, 2);
            a_row *= ph__rng_next_uniform(rng);
            few->steps[i][step] = (struct ph__access_step){rows, rows * a_row};
            all_bytes += (uint64_t)rows * row_bytes;
        }
    }
    few->fast_bytes = ph__rng_below(rng, all_bytes + 10);
}

static double reads_of_first(const struct ph__tier_table *table, uint64_t rows)
{
    double reads = 0;
    for (size_t i = 0; i < table->num_steps; rows -= (uint64_t)fmin((double)rows, table->steps[i++].rows))
        reads += table->steps[i].reads * fmin((double)rows, table->steps[i].rows) / table->steps[i].rows;
    return reads;
}

static uint64_t rows_of(const struct ph__tier_table *table)
{
    double rows = 0;
    for (size_t i = 0; i < table->num_steps; i++)
        rows += table->steps[i].rows;
    return (uint64_t)rows;
}

/* Returns the most fast reads of all choices for the tables from the first one on. */
static double best_of_all(const struct few *few, size_t first, uint64_t fast_bytes, bool is_whole)
{
    double best = 0;
    if (first == few->num_tables)
        return 0;
    const struct ph__tier_table *table = &few->tables[first];
    for (uint64_t rows = 0; rows <= rows_of(table) && rows * table->row_bytes <= fast_bytes;
         rows += is_whole ? rows_of(table) : 1)
        best = fmax(best, reads_of_first(table, rows) +
                              best_of_all(few, first + 1, fast_bytes - rows * table->row_bytes, is_whole));
    return best;
}

/* Checks a rank's cuts and adds up their fast reads; next_out: reads of the most-read row that is slow. */
static double check_few(const struct few *few, const struct ph__tier_cut *cuts, double *next_out)
{
    uint64_t bytes = 0;
    double reads = 0;
    *next_out = 0;
    for (size_t i = 0; i < few->num_tables; i++) {
        const struct ph__tier_table *table = &few->tables[i];
        const uint64_t num_rows = rows_of(table), rows = cuts[i].fast_rows;
        assert_true(rows <= num_rows && cuts[i].fast_bytes == rows * table->row_bytes);
        assert_near(cuts[i].fast_reads, reads_of_first(table, rows), 1e-9, 0);
        assert_near(cuts[i].fast_reads + cuts[i].slow_reads, reads_of_first(table, num_rows), 1e-9, 0);
        if (rows < num_rows)
            *next_out = fmax(*next_out, reads_of_first(table, rows + 1) - reads_of_first(table, rows));
        bytes += cuts[i].fast_bytes;
        reads += cuts[i].fast_reads;
    }
    assert_true(bytes <= few->fast_bytes);
    return reads;
}

static void cuts_lack_less_than_a_row_of_the_best_of_all_cuts(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    double worst = 0;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct few few;
        struct ph__tier_cut cuts[FEW_TABLES];
        const bool has_equal_rows = trial % 2 == 0;
        double next;
        draw_few(&few, has_equal_rows, &rng);
        assert_ok(ph__tiers_cut(few.tables, few.num_tables, few.fast_bytes, cuts));
        const double reads = check_few(&few, cuts, &next), best = best_of_all(&few, 0, few.fast_bytes, false);
        assert_true(reads <= best + 1e-9);
        assert_true(best - reads <= (has_equal_rows ? 0 : next) + 1e-9);
        worst = next > 0 ? fmax(worst, (best - reads) / next) : worst;
    }
    print_message("at worst %.2f of a row's reads are lacking\n", worst);
}

static void whole_tables_are_the_best_of_all_choices(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct few few;
        struct ph__tier_cut wholes[FEW_TABLES];
        double next;
        draw_few(&few, trial % 2 == 0, &rng);
        assert_ok(ph__tiers_choose_whole(few.tables, few.num_tables, few.fast_bytes, wholes));
        for (size_t i = 0; i < few.num_tables; i++)
            assert_true(wholes[i].fast_rows == 0 || wholes[i].fast_rows == rows_of(&few.tables[i]));
        assert_near(check_few(&few, wholes, &next), best_of_all(&few, 0, few.fast_bytes, true), 1e-9, 0);
    }
}

static void whole_tables_of_many_are_taken_as_long_as_they_fit(void **state)
{
    (void)state;
    enum { MANY = PH_TIERS_MOST_EXACT + 5 };
    const struct ph__access_step step = {10, 100};
    struct ph__tier_table tables[MANY];
    struct ph__tier_cut wholes[MANY];
    for (size_t i = 0; i < MANY; i++)
        tables[i] = (struct ph__tier_table){"many", 4, &step, 1};
    assert_ok(ph__tiers_choose_whole(tables, MANY, 10 * 40 + 39, wholes));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(wholes[i].fast_bytes, i < 10 ? 40 : 0);
}

/* ---- plans ---- */

/* Sums a table's reads over all ranks of a plan. */
static double reads_of_table(const struct ph__tiers *tiers, size_t world_size, const char *name)
{
    double reads = 0;
    for (size_t rank = 0; rank < world_size; rank++)
        for (size_t i = 0; i < tiers->ranks[rank].num_tables; i++)
            if (strcmp(tiers->ranks[rank].tables[i].name, name) == 0)
                reads += tiers->ranks[rank].cuts[i].fast_reads + tiers->ranks[rank].cuts[i].slow_reads;
    return reads;
}

/* Counts how often a plan reads a table for an id: once for each run of columns. */
static double column_runs_of(const struct ph__plan *plan, size_t table)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    double rows = planned->num_shards == 0 ? (double)planned->num_rows : 0;
    for (size_t i = 0; i < planned->num_shards; i++)
        rows += (double)plan->shards[planned->first_shard + i].num_rows;
    return rows / (double)planned->num_rows;
}

static void check_plan(const struct drawing *drawing, const struct ph__plan *plan,
    const struct ph__plan_step *step, uint64_t fast_bytes)
{
    const size_t world_size = plan->topology.world_size;
    struct ph__arena arena = {0};
    struct ph__plan_load loads[MAX_WORLD];
    const struct ph__plan_machine machine = {5e9, 5e9, 1e9, 0};
    struct ph__tiers tiers, again;
    assert_ok(ph__plan_loads(plan, &machine, step, drawing->tables, loads));
    assert_ok(ph__tiers_find(plan, step, drawing->tables, fast_bytes, &arena, &tiers));
    assert_ok(ph__tiers_find(plan, step, drawing->tables, fast_bytes, &arena, &again));
    assert_memory_equal(&tiers.cut, &again.cut, sizeof tiers.cut);
    assert_memory_equal(&tiers.whole, &again.whole, sizeof tiers.whole);
    for (size_t rank = 0; rank < world_size; rank++) {
        const struct ph__tier_rank *found = &tiers.ranks[rank];
        const size_t num_cuts = found->num_tables * sizeof *found->cuts;
        if (num_cuts > 0)
            assert_memory_equal(found->cuts, again.ranks[rank].cuts, num_cuts);
        assert_true(found->cut.fast_bytes <= fast_bytes && found->whole.fast_bytes <= fast_bytes);
        if (fast_bytes >= loads[rank].bytes) {
            assert_int_equal(found->cut.fast_bytes, loads[rank].bytes);
            assert_near(found->cut.slow_reads, 0, 1e-6, 0);
        }
    }
    for (size_t i = 0; i < drawing->num_tables; i++)
        assert_near(reads_of_table(&tiers, world_size, drawing->names[i]),
            drawing->tables[i].ids_per_sample * (double)step->batch_size * column_runs_of(plan, i), 0, 1e-9);
    ph__arena_fini(&arena);
}

static void cuts_of_a_plan_read_each_table_as_often_as_its_ids_say(void **state)
{
    (void)state;
    const struct ph__plan_step step = {4096, false, {4, 0}, {4, 0}};
    const double accesses[PH_ACCESS_BINS] = {.6, .2, .1, .05, .05};
    struct drawing drawing = {.rng.key.seed = test_seed()};
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct ph__plan plan;
        draw_topology(&drawing);
        draw_scattered(&drawing, MAX_TABLES);
        for (size_t i = 0; i < drawing.num_tables; i++)
            drawing.tables[i].accesses = draw(&drawing, 2) == 0 ? accesses : NULL;
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        check_plan(&drawing, &plan, &step,
            bytes_of_all(&drawing) / plan.topology.world_size * draw(&drawing, 12) / 8);
        ph__plan_fini(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_reads_slow_memory_at_least_five_times_less_than_whole_tables),
        cmocka_unit_test(a_cut_of_uniform_ids_gains_nothing),
        cmocka_unit_test(bins_of_a_batch_tell_the_slow_reads_of_the_next),
        cmocka_unit_test(unknown_accesses_are_uniform),
        cmocka_unit_test(rows_of_a_batch_that_reads_none_twice_are_alike),
        cmocka_unit_test(cuts_lack_less_than_a_row_of_the_best_of_all_cuts),
        cmocka_unit_test(whole_tables_are_the_best_of_all_choices),
        cmocka_unit_test(whole_tables_of_many_are_taken_as_long_as_they_fit),
        cmocka_unit_test(cuts_of_a_plan_read_each_table_as_often_as_its_ids_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
