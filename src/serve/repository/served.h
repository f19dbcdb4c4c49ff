/* A served version of a model: its session, its queue, what it takes and gives, and its figures.
 *
 * The thread that drives the server owns it, but for the session and the queue, which workers use. A request
 * that scores with it holds a reference; when the last is gone after it was retired, it is freed. */
#ifndef PH_SERVE_SERVED_H
#define PH_SERVE_SERVED_H

#include "serve/queue/queue.h"
#include "serve/repository/served_settings.h"
#include "serve/speculation/speculator.h"
#include "serve/wire/oip_messages.h"

#define PH_NO_TASK SIZE_MAX

struct ph__load_job;

/* An output that clients may ask for. */
struct ph__served_output {
    const char *name;
    size_t output; /* of the session */
    size_t task;   /* the one column that is given; PH_NO_TASK: all */
    size_t width;  /* numbers a row that are given */
};

/* The one list of a version's counters: X(member, name in Prometheus, units a unit of it, help). Statistics,
 * metrics and the live page follow from it. */
#define PH_SERVED_COUNTERS(X)                                                                          \
    X(successes, "nv_inference_request_success", 1, "Requests that were answered.")                    \
    X(rows, "nv_inference_count", 1, "Rows scored.")                                                   \
    X(batches, "nv_inference_exec_count", 1, "Batches scored.")                                        \
    X(request_ns, "nv_inference_request_duration_us", 1000, "Time from requests to answers.")          \
    X(queue_ns, "nv_inference_queue_duration_us", 1000, "Time that requests waited in a queue.")       \
    X(encode_ns, "nv_inference_compute_input_duration_us", 1000,                                       \
        "Time in which rows of requests were encoded.")                                                \
    X(score_ns, "nv_inference_compute_infer_duration_us", 1000, "Time in which requests were scored.") \
    X(output_ns, "nv_inference_compute_output_duration_us", 1000, "Time in which answers were made.")

/* X(NAME): why requests failed, as Prometheus' label `reason`. */
#define PH_SERVED_FAILURES(X) X(REJECTED) X(CANCELED) X(BACKEND) X(OTHER)
enum ph__served_failure {
#define X(name) PH_FAILURE_##name,
    PH_SERVED_FAILURES(X)
#undef X
        PH_NUM_FAILURES
};

#define PH_LATENCY_BUCKETS 20 /* up to 20 us x 2^i; the last: beyond all others */
#define PH_FIRST_LATENCY_NS 20000

struct ph__served_figures {
#define X(member, name, scale, help) uint64_t member;
    PH_SERVED_COUNTERS(X)
#undef X
    uint64_t failures[PH_NUM_FAILURES], failures_ns;
    uint64_t last_request_ms; /* since 1970 */
    uint64_t latencies[PH_LATENCY_BUCKETS];
};

#define PH_HISTORY 121 /* samples that are kept, one a second */

/* A version's figures at moments, the newest last. */
struct ph__served_history {
    size_t count;
    struct ph__served_sample {
        uint64_t ns, successes, rows, failures, latencies[PH_LATENCY_BUCKETS];
    } samples[PH_HISTORY];
};

struct ph__served {
    const char *model;
    uint64_t version;
    char version_text[24];
    struct ph_served_settings settings;
    struct ph_session *session;
    struct ph__queue *queue;
    struct ph__speculator *speculator; /* perhaps shared with the version before; NULL: none */
    struct ph__served_output *outputs; /* (num_outputs) */
    size_t num_outputs;
    size_t num_standard; /* the first outputs, which a request gets that names none */
    struct ph__served_figures figures;
    struct ph__served_history history;
    uint64_t load_ns;               /* that loading took */
    size_t num_holders;             /* requests, and the repository until it is retired */
    struct ph__load_job *loaded_by; /* owns it */
    struct ph__arena arena;
};

struct ph__served_options {
    const char *folder, *model;
    uint64_t version;
    const struct ph_served_settings *settings;
    const struct ph__served *former; /* whose unchanged tables are shared; NULL: none */
    struct ph__scheduler *scheduler;
    size_t num_workers;
    struct ph__log *log; /* NULL: none */
};

/* Opens a run folder as a version of a model; called by the loader. Errors of ph_session_open, and
 * PH_ERROR_CONFIG for an output that the model does not have. */
ph_status ph__served_open(const struct ph__served_options *options, struct ph__served **served_out);
void ph__served_close(struct ph__served *served); /* NULL is fine; nobody holds it */

/* Returns the output of this name, or NULL. */
const struct ph__served_output *ph__served_find_output(
    const struct ph__served *served, struct ph__bytes name);

/* Books a request that is done. arrived_ns: when its first byte came. */
void ph__served_book(struct ph__served *served, const struct ph__work *work, uint64_t arrived_ns);

/* Returns the figures up to now. */
struct ph__served_figures ph__served_figures(struct ph__served *served);

/* Adds a sample of now to the history. */
void ph__served_sample(struct ph__served *served);
/* Returns the time in ms below which the share of the requests between two samples lies; NAN without any. */
double ph__served_quantile_ms(
    const struct ph__served_sample *from, const struct ph__served_sample *to, double share);

/* Describe it, in the arena. */
ph_status ph__served_metadata(
    const struct ph__served *served, struct ph__arena *arena, struct ph__oip_model *model_out);
ph_status ph__served_config(
    const struct ph__served *served, struct ph__arena *arena, struct ph__oip_config *config_out);
ph_status ph__served_statistics(
    struct ph__served *served, struct ph__arena *arena, struct ph__oip_model_statistics *statistics_out);

#endif
