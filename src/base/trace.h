/* Trace events in Chrome's JSON format (chrome://tracing, Perfetto). Events are kept in memory allocated at
 * the start; when it is full, later events are dropped and counted. Any thread may add. */
#ifndef PH_BASE_TRACE_H
#define PH_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/stream.h"
#include "phloem/status.h"

struct ph__trace;

ph_status ph__trace_create(size_t max_events, struct ph__trace **trace_out);
void ph__trace_destroy(struct ph__trace *trace);

/* Adds a complete event; `name` and `category` are borrowed until the trace is written. NULL trace: does
 * nothing. */
void ph__trace_add(struct ph__trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns);

/* Adds an event with numbers, at most PH_TRACE_MAX_ARGUMENTS; their names are borrowed as long. */
#define PH_TRACE_MAX_ARGUMENTS 3
struct ph__trace_argument {
    const char *name;
    uint64_t value;
};
void ph__trace_add_with(struct ph__trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns, const struct ph__trace_argument *arguments,
    size_t num_arguments);

/* Tells whether further events are dropped; true for NULL. */
bool ph__trace_is_full(const struct ph__trace *trace);
uint64_t ph__trace_num_dropped(const struct ph__trace *trace); /* 0 for NULL */

/* Writes the trace, once no thread adds any more. otherData has the number of dropped events. */
ph_status ph__trace_write(const struct ph__trace *trace, const char *path);

/* ---- traces of several processes in one file ---- */

/* A clock against the file's: while it shows t, the file's shows t - offset_ns - drift (t - origin_ns). */
struct ph__trace_clock {
    uint64_t origin_ns;
    double offset_ns, drift;
};

/* A process of the file, its clock against the file's, and the writer of its events. Each event is a line
 * that ends with a comma, since ph__trace_merge_end writes the last one of the file. */
struct ph__trace_process {
    uint32_t id;
    struct ph__trace_clock clock;
    struct ph__writer *writer;
};

struct ph__trace_event {
    const char *name, *category;
    uint64_t start_ns, duration_ns;
    uint32_t thread;
    uint32_t num_arguments;
    struct ph__trace_argument arguments[PH_TRACE_MAX_ARGUMENTS];
};

ph_status ph__trace_process_name(const struct ph__trace_process *process, const char *name);
/* Names a thread, which has a track of its own; tracks are shown in the order of their numbers. */
ph_status ph__trace_thread_name(const struct ph__trace_process *process, uint32_t thread, const char *name);
ph_status ph__trace_process_event(
    const struct ph__trace_process *process, const struct ph__trace_event *event);
/* Writes all events of a trace; NULL: none. */
ph_status ph__trace_process_events(const struct ph__trace_process *process, const struct ph__trace *trace);
/* Writes an arrow from the start of one event to the start of another; `flow` is unique in the file. */
ph_status ph__trace_process_flow(const struct ph__trace_process *process, uint64_t flow,
    const struct ph__trace_event *from, const struct ph__trace_event *to);

/* Writes the start of the file, before the events of all processes, or its end, behind them. */
ph_status ph__trace_merge_begin(struct ph__writer *writer);
ph_status ph__trace_merge_end(struct ph__writer *writer, uint64_t num_dropped);

#endif
