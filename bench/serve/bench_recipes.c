/* Products in fewer bits in a session: the DLRM of bench_session in fp32, with the recipes bf16 and int8 in
 * all products that take them, and with the recipe of each product that is fastest for calls of so many rows;
 * in calls of 1, 16 and 64 rows, one thread on one core. Calls take turns; behind those of a round come as
 * many of each peer, in fp32 and with products of bytes: onnxruntime with the model as ONNX, which gets
 * encoded rows, and a DLRM of the same shape in PyTorch, eager, with random ids.
 *
 * --lean 1: a model with block norm and hard swish in place of ReLU, and no biases but the logits'.
 *
 * bench_recipes [--rounds N] [--calls N] [--lean 1] [--peers FOLDER] [--json FILE] */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "dlrm_case.h"
#include "figures.h"
#include "flags.h"
#include "graph/recipe_table.h"
#include "peer.h"
#include "phloem/serve.h"
#include "pinned.h"
#include "recipe_choice.h"
#include "serve/session.h"
#include "serve_case.h"

enum { MAX_BATCH = 64, DIM = 16, TABLE_ROWS = 100000, MOST_CALLS = BENCH_MAX_ROUNDS };
enum { NUM_BATCHES = 3, FP32 = 0, BF16, INT8, CHOSEN, NUM_WAYS };
static const char *const way_names[NUM_WAYS] = {"fp32", "bf16", "int8", "chosen"};
static const size_t batches[NUM_BATCHES] = {1, 16, 64};

/* The int8 models of the peers are their own libraries' dynamic quantisation. */
static const struct rival {
    const char *name, *precision;
} rivals[] = {{"onnxruntime", "fp32"}, {"onnxruntime", "int8"}, {"torch", "fp32"}, {"torch", "int8"}};
enum { NUM_RIVALS = sizeof rivals / sizeof *rivals };

struct sessions {
    struct ph_session *ways[NUM_BATCHES][NUM_WAYS]; /* all but the chosen recipes are the first batch's */
    const struct serve_rows *rows;
    size_t rounds, calls;
    struct ph__json *results;
    struct peer peers[NUM_RIVALS];
    bool is_ready[NUM_RIVALS];
    const char *onnx_folder, *torch_folder;
};

/* Writes a table of recipes into the folder. */
static void write_recipes(struct ph__arena *arena, const char *folder, const struct recipe_choice *choice)
{
    struct ph__writer *writer = NULL;
    bench_check(ph__writer_open(serve_path(arena, folder, PH_RECIPE_TABLE_FILE), &writer));
    bench_check(ph__writer_printf(writer, "{\"sites\": ["));
    for (size_t i = 0; i < choice->count; i++)
        bench_check(ph__writer_printf(writer, "%s{\"weight\": \"%s\", \"forward\": \"%s\"}",
            i > 0 ? ", " : "", choice->recipes[i].weight, ph_recipe_name(choice->recipes[i].forward)));
    bench_check(ph__writer_printf(writer, "]}\n"));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
}

static struct ph_session *open_session(const char *folder, struct ph_session *first)
{
    struct ph_session *session = NULL;
    const struct ph_session_options options = {
        .size = sizeof options, .max_batch = MAX_BATCH, .share_with = first};
    bench_check(ph_session_open(folder, &options, &session));
    return session;
}

static void open_sessions(struct sessions *sessions, struct ph__arena *arena, const char *folder)
{
    static const enum ph_recipe single[] = {PH_RECIPE_FP32, PH_RECIPE_BF16, PH_RECIPE_INT8};
    struct ph_session *first = NULL;
    for (int way = 0; way < CHOSEN; way++) {
        write_recipes(
            arena, folder, &(struct recipe_choice){{{"*", single[way], PH_RECIPE_FP32}}, .count = 1});
        for (size_t i = 0; i < NUM_BATCHES; i++)
            sessions->ways[i][way] = i == 0 ? open_session(folder, first) : sessions->ways[0][way];
        first = sessions->ways[0][0];
    }
    for (size_t i = 0; i < NUM_BATCHES; i++) {
        struct recipe_choice choice;
        recipe_choice_make(&choice, first->model.program, 1, batches[i], false);
        printf("chosen for %zu rows:\n", batches[i]);
        recipe_choice_print(&choice);
        write_recipes(arena, folder, &choice);
        sessions->ways[i][CHOSEN] = open_session(folder, first);
    }
}

