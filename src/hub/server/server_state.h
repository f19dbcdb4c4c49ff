/* Inside of a hub's control thread, for the files that it is made of:
 *
 *     server.c                               the thread and its life, core threads, the trace
 *     server_listen.c, hub_session.c         control connections and their limit
 *     server_services.c, server_jobs.c       requests
 *     server_ends.c                          ends of runs and workers
 *     server_checkpoints.c, server_parts.c   checkpoints
 *     server_figures.c                       figures for
 *     server_status.c, server_metrics.c      `phloem hub status` and Prometheus
 *
 * Only the control thread touches what is declared here, except the failures. */
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

#define PH_HUB_MAX_LINKS 4096 /* most of one core thread */

enum ph__session_state { PH_SESSION_GREETING, PH_SESSION_PROVING, PH_SESSION_READY };

struct ph_session { /* a control connection */
    struct ph_hub_server *server;
    struct ph__control_stream *stream;
    struct ph__event_source *source;
    enum ph__session_state state;
    struct ph__challenge challenge; /* valid in PH_SESSION_PROVING */
    bool is_local;                  /* connected over a local socket */
    bool is_of_host;                /* is_local, or connected over the loopback */
    uint64_t number;                /* among all of this hub */
    char peer[PH_ADDRESS_BYTES];    /* peer's address, for the log */
    uint64_t moved_ns;              /* time of its last progress */
    uint64_t stranger_ns;           /* time since which it is not a worker's */
    bool has_more;                  /* untaken frames may be left */
    bool is_closing; /* freed at the end of the turn; queued output is still sent if it can be */
    char why[PH_HUB_MAX_TEXT + 1]; /* first reason to close; "": on request, or the hub ends */
    int process;                   /* signals the end of the peer's process; -1: unavailable */
    struct ph__event_source *process_source;
    struct ph__tenant *tenant; /* NULL until it joins */
    uint32_t rank;
    struct ph__tenant *awaited; /* tenant whose checkpoint awaited_number, or later, is awaited */
    uint64_t awaited_number;
    uint64_t question;                       /* number of its unanswered STATUS; 0: none */
    char asked_service[PH_HUB_MAX_NAME + 1]; /* service that STATUS asks about; "": all */
    struct ph_session *next;
};

/* Counts since the hub started. */
struct ph__server_counts {
    uint64_t connections, broken_connections, refused_requests;
    uint64_t silent_connections; /* closed because nothing came */
    uint64_t refusals_to_listen; /* times that connections had to wait */
    uint64_t ended_workers;      /* workers whose connection ended before they left */
    uint64_t failed_workers;     /* workers that broke the rules, or whose link failed */
    uint64_t checkpoints;        /* written */
    uint64_t failed_checkpoints; /* not written, or not used */
};

#define PH_HUB_MAX_TRACED_JOBS 64

struct ph__server_trace {
    struct ph__trace *events; /* NULL without a trace */
    uint32_t num_jobs;        /* runs of jobs that are traced; later ones are not */
    char names[PH_HUB_MAX_TRACED_JOBS][PH_HUB_MAX_NAME + 1];
};

struct ph_hub_server {
    struct ph_hub_server_options options;
    const struct ph__kernels *kernels;
    struct ph__autotune tuning; /* choice of chunk sizes */
    int listening, listening_local;
    uint32_t num_strangers, max_strangers; /* connections that are not a worker's */
    uint64_t max_descriptors;              /* limit of the process */
    uint64_t num_own_descriptors;          /* open when the hub had started */
    bool is_accept_paused;                 /* set until accept_resume_ns, and until strangers are fewer */
    uint64_t accept_resume_ns;
    char address[PH_ADDRESS_BYTES], local_socket[PH_HUB_MAX_SOCKET_NAME + 1];
    struct ph__event_loop *loop;
    struct ph__event_source *sources[3];
    struct ph__core *cores[PH_HUB_MAX_CORES];
    uint16_t num_cores;
    struct ph__machine machine;
    struct ph__placement placement; /* places of core threads */
    size_t num_processors;
    bool is_crowded; /* threads of cores and of local workers outnumber the processors */
    uint64_t max_bytes;
    struct ph__secret *secret; /* NULL: none */
    int checkpoint_lock;       /* lock of the checkpoint folder; -1: none */
    bool is_ending;            /* only checkpoints that are asked for are begun */
    struct ph__tenant *tenants;
    struct ph_session *sessions;
    uint32_t num_tenants;
    uint64_t num_questions; /* STATUS requests so far */
    uint64_t started_ns;
    struct ph__server_counts counts;
    struct ph__traffic past_traffic; /* traffic of services that were destroyed */
    struct ph__log log_settings;
    struct ph__log *log; /* NULL without a log */
    struct ph__server_trace trace;
    struct ph__http_server *http; /* NULL without metrics */
    struct ph__http_page metrics_page;
    struct ph__event_source *http_source;
    int bell[2]; /* core threads and stop ring [1] */
    _Atomic bool must_stop;
    pthread_mutex_t failures_mutex;
    struct ph__failure *failures; /* failures of workers, reported by core threads: server_ends.c */
};

