/* Reloads of a model of 1 GB under half of the requests/s that a closed loop gets. Two models with other
 * weights take turns as the next version, so that no table is shared. Each reload is followed by as long a
 * quiet interval; the times of requests in all reloads are held against those of all quiet intervals. A
 * reload ends when the old version's memory is free. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/thread/clock.h"
#include "sections.h"

enum { MAX_BATCH = 64, NUM_CONTROLS = 1, NUM_SHARED = 1, FREE_MS = 60000, LOOK_US = 5000 };

#define TABLE_ROWS 150000 /* x 26 tables x 64 numbers: 1 GB */
#define QUICK_ROWS 1000
#define FREE_SHARE 1.3 /* of the memory before, which the server falls below when the old version is gone */
#define MOST_P99 1.5
#define MOST_MAX 3.

struct reloads {
    struct setting *setting;
    const char *repository, *models[2]; /* models: folders */
    struct server server;
    struct traffic traffic;
    double rate;
    float *scores[2];
    size_t version, model; /* that serves; the index of its files */
    /* One series. */
    const char *series;
    bool has_bars;
    double seconds; /* of all reloads */
    struct load_result quiet, reloading;
};

/* ---- versions ---- */

static const char *const files[] = {"config.yaml", "encoder.json", "model.safetensors"};
enum { NUM_FILES = sizeof files / sizeof *files };

static const char *version_path(struct reloads *reloads, size_t version)
{
    char name[40];
    snprintf(name, sizeof name, "dlrm/%zu", version);
    return serve_path(&reloads->setting->arena, reloads->repository, name);
}

/* Adds a version: links to a model's files, in a folder that appears when it is whole. */
static void add_version(struct reloads *reloads, size_t version, size_t model)
{
    struct ph__arena *arena = &reloads->setting->arena;
    const char *folder = serve_path(arena, reloads->repository, "dlrm/new");
    bench_check(ph__directory_create(folder));
    for (size_t i = 0; i < NUM_FILES; i++)
        if (link(serve_path(arena, reloads->models[model], files[i]), serve_path(arena, folder, files[i])) !=
            0)
            bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot link %s", folder, files[i]));
    if (rename(folder, version_path(reloads, version)) != 0)
        bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot rename it", folder));
}

/* ---- reloads ---- */

/* Loads the next version, and waits until the memory of the one before is free. */
static void reload(struct reloads *reloads, size_t model)
{
    const double before = server_memory(&reloads->server);
    add_version(reloads, reloads->version + 1, model);
    const int status = server_ask(&reloads->server, "POST /v2/repository/models/dlrm/load");
    if (status != 200) {
        printf("  FAILED: the load was answered %d\n", status);
        reloads->setting->has_failed = true;
    }
    const uint64_t deadline = ph__clock_deadline(FREE_MS);
    while (server_memory(&reloads->server) > FREE_SHARE * before && ph__clock_ms_until(deadline) > 0)
        usleep(LOOK_US);
    bench_remove_folder(version_path(reloads, reloads->version));
    reloads->version++;
    reloads->model = model;
}

/* Loads the server as during a reload, without one. */
static void stay_quiet(struct reloads *reloads, double seconds)
{
    struct background *load = background_start(&reloads->traffic, reloads->rate);
    const double end_s = ph__clock_seconds() + seconds;
    while (ph__clock_seconds() < end_s) {
        (void)server_memory(&reloads->server);
        usleep(LOOK_US);
    }
    struct load_result result = background_stop(load);
    trial_judge(reloads->setting, &result);
    load_result_add(&reloads->quiet, &result);
}

/* Reloads once, then stays quiet for as long. */
static void take_turn(struct reloads *reloads, size_t model)
{
    struct background *load = background_start(&reloads->traffic, reloads->rate);
    const double begin_s = ph__clock_seconds();
    reload(reloads, model);
    const double seconds = ph__clock_seconds() - begin_s;
    struct load_result result = background_stop(load);
    reloads->seconds += seconds;
    trial_judge(reloads->setting, &result);
    load_result_add(&reloads->reloading, &result);
    stay_quiet(reloads, seconds);
}

/* ---- figures ---- */

/* Returns the time that a share of the requests does not exceed: quiet over reloading. */
static double ratio_at(const struct reloads *reloads, double share)
{
    return load_quantile(&reloads->quiet, share) / load_quantile(&reloads->reloading, share);
}

