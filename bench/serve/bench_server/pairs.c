/* Slates of 64 under half of the requests/s that a closed loop gets: a model that looks up what a foundation
 * model said of pairs, whose worker is busy on the processor that serves, beside the same model without it
 * and beside the look-up alone. Rounds take turns. Then the worker is ended and the foundation model's folder
 * removed under the same load.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/stream.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "sections.h"
#include "serve/speculation/pair_cache.h"
#include "serve/speculation/pair_teacher.h"
#include "store/checkpoint_names.h"

enum { SLATE = 64, NUM_USERS = 64, NUM_IDS = 12, NUM_NUMBERS = 16, SAMPLE = 2000, MAX_BATCH = 64 };
enum { CACHED_USERS = 20000, LOOK_UPS = 20000 }; /* of SLATE pairs each */
#define CACHE_BYTES ((uint64_t)256 << 20)
#define MOST_LOOK_UP_US 10.
#define MOST_ADDED_US 50
#define MOST_RATIO 1.05

#define FIELDS                                                                                         \
    "data:\n  format: tsv\n  encoding: hash\n  rows: 20000\n  train: \"%s\"\n  fields:\n    - {name: " \
    "label, kind: label}\n"                                                                            \
    "    - {name: user, kind: id}\n    - {name: item, kind: id}\n    - {name: \"C*\", kind: id}\n%s"

/* Ways of serving: without pairs, and once more, which shows what chance adds; pairs are looked up, but the
 * worker is off; the worker is busy. */
enum { PLAIN, AGAIN, IDLE, BUSY, NUM_WAYS };

/* Figures of a round, in us: times that these shares of the answers do not exceed, and the processor's time
 * that a request takes, of all the server's threads. */
enum { P50, P90, P99, NUM_SHARES, PROCESSOR = NUM_SHARES, NUM_FIGURES };
static const double shares[NUM_SHARES] = {.5, .9, .99};

/* Rows by the rung on which they were found. */
struct figures {
    unsigned long long none, pair, user, near;
};

struct pairs {
    struct setting *setting;
    const char *data, *teacher, *plain, *paired; /* paired: the repository with a speculation */
    struct server servers[2];                    /* without, with */
    struct traffic traffic;
    double rate;
    struct rounds figures[NUM_WAYS][NUM_FIGURES];
    struct figures found[2]; /* while the worker was busy: sums before rounds and behind them */
};

/* ---- models ---- */

static const char *print_text(struct setting *setting, const char *format, const char *a, const char *b)
{
    const char *text = ph__arena_printf(&setting->arena, format, a, b);
    if (text == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a text"));
    return text;
}

/* Writes the header that a schema is read from, and a row. */
static void write_data(struct pairs *pairs)
{
    struct ph__writer *writer = NULL;
    pairs->data = serve_path(&pairs->setting->arena, pairs->setting->folder, "pairs.tsv");
    bench_check(ph__writer_open(pairs->data, &writer));
    bench_check(ph__writer_printf(writer, "label\tuser\titem"));
    for (int i = 1; i <= NUM_IDS; i++)
        bench_check(ph__writer_printf(writer, "\tC%d", i));
    for (int i = 1; i <= NUM_NUMBERS; i++)
        bench_check(ph__writer_printf(writer, "\tfm_%d", i));
    bench_check(ph__writer_printf(writer, "\tfm_pair\tfm_user\tfm_near\tfm_age\n0"));
    for (int i = 0; i < 2 + NUM_IDS + NUM_NUMBERS + 4; i++)
        bench_check(ph__writer_printf(writer, "\t0"));
    bench_check(ph__writer_printf(writer, "\n"));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
}

/* Fits the teacher's encoder to random rows. */
static void fit_encoder(struct pairs *pairs)
{
    struct ph__rng_sequence rng = {.key = {.seed = 2}};
    struct ph_session *session = NULL;
    struct ph__pair_encoder encoder;
    struct ph_cell *cells = calloc((size_t)SAMPLE * (2 + NUM_IDS), sizeof *cells);
    bench_check(ph_session_open(pairs->teacher, NULL, &session));
    const size_t outputs[] = {ph_session_find_output(session, PH_PAIR_OUTPUT), 1};
    const size_t width = ph_session_output_width(session, outputs[0]);
    float *values[] = {calloc(SAMPLE * width, sizeof(float)), calloc(SAMPLE, sizeof(float))};
    if (cells == NULL || values[0] == NULL || values[1] == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a sample"));
    for (size_t i = 0; i < (size_t)SAMPLE * (2 + NUM_IDS); i++)
        cells[i] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)ph__rng_below(&rng, 1000)};
    bench_check(ph_session_score_outputs(session, SAMPLE, cells, 2, outputs, values));
    bench_check(ph__pair_encoder_fit(SAMPLE, width, values[0], 1, values[1], NUM_NUMBERS, &encoder));
    bench_check(ph__checkpoint_read_seal(
        serve_path(&pairs->setting->arena, pairs->teacher, "model.safetensors"), encoder.teacher));
    bench_check(ph__pair_encoder_save(
        &encoder, serve_path(&pairs->setting->arena, pairs->teacher, PH_PAIR_ENCODER_FILE)));
    ph__pair_encoder_fini(&encoder);
    ph_session_close(session);
    free(cells);
    free(values[0]);
    free(values[1]);
}

