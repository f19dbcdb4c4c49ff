/* A speculation in a server: requests look up on the driving thread; a worker of the lowest priority learns
 * from them after they were answered, and computes; a keeper of the server's priority starts and ends the
 * worker, opens and closes its teacher, and hands it orders.
 *
 *     driving thread   prepare ──> (scoring) ──> offer ──┐ note              forget, switch ──┐ order
 *     worker                                             ├──> asked, feature log, work        │
 *     keeper                        teacher, orders ─────┘ <──────────────────────────────────┘
 *
 * The worker may hold a lock while it does not run, so the driving thread never waits for one of its: notes
 * go by atomic lists, and one that finds too many waiting is dropped and counted. The worker computes only
 * while it is switched on; rows that were computed stay until they are too old. */
#ifndef PH_SERVE_SPECULATOR_H
#define PH_SERVE_SPECULATOR_H

#include "base/log.h"
#include "serve/speculation/speculated.h"

struct ph__speculator;

struct ph__speculator_options {
    const struct ph_speculation_settings *settings;
    const char *model;   /* named in the log */
    struct ph__log *log; /* NULL: none */
    /* Tells whether no thread of the server is free: then nothing is computed. Any thread calls it. */
    bool (*is_busy)(const void *context);
    const void *context;
};

/* Starts the keeper. Errors of ph__speculation_create, and of a feature log that has other columns
 * (PH_ERROR_CONFIG) or cannot be written. The creator holds it. */
ph_status ph__speculator_create(
    const struct ph__speculator_options *options, struct ph__speculator **speculator_out);
/* Returns it, held once more; NULL where its settings differ, of which no text is NULL. */
struct ph__speculator *ph__speculator_share(
    struct ph__speculator *speculator, const struct ph_speculation_settings *settings);
/* Ends the worker after its batch when nobody holds it any more. NULL is fine. */
void ph__speculator_release(struct ph__speculator *speculator);

/* PH_ERROR_CONFIG: the model reads none of the columns. */
ph_status ph__speculator_check(
    const struct ph__speculator *speculator, const struct ph_session *student, const char *model);

/* Tells whether this is a column of pairs, which clients do not send. */
bool ph__speculator_fills(const struct ph__speculator *speculator, const char *column);
/* Returns the columns that a request has for the worker: those of user and item and of the foundation model
 * that was there at the start. */
const struct ph__name_index *ph__speculator_columns(const struct ph__speculator *speculator);

/* ---- the driving thread ---- */

/* Matches a request's tensors with the student's columns, of which those of pairs are looked up; columns of
 * the teacher alone are kept for it. PH_ERROR_DATA naming a tensor. */
ph_status ph__speculator_prepare(struct ph__speculator *speculator, const struct ph_session *student,
    const struct ph__tensor *tensors, size_t num_tensors, struct ph__arena *arena,
    struct ph__tensor_rows *rows_out, struct ph__speculated **speculated_out);

/* Copies what was answered for the worker: probabilities (count, stride), NULL: they are not known. */
void ph__speculator_offer(struct ph__speculator *speculator, const struct ph__speculated *speculated,
    struct ph__bytes request, const float *probabilities, size_t stride);

/* Orders the worker to remove what is known of a user or an item: done when no order waits any more. */
ph_status ph__speculator_forget(
    struct ph__speculator *speculator, struct ph__bytes user_or_item, bool is_item);
/* Tells the keeper to end the worker and to close its teacher, or to start it again. */
void ph__speculator_switch(struct ph__speculator *speculator, bool is_on);

/* X(member, kind, name in Prometheus, help): figures beside those of the rungs. */
#define PH_SPECULATOR_FIGURES(X)                                                                        \
    X(stale, COUNTER, "stale_rows", "Pairs that were known, but for too long.")                         \
    X(teacher_rows, COUNTER, "teacher_rows", "Rows that the foundation model computed.")                \
    X(teacher_ns, COUNTER, "teacher_nanoseconds", "Time in which it did.")                              \
    X(num_rows, GAUGE, "cache_rows", "Rows of the cache.")                                              \
    X(written, COUNTER, "cache_written", "Rows written into the cache.")                                \
    X(never_read, COUNTER, "cache_never_read", "Rows that gave way to others and had never been read.") \
    X(reloads, COUNTER, "teacher_reloads", "Times the foundation model was loaded anew.")               \
    X(waiting, GAUGE, "waiting", "Requests that wait for the worker.")                                  \
    X(dropped, COUNTER, "dropped", "Requests that the worker did not get.")                             \
    X(orders, GAUGE, "orders", "Removals of a user or an item that the worker has not done yet.")       \
    X(request_rows, COUNTER, "request_teacher_rows",                                                    \
        "Rows that threads of requests had computed: always 0.")                                        \
    X(is_on, GAUGE, "worker_on", "Whether the worker computes.")

struct ph__speculator_figures {
    uint64_t rungs[PH_NUM_RUNGS];
#define X(member, kind, name, help) uint64_t member;
    PH_SPECULATOR_FIGURES(X)
#undef X
};
void ph__speculator_figures(struct ph__speculator *speculator, struct ph__speculator_figures *figures_out);

#endif
