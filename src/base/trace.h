/* Trace events in Chrome's JSON format (chrome://tracing, Perfetto). Events are kept in memory allocated at the
 * start; when full, later events are dropped and counted. Any thread may add. */
#ifndef PH_BASE_TRACE_H
#define PH_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph_trace;

ph_status ph__trace_create(size_t max_events, struct ph_trace **trace_out);
void ph__trace_destroy(struct ph_trace *trace);

/* A complete event; `name` and `category` are borrowed until the trace is written. NULL trace: nothing. */
void ph__trace_add(struct ph_trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns);

/* The same with numbers that belong to it: at most PH_TRACE_MAX_ARGUMENTS, whose names are borrowed as long. */
#define PH_TRACE_MAX_ARGUMENTS 3
struct ph_trace_argument {
    const char *name;
    uint64_t value;
};
void ph__trace_add_with(struct ph_trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns, const struct ph_trace_argument *arguments, size_t num_arguments);

/* Whether further events are dropped; also of NULL. */
bool ph__trace_is_full(const struct ph_trace *trace);

/* When no thread adds any more. The number of dropped events stands under otherData. */
ph_status ph__trace_write(const struct ph_trace *trace, const char *path);

#endif
