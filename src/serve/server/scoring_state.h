/* The inside of a scoring server, shared by the files of this folder:
 *
 *     scoring_server.c  life, and the loop of the thread that drives it
 *     rest_front.c      exchanges of HTTP ──┐
 *     grpc_front.c      calls of gRPC ──────┴──> answer.c   all calls but scoring
 *                                        └──> infer.c    scoring: request ──> queue ──> answer
 *     serve_metrics.c   metrics
 *     live_page.c       the page at "/"
 *
 * All of it runs in the driving thread, but for ph__infer_write, which a worker calls. */
#ifndef PH_SERVE_SCORING_STATE_H
#define PH_SERVE_SCORING_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "net/event_loop.h"
#include "net/server/grpc_server.h"
#include "net/server/http_server.h"
#include "phloem/server.h"
#include "serve/repository/repository.h"
#include "serve/server/tracing.h"

#define PH_TOKEN_BYTES 512

struct ph__infer;
struct ph__call_state;

struct ph__tokens {
    char scoring[PH_TOKEN_BYTES], control[PH_TOKEN_BYTES]; /* "": anybody */
};

struct ph_server {
    struct ph_server_options options;
    struct ph__log log_settings, *log; /* log: NULL without one */
    struct ph__tokens tokens;
    struct ph__event_loop *loop;
    int bell[2]; /* [1] is rung when there are done requests or results of the loader */
    struct ph__event_source *sources[4];
    struct ph__scheduler *scheduler;
    struct ph__repository *repository;
    struct ph__http_server *http, *metrics; /* NULL without */
    struct ph__grpc_server *grpc;           /* NULL without */
    struct ph__http_page pages[3];          /* of the metrics' port; the first two of the REST wire's, too */
    size_t num_workers;
    uint64_t started_ns, next_sample_ns;
    atomic_bool must_stop, is_settled;
    bool is_draining;
    struct ph__tracing tracing;
    struct ph__http_handler http_handler; /* the fronts' functions, with the server as their context */
    struct ph__grpc_handler grpc_handler;
    struct ph__call_state *free_states;
    struct ph__infer *free_infers;
    size_t num_infers; /* in use */
    double lag_ns,
        lag_deviation_ns; /* that a done request waits for a turn of the driving thread, smoothed */
    pthread_mutex_t done_lock;
    struct ph__infer *done; /* guarded by done_lock: newest first */
};

/* ---- who may do what ---- */

ph_status ph__tokens_read(const struct ph_server_options *options, struct ph__tokens *tokens_out);

/* Checks the value of a header "authorization: Bearer TOKEN". UNAUTHENTICATED. */
enum ph__oip_code ph__tokens_check(
    const struct ph__tokens *tokens, enum ph__oip_call call, struct ph__bytes authorization);

/* ---- all calls but scoring (answer.c) ---- */

/* Storage of any answer. */
union ph__oip_answer {
    struct ph__oip_is_true is_true;
    struct ph__oip_health health;
    struct ph__oip_server server;
    struct ph__oip_model model;
    struct ph__oip_config_response config;
    struct ph__oip_statistics statistics;
    struct ph__oip_index index;
    struct ph__oip_trace trace;
    struct ph__oip_speculation speculation;
};

/* Answers a call that can be answered at once: any but infer, stream and load. Texts are borrowed from the
 * server, the request and the arena. */
enum ph__oip_code ph__server_answer(struct ph_server *server, enum ph__oip_call call,
    const struct ph__oip_request *request, struct ph__arena *arena, union ph__oip_answer *answer_out);

/* Begins to load a model; `loaded` is called once. */
enum ph__oip_code ph__server_load(struct ph_server *server, const struct ph__oip_request *request,
    ph__repository_loaded *loaded, void *context);

/* ---- figures (serve_metrics.c) ---- */

ph_status ph__server_write_metrics(void *server, struct ph__writer *writer);

/* ---- the live page (live_page.c) ---- */

#define PH_LIVE_PATH "/live.json"

ph_status ph__server_write_page(void *server, struct ph__writer *writer); /* HTML */
ph_status ph__server_write_live(void *server, struct ph__writer *writer); /* what the page asks for */
/* Samples all versions' figures, once a second. */
void ph__server_sample(struct ph_server *server);

#endif
