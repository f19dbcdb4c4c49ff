/* The hub's control thread: keeps the list of jobs, starts and stops core threads, and decides where they run
 * and how they wait. phloem/hub.h says what a hub is, server_state.h which file owns what. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "base/thread/stop.h"
#include "hub/server/server_state.h"
#include "hub/shard/core.h"
#include "net/waiter.h"

#define DEFAULT_MAX_JOBS 64
#define TURN_MS 200 /* longest time between two looks at the stop signal */
#define SHORT_TURN_MS 20
#define LAST_ITERATION_NS 2000000000u /* time for workers to finish an iteration when the hub stops */

int ph_hub_api_version(void)
{
    return PH_HUB_API_VERSION;
}

ph_status ph__server_name_option(const char *option, ph_status status)
{
    return status == PH_OK ? PH_OK : ph_fail(status, "%s (hub.%s): %s", option, option, ph_error_text());
}

/* ---- core threads: how many, where they run, and how they wait ---- */

static ph_status place_cores(struct ph_hub_server *server, size_t num_cores)
{
    PH_TRY(ph__machine_detect(&server->machine));
    if (ph__socket_is_wildcard(server->listening))
        ph__machine_keep_choice(&server->machine, !ph__socket_is_ipv4(server->listening));
    else
        ph__machine_forget_interfaces(&server->machine);
    return ph__placement_plan(&server->machine, num_cores, &server->placement);
}

static ph_status start_core(struct ph_hub_server *server, uint16_t index)
{
    const struct ph__thread_place *place = &server->placement.threads[index];
    const struct ph__core_options options = {
        .wait = ph__wait_policy(server->options.wait),
        .is_crowded = server->is_crowded,
        .max_shards = server->options.max_jobs,
        .max_links = PH_HUB_MAX_LINKS,
        .processor = place->processor != PH_NOWHERE ? (int)place->processor : -1,
        .others = server->cores,
        .num_others = server->placement.num_threads,
    };
    return ph__core_create(&options, &server->cores[index]);
}

static size_t wanted_cores(const struct ph_hub_server *server)
{
    const size_t num_threads = server->options.num_threads;
    return num_threads > 0 ? num_threads : ph__min(ph__cpu_count(), PH_HUB_MAX_CORES);
}

static ph_status start_cores(struct ph_hub_server *server)
{
    const size_t wanted = wanted_cores(server);
    server->num_processors = ph__cpu_count();
    if (wanted > PH_HUB_MAX_CORES)
        return ph__server_name_option("threads",
            ph_fail(PH_ERROR_CONFIG, "%zu core threads: must be at most %d", wanted, PH_HUB_MAX_CORES));
    PH_TRY(place_cores(server, wanted));
    server->is_crowded = wanted > server->num_processors;
    for (; server->num_cores < wanted; server->num_cores++)
        PH_TRY(start_core(server, server->num_cores));
    return PH_OK;
}

static void stop_cores(struct ph_hub_server *server)
{
    for (uint16_t i = 0; i < server->num_cores; i++)
        ph__core_destroy(server->cores[i]);
    server->num_cores = 0;
    ph__placement_fini(&server->placement);
    ph__machine_fini(&server->machine);
}

/* ---- crowds ---- */

/* Counts the worker threads on this host: one a worker, and over TCP one more for its links. Workers without
 * a link thread do not report that, so they count two. */
static size_t count_local_threads(const struct ph_hub_server *server)
{
    size_t count = 0;
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        if (session->tenant != NULL && session->is_of_host)
            count += session->tenant->members[session->rank].is_shared ? 1 : 2;
    }
    return count;
}

struct crowding {
    struct ph__core *core;
    bool is_crowded;
};

static void tell_core(void *context)
{
    const struct crowding *crowding = context;
    ph__core_set_crowded(crowding->core, crowding->is_crowded);
}

void ph__server_count_crowd(struct ph_hub_server *server)
{
    const bool is_crowded = server->num_cores + count_local_threads(server) > server->num_processors;
    if (is_crowded == server->is_crowded)
        return;
    server->is_crowded = is_crowded;
    for (uint16_t i = 0; i < server->num_cores; i++) {
        struct crowding crowding = {.core = server->cores[i], .is_crowded = is_crowded};
        ph__core_call(server->cores[i], tell_core, &crowding);
    }
}

/* ---- the trace: the paths of the first chunks (shard_trace.h), written when the hub stops ---- */

#define MAX_EVENTS \
    ((size_t)1 << 17) /* about 13 MiB; a 64 MiB key makes 4 to 5 events a round for each of 2048 chunks */

