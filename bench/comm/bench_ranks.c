/* Benchmarks a model trained over MPI by two ranks of one thread against one rank of two threads, and the
 * cost of the exchanges.
 *
 *   a DLRM of 26 tables, half of them on each rank (bench/dlrm_case.h): ids, vectors and their gradients are
 *   exchanged
 *   a multi-layer perceptron over dense features: only gradients of its parameters are exchanged; its peer is
 *   PyTorch's DistributedDataParallel over gloo (bench/peers/torch_ranks.py)
 *
 * Runs on this host, and on two hosts with a link of 1 Gb/s: network namespaces of this machine, which then
 * must have a processor for each rank. All sides make batches beforehand: this is the speed of the step,
 * without reading. In each round all contestants of a model take turns (bench/turns.h); seconds are those of
 * the slowest rank.
 *
 *   comm.ranks.MODEL.HOST           samples/s of two ranks; peer on this host: one rank with as many threads
 *   comm.ranks.MODEL.HOST.overlap   the same; peer: ranks that exchange gradients where differentiation puts
 *                                   the exchange (parallel.overlap)
 *   comm.ranks.MODEL.HOST.exposed   time of a step that a rank spends waiting for the other, or sending,
 *                                   receiving and summing by itself, for the rank that spends most; same peer
 *   comm.ranks.MODEL.HOST.sent      bytes that a rank sends in a step
 *
 * The limit of a link is 1 Gb/s for the bytes that a rank sends: a step takes at least as long.
 *
 * bench_ranks [--model large|pool1|pool20|dense] [--place host|link]
 *             [--kind table_wise|row_wise|column_wise|data_parallel] [--wire fp32|fp16|bf16|int8]
 *             [--rounds N] [--operators] [--quick] [--peers FOLDER] [--json FILE]
 * Without --model: large and dense. --operators: each rank prints the times of its last steps' operators.
 * --quick: one round of small tables, as a smoke test. --rank-of, --threads: arguments of a rank process. */
#include <stdio.h>
#include <string.h>

#include "bench_ranks/rank_jobs.h"
#include "bench_ranks/rank_model.h"
#include "bench_ranks/rank_process.h"
#include "flags.h"

enum { DEFAULT_ROUNDS = 11 };
static const char usual_kind[] = "table_wise", usual_wire[] = "fp32";

struct bench {
    struct ph__json *figures;
    size_t rounds;
    struct job_settings job;
    char model[64]; /* with its kind of shards and its wire, where these are not the usual ones */
    const char *peers;
    double samples; /* in a step */
};

/* Ranks that exchange dense gradients while others are made, or afterwards, and the other contestant. */
enum { OVERLAPPED, PLAIN, OTHER, MOST_CONTESTANTS };
struct contest {
    const struct bench *bench;
    const char *where;
    struct peer ranks, other;
    struct job_turn turns[MOST_CONTESTANTS];
    struct contestant contestants[MOST_CONTESTANTS];
    size_t count;
};

static void take_part(struct contest *contest, const char *name, struct peer *job, const char *verb,
    turn_measure *measure, size_t steps)
{
    struct job_turn *turn = &contest->turns[contest->count];
    *turn = (struct job_turn){.job = job, .verb = verb, .steps = steps};
    contest->contestants[contest->count++] =
        (struct contestant){.name = name, .measure = measure, .context = turn};
}

/* ---- figures ---- */

static void record(const struct contest *contest, const char *what, size_t peer, size_t value,
    struct bench_figure figure, double scale, bool is_rate)
{
    char name[128];
    snprintf(name, sizeof name, "comm.ranks.%s.%s%s", contest->bench->model, contest->where, what);
    figure.name = name;
    turn_record(
        contest->bench->figures, &(struct turn_figure){.figure = figure,
                                     .ours = &contest->contestants[OVERLAPPED],
                                     .peer = peer < contest->count ? &contest->contestants[peer] : NULL,
                                     .value = value,
                                     .scale = scale,
                                     .is_rate = is_rate});
}

