/* Latency of a session: a DLRM of 13 dense features, 26 tables x 100k rows, bottom 512-256, top 512-256-1, in
 * calls of 1, 16 and 64 rows, one thread on one core. A call begins with Criteo's cells (integers, and
 * hexadecimal texts that are hashed) and ends with probabilities. The peer, in alternating rounds of calls,
 * is onnxruntime with the same model as ONNX (bench/peers/onnxruntime.py), where it can be imported: it gets
 * encoded rows, and is called from Python.
 *
 * bench_session [--dim D] [--rounds N] [--calls N] [--peers FOLDER] [--json FILE] */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/memory/arena.h"
#include "base/thread/clock.h"
#include "figures.h"
#include "flags.h"
#include "peer.h"
#include "phloem/serve.h"
#include "pinned.h"
#include "serve_case.h"

enum { MAX_BATCH = 64 };

#define MAX_ROUNDS ((size_t)101)

struct options {
    size_t dim; /* 0: 16 and 64 */
    size_t rounds, calls;
    const char *peers, *json;
};

/* ---- calls ---- */

/* Returns the row where call `call` of `batch` rows begins: both sides go through the same rows. */
static size_t first_row(size_t call, size_t batch)
{
    return call % (SERVE_NUM_ROWS / batch) * batch;
}

/* Microseconds of the calls of one round. */
struct latency {
    double p50, p99;
};

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Returns the value that this share of the ascending values does not exceed. */
static double quantile(const double *values, size_t count, double share)
{
    return values[(size_t)ceil(share * (double)count) - 1];
}

/* Runs calls from `first_call` on; microseconds (calls) is scratch. */
static struct latency run_ours(struct ph_session *session, const struct serve_rows *rows, size_t batch,
    size_t first_call, size_t calls, double *microseconds)
{
    float probabilities[MAX_BATCH];
    for (size_t i = 0; i < calls; i++) {
        const struct ph_cell *cells = rows->cells + first_row(first_call + i, batch) * SERVE_NUM_COLUMNS;
        const uint64_t begin = ph__clock_ns();
        bench_check(ph_session_score(session, batch, cells, probabilities));
        microseconds[i] = (double)(ph__clock_ns() - begin) * 1e-3;
    }
    qsort(microseconds, calls, sizeof *microseconds, ascending);
    return (struct latency){quantile(microseconds, calls, 0.5), quantile(microseconds, calls, 0.99)};
}

static struct latency run_peer(struct peer *peer, size_t calls)
{
    struct latency latency = {(double)NAN, (double)NAN};
    const char *answer = peer_ask(peer, "run %zu", calls);
    double total;
    if (answer == NULL || sscanf(answer, "%lf %lf %lf", &total, &latency.p50, &latency.p99) != 3)
        return (struct latency){(double)NAN, (double)NAN};
    return (struct latency){latency.p50 * 1e6, latency.p99 * 1e6};
}

/* Starts the peer's case: from then on the peer's call i scores the rows of our call i. */
static void start_peer(struct peer *peer, struct ph__arena *arena, const char *folder, size_t batch)
{
    if (!peer_accepts(peer, "case %s %s %zu", serve_path(arena, folder, "model.onnx"), folder, batch))
        peer_stop(peer);
}

/* ---- rounds ---- */

/* One figure in all rounds. */
struct figures {
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS], ratios[MAX_ROUNDS];
};

static void report(struct ph__json *results, const struct peer *peer, const char *name,
    struct figures *figures, size_t rounds)
{
    const bool has_peer = peer_is_there(peer);
    struct ph__json *entry = ph__json_object();
    for (size_t i = 0; i < rounds; i++)
        figures->ratios[i] = figures->theirs[i] / figures->ours[i];
    const double value = bench_median(figures->ours, rounds);
    const double peer_value = has_peer ? bench_median(figures->theirs, rounds) : (double)NAN;
    const double ratio = has_peer ? bench_median(figures->ratios, rounds) : (double)NAN;
    printf("%-40s %9.1f us", name, value);
    if (has_peer)
        printf("   onnxruntime %9.1f us   ratio %5.2f", peer_value, ratio);
    printf("\n");
    fflush(stdout);
    ph__json_set_text(entry, "name", name);
    ph__json_set_text(entry, "unit", "us");
    ph__json_set_number(entry, "value", value);
    ph__json_set_text(entry, "peer", has_peer ? peer->version : NULL);
    ph__json_set_number(entry, "peer_value", peer_value);
    ph__json_set_number(entry, "ratio", ratio);
    ph__json_set_null(entry, "limit");
    ph__json_set_null(entry, "of_limit");
    ph__json_set_text(entry, "label", "measured");
    ph__json_append(results, entry);
}

