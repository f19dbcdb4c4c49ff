/* A scoring server on one processor, under a generator of requests on another: the DLRM of bench_session, in
 * requests of 1 and of 64 rows (`lines`, binary), over REST and gRPC.
 *
 *   capacity    closed loop: as many requests as the server takes, batching on beside off
 *   open loop   at 80% of the capacity: the times of requests
 *   overload    64 rows at 3 x the capacity, with a deadline: goodput, and the times of what is answered
 *
 * bench_server [--seconds N] [--rounds N] [--quick] [--json FILE] */
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/thread/clock.h"
#include "bench_server/load.h"
#include "figures.h"
#include "flags.h"
#include "phloem/serve.h"
#include "pinned.h"
#include "serve/wire/oip_messages.h"
#include "serve_case.h"

enum { MAX_BATCH = 64, NUM_BODIES = 256, NUM_CLIENTS = 64, DEADLINE_US = 50000 };

static struct {
    struct bench_run run;
    size_t seconds;
    int processors[2]; /* the server's, the generator's */
    char folder[256], repository[300];
    const struct serve_rows *rows;
    struct ph__json *results;
} bench = {.run = {.rounds = 3}, .seconds = 4};

/* ---- bodies ---- */

static void append_line(struct ph__buffer *text, const struct ph_cell *cells)
{
    char number[24];
    for (size_t i = 0; i < SERVE_NUM_COLUMNS; i++) {
        if (i > 0)
            ph__buffer_append(text, "\t", 1);
        if (i < SERVE_NUM_DENSE)
            ph__buffer_append(
                text, number, (size_t)snprintf(number, sizeof number, "%lld", (long long)cells[i].integer));
        else
            ph__buffer_append(text, cells[i].text, cells[i].length);
    }
}

/* Makes the tensor `lines` of rows from `first` on: texts with their lengths before them. */
static struct ph__buffer make_tensor(size_t first, size_t num_rows)
{
    struct ph__buffer tensor = {0}, line = {0};
    for (size_t row = first; row < first + num_rows; row++) {
        ph__buffer_clear(&line);
        append_line(&line, bench.rows->cells + row % SERVE_NUM_ROWS * SERVE_NUM_COLUMNS);
        ph__buffer_append(&tensor, &(uint32_t){(uint32_t)line.size}, 4);
        ph__buffer_append(&tensor, line.bytes, line.size);
    }
    ph__buffer_fini(&line);
    return tensor;
}

static struct load_body make_rest(size_t first, size_t num_rows, uint64_t timeout_us)
{
    struct load_body body = {.json_bytes = 0};
    struct ph__buffer tensor = make_tensor(first, num_rows);
    char json[500], timeout[60] = "";
    if (timeout_us > 0)
        snprintf(
            timeout, sizeof timeout, "\"parameters\":{\"timeout\":%llu},", (unsigned long long)timeout_us);
    const int length = snprintf(json, sizeof json,
        "{%s\"inputs\":[{\"name\":\"lines\",\"shape\":[%zu],\"datatype\":\"BYTES\",\"parameters\":{"
        "\"binary_data_size\":%zu}}],\"outputs\":[{\"name\":\"probability\",\"parameters\":{\"binary_data\":"
        "true}}]}",
        timeout, num_rows, tensor.size);
    ph__buffer_append(&body.bytes, json, (size_t)length);
    body.json_bytes = (size_t)length;
    ph__buffer_append(&body.bytes, tensor.bytes, tensor.size);
    ph__buffer_fini(&tensor);
    return body;
}

static struct load_body make_grpc(size_t first, size_t num_rows)
{
    struct load_body body = {.json_bytes = 0};
    struct ph__buffer tensor = make_tensor(first, num_rows);
    int64_t shape = (int64_t)num_rows;
    struct ph__bytes raw = {(const char *)tensor.bytes, tensor.size};
    struct ph__oip_tensor input = {
        .name = ph__bytes_of("lines"), .datatype = ph__bytes_of("BYTES"), .shape = {&shape, 1}};
    struct ph__oip_tensor output = {.name = ph__bytes_of("probability")};
    const struct ph__oip_infer_request request = {
        .model_name = ph__bytes_of("dlrm"), .inputs = {&input, 1}, .outputs = {&output, 1}, .raw = {&raw, 1}};
    ph__message_to_protobuf(&ph__oip_infer_request_message, &request, &body.bytes);
    ph__buffer_fini(&tensor);
    return body;
}

