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

struct ph__tracing {
    const char *file;       /* "": the Chrome trace alone */
    bool has_timestamps;    /* trace_level has TIMESTAMPS; otherwise nothing is traced */
    uint64_t rate;          /* one of so many requests */
    int64_t count;          /* traces that are still to be made; -1: no end */
    uint64_t log_frequency; /* traces between two flushes; 0: at the end alone */
    uint64_t num_requests, num_traces;
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

/* Tells whether the request that begins is traced. */
bool ph__tracing_samples(struct ph__tracing *tracing);
void ph__tracing_add(struct ph__tracing *tracing, const struct ph__request_trace *request);

/* Changes settings, all or none: struct ph__oip_setting. A setting without a value gets its default. INVALID
 * names what is wrong. A client may not name the file, which the server would write. */
enum ph__oip_code ph__tracing_update(struct ph__tracing *tracing, const struct ph__list *settings);
/* Lists the settings, in the arena. */
ph_status ph__tracing_list(
    const struct ph__tracing *tracing, struct ph__arena *arena, struct ph__list *settings_out);

#endif
