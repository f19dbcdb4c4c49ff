/* Trace events: an array that threads claim places in with an atomic counter. */
#include "base/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stream.h"

struct event {
    const char *name, *category;
    uint64_t start_ns, duration_ns;
    uint32_t thread;
    uint32_t num_arguments;
    struct ph_trace_argument arguments[PH_TRACE_MAX_ARGUMENTS];
};

struct ph_trace {
    size_t max_events;
    size_t events_bytes;
    atomic_size_t num_added; /* also those that were dropped */
    struct event *events;
};

ph_status ph__trace_create(size_t max_events, struct ph_trace **trace_out)
{
    struct ph_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: a trace");
    void *events = NULL;
    trace->max_events = max_events;
    bool fits = ph__size_mul(max_events, sizeof(struct event), &trace->events_bytes);
    ph_status status = fits ? ph__memory_alloc(trace->events_bytes, "trace events", &events)
                            : ph_fail(PH_ERROR_MEMORY, "out of memory: a trace of %zu events", max_events);
    if (status != PH_OK) {
        free(trace);
        return status;
    }
    trace->events = events;
    *trace_out = trace;
    return PH_OK;
}

void ph__trace_destroy(struct ph_trace *trace)
{
    if (trace == NULL)
        return;
    ph__memory_free(trace->events, trace->events_bytes);
    free(trace);
}

void ph__trace_add(struct ph_trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns)
{
    ph__trace_add_with(trace, name, category, thread, start_ns, duration_ns, NULL, 0);
}

void ph__trace_add_with(struct ph_trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns, const struct ph_trace_argument *arguments, size_t num_arguments)
{
    assert(num_arguments <= PH_TRACE_MAX_ARGUMENTS);
    if (trace == NULL)
        return;
    size_t place = atomic_fetch_add_explicit(&trace->num_added, 1, memory_order_relaxed);
    if (place >= trace->max_events)
        return;
    struct event *event = &trace->events[place];
    *event = (struct event){name, category, start_ns, duration_ns, thread, (uint32_t)num_arguments, {{0}}};
    for (size_t i = 0; i < num_arguments; i++)
        event->arguments[i] = arguments[i];
}

bool ph__trace_is_full(const struct ph_trace *trace)
{
    return trace == NULL ||
           atomic_load_explicit(&trace->num_added, memory_order_relaxed) >= trace->max_events;
}

static ph_status write_text(struct ph_writer *writer, const char *text)
{
    PH_TRY(ph__writer_write(writer, "\"", 1));
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            PH_TRY(ph__writer_printf(writer, "\\%c", *at));
        else if (*at < 0x20)
            PH_TRY(ph__writer_printf(writer, "\\u%04x", *at));
        else
            PH_TRY(ph__writer_write(writer, at, 1));
    }
    return ph__writer_write(writer, "\"", 1);
}

static ph_status write_arguments(struct ph_writer *writer, const struct event *event)
{
    for (uint32_t i = 0; i < event->num_arguments; i++) {
        PH_TRY(ph__writer_printf(writer, i == 0 ? ",\"args\":{" : ","));
        PH_TRY(write_text(writer, event->arguments[i].name));
        PH_TRY(ph__writer_printf(writer, ":%" PRIu64, event->arguments[i].value));
    }
    return ph__writer_printf(writer, "}");
}

/* The format counts in microseconds; three decimals keep the nanoseconds. */
static ph_status write_event(struct ph_writer *writer, const struct event *event)
{
    PH_TRY(ph__writer_printf(writer, "{\"ph\":\"X\",\"pid\":0,\"tid\":%" PRIu32 ",\"name\":", event->thread));
    PH_TRY(write_text(writer, event->name));
    PH_TRY(ph__writer_printf(writer, ",\"cat\":"));
    PH_TRY(write_text(writer, event->category));
    PH_TRY(ph__writer_printf(writer, ",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u",
        event->start_ns / 1000, (unsigned)(event->start_ns % 1000), event->duration_ns / 1000,
        (unsigned)(event->duration_ns % 1000)));
    if (event->num_arguments > 0)
        PH_TRY(write_arguments(writer, event));
    return ph__writer_printf(writer, "}");
}

static ph_status write_events(struct ph_writer *writer, const struct ph_trace *trace)
{
    size_t num_added = atomic_load(&trace->num_added);
    size_t count = num_added < trace->max_events ? num_added : trace->max_events;
    PH_TRY(ph__writer_printf(
        writer, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped_events\":%zu},", num_added - count));
    PH_TRY(ph__writer_printf(writer, "\"traceEvents\":[\n"));
    for (size_t i = 0; i < count; i++) {
        PH_TRY(write_event(writer, &trace->events[i]));
        PH_TRY(ph__writer_printf(writer, i + 1 < count ? ",\n" : "\n"));
    }
    return ph__writer_printf(writer, "]}\n");
}

ph_status ph__trace_write(const struct ph_trace *trace, const char *path)
{
    struct ph_writer *writer = NULL;
    PH_TRY(ph__writer_open(path, &writer));
    ph_status status = write_events(writer, trace);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}
