/* Whole inference over a graph: a GCN scores all nodes of its test data, with all neighbours and with samples
 * of some, one thread. Calls take turns. Beside the ratios stands the share of the aggregation in the call
 * that reads all neighbours: 1 / (1 - share) bounds what samples can save.
 *
 * bench_graph [--rounds N] [--config FILE] [--strategy NAME] [--json FILE]
 *
 * The config is configs/facebook/gcn.yaml unless another one of kind gcn is given; weights are the initial
 * ones, which take as long as learnt ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "figures.h"
#include "flags.h"
#include "graph/graph.h"
#include "op/registry.h"
#include "phloem/config.h"
#include "serve/model_folder.h"
#include "serve/scorer.h"
#include "serve_case.h"

enum { NUM_WIDTHS = 6, CALLS = 5 };
static const size_t widths[NUM_WIDTHS] = {0, 4, 8, 16, 32, 64}; /* 0: all neighbours */

/* The model with one width. */
struct way {
    struct ph_config *config;
    struct ph__model_folder model;
    struct ph_backend *backend;
    struct ph_scorer *scorer;
};

static void open_way(
    struct way *way, const char *folder, const char *config_path, size_t width, const char *strategy)
{
    char sets[2][64];
    snprintf(sets[0], sizeof sets[0], "model.gcn.sample_width=%zu", width);
    snprintf(sets[1], sizeof sets[1], "model.gcn.sample_strategy=%s", strategy);
    bench_check(ph_config_read(config_path, (const char *const[]){sets[0], sets[1]}, 2, &way->config));
    const struct ph_model_settings *settings = ph_config_model(way->config);
    bench_check(ph__model_folder_open(&way->model, folder, settings, 0, PH_ROWS_FP32, NULL));
    bench_check(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &way->backend));
    const struct ph_scorer_options options = {.size = sizeof options,
        .model = settings,
        .encoder = way->model.encoder,
        .store = way->model.store,
        .state = way->model.state,
        .backend = way->backend,
        .batch_size = 1};
    bench_check(ph_scorer_create(&options, &way->scorer));
}

static void close_way(struct way *way)
{
    ph_scorer_destroy(way->scorer);
    ph_backend_destroy(way->backend);
    ph__model_folder_close(&way->model);
    ph_config_destroy(way->config);
}

static double score(const struct way *way, const struct ph_batch *batch)
{
    const ph_real *logits;
    const double begun_s = ph__clock_seconds();
    bench_check(ph_scorer_score(way->scorer, batch, &logits));
    return ph__clock_seconds() - begun_s;
}

/* ---- the aggregation's share ---- */

struct watch {
    struct ph__simulator hook; /* first */
    double aggregation_s, all_s;
};

static ph_status run_watched(const struct ph__simulator *hook, struct ph__call *call)
{
    struct watch *watch = (struct watch *)(uintptr_t)hook;
    const double begun_s = ph__clock_seconds();
    const ph_status status = call->node->op->run(call);
    const double seconds = ph__clock_seconds() - begun_s;
    watch->all_s += seconds;
    watch->aggregation_s += call->node->op == &ph__op_aggregate ? seconds : 0;
    return status;
}

static double aggregation_share(const struct way *way, const struct ph_batch *batch)
{
    struct watch watch = {.hook = {run_watched}};
    way->backend->simulator = &watch.hook;
    for (size_t i = 0; i < CALLS; i++)
        (void)score(way, batch);
    way->backend->simulator = NULL;
    return watch.aggregation_s / watch.all_s;
}

/* ---- rounds ---- */