/* Makes room for events if a trace path is set. */
static ph_status open_trace(struct ph_hub_server *server)
{
    return server->options.trace_path != NULL ? ph__trace_create(MAX_EVENTS, &server->trace.events) : PH_OK;
}

/* Writes the trace, if any. Called when no core thread has a job any more. */
static ph_status write_trace(struct ph_hub_server *server)
{
    return server->trace.events != NULL ? ph__trace_write(server->trace.events, server->options.trace_path)
                                        : PH_OK;
}

/* ---- the log ---- */

static void open_log(struct ph_hub_server *server)
{
    server->log_settings = (struct ph__log){.descriptor = server->options.log_descriptor,
        .least_level = PH_LOG_INFO,
        .format = server->options.log == PH_HUB_LOG_JSON ? PH_LOG_JSON : PH_LOG_LOGFMT};
    server->log = server->options.log != PH_HUB_LOG_NONE && server->options.log_descriptor > 0
                      ? &server->log_settings
                      : NULL;
}

static void log_start(const struct ph_hub_server *server)
{
    PH_LOG(server->log, PH_LOG_INFO, "hub_started", ph__log_text("address", server->address),
        ph__log_count("core_threads", server->num_cores),
        ph__log_count("is_pinned", server->placement.is_pinned),
        ph__log_count("max_bytes", server->max_bytes), ph__log_count("max_jobs", server->options.max_jobs));
}

static void log_stop(const struct ph_hub_server *server)
{
    PH_LOG(server->log, PH_LOG_INFO, "hub_stopped", ph__log_text("address", server->address),
        ph__log_number("seconds", (double)(ph__clock_ns() - server->started_ns) * 1e-9));
}

/* ---- life ---- */

/* Answers the bell: workers have failed, memory was touched, or shards or checkpoint tasks are done. */
static void rung(void *context, uint32_t events)
{
    struct ph_hub_server *server = context;
    (void)events;
    ph__doorbell_answer(server->bell[0]);
    ph__server_end_failed_workers(server);
    ph__server_begin_touched(server);
    ph__server_look_at_checkpoints(server);
}

static ph_status read_secret(struct ph_hub_server *server)
{
    if (server->options.secret_file == NULL)
        return PH_OK;
    server->secret = calloc(1, sizeof *server->secret);
    if (server->secret == NULL)
        return ph__out_of_memory("a secret");
    return ph__server_name_option(
        "secret_file", ph__secret_read(server->options.secret_file, server->secret));
}

static ph_status choose_chunks(struct ph_hub_server *server)
{
    const uint64_t chunk_bytes = server->options.chunk_bytes;
    if (chunk_bytes % PH_ALIGNMENT != 0 || chunk_bytes > PH_HUB_MAX_CHUNK_BYTES)
        return ph__server_name_option(
            "chunk_bytes", ph_fail(PH_ERROR_CONFIG, "chunks of %llu bytes: must be a multiple of %d up to %u",
                               (unsigned long long)chunk_bytes, PH_ALIGNMENT, PH_HUB_MAX_CHUNK_BYTES));
    /* A wide hub works on whole keys: chunks only divide what is sent. */
    const uint32_t of_wide = server->options.aggregation == PH_HUB_WIDE ? PH_AUTOTUNE_DEFAULT_BYTES : 0;
    server->tuning = (struct ph__autotune){.kernels = server->kernels,
        .results = server->options.results,
        .hub_bytes = chunk_bytes > 0 ? (uint32_t)chunk_bytes : of_wide};
    return PH_OK;
}

static ph_status start(struct ph_hub_server *server)
{
    enum ph__isa isa;
    if (server->options.aggregation == PH_HUB_WIDE && server->options.checkpoint_folder != NULL)
        return ph_fail(PH_ERROR_CONFIG, "PH_HUB_WIDE (hub.aggregation: wide) keeps no checkpoints: leave out "
                                        "checkpoint_folder (hub.checkpoint_folder)");
    PH_TRY(ph__server_check_first_worker(server, ph__min(wanted_cores(server), PH_HUB_MAX_CORES)));
    PH_TRY(read_secret(server));
    PH_TRY(ph__cpu_isa(&isa));
    server->kernels = ph__kernels_for(isa);
    PH_TRY(choose_chunks(server));
    if (server->options.max_jobs == 0)
        server->options.max_jobs = DEFAULT_MAX_JOBS;
    if (server->options.max_jobs > PH_HUB_MAX_JOBS)
        return ph__server_name_option(
            "max_jobs", ph_fail(PH_ERROR_CONFIG, "%llu services: must be at most %d",
                            (unsigned long long)server->options.max_jobs, PH_HUB_MAX_JOBS));
    server->max_bytes = server->options.max_bytes;
    if (server->max_bytes == 0)
        PH_TRY(ph__memory_available_bytes(&server->max_bytes));
    PH_TRY(ph__event_loop_create(&server->loop));
    PH_TRY(ph__doorbell_create(server->bell));
    PH_TRY(ph__event_loop_add(server->loop, server->bell[0], EPOLLIN, rung, server, &server->sources[2]));
    PH_TRY(ph__server_open_checkpoints(server));
    PH_TRY(ph__server_listen(server));
    PH_TRY(ph__server_open_metrics(server));
    PH_TRY(open_trace(server));
    PH_TRY(start_cores(server));
    return ph__server_count_descriptors(server);
}

