/* Sends a recorded stream to a running server, over several connections: each takes the next request of the
 * stream, waits until it is due, asks, and waits for the answer. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/statistics.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"
#include "base/thread/stop.h"
#include "cli/foundation/replay.h"
#include "cli/http_client.h"
#include "cli/stop_signal.h"
#include "serve/speculation/pair_cache.h"

#define LATE_NS 10000000 /* behind its time, from which a request counts as late */
#define NAP_NS 100000000 /* after which a sleeper looks for a signal */

struct sending {
    const struct cli_replay_target *target;
    const volatile int *stop_signal;
    char model[300], infer[310]; /* paths */
    struct ph__arena arena;
    const char **inputs; /* (num_inputs) */
    size_t num_inputs;
    uint64_t begun_ns;
    pthread_mutex_t lock; /* guards all below */
    struct cli_replay_stream stream;
    ph_status status; /* of the stream: a failure ends the sending */
    char error[300];  /* of it, else of the first request that failed */
    double first_seconds;
    double *times; /* (num_answered) ms, from when they were due */
    size_t num_answered, capacity;
    uint64_t num_requests, num_rows, num_failed, num_late;
};

/* ---- requests ---- */

static struct ph__json *tensor_of(const struct cli_replay_stream *stream, const char *name, size_t column)
{
    struct ph__json *tensor = ph__json_object(), *shape = ph__json_array(), *data = ph__json_array();
    ph__json_set_text(tensor, "name", name);
    ph__json_set_text(tensor, "datatype", "BYTES");
    ph__json_append_integer(shape, (int64_t)stream->count);
    for (size_t i = 0; i < stream->count; i++)
        ph__json_append_text(data, stream->student.cells[i * stream->student.num_columns + column].text);
    ph__json_set(tensor, "shape", shape);
    ph__json_set(tensor, "data", data);
    return tensor;
}

/* Makes the body of the stream's current request. */
static ph_status make_body(const struct sending *sending, char **body_out)
{
    struct ph__json *body = ph__json_object(), *inputs = ph__json_array();
    ph__json_set_text(body, "id", sending->stream.name);
    for (size_t i = 0; i < sending->num_inputs; i++)
        ph__json_append(inputs, tensor_of(&sending->stream, sending->inputs[i], i));
    ph__json_set(body, "inputs", inputs);
    const ph_status status = ph__json_text(body, 0, body_out);
    ph__json_destroy(body);
    return status;
}

/* Reads the next request, with the lock held. */
static ph_status read_request(struct sending *sending, char **body_out, uint64_t *due_ns_out)
{
    bool has_request;
    *body_out = NULL;
    PH_TRY(cli_replay_next(&sending->stream, &has_request));
    if (!has_request)
        return PH_OK;
    if (sending->num_requests == 0)
        sending->first_seconds = sending->stream.seconds;
    const double after = (sending->stream.seconds - sending->first_seconds) / sending->target->speed;
    *due_ns_out = sending->begun_ns + (uint64_t)(after * 1e9);
    sending->num_requests++;
    sending->num_rows += sending->stream.count;
    return make_body(sending, body_out);
}

/* Returns the body of the next request, and when it is due; NULL: there is none, or the sending ends. */
static char *take_request(struct sending *sending, uint64_t *due_ns_out)
{
    char *body = NULL;
    pthread_mutex_lock(&sending->lock);
    if (sending->status == PH_OK && !ph__is_stopped(sending->stop_signal)) {
        sending->status = read_request(sending, &body, due_ns_out);
        if (sending->status != PH_OK)
            snprintf(sending->error, sizeof sending->error, "%s", ph_error_text());
    }
    pthread_mutex_unlock(&sending->lock);
    return body;
}