/* ---- hub_session.c ---- */

ph_status ph__session_open(struct ph_hub_server *server, int socket, bool is_local);
void ph__session_close(struct ph_session *session); /* frees it */
/* Sends a frame, or begins to. On failure the session closes by itself later. */
void ph__session_send(struct ph_session *session, enum ph__hub_frame type, const struct ph__wire_writer *body,
    const int *descriptors, size_t num_descriptors);
void ph__session_answer(struct ph_session *session, ph_status status); /* sends ph_error_text() too */
/* Makes the session a stranger again, whose frames are short. */
void ph__session_detach(struct ph_session *session);
/* Tells a stranger why, and closes its session at the end of the turn. */
void ph__session_give_up(struct ph_session *session, const char *why);
/* Take a few frames of each connection a turn: has_more returns true when frames or questions are left, go_on
 * takes a few more frames of each. */
bool ph__server_has_more(const struct ph_hub_server *server);
void ph__server_go_on(struct ph_hub_server *server);

/* ---- server_listen.c ---- */

ph_status ph__server_listen(struct ph_hub_server *server);
/* Closes sessions that have ended, and strangers that said nothing for too long; accepts connections again
 * when there is room. Called after each turn. */
void ph__server_sweep_sessions(struct ph_hub_server *server);
int ph__server_listen_timeout_ms(const struct ph_hub_server *server); /* limit of a turn; -1: none */

/* Checks, before num_cores core threads start, that they could serve a worker; PH_ERROR_MEMORY if not. */
ph_status ph__server_check_first_worker(struct ph_hub_server *server, size_t num_cores);
ph_status ph__server_count_descriptors(struct ph_hub_server *server); /* called when the hub has started */
/* Checks that descriptors are left for one more worker's links; PH_ERROR_MEMORY if not. */
ph_status ph__server_check_descriptors(
    const struct ph_session *session, const struct ph__tenant *tenant, bool is_shared);

/* ---- server_jobs.c ---- */