ph_status ph_hub_server_create(const struct ph_hub_server_options *options, struct ph_hub_server **server_out)
{
    struct ph_hub_server_options own;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_hub_server_options"));
    struct ph_hub_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return ph__out_of_memory("a hub");
    server->options = own;
    if (own.metrics_address != NULL && own.metrics_address[0] == '\0')
        server->options.metrics_address = NULL;
    server->started_ns = ph__clock_ns();
    open_log(server);
    server->listening = server->listening_local = server->bell[0] = server->bell[1] = -1;
    server->checkpoint_lock = -1;
    pthread_mutex_init(&server->failures_mutex, NULL);
    const ph_status status = start(server);
    if (status != PH_OK) {
        ph_hub_server_destroy(server);
        return status;
    }
    *server_out = server;
    return PH_OK;
}

const char *ph_hub_server_address(const struct ph_hub_server *server)
{
    return server->address;
}

/* Returns the shorter of two timeouts; -1 means none. */
static int sooner(int left_ms, int right_ms)
{
    return right_ms < 0 || (left_ms >= 0 && left_ms < right_ms) ? left_ms : right_ms;
}

ph_status ph__server_turn(struct ph_hub_server *server, int max_ms)
{
    const int timeout_ms =
        sooner(ph__server_metrics_timeout_ms(server), ph__server_listen_timeout_ms(server));
    PH_TRY(ph__event_loop_run(server->loop, ph__server_has_more(server) ? 0 : sooner(max_ms, timeout_ms)));
    ph__server_go_on(server);
    ph__server_tell_status(server);
    PH_TRY(ph__server_run_metrics(server));
    ph__server_sweep_sessions(server);
    ph__server_end_services(server);
    ph__server_count_crowd(server);
    return PH_OK;
}

/* Saves all jobs, and serves them until they finish an iteration or LAST_ITERATION_NS are over. */
static ph_status save_jobs(struct ph_hub_server *server)
{
    const uint64_t deadline_ns = ph__clock_ns() + LAST_ITERATION_NS;
    ph__server_save_all(server);
    while (ph__server_is_saving(server, ph__clock_ns() < deadline_ns))
        PH_TRY(ph__server_turn(server, SHORT_TURN_MS));
    return PH_OK;
}

/* Ends the jobs before the core threads, which have to let go of them. */
ph_status ph_hub_server_run(struct ph_hub_server *server, const volatile int *stop_signal)
{
    ph_status status = PH_OK;
    log_start(server);
    while (status == PH_OK && !atomic_load(&server->must_stop) && !ph__is_stopped(stop_signal))
        status = ph__server_turn(server, TURN_MS);
    if (status == PH_OK)
        status = save_jobs(server);
    ph__server_end_tenants(server);
    const ph_status traced = write_trace(server);
    log_stop(server);
    return status != PH_OK ? status : traced;
}

void ph_hub_server_stop(struct ph_hub_server *server)
{
    const int saved_errno = errno; /* the program goes on with it after its signal handler */
    atomic_store(&server->must_stop, true);
    ph__doorbell_ring(server->bell[1]);
    errno = saved_errno;
}

static void close_descriptor(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

void ph_hub_server_destroy(struct ph_hub_server *server)
{
    if (server == NULL)
        return;
    ph__server_end_tenants(server);
    while (server->sessions != NULL)
        ph__session_close(server->sessions);
    stop_cores(server);
    ph__server_close_metrics(server);
    ph__trace_destroy(server->trace.events);
    for (size_t i = 0; i < sizeof server->sources / sizeof *server->sources; i++)
        ph__event_source_remove(server->sources[i]);
    ph__event_loop_destroy(server->loop);
    close_descriptor(server->listening);
    close_descriptor(server->listening_local);
    close_descriptor(server->bell[0]);
    close_descriptor(server->bell[1]);
    ph__directory_unlock(server->checkpoint_lock);
    pthread_mutex_destroy(&server->failures_mutex);
    if (server->secret != NULL)
        ph__secret_fini(server->secret);
    free(server->secret);
    free(server);
}
