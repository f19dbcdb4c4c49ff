/* The inside of a hub's control thread, for the files that it is made of: server.c (the thread and its life), hub_session.c
 * (control connections) and server_jobs.c (what they ask for). Everything here belongs to that thread but the failures. */
#ifndef PH_HUB_SERVER_STATE_H
#define PH_HUB_SERVER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "hub/placement.h"
#include "hub/tenant.h"
#include "net/control_stream.h"
#include "net/event_loop.h"
#include "net/socket.h"

#define PH_HUB_MAX_CORES 128
#define PH_HUB_MAX_LINKS 4096 /* of one core thread */

enum ph_session_state { PH_SESSION_GREETING, PH_SESSION_PROVING, PH_SESSION_READY };

struct ph_session { /* a control connection */
    struct ph_hub_server *server;
    struct ph_control_stream *stream;
    struct ph_event_source *source;
    enum ph_session_state state;
    struct ph_challenge challenge; /* while it proves itself */
    bool is_local;   /* over a local socket */
    bool is_of_host; /* so, or over the loopback */
    bool is_closing; /* to be freed at the end of the turn; what is queued is still sent if it can be */
    struct ph_tenant *tenant; /* NULL: it has not joined */
    uint32_t rank;
    struct ph_session *next;
};

/* What core threads tell the control thread: workers that have failed. */
struct ph_failure {
    struct ph_tenant *tenant;
    uint32_t worker;
    char text[PH_HUB_MAX_TEXT + 1];
    struct ph_failure *next;
};

struct ph_hub_server {
    struct ph_hub_server_options options;
    const struct ph_kernels *kernels;
    int listening, listening_local;
    char address[PH_ADDRESS_BYTES], local_socket[PH_HUB_MAX_SOCKET_NAME + 1];
    struct ph_event_loop *loop;
    struct ph_event_source *sources[3];
    struct ph_core *cores[PH_HUB_MAX_CORES];
    uint16_t num_cores;
    struct ph_machine machine;
    struct ph_placement placement; /* of core threads */
    size_t num_processors;
    bool is_crowded; /* core threads and workers of this host outnumber the processors */
    uint64_t max_bytes;
    struct ph_secret *secret; /* NULL: none */
    struct ph_tenant *tenants;
    struct ph_session *sessions;
    uint32_t num_tenants;
    int bell[2]; /* [1] is rung by core threads and by stop */
    _Atomic bool must_stop;
    pthread_mutex_t failures_mutex;
    struct ph_failure *failures;
};

/* ---- hub_session.c ---- */

ph_status ph__session_open(struct ph_hub_server *server, int socket, bool is_local);
void ph__session_close(struct ph_session *session); /* frees it */
/* Sends a frame, or begins to; where that fails the session closes by itself later. */
void ph__session_send(struct ph_session *session, enum ph_hub_frame type, const struct ph_wire_writer *body,
    const int *descriptors, size_t num_descriptors);
void ph__session_answer(struct ph_session *session, ph_status status); /* with ph_error_text() */

/* ---- server_jobs.c ---- */

/* A frame of a session that has proved itself. What fails here ends the session. */
ph_status ph__server_request(struct ph_session *session, const struct ph_control_frame *frame);
/* The session is closing: its worker is gone, without having left. */
void ph__server_session_ends(struct ph_session *session);
void ph__server_worker_failed(struct ph_tenant *tenant, uint32_t worker, const char *text);
void ph__server_end_tenants(struct ph_hub_server *server);
/* Tells the workers of jobs whose memory has been touched that these begin. */
void ph__server_begin_touched(struct ph_hub_server *server);

/* ---- server_cores.c ---- */

ph_status ph__server_start_cores(struct ph_hub_server *server);
void ph__server_stop_cores(struct ph_hub_server *server);
/* Workers have come or gone: core threads may have to wait in another way. */
void ph__server_count_crowd(struct ph_hub_server *server);

/* ---- server.c ---- */

/* ph_tenant_failure: called in core threads. */
void ph__server_note_failure(void *context, struct ph_tenant *tenant, uint32_t worker, ph_status status);
/* ph_tenant_touched: the same. */
void ph__server_note_touched(void *context);
/* Those of a tenant whose run has ended concern nobody any more. */
void ph__server_drop_failures(struct ph_hub_server *server, const struct ph_tenant *tenant);

#endif