static struct load_body *make_bodies(bool is_grpc, size_t num_rows, uint64_t timeout_us)
{
    struct load_body *bodies = calloc(NUM_BODIES, sizeof *bodies);
    for (size_t i = 0; i < NUM_BODIES && bodies != NULL; i++)
        bodies[i] =
            is_grpc ? make_grpc(i * num_rows, num_rows) : make_rest(i * num_rows, num_rows, timeout_us);
    if (bodies == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %d bodies", NUM_BODIES));
    return bodies;
}

static void free_bodies(struct load_body *bodies)
{
    for (size_t i = 0; i < NUM_BODIES; i++)
        ph__buffer_fini(&bodies[i].bytes);
    free(bodies);
}

/* ---- the server ---- */

struct server {
    pid_t process;
    char http[64], grpc[64];
};

static void exec_server(int output, size_t max_batch)
{
    char program[500], batch[60];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 40);
    program[length > 0 ? length : 0] = '\0';
    for (size_t up = 0; up < 3 && strrchr(program, '/') != NULL; up++)
        *strrchr(program, '/') = '\0';
    strcat(program, "/phloem");
    snprintf(batch, sizeof batch, "serve.model.max_batch=%zu", max_batch);
    bench_stay_on(bench.processors[0]);
    dup2(output, STDOUT_FILENO);
    execl(program, program, "serve", bench.repository, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
        "--set", "serve.metrics_address=", "--threads", "1", "--set", batch, "--set", "serve.log=none",
        (char *)NULL);
    _exit(127);
}

static void read_addresses(struct server *server, int input)
{
    char line[200];
    FILE *file = fdopen(input, "r");
    while (file != NULL && server->grpc[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "REST http://%63s", server->http);
        (void)sscanf(line, "gRPC %63s", server->grpc);
    }
    if (server->grpc[0] == '\0')
        bench_check(ph_fail(PH_ERROR_BUG, "phloem serve did not start"));
    fclose(file);
}

/* Sends requests until one is answered: the model is loaded. */
static void wait_ready(const struct server *server)
{
    struct load_body *bodies = make_bodies(false, 1, 0);
    struct load_result result = {0};
    const uint64_t deadline = ph__clock_deadline(120000);
    do {
        load_result_fini(&result);
        usleep(100000);
        load_run(&(struct load_options){.address = server->http,
                     .model = "dlrm",
                     .bodies = bodies,
                     .num_bodies = NUM_BODIES,
                     .num_clients = 1,
                     .seconds = .01},
            &result);
    } while (result.num_answered == 0 && ph__clock_ms_until(deadline) > 0);
    load_result_fini(&result);
    free_bodies(bodies);
}