static void sleep_until(const struct sending *sending, uint64_t due_ns)
{
    for (uint64_t now_ns = ph__clock_ns(); now_ns < due_ns && !ph__is_stopped(sending->stop_signal);
         now_ns = ph__clock_ns()) {
        const uint64_t rest_ns = due_ns - now_ns < NAP_NS ? due_ns - now_ns : NAP_NS;
        nanosleep(&(struct timespec){.tv_nsec = (long)rest_ns}, NULL);
    }
}

static void note_answer(struct sending *sending, ph_status status, const struct cli_http_answer *answer,
    uint64_t due_ns, bool is_late)
{
    const double time_ms = (double)(ph__clock_ns() - due_ns) * 1e-6;
    pthread_mutex_lock(&sending->lock);
    sending->num_late += is_late;
    if (status == PH_OK && answer->status == 200 &&
        ph__array_reserve((void **)&sending->times, &sending->capacity, sending->num_answered + 1,
            sizeof *sending->times) == PH_OK) {
        sending->times[sending->num_answered++] = time_ms;
    } else if (sending->num_failed++ == 0 && sending->status == PH_OK) {
        if (status == PH_OK)
            snprintf(sending->error, sizeof sending->error, "the server answers %d: %.200s", answer->status,
                answer->body.bytes);
        else
            snprintf(sending->error, sizeof sending->error, "%s", ph_error_text());
    }
    pthread_mutex_unlock(&sending->lock);
}

static void *send_requests(void *context)
{
    struct sending *sending = context;
    struct cli_http http;
    uint64_t due_ns;
    ph_status status = cli_http_open(&http, sending->target->address, sending->target->token_file);
    for (char *body; status == PH_OK && (body = take_request(sending, &due_ns)) != NULL; free(body)) {
        struct cli_http_answer answer = {.status = 0};
        sleep_until(sending, due_ns);
        if (ph__is_stopped(sending->stop_signal))
            continue;
        const bool is_late = ph__clock_ns() > due_ns + LATE_NS;
        const ph_status asked = cli_http_ask(&http, "POST", sending->infer, ph__bytes_of(body), &answer);
        note_answer(sending, asked, &answer, due_ns, is_late);
    }
    cli_http_close(&http);
    return NULL;
}

/* ---- the model ---- */

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), size = strlen(ending);
    return length > size && strcmp(name + length - size, ending) == 0;
}

