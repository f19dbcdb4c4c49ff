#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread/clock.h"
#include "phloem/serve.h"
#include "pinned.h"
#include "sections.h"

enum { MAX_BATCH = 64, DEADLINE_US = 50000, MOST_P99_MS = 5 };

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
    report_capacity(rates, REST, UNBATCHED, 14000, 1.6);
    report_capacity(rates, GRPC, REST, 0, .7);
    report_capacity(rates, REST64, SESSION, 0, .85);
    report_capacity(rates, GRPC64, REST64, 0, .7);
}

/* ---- times ---- */

/* Reports the times of requests at a share of the capacity. */
static void measure_times(struct rates *rates, enum kind kind, double most_p99_ms)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", .5}, {"p99", .99}, {"p99.9", .999}};
    struct setting *setting = rates->setting;
    const double rate =
        TIMES_SHARE * rounds_median(setting, &rates->capacity[kind]) / (double)kinds[kind].num_rows;
    struct rounds times[3];
    char name[60];
    for (size_t round = 0; round < setting->run.rounds; round++) {
        struct load_result result = trial_run(setting, &rates->traffic[kind], rate, setting->seconds);
        for (size_t q = 0; q < 3; q++)
            times[q].values[round] = load_quantile(&result, quantiles[q].share) * 1e3;
        load_result_fini(&result);
    }
    for (size_t q = 0; q < 3; q++) {
        snprintf(name, sizeof name, "serve.server.%s.at80.%s", kinds[kind].name, quantiles[q].name);
        trial_report(
            setting, &(struct shown){.figure = {.name = name,
                                         .unit = "ms",
                                         .value = rounds_median(setting, &times[q]),
                                         .spread = bench_spread(times[q].values, setting->run.rounds)},
                         .most = q == 1 ? most_p99_ms : 0});
    }
}

/* ---- overload ---- */

/* Sends more than the server can answer within the deadline: refusals keep the rest fast. */
static void measure_overload(struct rates *rates)
{
    struct setting *setting = rates->setting;
    struct rounds goodput, tail;
    const double capacity = rounds_median(setting, &rates->capacity[REST64]) / MAX_BATCH;
    struct traffic traffic = make_traffic(rates, REST64, DEADLINE_US);
    double memory = 0;
    for (size_t round = 0; round < setting->run.rounds + 1; round++) {
        struct load_result result = trial_run(setting, &traffic, OVERLOAD * capacity, setting->seconds);
        if (round == 0) /* uncounted: buffers grow */
            memory = server_memory(&rates->batching);
        else {
            goodput.values[round - 1] = (double)result.num_answered / result.seconds;
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
    trial_report(setting, &(struct shown){.figure = {.name = "serve.server.rest.rows64.overload.p99",
                                              .unit = "ms",
                                              .value = rounds_median(setting, &tail)},
                              .most = DEADLINE_US * 1e-3});
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
    measure_times(&rates, REST, MOST_P99_MS);
    measure_times(&rates, GRPC, MOST_P99_MS);
    measure_times(&rates, REST64, 0);
    measure_overload(&rates);
    server_kill(&rates.batching);
    for (enum kind kind = 0; kind < SESSION; kind++)
        bodies_fini(&rates.traffic[kind].bodies);
    free(rates.scores);
    bench_remove_folder(rates.repository);
}