/* Makes a repository of the student. */
static const char *make_repository(struct pairs *pairs, const char *name)
{
    struct setting *setting = pairs->setting;
    const char *repository = serve_path(&setting->arena, setting->folder, name);
    bench_check(ph__directory_create(serve_path(&setting->arena, repository, "dlrm")));
    serve_folder_make_of(&setting->arena, trial_version(setting, repository),
        print_text(setting, FIELDS "model: {kind: dnn, embedding_dim: 16, hidden_units: [512, 256]}\n",
            pairs->data, "    - {name: \"fm_*\", kind: dense}\n"),
        1);
    return repository;
}

static void make_models(struct pairs *pairs)
{
    struct setting *setting = pairs->setting;
    struct ph__writer *writer = NULL;
    write_data(pairs);
    pairs->teacher = serve_path(&setting->arena, setting->folder, "teacher");
    serve_folder_make_of(&setting->arena, pairs->teacher,
        print_text(setting, FIELDS "model: {kind: dnn, embedding_dim: 32, hidden_units: [512, 256]}\n",
            pairs->data, "    - {name: \"*\", kind: ignore}\n"),
        2);
    fit_encoder(pairs);
    pairs->plain = make_repository(pairs, "plain");
    pairs->paired = make_repository(pairs, "paired");
    bench_check(ph__writer_open(serve_path(&setting->arena, pairs->paired, "dlrm/serve.yaml"), &writer));
    bench_check(ph__writer_printf(writer,
        "max_batch: %d\nspeculation:\n  teacher: \"%s\"\n  seconds: 1\n  rows_per_second: 1000000\n  "
        "cache_bytes: 67108864\n",
        MAX_BATCH, pairs->teacher));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
}

/* ---- requests: a user's slate, columns as raw int64 ---- */

static void append_column(
    struct load_body *body, struct ph__buffer *raw, const char *name, const int64_t *values)
{
    char text[200];
    snprintf(text, sizeof text,
        "%s{\"name\":\"%s\",\"datatype\":\"INT64\",\"shape\":[%d],\"parameters\":{\"binary_data_size\":%zu}}",
        raw->size > 0 ? "," : "", name, SLATE, SLATE * sizeof *values);
    ph__buffer_append_text(&body->bytes, text);
    ph__buffer_append(raw, values, SLATE * sizeof *values);
}

static void make_body(struct load_body *body, int64_t user, struct ph__rng_sequence *rng)
{
    struct ph__buffer raw = {0};
    int64_t values[SLATE];
    char name[8];
    ph__buffer_append_text(&body->bytes, "{\"inputs\":[");
    for (size_t i = 0; i < SLATE; i++)
        values[i] = user;
    append_column(body, &raw, "user", values);
    for (size_t i = 0; i < SLATE; i++)
        values[i] = (int64_t)ph__rng_below(rng, 5000);
    append_column(body, &raw, "item", values);
    for (int column = 1; column <= NUM_IDS; column++) {
        snprintf(name, sizeof name, "C%d", column);
        for (size_t i = 0; i < SLATE; i++)
            values[i] = (int64_t)ph__rng_below(rng, 1000);
        append_column(body, &raw, name, values);
    }
    ph__buffer_append_text(
        &body->bytes, "],\"outputs\":[{\"name\":\"probability\",\"parameters\":{\"binary_data\":true}}]}");
    body->json_bytes = body->bytes.size;
    ph__buffer_append(&body->bytes, raw.bytes, raw.size);
    ph__buffer_fini(&raw);
}

