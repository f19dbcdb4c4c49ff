/* Traces of requests: 1 in trace_rate leaves its times, in Triton's JSON (docs/user_guide/trace.md of its
 * server) and as a Chrome trace. The driving thread's alone. */
#ifndef PH_SERVE_TRACING_H
#define PH_SERVE_TRACING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/trace.h"
#include "serve/queue/queue.h"
#include "serve/wire/oip_calls.h"

/* X(NAME, name on the wire, least value, default) */
#define PH_TRACE_SETTINGS(X)                                                               \
    X(LEVEL, "trace_level", 0, 0)       /* 1: TIMESTAMPS; 0: OFF, nothing is traced */     \
    X(RATE, "trace_rate", 1, 1000)      /* one of so many requests */                      \
    X(COUNT, "trace_count", -1, -1)     /* traces that are still to be made; -1: no end */ \
    X(FREQUENCY, "log_frequency", 0, 0) /* traces between two flushes; 0: at the end alone */

enum ph__trace_setting {
#define X(name, text, least, otherwise) PH_TRACE_##name,
    PH_TRACE_SETTINGS(X)
#undef X
        PH_NUM_TRACE_SETTINGS
};

struct ph__trace_settings {
    int64_t values[PH_NUM_TRACE_SETTINGS];
    bool is_own[PH_NUM_TRACE_SETTINGS]; /* of a model: others follow those of all models */
    uint64_t num_requests;
    char *model; /* NULL: all models but those that have settings */
    struct ph__trace_settings *next;
};

struct ph__tracing {
    const char *file; /* "": the Chrome trace alone */
    struct ph__trace_settings all, *models;
    uint64_t num_traces;
    FILE *output;             /* NULL: not open */
    struct ph__trace *chrome; /* NULL: none */
    const char *chrome_path;
};

/* The times of one request, on ph__clock_ns. */
struct ph__request_trace {
    const char *model;
    uint64_t version;
    uint64_t arrived_ns, received_ns; /* its head; its last byte */
    struct ph__work_times work;
    uint64_t answered_ns, sent_ns;
};

/* file: of Triton's JSON; chrome_path: of a Chrome trace, written by fini; NULL or "": none. Where there is
 * one of them, one in `rate` requests is traced from the start. Paths are borrowed until fini. */
ph_status ph__tracing_init(
    struct ph__tracing *tracing, const char *file, const char *chrome_path, uint64_t rate);
ph_status ph__tracing_fini(struct ph__tracing *tracing);

/* Tells whether the request to a model that begins is traced. */
bool ph__tracing_samples(struct ph__tracing *tracing, const char *model);
void ph__tracing_add(struct ph__tracing *tracing, const struct ph__request_trace *request);

/* Changes settings of a model, which exists, or of all (""), all or none: struct ph__oip_setting. A setting
 * without a value gets its default, or a model's that of all. INVALID names what is wrong. A client may not
 * name the file, which the server would write. */
enum ph__oip_code ph__tracing_update(
    struct ph__tracing *tracing, struct ph__bytes model, const struct ph__list *settings);
/* Lists the settings of a model, or of all, in the arena. */
ph_status ph__tracing_list(struct ph__tracing *tracing, struct ph__bytes model, struct ph__arena *arena,
    struct ph__list *settings_out);

#endif
