/* Plans tables by the search and by baselines, and prints what the plans cost; tools/plan_figures.py makes
 * tables of the lines and holds them against the bars.
 *
 *   tasks     10 to 59 tables on 4 ranks of one host (NeuroShard's tasks):
 *             task N TABLES METHOD SECONDS MODEL_MS MEASURED_MS ROUNDED_PARTS
 *   tables    the same tasks, for other planners: ranks N RANK_BYTES MEMORY_BYTES_PER_S HOST_BYTES_PER_S,
 * then table N NAME ROWS DIM IDS_PER_SAMPLE exact     7 to 12 tables that the search must not cut, or 3 to 5
 * that it may, against all plans: exact N whole|cut OPTIMUM_MS SEARCH_MS SECONDS speed     856 tables on 128
 * ranks: speed greedy|search SECONDS LARGEST_MS MEAN_MS equal     equal tables, so many for each rank: equal
 * TABLES METHOD MODEL_MS starts    exchanges of vectors that the net has not learnt from, with each rank's
 * start and without: starts MAPE MAPE_WITHOUT shuffled  measures sets of tables, and learns the compute net
 * on shuffled times: shuffled SETS VALID_MAPE
 *
 * A price of "nan" means: no plan, or not measured. Sets are measured one after the other on one thread, as a
 * rank runs them; the exchanges of a plan that is measured are simulated, where there are learnt costs.
 *
 * bench_plan [--part tasks|tables|exact|speed|equal|starts|shuffled] [--count N] [--most-dim N] [--measured
 * N]
 *            [--locality FILE] [--cost FOLDER] [--plan-by FOLDER] [--plans FOLDER] [--given FOLDER]
 *            [--lp FOLDER] [--sets N] [--quick] [--json FILE]
 * --cost: learnt costs that price plans, and the topology that they were learnt for. Without: the analytic
 * model. --plan-by: costs of compute that methods plan by, where these are others; of shuffled: where to
 * write them. --plans: writes the search's plans there; the folder exists. --given: plans of another planner
 * there, task_N.yaml, are priced as "given". --lp: where to write the tasks of whole tables for a solver.
 * --json: of tasks and speed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/thread/clock.h"
#include "bench_plan/plan_baselines.h"
#include "bench_plan/plan_exact.h"
#include "figures.h"
#include "flags.h"
#include "sim/exchange_time.h"
#include "train/cost/cost_folder.h"
#include "train/cost/cost_labels.h"

static const struct ph__topology four_ranks = {4, 4};

struct bench {
    const char *part, *locality, *cost, *plan_by, *plans, *given, *lp;
    size_t count, most_dim, measured, sets;
    struct ph__cost_table pool[PLAN_POOL];
    struct ph__fabric fabric;
    struct plan_costs costs, planning;
    struct ph__cost_measure *measure;
    struct ph__json *figures;
};

static struct ph__cost_nets *load(const char *folder)
{
    struct ph__cost_nets *nets;
    bench_check(ph__cost_load(folder, false, &nets, NULL));
    return nets;
}

static void load_costs(struct bench *bench)
{
    char path[1024];
    if (bench->cost == NULL)
        return;
    snprintf(path, sizeof path, "%s/topology.yaml", bench->cost);
    bench_check(ph__fabric_read(path, &bench->fabric));
    bench->costs.compute = load(bench->cost);
    bench->costs.exchange = bench->costs.compute;
    bench->costs.fabric = &bench->fabric;
    bench->planning = bench->costs;
    if (bench->plan_by != NULL)
        bench->planning.compute = load(bench->plan_by);
}

static void open_measure(struct bench *bench)
{
    const struct ph__cost_measure_options options = {PLAN_BATCH, 1, 9, (uint64_t)1 << 30, PH_SGD};
    bench_check(ph__cost_measure_open(&options, &bench->measure));
}

static struct plan_draw draw_of(const struct bench *bench, size_t index)
{
    return (struct plan_draw){.pool = bench->pool,
        .seed = index,
        .least_tables = 10,
        .end_tables = 60,
        .most_dim = bench->most_dim,
        .least_gb = 4,
        .most_gb = 15,
        .topology = four_ranks};
}

/* ---- tasks ---- */

static void save_plan(const struct bench *bench, size_t index, const struct ph__plan *plan)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/task_%zu.yaml", bench->plans, index);
    bench_check(ph__plan_save(plan, path));
}

