/* Measures the embedding operators alone: rows looked up and pooled, and the backward pass with the update,
 * on one and two threads.
 *
 * Each round measures the machine's rates for the rows of the case, then some steps of ours, then some of
 * fbgemm's table-batched embedding (bench/peers/fbgemm.py) on the same batches; first with one thread, then
 * with two. Cases have rows of 64 to 512 bytes, pooling 1 and 20, ids uniform and with the reuse of
 * production tables. Sweeps then vary each quantity over decades, at the middle of the others, for the
 * report's plots, without the peer. The peer's ids come prepared; ours are made into slots within the
 * measured time of the update, and the table shows their share.
 *
 * bench_embedding [--rounds N] [--case NAME] [--optimizer rowwise_adagrad|adagrad] [--threads N] [--quick]
 *                 [--peers FOLDER] [--json FILE]
 *
 * NAME: a case, or the first words of all cases that are meant: "dim64", "dim64.pool20", "sweep",
 * "sweep.rows".
 * --quick: small tables and one round, to see that all of it runs. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_embedding/embedding_report.h"
#include "bench_embedding/lookup_step.h"
#include "flags.h"
#include "graph/op.h"
#include "peer.h"

enum { MIN_STEPS = 3 };
static const char case_folder[] = "build/bench/case"; /* for peers */
static const double sample_seconds = 0.08;            /* about so long in a round */