static void measure(struct way *ways, const struct ph_batch *batch, size_t rounds, struct ph__json *results)
{
    static double seconds[NUM_WIDTHS][BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS], ms[BENCH_MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++) {
        double calls[NUM_WIDTHS][CALLS];
        for (size_t i = 0; i < CALLS; i++)
            for (size_t way = 0; way < NUM_WIDTHS; way++)
                calls[way][i] = score(&ways[way], batch);
        for (size_t way = 0; way < NUM_WIDTHS; way++)
            seconds[way][round] = bench_median(calls[way], CALLS);
    }
    for (size_t way = 0; way < NUM_WIDTHS; way++) {
        char name[64];
        for (size_t round = 0; round < rounds; round++) {
            ratios[round] = seconds[0][round] / seconds[way][round];
            ms[round] = 1e3 * seconds[way][round];
        }
        snprintf(name, sizeof name, "serve.graph.width%zu", widths[way]);
        const struct bench_figure figure = {.name = name,
            .unit = "ms",
            .value = bench_median(ms, rounds),
            .spread = bench_spread(ms, rounds),
            .peer = way == 0 ? NULL : "all neighbours",
            .ratio = way == 0 ? NAN : bench_median(ratios, rounds)};
        printf("%-24s %9.3f ms", name, figure.value);
        if (way > 0)
            printf("   %5.2f x all neighbours", figure.ratio);
        printf("\n");
        bench_record(results, &figure);
    }
}

/* Makes the folder of a config's model; returns false, and says why, where its data are missing. */
static bool make_folder(struct ph__arena *arena, const char *path, const char *folder)
{
    struct ph_config *config = NULL;
    size_t size;
    char *text = NULL;
    setenv("PHLOEM_DATA", "../shared/data", 0);
    bench_check(ph_config_read(path, NULL, 0, &config));
    const char *data = ph_config_data(config)->paths.test;
    const char *nodes = ph__arena_printf(arena, "%.*s", (int)strcspn(data, "#"), data);
    const bool is_there = nodes != NULL && ph__file_exists(nodes);
    if (!is_there)
        printf("graph: skipped: '%s' is missing (docs/DATA.md)\n", nodes);
    ph_config_destroy(config);
    if (!is_there)
        return false;
    bench_check(ph__file_read(arena, path, 1 << 20, &text, &size));
    serve_folder_make_of(arena, folder, text, 1);
    return true;
}

/* Opens a scorer for each width, and gives the graph; borrowed until the batches are closed. */
static const struct ph_batch *open_all(struct ph__arena *arena, const char *folder, const char *strategy,
    struct way ways[NUM_WIDTHS], struct ph_batches **batches_out)
{
    const char *config_path = serve_path(arena, folder, "config.yaml");
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 1};
    const struct ph_batch *batch = NULL;
    for (size_t i = 0; i < NUM_WIDTHS; i++)
        open_way(&ways[i], folder, config_path, widths[i], strategy);
    bench_check(ph_batches_open(
        ways[0].model.encoder, ph_config_data(ways[0].config)->paths.test, &options, batches_out));
    bench_check(ph_batches_next(*batches_out, &batch));
    for (size_t i = 0; i < NUM_WIDTHS; i++)
        (void)score(&ways[i], batch); /* workspaces grow */
    return batch;
}

int main(int argc, char **argv)
{
    const char *config = "configs/facebook/gcn.yaml", *strategy = "bucket";
    struct bench_run run = {.rounds = 15};
    const struct bench_flag flags[] = {
        {.name = "--config", .word = &config}, {.name = "--strategy", .word = &strategy}};
    struct ph__arena arena = {0};
    struct ph__json *results = ph__json_array();
    struct way ways[NUM_WIDTHS] = {0};
    struct ph_batches *batches = NULL;
    char folder[256], processor[128];
    bench_read_flags(argc, argv, &run, flags, 2);
    bench_make_folder("bench_graph", folder, sizeof folder);
    if (!make_folder(&arena, config, folder))
        return 0;
    const struct ph_batch *batch = open_all(&arena, folder, strategy, ways, &batches);
    bench_remove_folder(folder);
    ph__cpu_name(processor, sizeof processor);
    const double share = aggregation_share(&ways[0], batch);
    printf(
        "%zu nodes, %zu ids, strategy %s, one thread: %s\naggregation %.1f %% of a call: samples save %.2f "
        "x at most\n",
        batch->num_samples, batch->num_ids, strategy, processor, 100 * share, 1 / (1 - share));
    measure(ways, batch, run.rounds, results);
    ph_batches_close(batches);
    for (size_t i = 0; i < NUM_WIDTHS; i++)
        close_way(&ways[i]);
    ph__arena_fini(&arena);
    bench_finish(results, run.json);
    return 0;
}
