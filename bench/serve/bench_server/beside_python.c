/* A server in Python (bench/peers/fastapi.py) beside ours: the same model and generator, the same processor,
 * a thread each. Both get JSON; the peer is spared the encoding: its rows are encoded numbers, ours texts and
 * counts. Beside that ours with binary tensors, as Triton's clients send them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer.h"
#include "pinned.h"
#include "sections.h"

enum { MAX_BATCH = 64, SIDES = 3, JSON = 0, BINARY = 1, THEIRS = 2 };

#define TIMES_SHARE .8 /* of the peer's throughput */
#define BAR 5.         /* times the peer's requests/s, at no higher p99 */

static const enum body_form forms[SIDES] = {BODY_COLUMNS, BODY_BINARY, BODY_ENCODED};
static const char *const side_names[SIDES] = {"json", "binary", NULL};

struct sides {
    struct setting *setting;
    const struct peer *peer;
    struct traffic traffic[SIDES];
    size_t num_rows;
    struct rounds throughput[SIDES], ratio[SIDES], p99[SIDES], p99_at_bar[THEIRS];
};

static void make_bodies(struct sides *sides, const struct serve_encoded *encoded, const float *scores)
{
    for (size_t i = 0; i < SIDES; i++)
        bodies_make(&(struct body_options){.form = forms[i],
                        .num_rows = sides->num_rows,
                        .rows = sides->setting->rows,
                        .encoded = encoded,
                        .scores = {scores}},
            &sides->traffic[i].bodies);
}

static double p99_ms(const struct sides *sides, size_t side, double rate)
{
    struct load_result result =
        trial_run(sides->setting, &sides->traffic[side], rate, sides->setting->seconds);
    const double ms = load_quantile(&result, .99) * 1e3;
    load_result_fini(&result);
    return ms;
}

/* Times are those at the peer's rate, and ours at the bar's, too. */
static void measure(struct sides *sides)
{
    for (size_t round = 0; round < sides->setting->run.rounds; round++) {
        for (size_t i = 0; i < SIDES; i++)
            sides->throughput[i].values[round] = trial_throughput(sides->setting, &sides->traffic[i]);
        const double theirs = sides->throughput[THEIRS].values[round];
        for (size_t i = 0; i < SIDES; i++) {
            sides->p99[i].values[round] = p99_ms(sides, i, TIMES_SHARE * theirs);
            sides->ratio[i].values[round] = sides->throughput[i].values[round] / theirs;
        }
        for (size_t i = 0; i < THEIRS && sides->num_rows == 1; i++)
            sides->p99_at_bar[i].values[round] = p99_ms(sides, i, BAR * TIMES_SHARE * theirs);
    }
}

/* ---- figures ---- */

static void report_p99(
    const struct sides *sides, size_t side, const char *what, const struct rounds *p99, bool has_bar)
{
    char name[80];
    const double value = rounds_median(sides->setting, p99);
    const double theirs = rounds_median(sides->setting, &sides->p99[THEIRS]);
    snprintf(name, sizeof name, "serve.server.%s.rows%zu.%s.p99", side_names[side], sides->num_rows, what);
    trial_report(sides->setting, &(struct shown){.figure = {.name = name,
                                                     .unit = "ms",
                                                     .value = value,
                                                     .peer = sides->peer->version,
                                                     .peer_value = theirs,
                                                     .ratio = theirs / value},
                                     .least_ratio = has_bar ? 1 : 0});
}

static void report(const struct sides *sides, size_t side)
{
    char name[80];
    const struct setting *setting = sides->setting;
    const bool has_bar = sides->num_rows == 1;
    snprintf(name, sizeof name, "serve.server.%s.rows%zu.closed", side_names[side], sides->num_rows);
    trial_report(
        sides->setting, &(struct shown){.figure = {.name = name,
                                            .unit = "requests/s",
                                            .value = rounds_median(setting, &sides->throughput[side]),
                                            .peer = sides->peer->version,
                                            .peer_value = rounds_median(setting, &sides->throughput[THEIRS]),
                                            .ratio = rounds_median(setting, &sides->ratio[side])},
                            .least_ratio = has_bar ? BAR : 0});
    report_p99(sides, side, "at_peers_rate", &sides->p99[side], has_bar);
    if (has_bar)
        report_p99(sides, side, "at_5_times_peers_rate", &sides->p99_at_bar[side], true);
}

/* ---- the section ---- */

/* Starts the peer on the server's processor. */
static bool start_peer(struct setting *setting, struct peer *peer, const char *model, char address[64])
{
    bench_stay_on(setting->processors[0]);
    peer_start(peer, setting->run.peers, "fastapi");
    bench_stay_on(setting->processors[1]);
    if (!peer_is_there(peer) || !peer_accepts(peer, "case %s threads=1", model))
        return false;
    const char *answer = peer_ask(peer, "port 0");
    snprintf(address, 64, "127.0.0.1:%s", answer != NULL ? answer : "0");
    return answer != NULL;
}

static void measure_sides(struct setting *setting, struct peer *peer, const char *address,
    const struct serve_encoded *encoded, const char *repository)
{
    static const size_t sizes[] = {1, MAX_BATCH};
    struct server server;
    float *scores = bodies_scores(trial_version(setting, repository), setting->rows);
    server_start(
        &(struct server_options){
            .repository = repository, .processor = setting->processors[0], .max_batch = MAX_BATCH},
        &server);
    printf("beside %s: closed loops, and the p99 of open ones at %.0f%% of the peer's requests/s\n",
        peer->version, 100 * TIMES_SHARE);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sides sides = {.setting = setting, .peer = peer, .num_rows = sizes[i]};
        sides.traffic[JSON].address = sides.traffic[BINARY].address = server.http;
        sides.traffic[THEIRS] = (struct traffic){.address = address, .path = "/score"};
        make_bodies(&sides, encoded, scores);
        measure(&sides);
        report(&sides, JSON);
        report(&sides, BINARY);
        for (size_t side = 0; side < SIDES; side++)
            bodies_fini(&sides.traffic[side].bodies);
    }
    server_kill(&server);
    free(scores);
}

void measure_beside_python(struct setting *setting)
{
    struct peer peer = {0};
    char address[64];
    if (setting->run.peers == NULL)
        return;
    const char *repository = trial_repository(setting, "beside_python",
        &(struct serve_model){.dim = 64, .table_rows = setting->run.is_quick ? 1000 : 100000, .seed = 1});
    const char *version = trial_version(setting, repository);
    struct serve_encoded *encoded = serve_peer_make(&setting->arena, version, setting->rows);
    if (start_peer(setting, &peer, serve_path(&setting->arena, version, "model.onnx"), address))
        measure_sides(setting, &peer, address, encoded, repository);
    peer_stop(&peer);
    free(encoded);
    bench_remove_folder(repository);
}