/* Prices a plan, measures it where it is one of the first, and prints its line. NULL: there is none. */
static void print_plan(
    struct bench *bench, size_t index, const char *method, double seconds, const struct ph__plan *plan)
{
    static struct plan_task task;
    const struct plan_draw draw = draw_of(bench, index);
    double model_ms = NAN, measured_ms = NAN;
    size_t num_rounded = 0;
    plan_task_draw(&draw, &bench->costs, &task);
    if (plan != NULL)
        model_ms = plan_task_price(&task, plan);
    if (plan != NULL && index < bench->measured)
        measured_ms = plan_task_measure(&task, plan, bench->measure, &num_rounded);
    printf("task %zu %zu %s %.6f %.6f %.6f %zu\n", index, task.num_tables, method, seconds, model_ms,
        measured_ms, num_rounded);
}

/* Runs a method on a task. Returns the seconds in which it planned. */
static double run_method(struct bench *bench, size_t index, const struct plan_method *method)
{
    static struct plan_task task;
    const struct plan_draw draw = draw_of(bench, index);
    struct ph__plan plan = {0};
    plan_task_draw(&draw, &bench->planning, &task);
    const double begin = ph__clock_seconds();
    const bool is_found = method->plan(&task, &plan);
    const double seconds = ph__clock_seconds() - begin;
    print_plan(bench, index, method->name, seconds, is_found ? &plan : NULL);
    if (is_found && bench->plans != NULL && method == &plan_methods[PLAN_SEARCH])
        save_plan(bench, index, &plan);
    ph__plan_fini(&plan);
    return seconds;
}

/* Prices another planner's plan of a task, where it has one. */
static void run_given(struct bench *bench, size_t index)
{
    static struct plan_task task;
    const struct plan_draw draw = draw_of(bench, index);
    struct ph__plan plan = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/task_%zu.yaml", bench->given, index);
    const bool is_found = ph__file_exists(path);
    plan_task_draw(&draw, &bench->planning, &task);
    if (is_found)
        bench_check(ph__plan_read(path, &task.topology, task.facts, task.num_tables, &plan));
    print_plan(bench, index, "given", 0, is_found ? &plan : NULL);
    ph__plan_fini(&plan);
}

static void run_tasks(struct bench *bench)
{
    double seconds[PLAN_NUM_METHODS] = {0};
    if (bench->measured > 0)
        open_measure(bench);
    for (size_t index = 0; index < bench->count; index++) {
        for (size_t m = 0; m < PLAN_NUM_METHODS; m++)
            seconds[m] += run_method(bench, index, &plan_methods[m]);
        if (bench->given != NULL)
            run_given(bench, index);
    }
    bench_record(bench->figures,
        &(struct bench_figure){
            .name = "plan.tasks.search", .unit = "s", .value = seconds[PLAN_SEARCH] / (double)bench->count});
}

static void run_tables(struct bench *bench)
{
    static struct plan_task task;
    for (size_t index = 0; index < bench->count; index++) {
        const struct plan_draw draw = draw_of(bench, index);
        plan_task_draw(&draw, &bench->costs, &task);
        printf("ranks %zu %llu %.0f %.0f\n", index, (unsigned long long)task.machine.rank_bytes,
            task.machine.memory_bytes_per_s, task.machine.host_bytes_per_s);
        for (size_t t = 0; t < task.num_tables; t++)
            printf("table %zu %s %llu %zu %.6f\n", index, task.names[t],
                (unsigned long long)task.facts[t].num_rows, (size_t)task.facts[t].dim,
                task.facts[t].ids_per_sample);
    }
}

/* ---- exact ---- */

static void run_exact_task(struct bench *bench, size_t index, bool are_whole)
{
    static struct plan_task task;
    struct plan_draw draw = draw_of(bench, index);
    draw.least_tables = are_whole ? 7 : 3;
    draw.end_tables = 1 + (size_t)(are_whole ? PLAN_MOST_WHOLE : PLAN_MOST_CUT);
    draw.least_gb = are_whole ? 1 : draw.least_gb; /* whole tables need more room */
    draw.most_gb = are_whole ? 4 : draw.most_gb;
    plan_task_draw(&draw, &bench->costs, &task);
    const double begin = ph__clock_seconds();
    const double optimum_ms = plan_exact(&task, are_whole);
    printf("exact %zu %s %.9g %.9g %.3f\n", index, are_whole ? "whole" : "cut", optimum_ms,
        plan_exact_search(&task, are_whole), ph__clock_seconds() - begin);
    if (bench->lp != NULL && are_whole) {
        char path[1024];
        snprintf(path, sizeof path, "%s/task_%zu.lp", bench->lp, index);
        plan_exact_write(&task, path);
    }
}

