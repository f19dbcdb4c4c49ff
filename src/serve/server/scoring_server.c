/* A scoring server's life, and the loop of the thread that drives it. A turn of the loop lets the wires read
 * what has come, which puts requests into queues; wakes the workers once; and sends what they have done. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "base/thread/stop.h"
#include "net/server/prometheus.h"
#include "net/waiter.h"
#include "serve/server/fronts.h"
#include "serve/server/infer.h"

#define LONGEST_PAUSE_NS 1000000
#define TURN_MS 200 /* longest time between two looks at the stop signal */

/* ---- done requests ---- */

/* Called by a worker, or by this thread. */
static void work_done(void *context, struct ph__work *work)
{
    struct ph_server *server = context;
    struct ph__infer *infer = (struct ph__infer *)(void *)work;
    ph__infer_write(infer);
    pthread_mutex_lock(&server->done_lock);
    infer->next = server->done;
    server->done = infer;
    pthread_mutex_unlock(&server->done_lock);
}

static void ring(void *context)
{
    struct ph_server *server = context;
    ph__doorbell_ring(server->bell[1]);
}

/* Takes the done requests, oldest first. */
static struct ph__infer *take_done(struct ph_server *server)
{
    struct ph__infer *done, *oldest = NULL;
    pthread_mutex_lock(&server->done_lock);
    done = server->done;
    server->done = NULL;
    pthread_mutex_unlock(&server->done_lock);
    while (done != NULL) {
        struct ph__infer *next = done->next;
        done->next = oldest;
        oldest = done;
        done = next;
    }
    return oldest;
}

static void collect(struct ph_server *server)
{
    for (struct ph__infer *infer = take_done(server), *next; infer != NULL; infer = next) {
        next = infer->next;
        ph__infer_collect(infer);
        if (infer->front == NULL)
            ph__infer_give_back(infer);
        else if (infer->wire == PH_WIRE_REST)
            ph__rest_answer_infer(infer);
        else
            ph__grpc_answer_infer(infer);
    }
}

/* ---- starting ---- */

static void open_log(struct ph_server *server)
{
    server->log_settings = (struct ph__log){.descriptor = server->options.log_descriptor,
        .least_level = PH_LOG_INFO,
        .format = server->options.log == PH_SERVER_LOG_JSON ? PH_LOG_JSON : PH_LOG_LOGFMT};
    server->log = server->options.log != PH_SERVER_LOG_NONE && server->options.log_descriptor > 0
                      ? &server->log_settings
                      : NULL;
}

static void rung(void *context, uint32_t events)
{
    struct ph_server *server = context;
    (void)events;
    ph__doorbell_answer(server->bell[0]);
}

static void nothing(void *context, uint32_t events)
{
    (void)context, (void)events; /* the turn looks at every server */
}

static bool has_address(const char *address)
{
    return address != NULL && address[0] != '\0';
}

/* Refuses an address, in digits, that other hosts can reach without a token. */
static ph_status check_address(const struct ph_server *server, const char *key, const char *address)
{
    const bool is_loopback = strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
    if (server->tokens.scoring[0] != '\0' || is_loopback)
        return PH_OK;
    return ph_fail(
        PH_ERROR_CONFIG, "serve.%s: %s can be reached by other hosts: set serve.token_file", key, address);
}

static ph_status name_key(const char *key, ph_status status)
{
    return status == PH_OK ? PH_OK : ph_fail(status, "serve.%s: %s", key, ph_error_text());
}

static ph_status listen_http(struct ph_server *server)
{
    const struct ph_server_options *options = &server->options;
    server->http_handler = ph__rest_handler(server);
    const size_t num_pages = server->tokens.scoring[0] == '\0' ? 2 : 0; /* browsers have no token */
    const struct ph__http_options http = {.address = options->http_address,
        .log = server->log,
        .handler = &server->http_handler,
        .pages = server->pages,
        .num_pages = num_pages,
        .max_connections = options->max_connections,
        .max_body_bytes = options->max_request_bytes,
        .client_timeout_ms = (uint32_t)options->client_timeout_ms,
        .idle_timeout_ms = (uint32_t)options->idle_timeout_ms};
    PH_TRY(name_key("http_address", ph__http_server_create(&http, &server->http)));
    PH_TRY(check_address(server, "http_address", ph__http_server_address(server->http)));
    return ph__event_loop_add(
        server->loop, ph__http_server_descriptor(server->http), EPOLLIN, nothing, NULL, &server->sources[1]);
}

static ph_status listen_grpc(struct ph_server *server)
{
    const struct ph_server_options *options = &server->options;
    server->grpc_handler = ph__grpc_handler(server);
    const struct ph__grpc_options grpc = {.address = options->grpc_address,
        .log = server->log,
        .handler = &server->grpc_handler,
        .max_connections = options->max_connections,
        .max_message_bytes = options->max_request_bytes,
        .client_timeout_ms = (uint32_t)options->client_timeout_ms,
        .idle_timeout_ms = (uint32_t)options->idle_timeout_ms};
    PH_TRY(name_key("grpc_address", ph__grpc_server_create(&grpc, &server->grpc)));
    PH_TRY(check_address(server, "grpc_address", ph__grpc_server_address(server->grpc)));
    return ph__event_loop_add(
        server->loop, ph__grpc_server_descriptor(server->grpc), EPOLLIN, nothing, NULL, &server->sources[2]);
}