/* Handles a frame of a session that has proved itself. An error ends the session. */
ph_status ph__server_request(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_begin_linking(struct ph_hub_server *server, struct ph__tenant *tenant);
/* Tells the workers to begin, once all are ready and the parameters are there. */
void ph__server_begin_if_ready(struct ph_hub_server *server, struct ph__tenant *tenant);
/* Tells workers of jobs whose memory has been touched that the job begins. */
void ph__server_begin_touched(struct ph_hub_server *server);
uint64_t ph__server_bytes_left(const struct ph_hub_server *server);

/* ---- server_ends.c ---- */

ph_status ph__server_request_leave(struct ph_session *session);
/* Ends the worker of a closing session, which did not leave. */
void ph__server_session_ends(struct ph_session *session);
/* Keeps a failure, with ph_error_text(), for the control thread: a ph__tenant_failure, in core threads. */
void ph__server_note_failure(void *context, struct ph__tenant *tenant, uint32_t worker);
/* Ends the workers whose failures were noted. */
void ph__server_end_failed_workers(struct ph_hub_server *server);
/* Ends a run and tells its workers why. A new run can begin with workers that join again. */
void ph__server_end_run(
    struct ph_hub_server *server, struct ph__tenant *tenant, ph_status status, const char *why);

/* ---- server_services.c ---- */

ph_status ph__server_request_create(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_destroy(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_end(struct ph_session *session, const struct ph__control_frame *frame);
/* Destroys services that wait for their last worker to leave. Called after each turn. */
void ph__server_end_services(struct ph_hub_server *server);
/* Gives the service of this name, restored from its checkpoint if need be, or NULL. PH_ERROR_CHECKPOINT when
 * its file cannot be used. */
ph_status ph__server_look_for(struct ph_hub_server *server, const char *name, struct ph__tenant **tenant_out);
/* Checks that the tenant has this share of its job's keys; PH_ERROR_USAGE if not, PH_ERROR_CHECKPOINT if the
 * share comes from a file. */
ph_status ph__server_check_share(const struct ph__tenant *tenant, const struct ph__hub_share *share);
void ph__server_add_tenant(struct ph_hub_server *server, struct ph__tenant *tenant);
void ph__server_forget(struct ph_hub_server *server, struct ph__tenant *tenant); /* frees it */
void ph__server_end_tenants(struct ph_hub_server *server);
/* Restores the services of the checkpoint folder. Files that cannot be used are reported and left alone. */
ph_status ph__server_open_checkpoints(struct ph_hub_server *server);

/* ---- server_status.c ---- */

ph_status ph__server_request_status(struct ph_session *session, const struct ph__control_frame *frame);
/* Answers the session that has waited longest for a status. One a turn, since each takes some work. */
void ph__server_tell_status(struct ph_hub_server *server);

/* ---- server_metrics.c ---- */

/* Serve metrics; do nothing without an address for them. */
ph_status ph__server_open_metrics(struct ph_hub_server *server);
ph_status ph__server_run_metrics(struct ph_hub_server *server);
int ph__server_metrics_timeout_ms(const struct ph_hub_server *server); /* -1: none */
void ph__server_close_metrics(struct ph_hub_server *server);

/* ---- server_checkpoints.c ---- */

/* Logs and counts a failure, with the reason in ph_error_text(). event: "checkpoint_not_used",
 * "checkpoint_not_written" ... tenant: NULL when unknown. */
void ph__server_log_checkpoint_failed(
    struct ph_hub_server *server, const struct ph__tenant *tenant, const char *event);

/* Does what is due for the tenant's checkpoint, unless a task is at work. Called after each change of the
 * tenant's state. Returns false if the tenant was freed. */
bool ph__server_keep(struct ph_hub_server *server, struct ph__tenant *tenant);

/* Answers the session when the tenant's checkpoint of this number, or a later one, is done. */
void ph__server_await_checkpoint(struct ph_session *session, struct ph__tenant *tenant, uint64_t number);

/* Answers all sessions that wait for a checkpoint of up to this number. Keeps ph_error_text(). */
void ph__server_answer_waiting(
    struct ph_hub_server *server, const struct ph__tenant *tenant, uint64_t number, ph_status status);

/* Looks for shards and tasks that are done, after the bell. */
void ph__server_look_at_checkpoints(struct ph_hub_server *server);

/* Waits for the tenant's task, and drops the outcome. */
void ph__server_end_task(struct ph_hub_server *server, struct ph__tenant *tenant);

/* Starts a task on the tenant's files; for server_parts.c too. On success the task owns the snapshot. */
ph_status ph__server_start_task(struct ph_hub_server *server, struct ph__tenant *tenant,
    const struct ph__checkpoint_order *order, struct ph__snapshot *snapshot);

/* save_all asks for checkpoints of all running jobs before the hub ends. is_saving returns true while any is
 * being made; checkpoints that still wait for workers count if waits_for_workers. */
void ph__server_save_all(struct ph_hub_server *server);
bool ph__server_is_saving(const struct ph_hub_server *server, bool waits_for_workers);

/* ---- server_parts.c; "any job": not only jobs that several hubs share ---- */

/* Handle frames of workers. */
ph_status ph__server_request_from(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_refusal(struct ph_session *session, const struct ph__control_frame *frame);
ph_status ph__server_request_keep(struct ph_session *session, const struct ph__control_frame *frame);

/* Asks rank 0 which of this hub's parts the job resumes from: PH_TENANT_CHOOSING. */
void ph__server_offer_parts(struct ph__tenant *tenant);

/* Returns true when one more checkpoint is allowed; any job. */
bool ph__server_has_room(const struct ph__tenant *tenant);
/* Returns ph__tenant_hold(), or on a hub without chunks the iteration that was asked for; any job. */
uint64_t ph__server_hold(struct ph__tenant *tenant);

/* Notes that a checkpoint of this iteration is on the disk, or could not be written; any job. */
void ph__server_settle_part(struct ph_hub_server *server, struct ph__tenant *tenant, uint64_t iteration);
/* Reports the parts to the lead if the job is running; any job. */
void ph__server_announce_parts(struct ph_hub_server *server, struct ph__tenant *tenant, bool is_late);
/* Reports to the new lead when the lead of this rank has gone; any job. */
void ph__server_lead_left(struct ph_hub_server *server, struct ph__tenant *tenant, uint32_t rank);

/* Starts to carry out the lead's order; returns false when there was nothing to do; any job. */
bool ph__server_keep_parts(struct ph_hub_server *server, struct ph__tenant *tenant);
/* Notes that the disk is as ph__job_parts_keep() leaves it. */
void ph__server_note_kept(struct ph__tenant *tenant, uint64_t iteration, uint64_t settled_end);

/* ---- server.c ---- */

/* Returns the status; prefixes an error with the option and its key: "address (hub.address)". */
ph_status ph__server_name_option(const char *option, ph_status status);

/* Waits for up to max_ms, and does what is due. */
ph_status ph__server_turn(struct ph_hub_server *server, int max_ms);

/* Updates how core threads wait after workers have come or gone. */
void ph__server_count_crowd(struct ph_hub_server *server);

#endif