static const struct optimizer {
    enum ph_optimizer_kind kind;
    const char *name;
} optimizers[] = {{PH_ROWWISE_ADAGRAD, "rowwise_adagrad"}, {PH_ADAGRAD, "adagrad"}};
enum { NUM_OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* Rows of 512 bytes come in half the number, so that tables and slots fit into 16 GB. Cases with the same ids
 * follow one another, so that these are drawn once. */
static const struct dlrm_case cases[] = {
    {"dim16.pool1", 26, 100000, 16, 1, 2048, false},
    {"dim32.pool1", 26, 100000, 32, 1, 2048, false},
    {"dim64.pool1", 26, 100000, 64, 1, 2048, false},
    {"dim16.pool1.uniform", 26, 100000, 16, 1, 2048, true},
    {"dim32.pool1.uniform", 26, 100000, 32, 1, 2048, true},
    {"dim64.pool1.uniform", 26, 100000, 64, 1, 2048, true},
    {"dim16.pool20", 26, 100000, 16, 20, 2048, false},
    {"dim32.pool20", 26, 100000, 32, 20, 2048, false},
    {"dim64.pool20", 26, 100000, 64, 20, 2048, false},
    {"dim16.pool20.uniform", 26, 100000, 16, 20, 2048, true},
    {"dim32.pool20.uniform", 26, 100000, 32, 20, 2048, true},
    {"dim64.pool20.uniform", 26, 100000, 64, 20, 2048, true},
    {"dim128.pool1", 26, 50000, 128, 1, 2048, false},
    {"dim128.pool1.uniform", 26, 50000, 128, 1, 2048, true},
    {"dim128.pool20", 26, 50000, 128, 20, 2048, false},
    {"dim128.pool20.uniform", 26, 50000, 128, 20, 2048, true},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

/* The middle of the sweeps, which vary one quantity at a time; one more sweep varies the threads. */
static const struct dlrm_case middle = {"", 8, 100000, 64, 10, 2048, false};
enum { MAX_POINTS = 4 };
static const struct sweep {
    const char *of;
    size_t offset; /* of the varied member */
    size_t points[MAX_POINTS];
} sweeps[] = {
    {"batch", offsetof(struct dlrm_case, batch), {16, 256, 2048, 16384}},
    {"rows", offsetof(struct dlrm_case, rows), {1000, 10000, 100000, 1000000}},
    {"dim", offsetof(struct dlrm_case, dim), {4, 16, 64, 512}},
    {"pooling", offsetof(struct dlrm_case, pooling), {1, 5, 20, 200}},
};
enum { NUM_SWEEPS = sizeof sweeps / sizeof *sweeps };

struct options {
    size_t rounds, threads;
    bool is_quick;
    const char *of, *optimizer, *peers, *json;
};

/* Resources of all cases, one of each for every team of threads. */
struct bench {
    struct options options;
    size_t num_teams;
    size_t threads[EMBEDDING_TEAMS];
    struct ph_backend *backends[EMBEDDING_TEAMS];
    struct bench_limits *limits[EMBEDDING_TEAMS];
    struct peer peers[EMBEDDING_TEAMS];
    struct dlrm_data data; /* of the latest case; without tables: none yet */
    struct ph__json *figures;
};

/* ---- rounds ---- */

/* Returns the median seconds of so many steps, each asked for by itself, as ours are measured; NAN when the
 * peer gives no seconds: it is missing (steps 0), has ended, or could not run. */
static double run_peer(struct peer *peer, const char *verb, size_t steps)
{
    double seconds[LOOKUP_MAX_STEPS];
    for (size_t i = 0; i < steps; i++) {
        const char *answer = peer_ask(peer, "%s 1", verb);
        const double told = answer != NULL ? strtod(answer, NULL) : 0;
        seconds[i] = told > 0 ? told : (double)NAN;
    }
    return steps > 0 ? bench_median(seconds, steps) : (double)NAN;
}

static void keep_sample(struct embedding_team *team, size_t round)
{
    double update = 0, floor = 0, updated_bytes = 0;
    for (size_t k = 0; k < LOOKUP_OPERATORS; k++) {
        const struct lookup_profile *profile = &team->latest[k];
        const double least = bench_floor(&profile->cost, &team->rates);
        team->seconds[k][round] = profile->seconds;
        team->of_floor[k][round] = least / profile->seconds;
        if (k == LOOKUP_BAG)
            continue;
        update += profile->seconds;
        floor += least;
        updated_bytes += profile->cost.updated_bytes;
    }
    const struct lookup_profile *bag = &team->latest[LOOKUP_BAG];
    team->forward[round] = bag->seconds;
    team->of_gather[round] = bag->cost.gathered_bytes / bag->seconds / team->rates.gather;
    team->forward_of_floor[round] = team->of_floor[LOOKUP_BAG][round];
    team->update[round] = update;
    team->of_update[round] = updated_bytes / update / team->rates.update;
    team->update_of_floor[round] = floor / update;
}

/* One team's part in a case. The peer has its own numbers of steps: as many as fill a sample. */
struct contest {
    struct lookup *lookup;
    const struct floor_rows *rows;
    size_t team, steps, their_forward, their_update;
};

static void run_round(
    struct bench *bench, const struct contest *contest, struct embedding_team *team, size_t round)
{
    struct peer *peer = &bench->peers[contest->team];
    const double before = bench_core_latency();
    team->rates =
        bench_measure_rates(bench->limits[contest->team], contest->rows, lookup_table(contest->lookup));
    lookup_run(contest->lookup, contest->team, contest->steps, team->latest);
    bench_raise_rates(
        &team->rates, bench->limits[contest->team], contest->rows, lookup_table(contest->lookup));
    keep_sample(team, round);
    team->their_forward[round] = run_peer(peer, "forward", contest->their_forward);
    team->their_update[round] = run_peer(peer, "update", contest->their_update);
    team->placement[round] = bench_placement(team->threads, before, bench_core_latency());
}

static size_t steps_of_a_sample(const struct bench *bench, double once)
{
    const size_t steps = once > 0 && !bench->options.is_quick ? (size_t)(sample_seconds / once) + 1 : 0;
    return steps < MIN_STEPS ? MIN_STEPS : steps > LOOKUP_MAX_STEPS ? LOOKUP_MAX_STEPS : steps;
}

static void prepare_peer(struct bench *bench, struct contest *contest, const char *optimizer)
{
    struct peer *peer = &bench->peers[contest->team];
    if (!peer_accepts(peer, "case %s threads=%zu optimizer=%s rows=fp32", case_folder,
            bench->threads[contest->team], optimizer))
        return;
    contest->their_forward = steps_of_a_sample(bench, run_peer(peer, "forward", 1));
    contest->their_update = steps_of_a_sample(bench, run_peer(peer, "update", 1));
}

static struct contest prepare(struct bench *bench, struct lookup *lookup, const struct floor_rows *rows,
    struct embedding_run *run, size_t team)
{
    struct contest contest = {.lookup = lookup, .rows = rows, .team = team};
    struct lookup_profile profile[LOOKUP_OPERATORS];
    lookup_run(lookup, team, 2, profile); /* warms up, and allocates all that a first step does */
    contest.steps = steps_of_a_sample(bench, lookup_run(lookup, team, 1, profile));
    if (run->sweep == NULL && peer_is_there(&bench->peers[team]))
        prepare_peer(bench, &contest, run->optimizer);
    run->teams[team].threads = bench->threads[team];
    snprintf(run->teams[team].peer, sizeof run->teams[team].peer, "%s", bench->peers[team].version);
    return contest;
}

static void measure(struct bench *bench, const struct floor_rows *rows, const struct optimizer *optimizer,
    struct embedding_run *run)
{
    struct contest contests[EMBEDDING_TEAMS];
    run->rounds = bench->options.rounds;
    run->num_teams = bench->num_teams;
    run->optimizer = optimizer->name;
    struct lookup *lookup = lookup_create(&bench->data, optimizer->kind, bench->backends, bench->num_teams);
    for (size_t team = 0; team < bench->num_teams; team++)
        contests[team] = prepare(bench, lookup, rows, run, team);
    for (size_t round = 0; round < run->rounds; round++)
        for (size_t team = 0; team < bench->num_teams; team++)
            run_round(bench, &contests[team], &run->teams[team], round);
    embedding_report(bench->figures, run);
    for (size_t team = 0; team < bench->num_teams; team++)
        if (contests[team].their_forward > 0)
            peer_ask(&bench->peers[team], "end");
    lookup_destroy(lookup);
}

/* ---- cases and sweeps ---- */

static bool is_meant(const struct options *options, const char *name)
{
    const size_t length = options->of != NULL ? strlen(options->of) : 0;
    return length == 0 ||
           (strncmp(name, options->of, length) == 0 && (name[length] == '\0' || name[length] == '.'));
}

static struct dlrm_case sized(const struct options *options, struct dlrm_case of)
{
    if (options->is_quick) {
        of.tables = 4;
        of.rows = of.rows < 1000 ? of.rows : 1000;
        of.batch = of.batch < 256 ? of.batch : 256;
    }
    return of;
}

static bool have_same_ids(const struct dlrm_case *a, const struct dlrm_case *b)
{
    return a->tables == b->tables && a->rows == b->rows && a->pooling == b->pooling && a->batch == b->batch &&
           a->is_uniform == b->is_uniform;
}

static void use_data(struct bench *bench, const struct dlrm_case *of)
{
    struct dlrm_data *data = &bench->data;
    if (!have_same_ids(&data->of, of)) {
        dlrm_data_fini(data);
        dlrm_data_init(data, of);
    }
    data->of = *of;
}

/* Returns true when the optimizer is to be measured on the case. Without --optimizer, uniform ids and sweeps
 * are for the first one alone: the run would take a third longer. */
static bool is_wanted(
    const struct options *options, size_t optimizer, const struct dlrm_case *of, bool is_of_sweep)
{
    if (options->optimizer != NULL)
        return strcmp(options->optimizer, optimizers[optimizer].name) == 0;
    return optimizer == 0 || (!of->is_uniform && !is_of_sweep);
}

static void measure_case(struct bench *bench, const struct dlrm_case *of, const struct embedding_run *as)
{
    const struct options *options = &bench->options;
    static struct embedding_run run;
    bool is_first = true;
    use_data(bench, of);
    struct floor_rows *rows = floor_rows_create(&bench->data);
    if (as->sweep == NULL && peer_is_there(&bench->peers[0]))
        dlrm_data_write(&bench->data, case_folder);
    for (size_t i = 0; i < NUM_OPTIMIZERS; i++) {
        if (!is_wanted(options, i, of, as->sweep != NULL))
            continue;
        run = *as;
        run.of = &bench->data.of;
        run.has_forward = is_first;
        measure(bench, rows, &optimizers[i], &run);
        is_first = false;
    }
    floor_rows_destroy(rows);
}

static void measure_point(struct bench *bench, const struct sweep *sweep, size_t value)
{
    char name[64];
    struct dlrm_case of = middle;
    snprintf(name, sizeof name, "sweep.%s.%zu", sweep->of, value);
    memcpy((char *)&of + sweep->offset, &value, sizeof value);
    of = sized(&bench->options, of);
    if (is_meant(&bench->options, name))
        measure_case(
            bench, &of, &(struct embedding_run){.name = name, .sweep = sweep->of, .at = (double)value});
}

static void measure_all(struct bench *bench)
{
    for (size_t i = 0; i < NUM_CASES; i++) {
        const struct dlrm_case of = sized(&bench->options, cases[i]);
        if (is_meant(&bench->options, of.name))
            measure_case(bench, &of, &(struct embedding_run){.name = of.name});
    }
    for (size_t i = 0; i < NUM_SWEEPS; i++)
        for (size_t k = 0; k < MAX_POINTS; k++)
            measure_point(bench, &sweeps[i], sweeps[i].points[k]);
    if (is_meant(&bench->options, "sweep.threads")) {
        const struct dlrm_case of = sized(&bench->options, middle);
        measure_case(bench, &of, &(struct embedding_run){.name = "sweep.threads", .sweep = "threads"});
    }
}

/* ---- the program ---- */

static struct options parse(int argc, char **argv)
{
    struct options options = {0};
    const struct bench_flag flags[] = {{.name = "--threads", .number = &options.threads},
        {.name = "--case", .word = &options.of},
        {.name = "--optimizer", .word = &options.optimizer, .words = "rowwise_adagrad|adagrad"}};
    struct bench_run run = {.rounds = 3, .most_rounds = EMBEDDING_MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    options.rounds = run.rounds;
    options.is_quick = run.is_quick;
    options.peers = run.peers;
    options.json = run.json;
    return options;
}

/* Starts a team and its peer, but no further peer when the first one is missing, which is reported once. */
static void start_team(struct bench *bench, size_t threads)
{
    const size_t team = bench->num_teams++;
    bench->threads[team] = threads;
    bench_check(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = threads},
        &bench->backends[team]));
    bench->limits[team] = bench_limits_create(bench->backends[team]->team);
    if (team == 0 || peer_is_there(&bench->peers[0]))
        peer_start(&bench->peers[team], bench->options.peers, "fbgemm");
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.options = parse(argc, argv);
    bench.figures = ph__json_array();
    for (size_t threads = 1; threads <= EMBEDDING_TEAMS; threads++)
        if (bench.options.threads == 0 || bench.options.threads == threads)
            start_team(&bench, threads);
    embedding_print_heads();
    measure_all(&bench);
    dlrm_data_fini(&bench.data);
    for (size_t team = 0; team < bench.num_teams; team++) {
        peer_stop(&bench.peers[team]);
        bench_limits_destroy(bench.limits[team]);
        ph_backend_destroy(bench.backends[team]);
    }
    bench_finish(bench.figures, bench.options.json);
    return 0;
}