static struct server start_server(size_t max_batch)
{
    struct server server = {.process = 0};
    int ends[2];
    if (pipe(ends) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot create a pipe"));
    fflush(stdout);
    server.process = fork();
    if (server.process == 0) {
        close(ends[0]);
        exec_server(ends[1], max_batch);
    }
    close(ends[1]);
    read_addresses(&server, ends[0]);
    wait_ready(&server);
    return server;
}

static void stop_server(const struct server *server)
{
    kill(server->process, SIGTERM);
    waitpid(server->process, NULL, 0);
}

/* ---- loads ---- */

static struct load_result run_load(const struct server *server, bool is_grpc, size_t num_rows, double rate,
    uint64_t timeout_us, double seconds)
{
    static uint64_t seed;
    struct load_result result;
    struct load_body *bodies = make_bodies(is_grpc, num_rows, timeout_us);
    load_run(&(struct load_options){.address = is_grpc ? server->grpc : server->http,
                 .is_grpc = is_grpc,
                 .model = "dlrm",
                 .bodies = bodies,
                 .num_bodies = NUM_BODIES,
                 .num_clients = rate > 0 ? 8 * NUM_CLIENTS : NUM_CLIENTS,
                 .rate = rate,
                 .seconds = seconds,
                 .timeout_us = timeout_us,
                 .seed = ++seed},
        &result);
    free_bodies(bodies);
    if (result.num_failed > 0)
        printf("  %zu of %zu requests failed: %s\n", result.num_failed, result.num_sent, result.error);
    return result;
}

/* Returns requests a second in a closed loop. */
static double capacity(const struct server *server, bool is_grpc, size_t num_rows)
{
    struct load_result result = run_load(server, is_grpc, num_rows, 0, 0, (double)bench.seconds);
    const double rate = (double)result.num_answered / result.seconds;
    load_result_fini(&result);
    return rate;
}

/* Returns rows a second that a session scores in calls of 64, on the server's processor. */
static double session_rows(void)
{
    struct ph_session *session = NULL;
    char folder[400];
    float scores[MAX_BATCH];
    size_t num_rows = 0;
    snprintf(folder, sizeof folder, "%s/dlrm/1", bench.repository);
    bench_stay_on(bench.processors[0]);
    bench_check(ph_session_open(folder,
        &(struct ph_session_options){.size = sizeof(struct ph_session_options), .max_batch = MAX_BATCH},
        &session));
    const uint64_t begin_ns = ph__clock_ns();
    while (ph__clock_ns() - begin_ns < bench.seconds * 500000000ull) {
        bench_check(ph_session_score(
            session, MAX_BATCH, bench.rows->cells + num_rows % SERVE_NUM_ROWS * SERVE_NUM_COLUMNS, scores));
        num_rows += MAX_BATCH;
    }
    const double rate = (double)num_rows / ((double)(ph__clock_ns() - begin_ns) * 1e-9);
    ph_session_close(session);
    bench_stay_on(bench.processors[1]);
    return rate;
}

/* ---- figures ---- */

struct rounds {
    double values[BENCH_MAX_ROUNDS];
};

static double median(const struct rounds *rounds)
{
    return bench_median(rounds->values, bench.run.rounds);
}

static void report(
    const char *name, const char *unit, double value, const char *peer, double peer_value, double ratio)
{
    const struct bench_figure figure = {
        .name = name, .unit = unit, .value = value, .peer = peer, .peer_value = peer_value, .ratio = ratio};
    printf("%-44s %12.3g %-10s", name, value, unit);
    if (peer != NULL)
        printf("  %-34s %10.3g  %5.2f", peer, peer_value, ratio);
    printf("\n");
    fflush(stdout);
    bench_record(bench.results, &figure);
}

/* Times of requests at a share of the capacity. */
static void measure_times(const struct server *server, bool is_grpc, size_t num_rows, double full)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", .5}, {"p99", .99}, {"p99.9", .999}};
    struct rounds times[3];
    char name[100];
    for (size_t round = 0; round < bench.run.rounds; round++) {
        struct load_result result = run_load(server, is_grpc, num_rows, .8 * full, 0, (double)bench.seconds);
        for (size_t q = 0; q < 3; q++)
            times[q].values[round] = load_quantile(&result, quantiles[q].share) * 1e3;
        load_result_fini(&result);
    }
    for (size_t q = 0; q < 3; q++) {
        snprintf(name, sizeof name, "serve.server.%s.rows%zu.at80.%s", is_grpc ? "grpc" : "rest", num_rows,
            quantiles[q].name);
        report(name, "ms", median(&times[q]), NULL, 0, 0);
    }
}

