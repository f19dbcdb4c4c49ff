/* The inside of a hub's control thread, for the files that it is made of:
 *
 *     server.c                               the thread and its life, core threads, the trace
 *     server_listen.c, hub_session.c         control connections, and how many more there may be
 *     server_services.c, server_jobs.c       what these ask for
 *     server_ends.c                          ends of runs and workers
 *     server_checkpoints.c, server_parts.c   how jobs outlive deaths
 *     server_figures.c                       what there is to tell, for
 *     server_status.c, server_metrics.c      `phloem hub status` and Prometheus
 *
 * Everything here belongs to that thread but the failures. */
#ifndef PH_HUB_SERVER_STATE_H
#define PH_HUB_SERVER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/trace.h"
#include "hub/layout/placement.h"
#include "hub/shard/tenant.h"
#include "net/control_stream.h"
#include "net/event_loop.h"
#include "net/link/socket.h"
#include "net/server/http_server.h"

#define PH_HUB_MAX_LINKS 4096 /* of one core thread */

enum ph__session_state { PH_SESSION_GREETING, PH_SESSION_PROVING, PH_SESSION_READY };

struct ph_session { /* a control connection */
    struct ph_hub_server *server;
    struct ph__control_stream *stream;
    struct ph__event_source *source;
    enum ph__session_state state;
    struct ph__challenge challenge; /* while it proves itself */
    bool is_local;                  /* over a local socket */
    bool is_of_host;                /* so, or over the loopback */
    uint64_t number;                /* among all of this hub's */
    char peer[PH_ADDRESS_BYTES];    /* whose it is, for the log */
    uint64_t moved_ns;              /* when it last got a step further */
    uint64_t stranger_ns;           /* since when it is no worker's */
    bool has_more;                  /* frames may have come that are not taken yet */
    bool is_closing; /* to be freed at the end of the turn; what is queued is still sent if it can be */
    char why[PH_HUB_MAX_TEXT +
             1]; /* it is closing: what happened first; "": it was asked to, or the hub ends */
    int process; /* tells when the other side's process has ended, whoever holds its sockets; -1: not to be
                    had */
    struct ph__event_source *process_source;
    struct ph__tenant *tenant; /* NULL: it has not joined */
    uint32_t rank;
    struct ph__tenant
        *awaited; /* whose checkpoint of this number or later is to be answered for; NULL: none */
    uint64_t awaited_number;
    uint64_t question;                       /* number of its STATUS that is to be answered; 0: none */
    char asked_service[PH_HUB_MAX_NAME + 1]; /* ... for this service alone; "": for all */
    struct ph_session *next;
};

/* Since the hub was started. */
struct ph__server_counts {
    uint64_t connections, broken_connections, refused_requests;
    uint64_t silent_connections; /* that were closed because nothing came */
    uint64_t refusals_to_listen; /* times that connections had to wait to be taken */
    uint64_t ended_workers;      /* whose connection ended before they had left */
    uint64_t failed_workers;     /* that broke the rules, or whose link did */
    uint64_t checkpoints;        /* written */
    uint64_t failed_checkpoints; /* not written, or not used */
};

#define PH_HUB_MAX_TRACED_JOBS 64

struct ph__server_trace {
    struct ph__trace *events; /* NULL: none */
    uint32_t num_jobs;        /* runs of jobs that are traced; those after the first are not */
    char names[PH_HUB_MAX_TRACED_JOBS][PH_HUB_MAX_NAME + 1];
};

struct ph_hub_server {
    struct ph_hub_server_options options;
    const struct ph__kernels *kernels;
    struct ph__autotune tuning; /* of chunks */
    int listening, listening_local;
    uint32_t num_strangers, max_strangers; /* connections that are no worker's */
    uint64_t max_descriptors;              /* of the process */
    uint64_t num_own_descriptors;          /* that were open when the hub had started */
    bool is_accept_paused;                 /* until accept_resume_ns, and until there are fewer strangers */
    uint64_t accept_resume_ns;
    char address[PH_ADDRESS_BYTES], local_socket[PH_HUB_MAX_SOCKET_NAME + 1];
    struct ph__event_loop *loop;
    struct ph__event_source *sources[3];
    struct ph__core *cores[PH_HUB_MAX_CORES];
    uint16_t num_cores;
    struct ph__machine machine;
    struct ph__placement placement; /* of core threads */
    size_t num_processors;
    bool is_crowded; /* core threads and those of workers of this host outnumber the processors */
    uint64_t max_bytes;
    struct ph__secret *secret; /* NULL: none */
    int checkpoint_lock;       /* of the folder for checkpoints; -1: none */
    bool is_ending;            /* no checkpoint is begun any more but those that are asked for */
    struct ph__tenant *tenants;
    struct ph_session *sessions;
    uint32_t num_tenants;
    uint64_t num_questions; /* for its status, ever */
    uint64_t started_ns;
    struct ph__server_counts counts;
    struct ph__traffic past_traffic; /* of services that are no more */
    struct ph__log log_settings;
    struct ph__log *log; /* NULL: none */
    struct ph__server_trace trace;
    struct ph__http_server *http; /* NULL: no metrics */
    struct ph__http_page metrics_page;
    struct ph__event_source *http_source;
    int bell[2]; /* [1] is rung by core threads and by stop */
    _Atomic bool must_stop;
    pthread_mutex_t failures_mutex;
    struct ph__failure *failures; /* of workers, that core threads tell of: server_ends.c */
};