static void run_exact(struct bench *bench)
{
    for (size_t index = 0; index < bench->count; index++)
        for (size_t kind = 0; kind < 2; kind++)
            run_exact_task(bench, index, kind == 0);
}

/* ---- many tables, and equal tables ---- */

static void run_speed(struct bench *bench)
{
    static struct plan_task task;
    struct plan_draw draw = draw_of(bench, 0);
    draw.least_tables = PLAN_POOL;
    draw.end_tables = PLAN_POOL + 1;
    draw.topology = (struct ph__topology){PLAN_MOST_RANKS, 8};
    plan_task_draw(&draw, &bench->costs, &task);
    for (size_t m = PLAN_GREEDY; m <= PLAN_SEARCH; m++) {
        struct ph__rank_price prices[PLAN_MOST_RANKS];
        struct ph__plan plan;
        double ms, largest = 0, sum = 0;
        const double begin = ph__clock_seconds();
        if (!plan_methods[m].plan(&task, &plan))
            bench_check(PH_ERROR_MEMORY);
        const double seconds = ph__clock_seconds() - begin;
        bench_check(ph__plan_price(&task.pricing, &plan, prices, &ms));
        for (size_t rank = 0; rank < PLAN_MOST_RANKS; rank++) {
            const double busy_ms = ph__rank_price_ms(&prices[rank]) - prices[rank].wait_ms;
            sum += busy_ms;
            largest = fmax(largest, busy_ms);
        }
        bench_record(bench->figures,
            &(struct bench_figure){.name = m == PLAN_SEARCH ? "plan.speed.search" : "plan.speed.greedy",
                .unit = "s",
                .value = seconds});
        printf("speed %s %.3f %.6f %.6f\n", plan_methods[m].name, seconds, largest, sum / PLAN_MOST_RANKS);
        ph__plan_fini(&plan);
    }
}

static void run_equal(struct bench *bench)
{
    static struct plan_task task;
    for (size_t each = 1; each <= bench->count; each++) {
        const struct plan_draw draw = draw_of(bench, each);
        plan_task_draw(&draw, &bench->costs, &task);
        task.num_tables = each * task.topology.world_size;
        for (size_t t = 1; t < task.num_tables; t++)
            task.tables[t] = task.tables[0];
        plan_task_finish(&task, &bench->costs, draw.least_gb);
        for (size_t m = 1; m < PLAN_NUM_METHODS; m++) {
            struct ph__plan plan;
            const bool is_found = plan_methods[m].plan(&task, &plan);
            printf("equal %zu %s %.6f\n", task.num_tables, plan_methods[m].name,
                is_found ? plan_task_price(&task, &plan) : NAN);
            if (is_found)
                ph__plan_fini(&plan);
        }
    }
}

/* ---- controls of nets ---- */

/* Returns the mean error of the exchanges' net, in shares of the slowest rank's time. */
static double starts_error(
    const struct bench *bench, const struct ph__exchange_label *labels, size_t count, bool has_starts)
{
    static const double none[PH_EXCHANGE_MOST_RANKS];
    const struct ph__cost_model model = ph__cost_nets_model(bench->costs.exchange);
    double sum = 0, ms[PH_EXCHANGE_MOST_RANKS];
    size_t num_ranks = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ph__exchange_label *label = &labels[i];
        double longest = 0;
        bench_check(model.exchange(model.context, label->way, &label->topology, label->columns,
            has_starts ? label->starts_ms : none, ms));
        for (size_t rank = 0; rank < label->topology.world_size; rank++)
            longest = fmax(longest, label->ms[rank]);
        for (size_t rank = 0; rank < label->topology.world_size && longest > 0; rank++, num_ranks++)
            sum += fabs(ms[rank] - label->ms[rank]) / longest;
    }
    return sum / (double)num_ranks;
}

