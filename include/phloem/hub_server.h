/* A parameter hub inside a program; `phloem hub` is made of it. hub.h explains hubs and has the workers'
 * side.
 *
 * Threads: one runs the hub, its control thread; any may stop it. The hub starts core threads of its own,
 * which take no signals. Errors as in hub.h. */
#ifndef PHLOEM_HUB_SERVER_H
#define PHLOEM_HUB_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/hub.h"
#include "phloem/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_hub_server;

/* Stores of new parameters; the bits are the same. AUTO: past the caches where parameters are sent to a
 * worker and exceed the core threads' own caches, otherwise through them. */
enum ph_hub_results { PH_HUB_RESULTS_AUTO, PH_HUB_RESULTS_CACHED, PH_HUB_RESULTS_NON_TEMPORAL };

/* WIDE: all core threads work on each key together, to compare with; no checkpoint_folder. */
enum ph_hub_aggregation { PH_HUB_TALL, PH_HUB_WIDE };

/* Log lines: "key=value", a JSON object each, or none. */
enum ph_hub_log { PH_HUB_LOG_TEXT, PH_HUB_LOG_JSON, PH_HUB_LOG_NONE };

/* Keys under "hub" of a config that `phloem hub` reads, and the destination of its log. All but size may be
 * zero: the defaults. Texts are borrowed until destroy. */
struct ph_hub_server_options {
    size_t size;             /* sizeof the struct: phloem/options.h */
    const char *address;     /* to listen at, "host:port"; NULL: "127.0.0.1:0", a port that is free */
    const char *secret_file; /* needed when the address is not loopback */
    uint64_t num_threads;    /* core threads; 0: one a processor */
    enum ph_hub_wait_policy wait;
    enum ph_hub_aggregation aggregation;
    enum ph_hub_results results;
    uint64_t max_bytes;     /* memory of all jobs; 0: what the machine has left at start */
    uint64_t max_job_bytes; /* memory of one job; 0: no other limit */
    uint64_t max_jobs;      /* up to PH_HUB_MAX_JOBS; 0: 64 */
    /* For jobs that name no size, a multiple of 64 up to PH_HUB_MAX_CHUNK_BYTES. 0: the size that is measured
     * to be good when the first such job begins, and less for small jobs. */
    uint64_t chunk_bytes;
    const char *checkpoint_folder; /* this hub's alone; jobs then need more memory. NULL: no checkpoints */
    const char *metrics_address;   /* "host:port" of Prometheus metrics over HTTP; NULL or "": none */
    const char *trace_path; /* a Chrome trace of the first chunks' ways, written at the end; NULL: none */
    enum ph_hub_log log;
    int log_descriptor; /* descriptor for structured log lines; 0: none */
};

/* Creates a hub. PH_ERROR_CONFIG: impossible options, or the checkpoint_folder is another hub's;
 * PH_ERROR_PEER: cannot listen at the addresses; PH_ERROR_MEMORY, PH_ERROR_DISK; PH_ERROR_USAGE: $PHLOEM_ISA
 * asks for an instruction set that this machine lacks; PH_ERROR_BUG: the system does not list its processors
 * or network interfaces. */
PH_MUST_CHECK ph_status ph_hub_server_create(
    const struct ph_hub_server_options *options, struct ph_hub_server **server_out);

/* Returns the address where clients connect, "127.0.0.1:4711"; valid until destroy. */
const char *ph_hub_server_address(const struct ph_hub_server *server);
/* Returns the address where metrics are served, "127.0.0.1:9464"; NULL without them. */
const char *ph_hub_server_metrics_address(const struct ph_hub_server *server);

/* Serves until ph_hub_server_stop, or until *stop_signal (NULL: never) is not 0: call it in a thread of its
 * own, or as a program's main loop. Where there is a folder for checkpoints, each job still gets one: its
 * workers are served for up to two more seconds, to come to the end of an iteration. Jobs that several hubs
 * share get none, since the hubs would not save the same iteration. */
PH_MUST_CHECK ph_status ph_hub_server_run(struct ph_hub_server *server, const volatile int *stop_signal);
void ph_hub_server_stop(struct ph_hub_server *server); /* from any thread or a signal handler; keeps errno */
void ph_hub_server_destroy(struct ph_hub_server *server); /* after run has returned */

#ifdef __cplusplus
}
#endif
#endif