/* ---- hub_session.c ---- */

ph_status ph__session_open(struct ph_hub_server *server, int socket, bool is_local);
void ph__session_close(struct ph_session *session); /* frees it */
/* Sends a frame, or begins to; where that fails the session closes by itself later. */
void ph__session_send(struct ph_session *session, enum ph__hub_frame type, const struct ph__wire_writer *body,
    const int *descriptors, size_t num_descriptors);
void ph__session_answer(struct ph_session *session, ph_status status); /* with ph_error_text() */
/* It is no worker's any more, and has nothing long to say. */
void ph__session_detach(struct ph_session *session);
/* Closes a stranger later, having said why. */
void ph__session_give_up(struct ph_session *session, const char *why);
/* A turn takes a few frames of each connection: whether there are more, and taking a few more of each. */
bool ph__server_has_more(const struct ph_hub_server *server);
void ph__server_go_on(struct ph_hub_server *server);

/* ---- server_listen.c ---- */

ph_status ph__server_listen(struct ph_hub_server *server);
/* Closes sessions that have ended, and strangers that have said nothing for too long; takes connections again
 * when there is room for them. After each turn. */
void ph__server_sweep_sessions(struct ph_hub_server *server);
int ph__server_listen_timeout_ms(const struct ph_hub_server *server); /* of a turn; -1: none */

/* Before the hub starts so many core threads. PH_ERROR_MEMORY: it could serve no worker. */
ph_status ph__server_check_first_worker(struct ph_hub_server *server, size_t num_cores);
ph_status ph__server_count_descriptors(struct ph_hub_server *server); /* when it has started */
/* PH_ERROR_MEMORY where there would be none for the links of one more worker. */
ph_status ph__server_check_descriptors(
    const struct ph_session *session, const struct ph__tenant *tenant, bool is_shared);

/* ---- server_jobs.c ---- */