static void record_sent(const struct contest *contest)
{
    char name[128];
    const double megabytes = 1e-6 * contest->turns[OVERLAPPED].sent_bytes;
    snprintf(name, sizeof name, "comm.ranks.%s.%s.sent", contest->bench->model, contest->where);
    bench_record(
        contest->bench->figures, &(struct bench_figure){.name = name, .unit = "MB", .value = megabytes});
    printf("%-52s %10.3f MB   a rank and step\n", name, megabytes);
}

/* Returns the rate's figure; on a link, with the least share of the step in which the link is busy. */
static struct bench_figure rate_figure(const struct contest *contest, bool is_link, char *limit, size_t size)
{
    struct bench_figure figure = {.unit = "samples/s"};
    const struct contestant *ours = &contest->contestants[OVERLAPPED];
    const double seconds = contest->turns[OVERLAPPED].sent_bytes / JOB_LINK_BYTES_PER_S;
    if (!is_link)
        return figure;
    snprintf(
        limit, size, "%.2f MB that a rank sends in a step, at 1 Gb/s", 1e-6 * seconds * JOB_LINK_BYTES_PER_S);
    figure.limit = limit;
    figure.of_limit = seconds / turn_summary(ours, JOB_SECONDS).median;
    figure.rounds = ours->rounds;
    return figure;
}

static void record_all(const struct contest *contest, bool is_link)
{
    char limit[96];
    const double samples = contest->bench->samples;
    const struct bench_figure rate = rate_figure(contest, is_link, limit, sizeof limit);
    const struct bench_figure time = {.unit = "ms"};
    record(contest, "", OTHER, JOB_SECONDS, rate, samples, true);
    record(contest, ".overlap", PLAIN, JOB_SECONDS, rate, samples, true);
    record(contest, ".exposed", PLAIN, JOB_EXPOSED, time, 1e3, false);
    record_sent(contest);
}

/* ---- contests ---- */

/* Starts our two contestants. Returns false when the ranks cannot run here. */
static bool begin(struct contest *contest, enum job_place place)
{
    job_start(&contest->ranks, place, &contest->bench->job);
    if (!peer_is_there(&contest->ranks))
        return false;
    printf("%s on %s: %s\n", contest->bench->model, contest->where, contest->ranks.version);
    take_part(contest, "overlap on", &contest->ranks, "overlapped", job_measure, 1);
    job_count_steps(&contest->turns[OVERLAPPED]);
    take_part(
        contest, "overlap off", &contest->ranks, "plain", job_measure, contest->turns[OVERLAPPED].steps);
    return true;
}

static void finish(struct contest *contest, bool is_link)
{
    take_turns(contest->contestants, contest->count, contest->bench->rounds);
    record_all(contest, is_link);
    peer_stop(&contest->ranks);
    peer_stop(&contest->other);
}

static void measure_link(const struct bench *bench)
{
    static struct contest contest;
    contest = (struct contest){.bench = bench, .where = "link"};
    if (begin(&contest, JOB_LINK))
        finish(&contest, true);
}

static void add_alone(struct contest *contest)
{
    job_start(&contest->other, JOB_ALONE, &contest->bench->job);
    if (!peer_is_there(&contest->other))
        return;
    take_part(contest, "1 rank x 2 threads", &contest->other, "overlapped", job_measure, 1);
    job_count_steps(&contest->turns[OTHER]);
}

static void add_torch(struct contest *contest)
{
    const struct bench *bench = contest->bench;
    peer_start(&contest->other, bench->peers, "torch_ranks");
    if (!peer_is_there(&contest->other) ||
        !peer_accepts(&contest->other, "case dense batch=%d features=%d units=%lld,%lld,%lld ranks=%d",
            DENSE_BATCH, DENSE_FEATURES, (long long)dense_units[0], (long long)dense_units[1],
            (long long)dense_units[2], JOB_PROCESSORS))
        return;
    take_part(contest, contest->other.version, &contest->other, "train", job_measure_peer,
        contest->turns[OVERLAPPED].steps);
}