/* Lists the inputs that have one value a row. */
static ph_status list_inputs(struct sending *sending, const struct ph__json *model)
{
    const struct ph__json *inputs = ph__json_get(model, "inputs");
    const size_t count = ph__json_size(inputs);
    sending->inputs = ph__arena_alloc_array(&sending->arena, count, sizeof *sending->inputs);
    for (size_t i = 0; i < count && sending->inputs != NULL; i++) {
        const char *name = ph__json_as_text(ph__json_get(ph__json_at(inputs, i), "name"), "");
        if (strcmp(name, "lines") == 0 || ends_with(name, "__values") || ends_with(name, "__offsets"))
            continue;
        sending->inputs[sending->num_inputs] = ph__arena_strdup(&sending->arena, name);
        if (sending->inputs[sending->num_inputs++] == NULL)
            return PH_ERROR_MEMORY;
    }
    return sending->inputs != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Gives the rows that the server has found on each rung so far. Returns false where the model has no
 * speculation. */
static bool ask_rungs(struct sending *sending, struct cli_http *http, double rungs[PH_NUM_RUNGS])
{
    char path[320];
    struct ph__json *json = NULL;
    snprintf(path, sizeof path, "%s/speculation", sending->model);
    if (cli_http_ask_json(http, "GET", path, &json) != PH_OK)
        return false;
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        rungs[rung] = ph__json_as_number(ph__json_get(json, ph__rung_name((enum ph__rung)rung)), 0);
    ph__json_destroy(json);
    return true;
}

/* ---- the whole ---- */

static void print_figures(const struct sending *sending, double seconds)
{
    const double *times = sending->times;
    const size_t count = sending->num_answered;
    printf("stream       requests %" PRIu64 " rows %" PRIu64 " hours %.2f\n", sending->num_requests,
        sending->num_rows, (sending->stream.seconds - sending->first_seconds) / 3600);
    printf("sent         seconds %.2f requests_a_second %.1f late %" PRIu64 "\n", seconds,
        (double)sending->num_requests / seconds, sending->num_late);
    printf("answered     %zu failed %" PRIu64, count, sending->num_failed);
    if (count > 0) {
        ph__sort_numbers(sending->times, count);
        printf(" p50_ms %.3f p90_ms %.3f p99_ms %.3f", times[count / 2], times[count * 9 / 10],
            times[count * 99 / 100]);
    }
    printf("\n");
}

static void print_rungs(const double before[PH_NUM_RUNGS], const double after[PH_NUM_RUNGS])
{
    double all = 0;
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        all += after[rung] - before[rung];
    printf("coverage    ");
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        printf(
            " %s %.4f", ph__rung_name((enum ph__rung)rung), all > 0 ? (after[rung] - before[rung]) / all : 0);
    printf("\n");
}

static ph_status run_connections(struct sending *sending)
{
    pthread_t *threads = calloc(sending->target->num_connections, sizeof *threads);
    size_t count = 0;
    if (threads == NULL)
        return ph__out_of_memory("connections");
    sending->begun_ns = ph__clock_ns();
    while (count < sending->target->num_connections &&
           ph__thread_start(&threads[count], send_requests, sending) == 0)
        count++;
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    if (count == 0)
        return ph__out_of_memory("the thread of a connection");
    if (sending->status != PH_OK)
        return ph_fail(sending->status, "%s", sending->error);
    return ph__is_stopped(sending->stop_signal)
               ? ph_fail(ph__stop_status(sending->stop_signal), "stopped by a signal")
               : PH_OK;
}

static ph_status send_all(struct sending *sending, struct cli_http *http)
{
    double before[PH_NUM_RUNGS], after[PH_NUM_RUNGS];
    const bool has_rungs = ask_rungs(sending, http, before);
    PH_TRY(run_connections(sending));
    print_figures(sending, (double)(ph__clock_ns() - sending->begun_ns) * 1e-9);
    if (has_rungs && ask_rungs(sending, http, after))
        print_rungs(before, after);
    if (sending->num_failed > 0)
        return ph_fail(PH_ERROR_PEER, "%s: %" PRIu64 " of %" PRIu64 " requests failed, the first: %s",
            sending->target->address, sending->num_failed, sending->num_requests, sending->error);
    return PH_OK;
}

static ph_status open_all(struct sending *sending, struct cli_http *http, const char *path,
    const struct cli_replay_columns *columns)
{
    const struct cli_replay_target *target = sending->target;
    struct ph__json *model = NULL;
    snprintf(sending->model, sizeof sending->model, "/v2/models/%.200s", target->model);
    snprintf(sending->infer, sizeof sending->infer, "%s/infer", sending->model);
    PH_TRY(cli_http_open(http, target->address, target->token_file));
    PH_TRY(cli_http_ask_json(http, "GET", sending->model, &model));
    const ph_status status = list_inputs(sending, model);
    ph__json_destroy(model);
    PH_TRY(status);
    PH_TRY(cli_replay_open(&sending->stream, path, columns, NULL, NULL));
    return cli_replay_read(&sending->stream, sending->inputs, sending->num_inputs);
}

ph_status cli_replay_send(
    const char *path, const struct cli_replay_columns *columns, const struct cli_replay_target *target)
{
    struct sending sending = {.target = target, .stop_signal = cli_stop_signal()};
    struct cli_http http = {.socket = -1};
    pthread_mutex_init(&sending.lock, NULL);
    ph_status status = open_all(&sending, &http, path, columns);
    if (status == PH_OK)
        status = send_all(&sending, &http);
    cli_http_close(&http);
    cli_replay_close(&sending.stream);
    pthread_mutex_destroy(&sending.lock);
    ph__arena_fini(&sending.arena);
    free(sending.times);
    return status;
}