static void report_quantile(struct reloads *reloads, const char *quantile, double share, double most)
{
    char name[80];
    snprintf(name, sizeof name, "serve.server.%s.%s", reloads->series, quantile);
    trial_report(
        reloads->setting, &(struct shown){.figure = {.name = name,
                                              .unit = "ms",
                                              .value = load_quantile(&reloads->reloading, share) * 1e3,
                                              .peer = "quiet",
                                              .peer_value = load_quantile(&reloads->quiet, share) * 1e3,
                                              .ratio = ratio_at(reloads, share)},
                              .least_ratio = reloads->has_bars ? 1 / most : 0});
}

/* Takes turns, and reports them. Without other_tables each version has the files of the one before. */
static void run_series(struct reloads *reloads, const char *series, size_t count, bool other_tables)
{
    reloads->series = series;
    reloads->seconds = 0;
    load_result_fini(&reloads->quiet);
    load_result_fini(&reloads->reloading);
    for (size_t i = 0; i < count; i++)
        take_turn(reloads, other_tables ? 1 - reloads->model : reloads->model);
    printf("%s: %zu reloads of %.2f s, %zu requests meanwhile, of which %zu failed; %zu quiet ones\n", series,
        count, reloads->seconds / (double)count, reloads->reloading.num_sent, reloads->reloading.num_errors,
        reloads->quiet.num_sent);
    if (reloads->reloading.num_errors > 0)
        reloads->setting->has_failed = true;
    report_quantile(reloads, "p99", .99, MOST_P99);
    report_quantile(reloads, "max", 1, MOST_MAX);
}

/* ---- the section ---- */

static void start(struct reloads *reloads, const char *set)
{
    server_start(&(struct server_options){.repository = reloads->repository,
                     .processor = reloads->setting->processors[0],
                     .max_batch = MAX_BATCH,
                     .set = set},
        &reloads->server);
    reloads->traffic.address = reloads->server.http;
}

/* Loads on the thread that serves, as a control: the bars must see that. */
static void run_control(struct reloads *reloads)
{
    start(reloads, "serve.load_in_background=false");
    reloads->has_bars = false;
    run_series(reloads, "reload_in_front", NUM_CONTROLS, true);
    const bool is_seen = ratio_at(reloads, .99) < 1 / MOST_P99 || ratio_at(reloads, 1) < 1 / MOST_MAX;
    printf("control, loading on the thread that serves: %s\n",
        is_seen ? "misses the bars, as it must" : "HOLDS the bars, which show nothing then");
    reloads->setting->has_failed |= !is_seen;
    server_kill(&reloads->server);
}

static void init(struct reloads *reloads, struct setting *setting)
{
    *reloads = (struct reloads){.setting = setting, .version = 1};
    for (size_t i = 0; i < 2; i++) {
        reloads->models[i] = serve_path(&setting->arena, setting->folder, i == 0 ? "even" : "odd");
        serve_folder_make(&setting->arena, reloads->models[i],
            &(struct serve_model){
                .dim = 64, .table_rows = setting->run.is_quick ? QUICK_ROWS : TABLE_ROWS, .seed = i + 1});
        reloads->scores[i] = bodies_scores(reloads->models[i], setting->rows);
    }
    reloads->repository = serve_path(&setting->arena, setting->folder, "reloads");
    bench_check(ph__directory_create(serve_path(&setting->arena, reloads->repository, "dlrm")));
    add_version(reloads, reloads->version, reloads->model);
    bodies_make(&(struct body_options){.form = BODY_BINARY,
                    .num_rows = 1,
                    .rows = setting->rows,
                    .scores = {reloads->scores[0], reloads->scores[1]}},
        &reloads->traffic.bodies);
}

static void fini(struct reloads *reloads)
{
    load_result_fini(&reloads->quiet);
    load_result_fini(&reloads->reloading);
    bodies_fini(&reloads->traffic.bodies);
    bench_remove_folder(reloads->repository);
    for (size_t i = 0; i < 2; i++) {
        free(reloads->scores[i]);
        bench_remove_folder(reloads->models[i]);
    }
}

void measure_reloads(struct setting *setting, size_t num_reloads)
{
    struct reloads reloads;
    init(&reloads, setting);
    start(&reloads, NULL);
    reloads.rate = trial_throughput(setting, &reloads.traffic) / 2;
    printf("reloads of %.2f GB at %.0f requests/s\n", server_memory(&reloads.server) * 1e-9, reloads.rate);
    reloads.has_bars = true;
    run_series(&reloads, "reload", num_reloads, true);
    reloads.has_bars = false;
    run_series(&reloads, "reload_same_tables", NUM_SHARED, false);
    server_kill(&reloads.server);
    run_control(&reloads);
    fini(&reloads);
}
