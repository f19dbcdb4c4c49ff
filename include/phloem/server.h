/* A scoring server inside a program; `phloem serve` is made of it. It answers the Open Inference Protocol v2
 * with Triton's extensions, over REST and gRPC (docs/SERVER.md), for the models of a repository: a folder of
 * folders MODEL/VERSION, each a run folder, or one run folder.
 *
 * Threads: one runs the server; any may stop it. The server starts workers and a loader of its own, which
 * take no signals. */
#ifndef PHLOEM_SERVER_H
#define PHLOEM_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/graph.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_server;

/* Versions of a model that are served. */
enum ph_version_policy { PH_VERSIONS_LATEST, PH_VERSIONS_ALL, PH_VERSIONS_SPECIFIC };

/* Way in which models come and go. NONE: all are loaded at the start. EXPLICIT: clients load and unload.
 * POLL: the repository is looked at again and again. */
enum ph_model_control { PH_CONTROL_NONE, PH_CONTROL_EXPLICIT, PH_CONTROL_POLL };

/* Log lines: "key=value", a JSON object each, or none. */
enum ph_server_log { PH_SERVER_LOG_TEXT, PH_SERVER_LOG_JSON, PH_SERVER_LOG_NONE };

/* Keys under "serve.model.speculation", and "speculation" in MODEL/serve.yaml: a foundation model computes
 * ahead what the served model reads of pairs of user and item (docs/FOUNDATION.md). Texts are borrowed as the
 * rest of the settings. */
struct ph_speculation_settings {
    const char *teacher;     /* run folder of the foundation model; "": no speculation */
    const char *user, *item; /* columns of a request */
    double seconds;          /* that what was computed of a pair is used */
    double rows_per_second;  /* that the foundation model may compute */
    uint64_t cache_bytes;
    uint64_t max_users;      /* that are remembered */
    uint64_t num_neighbours; /* similar users whose mean stands in; 0: none do */
    const char *feature_log; /* file of what was served, which is appended to; "": none */
};

/* Settings of a served model: keys under "serve.model", and those of the file MODEL/serve.yaml. */
struct ph_served_settings {
    enum ph_version_policy versions;
    uint64_t num_versions;    /* LATEST */
    const char *version_list; /* SPECIFIC: "3,5" */
    const char *outputs;      /* offered beside probability, logit and tasks: "hidden,embeddings" */
    enum ph_row_format row_format;
    enum ph_precision precision;
    uint64_t max_batch;          /* rows scored together */
    uint64_t max_queue_delay_us; /* that a batch waits for more rows */
    uint64_t max_queue_rows;     /* that wait at a time */
    uint64_t max_queue_bytes;    /* of requests that wait */
    uint64_t default_timeout_us; /* of requests that say none; 0: no limit */
    struct ph_speculation_settings speculation;
};

/* Keys under "serve". ph_server_options_init sets the defaults. Texts are borrowed until destroy. */
struct ph_server_options {
    size_t size;                 /* sizeof the struct: phloem/options.h */
    const char *repository;      /* a folder */
    const char *http_address;    /* "host:port"; port 0: a free one; "": no REST */
    const char *grpc_address;    /* "": no gRPC */
    const char *metrics_address; /* "": no metrics */
    uint64_t num_threads;        /* workers; 0: one a processor */
    enum ph_model_control control;
    uint64_t poll_ms;             /* POLL: between two looks */
    const char *load;             /* EXPLICIT: models loaded at the start, "a,b", or "*": all */
    bool load_in_background;      /* false: the thread that answers clients loads, and they wait */
    uint64_t max_request_bytes;   /* of a request, after decompression */
    uint64_t max_connections;     /* of each wire */
    uint64_t client_timeout_ms;   /* for a client to send a request, or to take an answer */
    uint64_t idle_timeout_ms;     /* between two requests of a connection */
    uint64_t drain_timeout_ms;    /* for requests in flight when the server is stopped */
    const char *token_file;       /* bearer token of scoring; "": none */
    const char *admin_token_file; /* bearer token of load, unload and trace settings; "": as token_file */
    const char *trace_file;       /* file of Triton's traces of some requests; "": none */
    uint64_t trace_rate;          /* one of so many requests is traced */
    const char *chrome_trace;     /* file for a Chrome trace of some requests, written at the end; "": none */
    enum ph_server_log log;
    int log_descriptor; /* descriptor for structured log lines; 0: none */
    struct ph_served_settings model;
};

/* Sets the defaults. */
void ph_server_options_init(struct ph_server_options *options);

/* Creates a server, and begins to load its models. PH_ERROR_CONFIG: impossible options, or an address that
 * other hosts can reach without a token; PH_ERROR_PEER: cannot listen at the addresses; PH_ERROR_DATA: there
 * is no such repository; PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_server_create(
    const struct ph_server_options *options, struct ph_server **server_out);

/* Return "127.0.0.1:8000", with the real port, valid until destroy; NULL: without it. */
const char *ph_server_http_address(const struct ph_server *server);
const char *ph_server_grpc_address(const struct ph_server *server);
const char *ph_server_metrics_address(const struct ph_server *server);

/* Tells whether all models that were asked for at the start are loaded, or have failed. Any thread. */
bool ph_server_is_settled(const struct ph_server *server);

/* Serves until ph_server_stop, or until *stop_signal (NULL: never) is not 0. Then the server is not ready any
 * more, answers what it has taken, for up to drain_timeout_ms, and returns. */
PH_MUST_CHECK ph_status ph_server_run(struct ph_server *server, const volatile int *stop_signal);
void ph_server_stop(struct ph_server *server);    /* from any thread or a signal handler; keeps errno */
void ph_server_destroy(struct ph_server *server); /* after run has returned; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
