/* Plans tables by the search and by baselines, and prints what the plans cost; tools/plan_figures.py makes
 * tables of the lines and holds them against the bars.
 *
 *   tasks   10 to 59 tables on 4 ranks of one host (NeuroShard's tasks):
 *           task N TABLES METHOD SECONDS MODEL_MS MEASURED_MS ROUNDED_PARTS
 *   exact   7 to 12 tables that the search must not cut, or 3 to 5 that it may, against all plans:
 *           exact N whole|cut OPTIMUM_MS SEARCH_MS SECONDS
 *   speed   856 tables on 128 ranks: speed greedy|search SECONDS LARGEST_MS MEAN_MS
 *   equal   equal tables, so many for each rank: equal TABLES METHOD MODEL_MS
 *   net     learns the compute net and a second one on shuffled times; lines of tables held out:
 *           label MEASURED_MS PREDICTED_MS; repeat TRAIN_ERROR TEST_ERROR; learnt SECONDS VALID_MAPE
 *
 * A price of "nan" means: no plan, or not measured. Sets are measured one after the other on one thread, as a
 * rank runs them; exchanges are priced by the analytic model.
 *
 * bench_plan [--part tasks|exact|speed|equal|net] [--count N] [--most-dim N] [--measured N] [--locality FILE]
 *            [--cost FOLDER] [--plan-by FOLDER] [--plans FOLDER] [--lp FOLDER] [--sets N]
 *            [--epochs N] [--quick] [--json FILE]
 * --cost: learnt costs that price plans; net: writes them there, and the shuffled ones in FOLDER.shuffled.
 * Without: the analytic model. --plan-by: costs that methods plan by, where these are others. --plans: writes
 * the search's plans there; the folder exists. --lp: likewise the tasks of whole tables for a solver. --json:
 * of tasks and speed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/thread/clock.h"
#include "bench_plan/plan_baselines.h"
#include "bench_plan/plan_exact.h"
#include "figures.h"
#include "flags.h"
#include "train/cost/cost_folder.h"

static const struct ph__topology four_ranks = {4, 4};

struct bench {
    const char *part, *locality, *cost, *plan_by, *plans, *lp;
    size_t count, most_dim, measured, sets, epochs;
    struct ph__cost_table pool[PLAN_POOL];
    struct ph__cost_nets *nets, *planning; /* NULL: the analytic model */
    struct ph__cost_measure *measure;
    struct ph__json *figures;
};

static void load(const char *folder, struct ph__cost_nets **nets_out)
{
    struct ph__cost_facts facts;
    if (folder != NULL)
        bench_check(ph__cost_load(folder, false, nets_out, &facts));
}

