#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread/clock.h"
#include "phloem/serve.h"
#include "pinned.h"
#include "sections.h"

enum { MAX_BATCH = 64, DEADLINE_US = 50000, MOST_P99_MS = 5, LEAST_RATE = 14000, NUM_SHORT = 20 };

#define TIMES_SHARE .8 /* of the capacity, for times of requests */
#define OVERLOAD 3.    /* times the capacity */

/* Contestants that take turns. */
enum kind { REST, UNBATCHED, GRPC, REST64, GRPC64, SESSION, NUM_KINDS };
static const struct {
    const char *name;
    bool is_grpc;
    size_t num_rows;
} kinds[NUM_KINDS] = {{"rest.rows1", false, 1}, {"batching off", false, 1}, {"grpc.rows1", true, 1},
    {"rest.rows64", false, MAX_BATCH}, {"grpc.rows64", true, MAX_BATCH}, {"session", false, MAX_BATCH}};

struct rates {
    struct setting *setting;
    const char *repository;
    float *scores;
    struct server batching, unbatched;
    struct traffic traffic[NUM_KINDS];
    struct rounds capacity[NUM_KINDS]; /* rows/s */
};

static struct traffic make_traffic(const struct rates *rates, enum kind kind, uint64_t timeout_us)
{
    const struct server *server = kind == UNBATCHED ? &rates->unbatched : &rates->batching;
    const bool is_grpc = kinds[kind].is_grpc;
    struct traffic traffic = {
        .address = is_grpc ? server->grpc : server->http, .is_grpc = is_grpc, .timeout_us = timeout_us};
    bodies_make(&(struct body_options){.form = is_grpc ? BODY_GRPC : BODY_BINARY,
                    .num_rows = kinds[kind].num_rows,
                    .timeout_us = timeout_us,
                    .rows = rates->setting->rows,
                    .scores = {rates->scores}},
        &traffic.bodies);
    return traffic;
}

/* ---- capacities ---- */

/* Returns rows a second that a session scores in calls of 64, on the server's processor. */
static double session_rows(const struct rates *rates)
{
    const struct setting *setting = rates->setting;
    struct ph_session *session = NULL;
    float scores[MAX_BATCH];
    size_t num_rows = 0;
    bench_stay_on(setting->processors[0]);
    bench_check(ph_session_open(trial_version(rates->setting, rates->repository), NULL, &session));
    const double begin_s = ph__clock_seconds();
    while (ph__clock_seconds() - begin_s < setting->seconds / 2) {
        bench_check(ph_session_score(session, MAX_BATCH,
            setting->rows->cells + num_rows % SERVE_NUM_ROWS * SERVE_NUM_COLUMNS, scores));
        num_rows += MAX_BATCH;
    }
    const double rate = (double)num_rows / (ph__clock_seconds() - begin_s);
    ph_session_close(session);
    bench_stay_on(setting->processors[1]);
    return rate;
}

/* Returns rows a second: of one-row requests in an open loop, of 64 rows in a closed one, as a session's. */
static double capacity_of(struct rates *rates, enum kind kind)
{
    if (kind == SESSION)
        return session_rows(rates);
    if (kinds[kind].num_rows == 1)
        return trial_sustained(rates->setting, &rates->traffic[kind]);
    return MAX_BATCH * trial_throughput(rates->setting, &rates->traffic[kind]);
}

static void report_capacity(
    const struct rates *rates, enum kind kind, enum kind peer, double least, double least_ratio)
{
    const size_t num_rounds = rates->setting->run.rounds;
    const double *values = rates->capacity[kind].values, *theirs = rates->capacity[peer].values;
    struct rounds ratios;
    char name[60];
    for (size_t i = 0; i < num_rounds; i++)
        ratios.values[i] = values[i] / theirs[i];
    snprintf(name, sizeof name, "serve.server.%s", kinds[kind].name);
    trial_report(rates->setting, &(struct shown){.figure = {.name = name,
                                                     .unit = "rows/s",
                                                     .value = bench_median(values, num_rounds),
                                                     .spread = bench_spread(values, num_rounds),
                                                     .peer = kinds[peer].name,
                                                     .peer_value = bench_median(theirs, num_rounds),
                                                     .ratio = bench_median(ratios.values, num_rounds)},
                                     .least = least,
                                     .least_ratio = least_ratio});
}

static void measure_capacities(struct rates *rates)
{
    for (size_t round = 0; round < rates->setting->run.rounds; round++)
        for (enum kind kind = 0; kind < NUM_KINDS; kind++)
            rates->capacity[kind].values[round] = capacity_of(rates, kind);
    printf("rows/s: of one-row requests the highest rate at which no queue grows, else of a closed loop\n");
    report_capacity(rates, REST, UNBATCHED, LEAST_RATE, 1.6);
    report_capacity(rates, GRPC, REST, 0, .7);
    report_capacity(rates, REST64, SESSION, 0, .85);
    report_capacity(rates, GRPC64, REST64, 0, .7);
}

/* ---- times ---- */

/* Gives the p99 in ms of short loads of the same length in all as one of setting->seconds; returns its
 * median. Where a machine takes the processor away for a moment, as guests of a cloud know, most are spared.
 */
static double p99_of_short_loads(struct rates *rates, enum kind kind, double rate)
{
    double ms[BENCH_MAX_ROUNDS];
    for (size_t i = 0; i < NUM_SHORT; i++) {
        struct load_result result =
            trial_run(rates->setting, &rates->traffic[kind], rate, rates->setting->seconds / NUM_SHORT);
        ms[i] = load_quantile(&result, .99) * 1e3;
        load_result_fini(&result);
    }
    return bench_median(ms, NUM_SHORT);
}

