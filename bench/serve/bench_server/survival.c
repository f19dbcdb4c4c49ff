/* kill -9 under load, and soaks: a small model, and half of the requests/s that the server takes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "sections.h"

enum { MAX_BATCH = 64, LEAST_LIFE_US = 30000, MORE_LIFE_US = 200000, MINUTE = 60, LEAST_INTERVALS = 12 };

#define SHARE .5
#define WARM_UP_SHARE .25 /* of a soak: memory may grow meanwhile */
#define MOST_GROWTH 2.    /* MiB over the rest of a soak, by the line that fits it best */

/* A server of a small model, and its load over each wire. */
struct survivor {
    struct setting *setting;
    const char *repository;
    float *scores;
    struct server server;
    struct traffic traffic[2]; /* REST, gRPC */
    double rate;
};

static void init(struct survivor *survivor, struct setting *setting)
{
    *survivor = (struct survivor){.setting = setting};
    survivor->repository = trial_repository(
        setting, "survival", &(struct serve_model){.dim = 16, .table_rows = 1000, .seed = 1});
    survivor->scores = bodies_scores(trial_version(setting, survivor->repository), setting->rows);
    server_start(
        &(struct server_options){
            .repository = survivor->repository, .processor = setting->processors[0], .max_batch = MAX_BATCH},
        &survivor->server);
    for (size_t i = 0; i < 2; i++) {
        survivor->traffic[i] =
            (struct traffic){.address = i == 0 ? survivor->server.http : survivor->server.grpc,
                .is_grpc = i == 1,
                .looks_first = true};
        bodies_make(&(struct body_options){.form = i == 0 ? BODY_BINARY : BODY_GRPC,
                        .num_rows = 1,
                        .rows = setting->rows,
                        .scores = {survivor->scores}},
            &survivor->traffic[i].bodies);
    }
    survivor->rate = SHARE * trial_throughput(setting, &survivor->traffic[0]);
}

static void fini(struct survivor *survivor)
{
    server_kill(&survivor->server);
    for (size_t i = 0; i < 2; i++)
        bodies_fini(&survivor->traffic[i].bodies);
    free(survivor->scores);
    bench_remove_folder(survivor->repository);
}

/* ---- kills ---- */

/* From before the kill until the server has said that it is ready again. */
struct downtime {
    uint64_t begin_ns, end_ns;
};

/* Tells whether the request was in flight while the server was down. */
static bool is_excused(const struct load_error *error, const struct downtime *downtimes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (error->sent_ns <= downtimes[i].end_ns && error->seen_ns >= downtimes[i].begin_ns)
            return true;
    return false;
}

static void judge_kills(struct setting *setting, const char *wire, const struct load_result *result,
    const struct downtime *downtimes, size_t count)
{
    char name[60];
    size_t num_unexcused = 0;
    double down_s = 0;
    for (size_t i = 0; i < result->num_errors; i++)
        num_unexcused += !is_excused(&result->errors[i], downtimes, count);
    for (size_t i = 0; i < count; i++)
        down_s += (double)(downtimes[i].end_ns - downtimes[i].begin_ns) * 1e-9;
    printf("%s: %zu kills: %zu answers, %zu wrong; %zu errors, %zu while the server was up\n", wire, count,
        result->num_answered, result->num_wrong, result->num_errors, num_unexcused);
    snprintf(name, sizeof name, "serve.server.kills.%s.down", wire);
    trial_report(
        setting, &(struct shown){.figure = {.name = name, .unit = "s", .value = down_s / (double)count}});
    setting->has_failed |= result->num_wrong + num_unexcused > 0 || result->num_answered == 0;
}

static void kill_under_load(
    struct survivor *survivor, size_t wire, size_t count, struct ph__rng_sequence *random)
{
    struct downtime *downtimes = calloc(count, sizeof *downtimes);
    if (downtimes == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu kills", count));
    struct background *load = background_start(&survivor->traffic[wire], survivor->rate);
    for (size_t i = 0; i < count; i++) {
        usleep(LEAST_LIFE_US + (unsigned)(ph__rng_next_uniform(random) * MORE_LIFE_US));
        downtimes[i].begin_ns = ph__clock_ns();
        server_restart(&survivor->server);
        downtimes[i].end_ns = ph__clock_ns();
    }
    usleep(LEAST_LIFE_US + MORE_LIFE_US);
    struct load_result result = background_stop(load);
    judge_kills(survivor->setting, wire == 0 ? "rest" : "grpc", &result, downtimes, count);
    load_result_fini(&result);
    free(downtimes);
}

void survive_kills(struct setting *setting, size_t num_kills)
{
    struct survivor survivor;
    struct ph__rng_sequence random = {.key.seed = 1};
    init(&survivor, setting);
    printf("kill -9 at %.0f requests/s\n", survivor.rate);
    kill_under_load(&survivor, 0, ph__divide_up(num_kills, 2), &random);
    if (num_kills > 1)
        kill_under_load(&survivor, 1, num_kills / 2, &random);
    fini(&survivor);
}

/* ---- soaks ---- */

/* Returns the slope of the line that fits values of 0, 1 ... best. */
static double slope(const double *values, size_t count)
{
    const double middle = (double)(count - 1) / 2;
    double products = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        products += ((double)i - middle) * values[i];
        squares += ((double)i - middle) * ((double)i - middle);
    }
    return squares > 0 ? products / squares : 0;
}

/* Loads the server by both wires in turn. Returns the memory behind that in MiB. */
static double soak_for(struct survivor *survivor, double at, double seconds)
{
    struct load_result result = {0};
    for (size_t wire = 0; wire < 2; wire++) {
        struct load_result part =
            trial_run(survivor->setting, &survivor->traffic[wire], survivor->rate, seconds / 2);
        load_result_add(&result, &part);
    }
    survivor->setting->has_failed |= result.num_errors > 0;
    const double mib = server_memory(&survivor->server) / (1 << 20);
    printf("%7.1f min %9.2f MiB %9zu answers %6zu errors   p99 %7.3f ms\n", at / MINUTE, mib,
        result.num_answered, result.num_errors, load_quantile(&result, .99) * 1e3);
    fflush(stdout);
    load_result_fini(&result);
    return mib;
}

void survive_soak(struct setting *setting, size_t seconds)
{
    struct survivor survivor;
    const double interval = fmin(MINUTE, (double)seconds / LEAST_INTERVALS);
    const size_t count = (size_t)((double)seconds / interval + .5),
                 first = (size_t)(WARM_UP_SHARE * (double)count);
    double *mib = calloc(count, sizeof *mib);
    if (mib == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu intervals", count));
    init(&survivor, setting);
    printf("soak at %.0f requests/s, REST and gRPC by turns\n", survivor.rate);
    for (size_t i = 0; i < count; i++)
        mib[i] = soak_for(&survivor, (double)(i + 1) * interval, interval);
    const double growth = slope(mib + first, count - first) * (double)(count - first);
    setting->has_failed |= !trial_report(setting,
        &(struct shown){.figure = {.name = "serve.server.soak.growth", .unit = "MiB", .value = growth},
            .most = MOST_GROWTH});
    fini(&survivor);
    free(mib);
}