static ph_status listen_metrics(struct ph_server *server)
{
    const struct ph__http_options http = {.address = server->options.metrics_address,
        .pages = server->pages,
        .num_pages = 3,
        .log = server->log};
    PH_TRY(name_key("metrics_address", ph__http_server_create(&http, &server->metrics)));
    PH_TRY(check_address(server, "metrics_address", ph__http_server_address(server->metrics)));
    return ph__event_loop_add(server->loop, ph__http_server_descriptor(server->metrics), EPOLLIN, nothing,
        NULL, &server->sources[3]);
}

static ph_status open_repository(struct ph_server *server)
{
    const struct ph_server_options *options = &server->options;
    const struct ph__repository_options repository = {.path = options->repository,
        .control = options->control,
        .poll_ms = options->poll_ms,
        .load = options->load,
        .settings = &server->options.model,
        .scheduler = server->scheduler,
        .num_workers = server->num_workers,
        .loads_in_background = options->load_in_background,
        .log = server->log,
        .ready = ring,
        .context = server};
    return ph__repository_create(&repository, &server->repository);
}

static void set_pages(struct ph_server *server)
{
    const struct ph__http_page pages[] = {
        {"/", "text/html; charset=utf-8", ph__server_write_page, server},
        {PH_LIVE_PATH, "application/json", ph__server_write_live, server},
        {"/metrics", PH_PROMETHEUS_CONTENT_TYPE, ph__server_write_metrics, server},
    };
    memcpy(server->pages, pages, sizeof pages);
}

static ph_status start(struct ph_server *server)
{
    const struct ph_server_options *options = &server->options;
    if (!has_address(options->repository))
        return ph_fail(PH_ERROR_USAGE, "a server needs a repository");
    server->num_workers = options->num_threads > 0 ? options->num_threads : ph__cpu_count();
    PH_TRY(ph__tokens_read(options, &server->tokens));
    PH_TRY(
        ph__tracing_init(&server->tracing, options->trace_file, options->chrome_trace, options->trace_rate));
    PH_TRY(ph__event_loop_create(&server->loop));
    PH_TRY(ph__doorbell_create(server->bell));
    PH_TRY(ph__event_loop_add(server->loop, server->bell[0], EPOLLIN, rung, server, &server->sources[0]));
    const struct ph__scheduler_options scheduler = {
        .num_workers = server->num_workers, .done = work_done, .batch_done = ring, .context = server};
    PH_TRY(ph__scheduler_create(&scheduler, &server->scheduler));
    PH_TRY(open_repository(server));
    set_pages(server);
    if (has_address(options->http_address))
        PH_TRY(listen_http(server));
    if (has_address(options->grpc_address))
        PH_TRY(listen_grpc(server));
    return has_address(options->metrics_address) ? listen_metrics(server) : PH_OK;
}

ph_status ph_server_create(const struct ph_server_options *options, struct ph_server **server_out)
{
    struct ph_server_options own;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_server_options"));
    struct ph_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return ph__out_of_memory("a server");
    server->options = own;
    server->bell[0] = server->bell[1] = -1;
    server->started_ns = ph__clock_ns();
    pthread_mutex_init(&server->done_lock, NULL);
    open_log(server);
    const ph_status status = start(server);
    if (status == PH_OK)
        *server_out = server;
    else
        ph_server_destroy(server);
    return status;
}

/* ---- ending ---- */

/* Frees what was kept from request to request. */
static void free_kept(struct ph_server *server)
{
    for (struct ph__call_state *state = server->free_states, *next; state != NULL; state = next) {
        next = state->next;
        ph__arena_fini(&state->arena);
        ph__buffer_fini(&state->body);
        free(state);
    }
    for (struct ph__infer *infer = server->free_infers, *next; infer != NULL; infer = next) {
        next = infer->next;
        ph__arena_fini(&infer->arena);
        ph__buffer_fini(&infer->body);
        ph__buffer_fini(&infer->answer);
        ph__buffer_fini(&infer->numbers);
        free(infer);
    }
}

/* Ends the wires first: their clients' requests are cancelled, and come back at once or from a worker. */
void ph_server_destroy(struct ph_server *server)
{
    if (server == NULL)
        return;
    ph__http_server_destroy(server->http);
    ph__grpc_server_destroy(server->grpc);
    ph__http_server_destroy(server->metrics);
    while (server->num_infers > 0) {
        collect(server);
        if (server->num_infers > 0)
            (void)ph__event_loop_run(server->loop, 1);
        ph__doorbell_answer(server->bell[0]);
    }
    ph__repository_destroy(server->repository);
    ph__scheduler_destroy(server->scheduler);
    free_kept(server);
    ph__trace_destroy(server->tracing.chrome);
    for (size_t i = 0; i < sizeof server->sources / sizeof *server->sources; i++)
        ph__event_source_remove(server->sources[i]);
    ph__event_loop_destroy(server->loop);
    for (size_t i = 0; i < 2; i++)
        if (server->bell[i] >= 0)
            close(server->bell[i]);
    pthread_mutex_destroy(&server->done_lock);
    free(server);
}