static void make_bodies(struct bodies *bodies)
{
    struct ph__rng_sequence rng = {.key = {.seed = 3}};
    bodies->count = NUM_USERS;
    bodies->items = calloc(NUM_USERS, sizeof *bodies->items);
    if (bodies->items == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %d bodies", NUM_USERS));
    for (size_t i = 0; i < NUM_USERS; i++)
        make_body(&bodies->items[i], (int64_t)i, &rng);
}

/* ---- the worker's figures ---- */

static struct figures ask_figures(struct pairs *pairs, const char *body)
{
    char answer[600];
    struct figures figures = {0};
    const int status = server_tell(&pairs->servers[1],
        body[0] == '\0' ? "GET /v2/models/dlrm/speculation" : "POST /v2/models/dlrm/speculation", body,
        answer, sizeof answer);
    if (status != 200 || sscanf(answer, "{\"none\":%llu,\"pair\":%llu,\"user\":%llu,\"near\":%llu",
                             &figures.none, &figures.pair, &figures.user, &figures.near) != 4) {
        printf("  FAILED: the speculation was answered %d %s\n", status, answer);
        pairs->setting->has_failed = true;
    }
    return figures;
}

static void add_figures(struct figures *to, const struct figures *figures)
{
    to->none += figures->none;
    to->pair += figures->pair;
    to->user += figures->user;
    to->near += figures->near;
}

static void print_rungs(const char *what, const struct figures *from, const struct figures *to)
{
    const double all = (double)(to->none + to->pair + to->user + to->near - from->none - from->pair -
                                from->user - from->near);
    printf("%s: of rows %.3f found their pair, %.3f the user's mean, %.3f nothing\n", what,
        (double)(to->pair - from->pair) / all, (double)(to->user - from->user) / all,
        (double)(to->none - from->none) / all);
}

/* ---- rounds ---- */

static void run_round(struct pairs *pairs, size_t round, size_t way)
{
    struct figures former = {0};
    const struct server *server = &pairs->servers[way >= IDLE];
    pairs->traffic.address = server->http;
    pairs->traffic.seed = round + 1; /* all ways of a round have requests at the same moments */
    if (way >= IDLE)
        former = ask_figures(pairs,
            way == BUSY ? "{\"parameters\":{\"worker\":true}}" : "{\"parameters\":{\"worker\":false}}");
    const double begun_s = server_processor_seconds(server);
    struct load_result result =
        trial_run(pairs->setting, &pairs->traffic, pairs->rate, pairs->setting->seconds);
    for (size_t share = 0; share < NUM_SHARES; share++)
        pairs->figures[way][share].values[round] = load_quantile(&result, shares[share]) * 1e6;
    pairs->figures[way][PROCESSOR].values[round] =
        (server_processor_seconds(server) - begun_s) / (double)result.num_answered * 1e6;
    load_result_fini(&result);
    if (way != BUSY)
        return;
    const struct figures now = ask_figures(pairs, "{\"parameters\":{\"worker\":false}}");
    add_figures(&pairs->found[0], &former);
    add_figures(&pairs->found[1], &now);
}

/* Reports medians over rounds: of a way's figure, and of what it adds within a round. */
static void report(struct pairs *pairs, const char *name, size_t way, size_t figure)
{
    const struct rounds *with = &pairs->figures[way][figure], *without = &pairs->figures[PLAIN][figure];
    struct rounds ratios, added;
    for (size_t round = 0; round < pairs->setting->run.rounds; round++) {
        ratios.values[round] = without->values[round] / with->values[round];
        added.values[round] = with->values[round] - without->values[round];
    }
    trial_report(pairs->setting, &(struct shown){.figure = {.name = name,
                                                     .unit = "us",
                                                     .value = rounds_median(pairs->setting, with),
                                                     .peer = "without",
                                                     .peer_value = rounds_median(pairs->setting, without),
                                                     .ratio = rounds_median(pairs->setting, &ratios)},
                                     .least_ratio = way == AGAIN ? 0 : 1 / MOST_RATIO});
    printf("   added %.1f us, bar %d; by round", rounds_median(pairs->setting, &added), MOST_ADDED_US);
    for (size_t round = 0; round < pairs->setting->run.rounds; round++)
        printf(" %.0f", added.values[round]);
    printf("\n");
}

static void take_turns(struct pairs *pairs)
{
    for (size_t round = 0; round < pairs->setting->run.rounds; round++)
        for (size_t i = 0; i < NUM_WAYS; i++)
            run_round(pairs, round, (round + i) % NUM_WAYS);
    print_rungs("worker busy", &pairs->found[0], &pairs->found[1]);
    report(pairs, "serve.server.pairs.without_again.p50", AGAIN, P50);
    report(pairs, "serve.server.pairs.without_again.p90", AGAIN, P90);
    report(pairs, "serve.server.pairs.without_again.p99", AGAIN, P99);
    report(pairs, "serve.server.pairs.without_again.processor", AGAIN, PROCESSOR);
    report(pairs, "serve.server.pairs.worker_off.p50", IDLE, P50);
    report(pairs, "serve.server.pairs.worker_off.p90", IDLE, P90);
    report(pairs, "serve.server.pairs.worker_off.p99", IDLE, P99);
    report(pairs, "serve.server.pairs.worker_off.processor", IDLE, PROCESSOR);
    report(pairs, "serve.server.pairs.p50", BUSY, P50);
    report(pairs, "serve.server.pairs.p90", BUSY, P90);
    report(pairs, "serve.server.pairs.p99", BUSY, P99);
}

/* Ends the worker and removes the foundation model under load. */
static void end_worker(struct pairs *pairs)
{
    struct setting *setting = pairs->setting;
    pairs->traffic.address = pairs->servers[1].http;
    (void)ask_figures(pairs, "{\"parameters\":{\"worker\":true}}");
    struct background *load = background_start(&pairs->traffic, pairs->rate);
    usleep((useconds_t)(setting->seconds * 5e5));
    const struct figures before = ask_figures(pairs, "{\"parameters\":{\"worker\":false}}");
    bench_remove_folder(pairs->teacher);
    usleep((useconds_t)(setting->seconds * 5e5));
    const struct figures middle = ask_figures(pairs, "");
    usleep((useconds_t)(setting->seconds * 5e5) + 1000000);
    const struct figures late = ask_figures(pairs, "");
    usleep((useconds_t)(setting->seconds * 5e5));
    const struct figures end = ask_figures(pairs, "");
    struct load_result result = background_stop(load);
    printf("worker ended and foundation model removed under load: %zu requests, %zu failed; p99 %.1f us\n",
        result.num_sent, result.num_errors, load_quantile(&result, .99) * 1e6);
    setting->has_failed |= result.num_errors > 0;
    print_rungs("at first", &before, &middle);
    print_rungs("when rows are too old", &late, &end);
    load_result_fini(&result);
}

/* ---- the look-up alone ---- */

/* Looks up random slates in a cache that is larger than the processor's own. */
static void measure_look_up(struct setting *setting)
{
    struct ph__rng_sequence rng = {.key = {.seed = 4}};
    struct ph__pair_cache cache;
    float numbers[NUM_NUMBERS] = {0}, features[SLATE * (NUM_NUMBERS + PH_EXTRA_FEATURES)];
    uint64_t users[SLATE], items[SLATE];
    struct rounds rounds;
    bench_check(ph__pair_cache_open(&cache, CACHE_BYTES, NUM_NUMBERS, 3600, 1));
    for (size_t i = 0; i < CACHED_USERS * SLATE; i++)
        ph__pair_cache_put(&cache, PH_RUNG_pair, i / SLATE, i % SLATE, 1, numbers);
    for (size_t round = 0; round < setting->run.rounds; round++) {
        const double begin_s = ph__clock_seconds();
        for (size_t i = 0; i < LOOK_UPS; i++) {
            const uint64_t user = ph__rng_below(&rng, CACHED_USERS);
            for (size_t k = 0; k < SLATE; k++) {
                users[k] = user;
                items[k] = k;
            }
            ph__pair_cache_look_up(&cache, 1, SLATE, users, items, features, NULL);
        }
        rounds.values[round] = (ph__clock_seconds() - begin_s) / LOOK_UPS * 1e6;
    }
    trial_report(setting, &(struct shown){.figure = {.name = "serve.server.pairs.look_up",
                                              .unit = "us",
                                              .value = rounds_median(setting, &rounds)},
                              .most = MOST_LOOK_UP_US});
    ph__pair_cache_close(&cache);
}

void measure_pairs(struct setting *setting)
{
    struct pairs pairs = {.setting = setting};
    measure_look_up(setting);
    make_models(&pairs);
    make_bodies(&pairs.traffic.bodies);
    const char *const repositories[] = {pairs.plain, pairs.paired};
    for (size_t i = 0; i < 2; i++)
        server_start(
            &(struct server_options){
                .repository = repositories[i], .processor = setting->processors[0], .max_batch = MAX_BATCH},
            &pairs.servers[i]);
    pairs.traffic.address = pairs.servers[0].http;
    pairs.rate = trial_throughput(setting, &pairs.traffic) / 2;
    printf("slates of %d at %.0f requests/s\n", SLATE, pairs.rate);
    take_turns(&pairs);
    end_worker(&pairs);
    for (size_t i = 0; i < 2; i++)
        server_kill(&pairs.servers[i]);
    bodies_fini(&pairs.traffic.bodies);
}