/* A frame of a session that has proved itself. What fails here ends the session. */
ph_status ph__server_request(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_begin_linking(struct ph_hub_server *server, struct ph__tenant *tenant);
/* Tells the workers that they may begin, when all of them are ready and the parameters are there. */
void ph__server_begin_if_ready(struct ph_hub_server *server, struct ph__tenant *tenant);
/* Tells the workers of jobs whose memory has been touched that these begin. */
void ph__server_begin_touched(struct ph_hub_server *server);
uint64_t ph__server_bytes_left(const struct ph_hub_server *server);

/* ---- server_ends.c ---- */

ph_status ph__server_request_leave(struct ph_session *session);
/* The session is closing: its worker is gone, without having left. */
void ph__server_session_ends(struct ph_session *session);
/* ph__tenant_failure, called in core threads: keeps the failure, with ph_error_text(), for the control
 * thread. */
void ph__server_note_failure(void *context, struct ph__tenant *tenant, uint32_t worker);
/* Ends the workers whose failures were noted. */
void ph__server_end_failed_workers(struct ph_hub_server *server);
/* Whoever is still there hears why; a run that ended can begin anew with workers that join again. */
void ph__server_end_run(
    struct ph_hub_server *server, struct ph__tenant *tenant, ph_status status, const char *why);

/* ---- server_services.c ---- */

ph_status ph__server_request_create(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_destroy(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_end(struct ph_session *session, const struct ph__control_frame *frame);
/* Destroys services that were to be when their last worker has left. After each turn. */
void ph__server_end_services(struct ph_hub_server *server);
/* The service of this name, also one that only a checkpoint knows of; NULL: there is none.
 * PH_ERROR_CHECKPOINT where its file cannot be used. */
ph_status ph__server_look_for(struct ph_hub_server *server, const char *name, struct ph__tenant **tenant_out);
/* PH_ERROR_USAGE, or PH_ERROR_CHECKPOINT where a file says so, when the tenant has another share of its job's
 * keys. */
ph_status ph__server_check_share(const struct ph__tenant *tenant, const struct ph__hub_share *share);
void ph__server_add_tenant(struct ph_hub_server *server, struct ph__tenant *tenant);
void ph__server_forget(struct ph_hub_server *server, struct ph__tenant *tenant); /* frees it */
void ph__server_end_tenants(struct ph_hub_server *server);
/* Finds the services that the folder for checkpoints holds. What cannot be used is reported and left alone.
 */
ph_status ph__server_open_checkpoints(struct ph_hub_server *server);

/* ---- server_status.c ---- */

ph_status ph__server_request_status(struct ph_session *session, const struct ph__control_frame *frame);
/* Answers whoever has waited longest for it: one a turn, for each is some work. */
void ph__server_tell_status(struct ph_hub_server *server);

/* ---- server_metrics.c ---- */

/* Nothing happens in any of them where there is no address for metrics. */
ph_status ph__server_open_metrics(struct ph_hub_server *server);
ph_status ph__server_run_metrics(struct ph_hub_server *server);
int ph__server_metrics_timeout_ms(const struct ph_hub_server *server); /* -1: none */
void ph__server_close_metrics(struct ph_hub_server *server);

/* ---- server_checkpoints.c ---- */

/* Logs and counts a failure, with the reason in ph_error_text(). event: "checkpoint_not_used",
 * "checkpoint_not_written" ... tenant: NULL: whose it is, is not known. */
void ph__server_log_checkpoint_failed(
    struct ph_hub_server *server, const struct ph__tenant *tenant, const char *event);

/* Does what is due for the tenant's checkpoint, unless something is being done for it. Each change of its
 * state is followed by a call. false: it is gone. */
bool ph__server_keep(struct ph_hub_server *server, struct ph__tenant *tenant);

/* The session is answered when the tenant's checkpoint of this number, or a later one, is there. */
void ph__server_await_checkpoint(struct ph_session *session, struct ph__tenant *tenant, uint64_t number);

/* Answers all that wait for one of up to this number. ph_error_text() stays. */
void ph__server_answer_waiting(
    struct ph_hub_server *server, const struct ph__tenant *tenant, uint64_t number, ph_status status);

/* The bell was rung: perhaps shards or a task are done. */
void ph__server_look_at_checkpoints(struct ph_hub_server *server);

/* Waits for the tenant's task, whose outcome concerns nobody any more. */
void ph__server_end_task(struct ph_hub_server *server, struct ph__tenant *tenant);

/* For server_parts.c: starts what is to be done with the tenant's files. The snapshot is the task's if it
 * could be started. */
ph_status ph__server_start_task(struct ph_hub_server *server, struct ph__tenant *tenant,
    const struct ph__checkpoint_order *order, struct ph__snapshot *snapshot);

/* Before the hub ends: asks for checkpoints of all running jobs. Whether they are being made yet; those that
 * still wait for their workers count if asked for. */
void ph__server_save_all(struct ph_hub_server *server);
bool ph__server_is_saving(const struct ph_hub_server *server, bool waits_for_workers);

/* ---- server_parts.c: of jobs that several hubs share, where nothing else is said ---- */

/* Frames of workers. */
ph_status ph__server_request_from(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_refusal(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_keep(struct ph_session *session, const struct ph__control_frame *frame);

/* Asks rank 0 which of the parts that are here the job goes on from: PH_TENANT_CHOOSING. */
void ph__server_offer_parts(struct ph__tenant *tenant);

/* Any job: whether there may be one more checkpoint. */
bool ph__server_has_room(const struct ph__tenant *tenant);
/* Any job: ph__tenant_hold(), but a hub without chunks has come as far as it was asked for. */
uint64_t ph__server_hold(struct ph__tenant *tenant);

/* Any job: a checkpoint of this iteration is on the disk, or could not be written. */
void ph__server_settle_part(struct ph_hub_server *server, struct ph__tenant *tenant, uint64_t iteration);
/* Any job: tells the lead what there is, if the job is running. */
void ph__server_announce_parts(struct ph_hub_server *server, struct ph__tenant *tenant, bool is_late);
/* Any job: a worker of this rank is there no more. */
void ph__server_lead_left(struct ph_hub_server *server, struct ph__tenant *tenant, uint32_t rank);

/* Any job: starts to carry out what the lead has said, if it has; false: there was nothing to do. */
bool ph__server_keep_parts(struct ph_hub_server *server, struct ph__tenant *tenant);
/* The disk is as ph__job_parts_keep() says. */
void ph__server_note_kept(struct ph__tenant *tenant, uint64_t iteration, uint64_t settled_end);

/* ---- server.c ---- */

/* Returns the status; an error says of which member of the options it is, and which key: "address
 * (hub.address)". */
ph_status ph__server_name_option(const char *option, ph_status status);

/* Waits for up to max_ms, and does what there is to do. */
ph_status ph__server_turn(struct ph_hub_server *server, int max_ms);

/* Workers have come or gone: core threads may have to wait in another way. */
void ph__server_count_crowd(struct ph_hub_server *server);

#endif