static void report_time(
    struct rates *rates, enum kind kind, const char *at, const char *quantile, double ms, double most)
{
    char name[80];
    snprintf(name, sizeof name, "serve.server.%s.%s.%s", kinds[kind].name, at, quantile);
    trial_report(
        rates->setting, &(struct shown){.figure = {.name = name, .unit = "ms", .value = ms}, .most = most});
}

/* Reports the times of requests at a rate, of all rounds together; most_p99_ms: the bar of short loads, 0:
 * none. */
static void measure_times(
    struct rates *rates, enum kind kind, const char *at, double rate, double most_p99_ms)
{
    struct setting *setting = rates->setting;
    struct load_result all = {0};
    struct rounds p99;
    for (size_t round = 0; round < setting->run.rounds; round++) {
        struct load_result result = trial_run(setting, &rates->traffic[kind], rate, setting->seconds);
        load_result_add(&all, &result);
        if (most_p99_ms > 0)
            p99.values[round] = p99_of_short_loads(rates, kind, rate);
    }
    report_time(rates, kind, at, "p50", load_quantile(&all, .5) * 1e3, 0);
    report_time(rates, kind, at, "p99", load_quantile(&all, .99) * 1e3, 0);
    report_time(rates, kind, at, "p99.9", load_quantile(&all, .999) * 1e3, 0);
    if (most_p99_ms > 0)
        report_time(rates, kind, at, "p99_of_short_loads", rounds_median(setting, &p99), most_p99_ms);
    printf("  meanwhile this machine kept the generator off its processor for %.1f%% of the time, up to %.0f "
           "ms\n",
        100 * all.paused_s / all.seconds, all.longest_pause_s * 1e3);
    load_result_fini(&all);
}

static double share_of_capacity(const struct rates *rates, enum kind kind)
{
    return TIMES_SHARE * rounds_median(rates->setting, &rates->capacity[kind]) / (double)kinds[kind].num_rows;
}

/* ---- overload ---- */

/* Sends more than the server can answer within the deadline: refusals keep the rest fast. */
static void measure_overload(struct rates *rates)
{
    struct setting *setting = rates->setting;
    struct rounds goodput, middle, tail;
    const double capacity = rounds_median(setting, &rates->capacity[REST64]) / MAX_BATCH;
    struct traffic traffic = make_traffic(rates, REST64, DEADLINE_US);
    double memory = 0;
    for (size_t round = 0; round < setting->run.rounds + 1; round++) {
        struct load_result result = trial_run(setting, &traffic, OVERLOAD * capacity, setting->seconds);
        if (round == 0) /* uncounted: buffers grow */
            memory = server_memory(&rates->batching);
        else {
            goodput.values[round - 1] = (double)result.num_answered / result.seconds;
            middle.values[round - 1] = load_quantile(&result, .5) * 1e3;
            tail.values[round - 1] = load_quantile(&result, .99) * 1e3;
        }
        load_result_fini(&result);
    }
    bodies_fini(&traffic.bodies);
    const double value = rounds_median(setting, &goodput);
    trial_report(setting, &(struct shown){.figure = {.name = "serve.server.rest.rows64.overload.goodput",
                                              .unit = "requests/s",
                                              .value = value,
                                              .peer = "capacity",
                                              .peer_value = capacity,
                                              .ratio = value / capacity},
                              .least_ratio = .9});
    report_time(rates, REST64, "overload", "p50", rounds_median(setting, &middle), 0);
    report_time(rates, REST64, "overload", "p99", rounds_median(setting, &tail), DEADLINE_US * 1e-3);
    trial_report(
        setting, &(struct shown){.figure = {.name = "serve.server.rest.rows64.overload.growth",
                                     .unit = "MiB",
                                     .value = (server_memory(&rates->batching) - memory) / (1 << 20)}});
}

/* ---- the section ---- */

void measure_rates(struct setting *setting)
{
    struct rates rates = {.setting = setting};
    struct server_options options = {.processor = setting->processors[0], .max_batch = MAX_BATCH};
    options.repository = rates.repository = trial_repository(setting, "rates",
        &(struct serve_model){.dim = 64, .table_rows = setting->run.is_quick ? 1000 : 100000, .seed = 1});
    rates.scores = bodies_scores(trial_version(setting, rates.repository), setting->rows);
    server_start(&options, &rates.batching);
    options.max_batch = 1;
    server_start(&options, &rates.unbatched);
    for (enum kind kind = 0; kind < SESSION; kind++)
        rates.traffic[kind] = make_traffic(&rates, kind, 0);
    measure_capacities(&rates);
    server_kill(&rates.unbatched);
    printf(
        "times at %.0f%% of the bar's %d requests/s, and of the capacity\n", 100 * TIMES_SHARE, LEAST_RATE);
    for (enum kind kind = REST; kind <= GRPC; kind += GRPC - REST)
        measure_times(&rates, kind, "at80_of_bar", TIMES_SHARE * LEAST_RATE, MOST_P99_MS);
    measure_times(&rates, REST, "at80", share_of_capacity(&rates, REST), 0);
    measure_times(&rates, GRPC, "at80", share_of_capacity(&rates, GRPC), 0);
    measure_times(&rates, REST64, "at80", share_of_capacity(&rates, REST64), 0);
    measure_overload(&rates);
    server_kill(&rates.batching);
    for (enum kind kind = 0; kind < SESSION; kind++)
        bodies_fini(&rates.traffic[kind].bodies);
    free(rates.scores);
    bench_remove_folder(rates.repository);
}