static void run_starts(struct bench *bench)
{
    enum { SEED = 2 }; /* nets learn from 1 */
    const struct ph__exchange_drawing drawing = {&bench->fabric, PH_EXCHANGE_FORWARD, PLAN_BATCH, SEED};
    struct ph__arena arena = {0};
    struct ph__exchange_label *labels = ph__arena_alloc_array(&arena, bench->count, sizeof *labels);
    bench_check(bench->cost != NULL && labels != NULL ? PH_OK : PH_ERROR_USAGE);
    bench_check(ph__exchange_labels_draw(&drawing, bench->count, &arena, labels));
    printf("starts %.4f %.4f\n", starts_error(bench, labels, bench->count, true),
        starts_error(bench, labels, bench->count, false));
    ph__arena_fini(&arena);
}

/* Swaps times at random, so that they say nothing of their sets. */
static void shuffle_times(struct ph__cost_label *labels, size_t count)
{
    struct ph__rng_sequence rng = {.key = {.seed = 1, .stream = ph__hash_name("bench.plan.shuffle")}};
    for (size_t i = count; i > 1; i--) {
        struct ph__cost_label *a = &labels[i - 1], *b = &labels[ph__rng_below(&rng, i)];
        const double ms = a->ms;
        a->ms = b->ms;
        b->ms = ms;
    }
}

static void run_shuffled(struct bench *bench)
{
    struct ph__cost_facts facts = {0};
    struct ph__cost_nets *nets;
    struct ph__cost_labels sets;
    const struct ph__cost_split split = ph__cost_tables_split(bench->pool, PLAN_POOL, 1);
    open_measure(bench);
    bench_check(
        ph__cost_labels_measure(bench->measure, bench->pool, &split, bench->sets, 1, NULL, NULL, &sets));
    const struct ph__cost_training training = {sets.num_labels, sets.counts.num_test, 200};
    shuffle_times(sets.labels, sets.num_labels);
    bench_check(ph__cost_nets_create(1, PLAN_BATCH, &nets));
    nets->lookup_share = ph__cost_measure_lookup_share(bench->measure);
    bench_check(ph__cost_learn_compute(nets, sets.labels, &training, &facts.mape));
    facts.labels = sets.num_labels;
    bench_check(ph__cost_facts_here(&facts));
    bench_check(ph__cost_save(nets, bench->plan_by, &facts));
    printf("shuffled %zu %.4f\n", sets.num_labels, facts.mape);
    ph__cost_nets_destroy(nets);
    ph__cost_labels_fini(&sets);
}

/* ---- the program ---- */

static const struct {
    const char *name;
    void (*run)(struct bench *bench);
} parts[] = {{"tasks", run_tasks}, {"tables", run_tables}, {"exact", run_exact}, {"speed", run_speed},
    {"equal", run_equal}, {"starts", run_starts}, {"shuffled", run_shuffled}};

static void run_part(struct bench *bench)
{
    size_t i = 0;
    while (strcmp(parts[i].name, bench->part) != 0)
        i++;
    if (parts[i].run != run_shuffled)
        load_costs(bench);
    parts[i].run(bench);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.part = "tasks", .count = 100, .most_dim = 128, .sets = 1000};
    struct bench_run run = {.rounds = 1};
    const struct bench_flag flags[] = {
        {.name = "--part", .word = &bench.part, .words = "tasks|tables|exact|speed|equal|starts|shuffled"},
        {.name = "--count", .number = &bench.count},
        {.name = "--most-dim", .number = &bench.most_dim},
        {.name = "--measured", .number = &bench.measured},
        {.name = "--sets", .number = &bench.sets},
        {.name = "--locality", .word = &bench.locality},
        {.name = "--cost", .word = &bench.cost},
        {.name = "--plan-by", .word = &bench.plan_by},
        {.name = "--plans", .word = &bench.plans},
        {.name = "--given", .word = &bench.given},
        {.name = "--lp", .word = &bench.lp},
    };
    struct ph__locality locality;
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    if (bench.locality != NULL)
        bench_check(ph__locality_read(bench.locality, &locality));
    else
        ph__locality_default(&locality);
    bench_check(ph__cost_tables_make(&locality, PLAN_BATCH, PLAN_POOL, 1, bench.pool));
    if (run.is_quick)
        bench.count = 2;
    bench.figures = ph__json_array();
    run_part(&bench);
    if (bench.planning.compute != bench.costs.compute)
        ph__cost_nets_destroy(bench.planning.compute);
    ph__cost_nets_destroy(bench.costs.compute);
    ph__fabric_fini(&bench.fabric);
    ph__cost_measure_close(bench.measure);
    if (run.json != NULL)
        bench_finish(bench.figures, run.json);
    else
        ph__json_destroy(bench.figures);
    return 0;
}