static void run_batch(struct ph_session *session, struct peer *peer, const struct serve_rows *rows,
    const struct options *options, size_t dim, size_t batch, struct ph__json *results)
{
    static struct figures p50, p99;
    char name[96];
    double *scratch = calloc(options->calls, sizeof *scratch);
    if (scratch == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu figures", options->calls));
    run_ours(session, rows, batch, 0, options->calls, scratch); /* not counted: caches settle */
    run_peer(peer, options->calls);
    for (size_t round = 0; round < options->rounds; round++) {
        const struct latency ours =
            run_ours(session, rows, batch, (round + 1) * options->calls, options->calls, scratch);
        const struct latency theirs = run_peer(peer, options->calls);
        p50.ours[round] = ours.p50;
        p99.ours[round] = ours.p99;
        p50.theirs[round] = theirs.p50;
        p99.theirs[round] = theirs.p99;
    }
    snprintf(name, sizeof name, "serve.session.dlrm.dim%zu.batch%zu.p50", dim, batch);
    report(results, peer, name, &p50, options->rounds);
    snprintf(name, sizeof name, "serve.session.dlrm.dim%zu.batch%zu.p99", dim, batch);
    report(results, peer, name, &p99, options->rounds);
    free(scratch);
}

static void run_model(const struct options *options, struct peer *peer, const struct serve_rows *rows,
    size_t dim, struct ph__json *results)
{
    static const size_t batches[] = {1, 16, 64};
    struct ph__arena arena = {0};
    struct ph_session *session = NULL;
    char folder[256];
    bench_make_folder("bench_session", folder, sizeof folder);
    serve_folder_make(&arena, folder, &(struct serve_model){.dim = dim, .table_rows = 100000, .seed = 1});
    if (peer_is_there(peer))
        serve_peer_files(&arena, folder, rows);
    bench_check(ph_session_open(folder,
        &(struct ph_session_options){.size = sizeof(struct ph_session_options), .max_batch = MAX_BATCH},
        &session));
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        start_peer(peer, &arena, folder, batches[i]);
        run_batch(session, peer, rows, options, dim, batches[i], results);
    }
    bench_remove_folder(folder);
    ph_session_close(session);
    ph__arena_fini(&arena);
}

/* ---- options ---- */

static struct options parse(int argc, char **argv)
{
    struct options options = {.calls = 200};
    const struct bench_flag flags[] = {
        {.name = "--dim", .number = &options.dim}, {.name = "--calls", .number = &options.calls}};
    struct bench_run run = {.rounds = 11, .most_rounds = MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    options.rounds = run.rounds;
    options.peers = run.peers;
    options.json = run.json;
    return options;
}

int main(int argc, char **argv)
{
    const struct options options = parse(argc, argv);
    struct peer peer;
    bench_stay_on(sched_getcpu()); /* and the peer that starts from here */
    peer_start(&peer, options.peers, "onnxruntime");
    struct serve_rows *rows = serve_rows_make();
    struct ph__json *results = ph__json_array();
    printf("DLRM session, measured: %d dense, %d tables x 100000, %zu rounds of %zu calls, one thread on one "
           "core\n",
        SERVE_NUM_DENSE, SERVE_NUM_SPARSE, options.rounds, options.calls);
    if (options.dim == 0 || options.dim == 16)
        run_model(&options, &peer, rows, 16, results);
    if (options.dim != 16)
        run_model(&options, &peer, rows, options.dim == 0 ? 64 : options.dim, results);
    peer_stop(&peer);
    free(rows);
    bench_finish(results, options.json);
    return 0;
}