/* ---- running ---- */

static int sooner(int left_ms, int right_ms)
{
    return right_ms < 0 || (left_ms >= 0 && left_ms < right_ms) ? left_ms : right_ms;
}

static int timeout_ms(const struct ph_server *server, int due_ms)
{
    int timeout = sooner(TURN_MS, due_ms);
    if (server->http != NULL)
        timeout = sooner(timeout, ph__http_server_timeout_ms(server->http));
    if (server->grpc != NULL)
        timeout = sooner(timeout, ph__grpc_server_timeout_ms(server->grpc));
    if (server->metrics != NULL)
        timeout = sooner(timeout, ph__http_server_timeout_ms(server->metrics));
    return timeout;
}

/* Leaves the processor to busy workers: until a batch is done, what comes could only wait. */
static void await_batch(const struct ph_server *server)
{
    const struct timespec longest = {.tv_nsec = LONGEST_PAUSE_NS};
    struct pollfd bell = {.fd = server->bell[0], .events = POLLIN};
    if (ph__scheduler_is_saturated(server->scheduler))
        (void)ppoll(&bell, 1, &longest, NULL);
}

/* Answers first, so that what the wires send in this turn is all that is done. */
static ph_status turn(struct ph_server *server, int *due_ms)
{
    await_batch(server);
    PH_TRY(ph__event_loop_run(server->loop, timeout_ms(server, *due_ms)));
    *due_ms = ph__repository_run(server->repository);
    atomic_store(&server->is_settled, ph__repository_is_settled(server->repository));
    collect(server);
    ph__server_sample(server);
    if (server->http != NULL)
        PH_TRY(ph__http_server_run(server->http));
    if (server->grpc != NULL)
        PH_TRY(ph__grpc_server_run(server->grpc));
    if (server->metrics != NULL)
        PH_TRY(ph__http_server_run(server->metrics));
    ph__scheduler_kick(server->scheduler);
    return PH_OK;
}

static bool has_clients(const struct ph_server *server)
{
    return server->num_infers > 0 ||
           (server->http != NULL && ph__http_server_num_exchanges(server->http) > 0) ||
           (server->grpc != NULL && ph__grpc_server_num_calls(server->grpc) > 0);
}

/* Answers what has been taken, and takes no more. */
static ph_status drain(struct ph_server *server)
{
    const uint64_t deadline = ph__clock_deadline((uint32_t)server->options.drain_timeout_ms);
    int due_ms = -1;
    server->is_draining = true;
    PH_LOG(server->log, PH_LOG_INFO, "server_draining", ph__log_count("requests", server->num_infers));
    if (server->http != NULL)
        ph__http_server_drain(server->http);
    if (server->grpc != NULL)
        ph__grpc_server_drain(server->grpc);
    do
        PH_TRY(turn(server, &due_ms));
    while (has_clients(server) && ph__clock_ms_until(deadline) > 0);
    return PH_OK;
}

static const char *or_none(const char *address)
{
    return address != NULL ? address : "";
}

ph_status ph_server_run(struct ph_server *server, const volatile int *stop_signal)
{
    ph_status status = PH_OK;
    int due_ms = 0;
    PH_LOG(server->log, PH_LOG_INFO, "server_started",
        ph__log_text("http", or_none(ph_server_http_address(server))),
        ph__log_text("grpc", or_none(ph_server_grpc_address(server))),
        ph__log_text("metrics", or_none(ph_server_metrics_address(server))),
        ph__log_text("repository", server->options.repository),
        ph__log_count("workers", server->num_workers));
    while (status == PH_OK && !atomic_load(&server->must_stop) && !ph__is_stopped(stop_signal))
        status = turn(server, &due_ms);
    if (status == PH_OK)
        status = drain(server);
    const ph_status traced = ph__tracing_fini(&server->tracing);
    status = status != PH_OK ? status : traced;
    PH_LOG(server->log, PH_LOG_INFO, "server_stopped",
        ph__log_number("seconds", (double)(ph__clock_ns() - server->started_ns) * 1e-9));
    return status;
}

void ph_server_stop(struct ph_server *server)
{
    const int saved_errno = errno; /* the program goes on with it after its signal handler */
    atomic_store(&server->must_stop, true);
    ph__doorbell_ring(server->bell[1]);
    errno = saved_errno;
}

bool ph_server_is_settled(const struct ph_server *server)
{
    return atomic_load(&server->is_settled);
}

const char *ph_server_http_address(const struct ph_server *server)
{
    return server->http != NULL ? ph__http_server_address(server->http) : NULL;
}

const char *ph_server_grpc_address(const struct ph_server *server)
{
    return server->grpc != NULL ? ph__grpc_server_address(server->grpc) : NULL;
}

const char *ph_server_metrics_address(const struct ph_server *server)
{
    return server->metrics != NULL ? ph__http_server_address(server->metrics) : NULL;
}