static void measure_host(const struct bench *bench)
{
    static struct contest contest;
    contest = (struct contest){.bench = bench, .where = "host"};
    if (!begin(&contest, JOB_HOST))
        return;
    if (strcmp(bench->job.model, RANK_MODEL_DENSE) == 0)
        add_torch(&contest);
    else
        add_alone(&contest);
    finish(&contest, false);
}

/* ---- the command line ---- */

struct options {
    const char *model, *place, *kind, *wire, *rank_of;
    size_t threads;
    bool tells_operators;
};

static enum ph__shard_kind find_kind(const char *name)
{
    size_t kind = 0;
    while (strcmp(ph__shard_kind_name((enum ph__shard_kind)kind), name) != 0)
        kind++;
    return (enum ph__shard_kind)kind;
}

static enum ph_wire_format find_wire(const char *name)
{
    size_t wire = 0;
    while (strcmp(ph__wire_name((enum ph_wire_format)wire), name) != 0)
        wire++;
    return (enum ph_wire_format)wire;
}

static void name_model(struct bench *bench)
{
    const struct job_settings *job = &bench->job;
    const bool is_kind_usual = strcmp(job->kind, usual_kind) == 0,
               is_wire_usual = strcmp(job->wire, usual_wire) == 0;
    snprintf(bench->model, sizeof bench->model, "%s%s%s%s%s", job->model, is_kind_usual ? "" : ".",
        is_kind_usual ? "" : job->kind, is_wire_usual ? "" : ".", is_wire_usual ? "" : job->wire);
}

static void measure_model(const struct bench *bench, const char *model, const char *place)
{
    struct bench of = *bench;
    of.job.model = model;
    of.samples = (double)rank_model_batch(model);
    name_model(&of);
    if (place == NULL || strcmp(place, "host") == 0)
        measure_host(&of);
    if (place == NULL || strcmp(place, "link") == 0)
        measure_link(&of);
}

static void measure_all(const struct options *options, const struct bench_run *run)
{
    const struct bench bench = {.figures = ph__json_array(),
        .rounds = run->rounds,
        .job = {.kind = options->kind, .wire = options->wire, .tells_operators = options->tells_operators},
        .peers = run->peers};
    if (options->model != NULL) {
        measure_model(&bench, options->model, options->place);
    } else {
        measure_model(&bench, run->is_quick ? "pool1" : "large", options->place);
        measure_model(&bench, RANK_MODEL_DENSE, options->place);
    }
    bench_finish(bench.figures, run->json);
}

int main(int argc, char **argv)
{
    static const char models[] = "large|pool1|pool20|" RANK_MODEL_DENSE;
    struct options options = {.kind = usual_kind, .wire = usual_wire, .threads = 1};
    const struct bench_flag flags[] = {{.name = "--model", .word = &options.model, .words = models},
        {.name = "--place", .word = &options.place, .words = "host|link"},
        {.name = "--kind", .word = &options.kind, .words = "table_wise|row_wise|column_wise|data_parallel"},
        {.name = "--wire", .word = &options.wire, .words = "fp32|fp16|bf16|int8"},
        {.name = "--operators", .is_set = &options.tells_operators},
        {.name = "--rank-of", .word = &options.rank_of, .words = models},
        {.name = "--threads", .number = &options.threads}};
    struct bench_run run = {.rounds = DEFAULT_ROUNDS, .most_rounds = TURN_MOST_ROUNDS};
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    if (options.rank_of != NULL)
        rank_process_run(&(struct rank_settings){.model = options.rank_of,
            .kind = find_kind(options.kind),
            .wire = find_wire(options.wire),
            .threads = options.threads,
            .tells_operators = options.tells_operators});
    else
        measure_all(&options, &run);
    return 0;
}