static void open_measure(struct bench *bench)
{
    const struct ph__cost_measure_options options = {PLAN_BATCH, 1, 5, (uint64_t)1 << 30, PH_SGD};
    if (bench->measure == NULL)
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

/* Runs a method on a task. Returns the seconds in which it planned. */
static double run_method(struct bench *bench, size_t index, const struct plan_method *method)
{
    static struct plan_task planned, priced; /* the same task, by both models */
    const struct plan_draw draw = draw_of(bench, index);
    struct ph__plan plan;
    double model_ms = NAN, measured_ms = NAN;
    size_t num_rounded = 0;
    plan_task_draw(&draw, bench->planning, &planned);
    plan_task_draw(&draw, bench->nets, &priced);
    const double begin = ph__clock_seconds();
    const bool is_found = method->plan(&planned, &plan);
    const double seconds = ph__clock_seconds() - begin;
    if (is_found) {
        model_ms = plan_task_price(&priced, &plan);
        if (index < bench->measured)
            measured_ms = plan_task_measure(&priced, &plan, bench->measure, &num_rounded);
        if (bench->plans != NULL && method == &plan_methods[PLAN_SEARCH])
            save_plan(bench, index, &plan);
        ph__plan_fini(&plan);
    }
    printf("task %zu %zu %s %.6f %.6f %.6f %zu\n", index, planned.num_tables, method->name, seconds, model_ms,
        measured_ms, num_rounded);
    return seconds;
}

static void run_tasks(struct bench *bench)
{
    double seconds[PLAN_NUM_METHODS] = {0};
    if (bench->measured > 0)
        open_measure(bench);
    for (size_t index = 0; index < bench->count; index++)
        for (size_t m = 0; m < PLAN_NUM_METHODS; m++)
            seconds[m] += run_method(bench, index, &plan_methods[m]);
    bench_record(bench->figures,
        &(struct bench_figure){
            .name = "plan.tasks.search", .unit = "s", .value = seconds[PLAN_SEARCH] / (double)bench->count});
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
    plan_task_draw(&draw, bench->nets, &task);
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
    plan_task_draw(&draw, bench->nets, &task);
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
            sum += ph__rank_price_ms(&prices[rank]);
            largest = fmax(largest, ph__rank_price_ms(&prices[rank]));
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
        plan_task_draw(&draw, NULL, &task);
        task.num_tables = each * task.topology.world_size;
        for (size_t t = 1; t < task.num_tables; t++)
            task.tables[t] = task.tables[0];
        plan_task_finish(&task, bench->nets, draw.least_gb);
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

/* ---- nets ---- */

static void save_nets(
    const struct ph__cost_nets *nets, const char *folder, size_t num_labels, double mape, double repeat_error)
{
    struct ph__cost_facts facts = {.labels = num_labels, .mape = mape, .repeat_error = repeat_error};
    bench_check(ph__cost_facts_here(&facts));
    bench_check(ph__cost_save(nets, folder, &facts));
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

static void print_predictions(struct ph__cost_nets *nets, const struct ph__cost_labels *labels)
{
    const struct ph__cost_model model = ph__cost_nets_model(nets);
    for (size_t i = 0; i < labels->num_labels; i++) {
        float descriptions[PH_COST_MOST_TABLES][PH_COST_MOST_WIDTH], set[PH_COST_MOST_WIDTH] = {0};
        const struct ph__cost_label *label = &labels->labels[i];
        double ms;
        for (size_t t = 0; t < label->num_parts; t++) {
            bench_check(model.describe(model.context, &label->parts[t], 1, descriptions[t]));
            for (size_t k = 0; k < model.width; k++)
                set[k] += descriptions[t][k];
        }
        bench_check(model.compute(model.context, set, 1, &ms));
        printf("label %.6f %.6f\n", label->ms, ms);
    }
}

/* Learns from labels, of which the last are of validation, and saves the net. */
static struct ph__cost_nets *learn(const struct bench *bench, const struct ph__cost_label *labels,
    size_t num_labels, size_t num_validation, double repeat_error, const char *folder)
{
    const struct ph__cost_training training = {num_labels, num_validation, bench->epochs};
    struct ph__cost_nets *nets;
    double mape;
    bench_check(ph__cost_nets_create(1, PLAN_BATCH, &nets));
    const double begin = ph__clock_seconds();
    bench_check(ph__cost_learn_compute(nets, labels, &training, &mape));
    printf("learnt %.1f %.4f\n", ph__clock_seconds() - begin, mape);
    if (folder != NULL)
        save_nets(nets, folder, num_labels, mape, repeat_error);
    return nets;
}

static void run_net(struct bench *bench)
{
    enum { TRAIN, VALID, TEST, NUM_PARTS };
    const struct ph__cost_split split = ph__cost_tables_split(bench->pool, PLAN_POOL, 1);
    const size_t tables[] = {split.num_train, split.num_valid, split.num_test},
                 sets[] = {bench->sets - 2 * (bench->sets / 10), bench->sets / 10, bench->sets / 10};
    struct ph__cost_labels parts[NUM_PARTS];
    struct ph__cost_label *labels = calloc(bench->sets, sizeof *labels);
    size_t count = 0, first = 0;
    char shuffled[1024];
    open_measure(bench);
    for (size_t p = 0; p < NUM_PARTS; first += tables[p++]) {
        bench_check(ph__cost_measure_all(bench->measure, bench->pool + first, tables[p], sets[p],
            1 + p * bench->sets, NULL, NULL, &parts[p]));
        for (size_t i = 0; p < TEST && labels != NULL && i < parts[p].num_labels; i++)
            labels[count++] = parts[p].labels[i];
    }
    printf("repeat %.4f %.4f\n", parts[TRAIN].repeat_error, parts[TEST].repeat_error);
    struct ph__cost_nets *nets =
        learn(bench, labels, count, parts[VALID].num_labels, parts[TRAIN].repeat_error, bench->cost);
    print_predictions(nets, &parts[TEST]);
    shuffle_times(labels, count);
    snprintf(shuffled, sizeof shuffled, "%s.shuffled", bench->cost != NULL ? bench->cost : "");
    ph__cost_nets_destroy(nets);
    ph__cost_nets_destroy(learn(bench, labels, count, parts[VALID].num_labels, parts[TRAIN].repeat_error,
        bench->cost != NULL ? shuffled : NULL));
    free(labels);
    for (size_t p = 0; p < NUM_PARTS; p++)
        ph__cost_labels_fini(&parts[p]);
}

/* ---- the program ---- */

static const struct {
    const char *name;
    void (*run)(struct bench *bench);
} parts[] = {
    {"tasks", run_tasks}, {"exact", run_exact}, {"speed", run_speed}, {"equal", run_equal}, {"net", run_net}};

static void run_part(struct bench *bench)
{
    size_t i = 0;
    while (strcmp(parts[i].name, bench->part) != 0)
        i++;
    if (parts[i].run != run_net) {
        load(bench->cost, &bench->nets);
        load(bench->plan_by != NULL ? bench->plan_by : bench->cost, &bench->planning);
    }
    parts[i].run(bench);
}

int main(int argc, char **argv)
{
    static struct bench bench = {
        .part = "tasks", .count = 100, .most_dim = 128, .sets = 3000, .epochs = 2000};
    struct bench_run run = {.rounds = 1};
    const struct bench_flag flags[] = {
        {.name = "--part", .word = &bench.part, .words = "tasks|exact|speed|equal|net"},
        {.name = "--count", .number = &bench.count},
        {.name = "--most-dim", .number = &bench.most_dim},
        {.name = "--measured", .number = &bench.measured},
        {.name = "--sets", .number = &bench.sets},
        {.name = "--epochs", .number = &bench.epochs},
        {.name = "--locality", .word = &bench.locality},
        {.name = "--cost", .word = &bench.cost},
        {.name = "--plan-by", .word = &bench.plan_by},
        {.name = "--plans", .word = &bench.plans},
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
    ph__cost_nets_destroy(bench.nets);
    ph__cost_nets_destroy(bench.planning);
    ph__cost_measure_close(bench.measure);
    if (run.json != NULL)
        bench_finish(bench.figures, run.json);
    else
        ph__json_destroy(bench.figures);
    return 0;
}