static void measure_overload(const struct server *server, double full)
{
    struct rounds goodput, tail;
    for (size_t round = 0; round < bench.run.rounds; round++) {
        struct load_result result =
            run_load(server, false, MAX_BATCH, 3 * full, DEADLINE_US, (double)bench.seconds);
        goodput.values[round] = (double)result.num_answered / result.seconds;
        tail.values[round] = load_quantile(&result, .99) * 1e3;
        load_result_fini(&result);
    }
    report("serve.server.rest.rows64.overload.goodput", "requests/s", median(&goodput), "capacity", full,
        median(&goodput) / full);
    report("serve.server.rest.rows64.overload.p99", "ms", median(&tail), "deadline", DEADLINE_US * 1e-3,
        DEADLINE_US * 1e-3 / median(&tail));
}

static void run(void)
{
    static struct rounds on, off, grpc, ratio, rest64, grpc64, own, ratio64, ratio_grpc;
    const struct server batching = start_server(MAX_BATCH), single = start_server(1);
    for (size_t round = 0; round < bench.run.rounds; round++) {
        on.values[round] = capacity(&batching, false, 1);
        off.values[round] = capacity(&single, false, 1);
        grpc.values[round] = capacity(&batching, true, 1);
        own.values[round] = session_rows();
        rest64.values[round] = capacity(&batching, false, MAX_BATCH);
        grpc64.values[round] = capacity(&batching, true, MAX_BATCH);
        ratio.values[round] = on.values[round] / off.values[round];
        ratio_grpc.values[round] = grpc.values[round] / on.values[round];
        ratio64.values[round] = rest64.values[round] * MAX_BATCH / own.values[round];
    }
    report(
        "serve.server.rest.rows1", "requests/s", median(&on), "batching off", median(&off), median(&ratio));
    report("serve.server.grpc.rows1", "requests/s", median(&grpc), "REST", median(&on), median(&ratio_grpc));
    report("serve.server.rest.rows64", "rows/s", median(&rest64) * MAX_BATCH, "session", median(&own),
        median(&ratio64));
    report("serve.server.grpc.rows64", "rows/s", median(&grpc64) * MAX_BATCH, "REST",
        median(&rest64) * MAX_BATCH, median(&grpc64) / median(&rest64));
    stop_server(&single);
    measure_times(&batching, false, 1, median(&on));
    measure_times(&batching, true, 1, median(&grpc));
    measure_times(&batching, false, MAX_BATCH, median(&rest64));
    measure_overload(&batching, median(&rest64));
    stop_server(&batching);
}

int main(int argc, char **argv)
{
    struct ph__arena arena = {0};
    const struct bench_flag flags[] = {{.name = "--seconds", .number = &bench.seconds}};
    bench_read_flags(argc, argv, &bench.run, flags, 1);
    if (bench.run.is_quick)
        bench.seconds = 1;
    bench.results = ph__json_array();
    bench.rows = serve_rows_make();
    if (bench_processors(bench.processors, 2) < 2)
        bench.processors[1] = bench.processors[0];
    bench_make_folder("bench_server", bench.folder, sizeof bench.folder);
    snprintf(bench.repository, sizeof bench.repository, "%s/repository", bench.folder);
    bench_check(ph__directory_create(serve_path(&arena, bench.repository, "dlrm")));
    serve_folder_make(&arena, serve_path(&arena, bench.repository, "dlrm/1"), 64);
    bench_stay_on(bench.processors[1]);
    printf("scoring server, one worker on one processor: DLRM of %d dense features and %d tables x 100000 x "
           "64\n",
        SERVE_NUM_DENSE, SERVE_NUM_SPARSE);
    run();
    bench_finish(bench.results, bench.run.json);
    for (size_t i = 0; i < 3; i++)
        remove(serve_path(&arena, bench.repository,
            (const char *const[]){
                "dlrm/1/config.yaml", "dlrm/1/encoder.json", "dlrm/1/model.safetensors"}[i]));
    rmdir(serve_path(&arena, bench.repository, "dlrm/1"));
    rmdir(serve_path(&arena, bench.repository, "dlrm"));
    rmdir(bench.repository);
    rmdir(bench.folder);
    ph__arena_fini(&arena);
    free((void *)(uintptr_t)bench.rows);
    return 0;
}
