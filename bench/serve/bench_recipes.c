/* Products of bytes in a session: the DLRM of bench_session, in fp32, with weights of bf16, and with int8 in
 * all products that take it, in calls of 1, 16 and 64 rows, one thread on one core. Calls take turns.
 *
 * bench_recipes [--rounds N] [--calls N] [--json FILE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "figures.h"
#include "flags.h"
#include "graph/recipe_table.h"
#include "phloem/serve.h"
#include "pinned.h"
#include "serve_case.h"

enum { MAX_BATCH = 64, FP32 = 0, BF16, INT8, NUM_WAYS };
static const char *const way_names[NUM_WAYS] = {"fp32", "bf16", "int8"};

struct sessions {
    struct ph_session *ways[NUM_WAYS];
    const struct serve_rows *rows;
    size_t rounds, calls;
    struct ph__json *results;
};

/* Writes the recipe int8 for all products that take it. */
static void write_recipes(const char *path)
{
    struct ph__writer *writer = NULL;
    bench_check(ph__writer_open(path, &writer));
    bench_check(ph__writer_printf(writer, "{\"sites\": [{\"weight\": \"*\", \"forward\": \"int8\"}]}\n"));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
}

static void open_sessions(struct sessions *sessions, struct ph__arena *arena, const char *folder)
{
    for (int way = 0; way < NUM_WAYS; way++) {
        const struct ph_session_options options = {.size = sizeof options,
            .max_batch = MAX_BATCH,
            .precision = way == BF16 ? PH_PRECISION_BF16 : PH_PRECISION_FP32,
            .share_with = way > 0 ? sessions->ways[0] : NULL};
        if (way == INT8)
            write_recipes(serve_path(arena, folder, PH_RECIPE_TABLE_FILE));
        bench_check(ph_session_open(folder, &options, &sessions->ways[way]));
    }
}

/* Returns the median microseconds of calls of each way, which take turns. */
static void run_round(const struct sessions *sessions, size_t batch, size_t first, double *medians_out)
{
    double *us = calloc(NUM_WAYS * sessions->calls, sizeof *us);
    float probabilities[MAX_BATCH];
    if (us == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu calls", sessions->calls));
    for (size_t i = 0; i < sessions->calls; i++)
        for (size_t way = 0; way < NUM_WAYS; way++) {
            const size_t row = (first + i) % (SERVE_NUM_ROWS / batch) * batch;
            const uint64_t begun_ns = ph__clock_ns();
            bench_check(ph_session_score(
                sessions->ways[way], batch, sessions->rows->cells + row * SERVE_NUM_COLUMNS, probabilities));
            us[way * sessions->calls + i] = (double)(ph__clock_ns() - begun_ns) * 1e-3;
        }
    for (size_t way = 0; way < NUM_WAYS; way++)
        medians_out[way] = bench_median(us + way * sessions->calls, sessions->calls);
    free(us);
}

static void measure(const struct sessions *sessions, size_t batch)
{
    static double medians[BENCH_MAX_ROUNDS][NUM_WAYS], values[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
    double skipped[NUM_WAYS];
    char name[64];
    run_round(sessions, batch, 0, skipped); /* caches settle */
    for (size_t round = 0; round < sessions->rounds; round++)
        run_round(sessions, batch, (round + 1) * sessions->calls, medians[round]);
    for (size_t way = 0; way < NUM_WAYS; way++) {
        for (size_t round = 0; round < sessions->rounds; round++) {
            values[round] = medians[round][way];
            ratios[round] = medians[round][FP32] / medians[round][way];
        }
        snprintf(name, sizeof name, "serve.session.dlrm.batch%zu.%s", batch, way_names[way]);
        const struct bench_figure figure = {.name = name,
            .unit = "us",
            .value = bench_median(values, sessions->rounds),
            .peer = way == FP32 ? NULL : "fp32",
            .ratio = way == FP32 ? NAN : bench_median(ratios, sessions->rounds)};
        printf("%-36s %9.1f us", name, figure.value);
        if (way != FP32)
            printf("   %5.2f x fp32", figure.ratio);
        printf("\n");
        bench_record(sessions->results, &figure);
    }
}

int main(int argc, char **argv)
{
    static const size_t batches[] = {1, 16, 64};
    struct sessions sessions = {.calls = 100, .results = ph__json_array()};
    struct bench_run run = {.rounds = 11};
    const struct bench_flag flags[] = {{.name = "--calls", .number = &sessions.calls}};
    struct ph__arena arena = {0};
    char folder[256], processor[128];
    bench_read_flags(argc, argv, &run, flags, 1);
    sessions.rounds = run.rounds;
    ph__cpu_name(processor, sizeof processor);
    printf("DLRM session, one thread: %s, VNNI %s\n", processor, ph__cpu_has_int8_dot() ? "yes" : "no");
    struct serve_rows *rows = serve_rows_make();
    sessions.rows = rows;
    bench_make_folder("bench_recipes", folder, sizeof folder);
    serve_folder_make(&arena, folder, &(struct serve_model){.dim = 16, .table_rows = 100000, .seed = 1});
    open_sessions(&sessions, &arena, folder);
    bench_remove_folder(folder);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        measure(&sessions, batches[i]);
    for (size_t way = NUM_WAYS; way-- > 0;)
        ph_session_close(sessions.ways[way]);
    free(rows);
    ph__arena_fini(&arena);
    bench_finish(sessions.results, run.json);
    return 0;
}