/* Returns the median microseconds of calls of each way, which take turns. */
static void run_round(
    const struct sessions *sessions, size_t index, size_t first, double medians_out[NUM_WAYS])
{
    double *us = calloc(NUM_WAYS * sessions->calls, sizeof *us);
    float probabilities[MAX_BATCH];
    const size_t batch = batches[index];
    if (us == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu calls", sessions->calls));
    for (size_t i = 0; i < sessions->calls; i++)
        for (size_t way = 0; way < NUM_WAYS; way++) {
            const size_t row = (first + i) % (SERVE_NUM_ROWS / batch) * batch;
            const uint64_t begun_ns = ph__clock_ns();
            bench_check(ph_session_score(sessions->ways[index][way], batch,
                sessions->rows->cells + row * SERVE_NUM_COLUMNS, probabilities));
            us[way * sessions->calls + i] = (double)(ph__clock_ns() - begun_ns) * 1e-3;
        }
    for (size_t way = 0; way < NUM_WAYS; way++)
        medians_out[way] = bench_median(us + way * sessions->calls, sessions->calls);
    free(us);
}

/* Returns the worst round's ratio of the best single recipe to the chosen ones. */
static double least_of_best(double (*medians)[NUM_WAYS], size_t rounds)
{
    double least = HUGE_VAL;
    for (size_t round = 0; round < rounds; round++) {
        const double *us = medians[round];
        least = fmin(least, fmin(us[FP32], fmin(us[BF16], us[INT8])) / us[CHOSEN]);
    }
    return least;
}

/* ---- peers ---- */

static void start_peers(struct sessions *sessions, const char *peers)
{
    for (size_t i = 0; i < NUM_RIVALS; i++)
        peer_start(&sessions->peers[i], peers, rivals[i].name);
}

static bool is_torch(size_t rival)
{
    return strcmp(rivals[rival].name, "torch") == 0;
}

static void prepare_rivals(struct sessions *sessions, size_t batch)
{
    for (size_t i = 0; i < NUM_RIVALS; i++)
        sessions->is_ready[i] =
            is_torch(i) ? peer_accepts(&sessions->peers[i],
                              "case %s threads=1 mode=eager precision=%s batch=%zu for=infer",
                              sessions->torch_folder, rivals[i].precision, batch)
                        : peer_accepts(&sessions->peers[i], "case %s/model.onnx %s %zu %s",
                              sessions->onnx_folder, sessions->onnx_folder, batch, rivals[i].precision);
}

/* Returns the median microseconds of a rival's calls; NAN without it. */
static double run_rival(struct sessions *sessions, size_t rival)
{
    struct peer *peer = &sessions->peers[rival];
    double us[MOST_CALLS], total, median;
    if (!sessions->is_ready[rival])
        return (double)NAN;
    const char *answer = peer_ask(peer, is_torch(rival) ? "latency %zu" : "run %zu", sessions->calls);
    if (!is_torch(rival))
        return answer != NULL && sscanf(answer, "%lf %lf", &total, &median) == 2 ? 1e6 * median : (double)NAN;
    for (size_t i = 0; i < sessions->calls; i++)
        us[i] = peer_number(&answer);
    return bench_median(us, sessions->calls);
}

static void report_rival(
    struct sessions *sessions, size_t index, size_t rival, const double *theirs, double (*ours)[NUM_WAYS])
{
    const bool is_int8 = strcmp(rivals[rival].precision, "int8") == 0;
    double ratios[BENCH_MAX_ROUNDS], own[BENCH_MAX_ROUNDS];
    char name[96];
    if (!sessions->is_ready[rival])
        return;
    for (size_t round = 0; round < sessions->rounds; round++) {
        own[round] = ours[round][is_int8 ? INT8 : FP32];
        ratios[round] = theirs[round] / own[round];
    }
    snprintf(name, sizeof name, "serve.session.dlrm.batch%zu.%s.%s", batches[index], rivals[rival].precision,
        rivals[rival].name);
    const struct bench_figure figure = {.name = name,
        .unit = "us",
        .value = bench_median(own, sessions->rounds),
        .peer = sessions->peers[rival].version,
        .peer_value = bench_median(theirs, sessions->rounds),
        .ratio = bench_median(ratios, sessions->rounds)};
    printf("  %-20s %-12s %9.1f us   ours %5.2f x as fast\n", figure.peer, rivals[rival].precision,
        figure.peer_value, figure.ratio);
    bench_record(sessions->results, &figure);
}

/* ---- rounds ---- */

static void measure(struct sessions *sessions, size_t index)
{
    static double theirs[NUM_RIVALS][BENCH_MAX_ROUNDS];
    static double medians[BENCH_MAX_ROUNDS][NUM_WAYS], values[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
    double skipped[NUM_WAYS];
    char name[64];
    prepare_rivals(sessions, batches[index]);
    run_round(sessions, index, 0, skipped); /* caches settle */
    for (size_t round = 0; round < sessions->rounds; round++) {
        run_round(sessions, index, (round + 1) * sessions->calls, medians[round]);
        for (size_t i = 0; i < NUM_RIVALS; i++)
            theirs[i][round] = run_rival(sessions, i);
    }
    for (size_t way = 0; way < NUM_WAYS; way++) {
        for (size_t round = 0; round < sessions->rounds; round++) {
            values[round] = medians[round][way];
            ratios[round] = medians[round][FP32] / medians[round][way];
        }
        snprintf(name, sizeof name, "serve.session.dlrm.batch%zu.%s", batches[index], way_names[way]);
        const struct bench_figure figure = {.name = name,
            .unit = "us",
            .value = bench_median(values, sessions->rounds),
            .peer = way == FP32 ? NULL : "fp32",
            .ratio = way == FP32 ? NAN : bench_median(ratios, sessions->rounds)};
        printf("%-36s %9.1f us", name, figure.value);
        if (way != FP32)
            printf("   %5.2f x fp32", figure.ratio);
        if (way == CHOSEN)
            printf(
                ", in each round >= %.3f x the best single recipe", least_of_best(medians, sessions->rounds));
        printf("\n");
        bench_record(sessions->results, &figure);
    }
    for (size_t i = 0; i < NUM_RIVALS; i++)
        report_rival(sessions, index, i, theirs[i], medians);
    fflush(stdout);
}

static void write_torch_case(const char *folder)
{
    static const struct dlrm_case of = {"recipes", SERVE_NUM_SPARSE, TABLE_ROWS, DIM, 1, MAX_BATCH, false};
    struct dlrm_data data;
    dlrm_data_init(&data, &of);
    dlrm_data_write(&data, folder);
    dlrm_data_fini(&data);
}

int main(int argc, char **argv)
{
    struct sessions sessions = {.calls = 200, .results = ph__json_array()};
    struct bench_run run = {.rounds = 11};
    size_t is_lean = 0;
    const struct bench_flag flags[] = {
        {.name = "--calls", .number = &sessions.calls}, {.name = "--lean", .number = &is_lean}};
    struct ph__arena arena = {0};
    char folder[256], torch_folder[256], processor[128];
    bench_read_flags(argc, argv, &run, flags, 2);
    sessions.rounds = run.rounds;
    sessions.calls = ph__min(sessions.calls, MOST_CALLS);
    bench_stay_on(sched_getcpu());
    ph__cpu_name(processor, sizeof processor);
    printf("DLRM session, one thread: %s, VNNI %s\n", processor, ph__cpu_has_int8_dot() ? "yes" : "no");
    struct serve_rows *rows = serve_rows_make();
    sessions.rows = rows;
    bench_make_folder("bench_recipes", folder, sizeof folder);
    serve_folder_make(&arena, folder,
        &(struct serve_model){.dim = DIM, .table_rows = TABLE_ROWS, .seed = 1, .is_lean = is_lean > 0});
    bench_make_folder("bench_recipes_torch", torch_folder, sizeof torch_folder);
    if (run.peers != NULL && !is_lean) { /* they have no lean model */
        serve_peer_files(&arena, folder, rows);
        write_torch_case(torch_folder);
        start_peers(&sessions, run.peers);
    }
    sessions.onnx_folder = folder;
    sessions.torch_folder = torch_folder;
    open_sessions(&sessions, &arena, folder);
    for (size_t i = 0; i < NUM_BATCHES; i++)
        measure(&sessions, i);
    for (size_t i = 0; i < NUM_RIVALS; i++)
        peer_stop(&sessions.peers[i]);
    bench_remove_folder(folder);
    bench_remove_folder(torch_folder);
    for (size_t i = 0; i < NUM_BATCHES; i++)
        ph_session_close(sessions.ways[i][CHOSEN]);
    for (size_t way = CHOSEN; way-- > 0;)
        ph_session_close(sessions.ways[0][way]);
    free(rows);
    ph__arena_fini(&arena);
    bench_finish(sessions.results, run.json);
    return 0;
}
