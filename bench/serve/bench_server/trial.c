#include "trial.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/directory.h"

enum { SEARCH_STEPS = 6, SHORT_LOADS = 5, LOOK_US = 1000 };

#define SEARCH_END 1.1 /* of the throughput, where the search for a rate begins */
#define FOREVER_S 1e6

/* ---- loads ---- */

static struct load_options options_of(const struct traffic *traffic, double rate, double seconds)
{
    static uint64_t seed;
    return (struct load_options){.address = traffic->address,
        .is_grpc = traffic->is_grpc,
        .path = traffic->path != NULL ? traffic->path : "/v2/models/dlrm/infer",
        .bodies = traffic->bodies.items,
        .num_bodies = traffic->bodies.count,
        .num_clients = rate > 0 ? OPEN_CLIENTS : CLOSED_CLIENTS,
        .rate = rate,
        .seconds = seconds,
        .looks_first = traffic->looks_first,
        .timeout_us = traffic->timeout_us,
        .seed = traffic->seed > 0 ? traffic->seed : ++seed};
}

void trial_judge(struct setting *setting, const struct load_result *result)
{
    if (result->num_wrong + result->num_failed == 0)
        return;
    setting->has_failed = true;
    printf("  FAILED: of %zu requests %zu had wrong scores and %zu failed: %s\n", result->num_sent,
        result->num_wrong, result->num_failed, result->error);
}

struct load_result trial_run(
    struct setting *setting, const struct traffic *traffic, double rate, double seconds)
{
    struct load_result result;
    const struct load_options options = options_of(traffic, rate, seconds);
    load_run(&options, &result);
    trial_judge(setting, &result);
    return result;
}

double trial_throughput(struct setting *setting, const struct traffic *traffic)
{
    struct load_result result = trial_run(setting, traffic, 0, setting->seconds / 2);
    const double rate = (double)result.num_answered / result.seconds;
    load_result_fini(&result);
    return rate;
}

/* Tells whether half of the requests of most short loads are fast: another program that takes the processor
 * for a moment spoils few, but a queue that grows spoils all. */
static bool is_sustained(struct setting *setting, const struct traffic *traffic, double rate)
{
    int votes = 0;
    for (size_t i = 0; i < SHORT_LOADS; i++) {
        struct load_result result = trial_run(setting, traffic, rate, setting->seconds / 2 / SHORT_LOADS);
        const bool is_fast = result.num_refused == 0 && load_quantile(&result, .5) * 1e3 <= SUSTAINED_MS;
        votes += is_fast ? 1 : -1;
        load_result_fini(&result);
    }
    return votes > 0;
}

double trial_sustained(struct setting *setting, const struct traffic *traffic)
{
    double low = 0, high = SEARCH_END * trial_throughput(setting, traffic);
    for (size_t i = 0; i < SEARCH_STEPS; i++) {
        const double middle = (low + high) / 2;
        if (is_sustained(setting, traffic, middle))
            low = middle;
        else
            high = middle;
    }
    return low > 0 ? low : high; /* high: the least that was tried */
}

/* ---- loads in the background ---- */

struct background {
    pthread_t thread;
    struct load_options options;
    struct load_result result;
    atomic_bool has_begun, is_over;
};

static void *run_background(void *context)
{
    struct background *background = context;
    load_run(&background->options, &background->result);
    return NULL;
}

struct background *background_start(const struct traffic *traffic, double rate)
{
    struct background *background = calloc(1, sizeof *background);
    if (background == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a load"));
    background->options = options_of(traffic, rate, FOREVER_S);
    background->options.has_begun = &background->has_begun;
    background->options.is_over = &background->is_over;
    if (pthread_create(&background->thread, NULL, run_background, background) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot start a thread"));
    while (!atomic_load_explicit(&background->has_begun, memory_order_acquire))
        usleep(LOOK_US);
    return background;
}

struct load_result background_stop(struct background *background)
{
    atomic_store_explicit(&background->is_over, true, memory_order_release);
    pthread_join(background->thread, NULL);
    const struct load_result result = background->result;
    free(background);
    return result;
}

/* ---- figures ---- */

double rounds_median(const struct setting *setting, const struct rounds *rounds)
{
    return bench_median(rounds->values, setting->run.rounds);
}

static bool print_bar(const char *what, double value, const char *relation, double bar, bool holds)
{
    printf("   %s %.4g, bar %s %.4g: %s", what, value, relation, bar, holds ? "held" : "MISSED");
    return holds;
}

bool trial_report(struct setting *setting, const struct shown *shown)
{
    const struct bench_figure *figure = &shown->figure;
    bool holds = true;
    printf("%-46s %10.4g %-10s", figure->name, figure->value, figure->unit);
    if (figure->peer != NULL)
        printf(" %s %.4g, ratio %.2f", figure->peer, figure->peer_value, figure->ratio);
    if (shown->least > 0)
        holds &= print_bar("value", figure->value, ">=", shown->least, figure->value >= shown->least);
    if (shown->most > 0)
        holds &= print_bar("value", figure->value, "<=", shown->most, figure->value <= shown->most);
    if (shown->least_ratio > 0)
        holds &=
            print_bar("ratio", figure->ratio, ">=", shown->least_ratio, figure->ratio >= shown->least_ratio);
    printf("\n");
    fflush(stdout);
    bench_record(setting->results, figure);
    return holds;
}

/* ---- repositories ---- */

const char *trial_version(struct setting *setting, const char *repository)
{
    return serve_path(&setting->arena, repository, "dlrm/1");
}

const char *trial_repository(struct setting *setting, const char *name, const struct serve_model *model)
{
    const char *repository = serve_path(&setting->arena, setting->folder, name);
    bench_check(ph__directory_create(serve_path(&setting->arena, repository, "dlrm")));
    serve_folder_make(&setting->arena, trial_version(setting, repository), model);
    return repository;
}
