/* Trace events: an array in which threads claim places with an atomic counter. */
#include "base/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

struct ph__trace {
    size_t max_events;
    size_t events_bytes;
    atomic_size_t num_added; /* dropped events included */
    struct ph__trace_event *events;
};

ph_status ph__trace_create(size_t max_events, struct ph__trace **trace_out)
{
    struct ph__trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return ph__out_of_memory("a trace");
    void *events = NULL;
    trace->max_events = max_events;
    bool fits = ph__size_mul(max_events, sizeof(struct ph__trace_event), &trace->events_bytes);
    ph_status status = fits ? ph__memory_alloc(trace->events_bytes, "trace events", &events)
                            : ph__out_of_memory("a trace of %zu events", max_events);
    if (status != PH_OK) {
        free(trace);
        return status;
    }
    trace->events = events;
    *trace_out = trace;
    return PH_OK;
}

void ph__trace_destroy(struct ph__trace *trace)
{
    if (trace == NULL)
        return;
    ph__memory_free(trace->events, trace->events_bytes);
    free(trace);
}

void ph__trace_add(struct ph__trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns)
{
    ph__trace_add_with(trace, name, category, thread, start_ns, duration_ns, NULL, 0);
}

void ph__trace_add_with(struct ph__trace *trace, const char *name, const char *category, uint32_t thread,
    uint64_t start_ns, uint64_t duration_ns, const struct ph__trace_argument *arguments, size_t num_arguments)
{
    assert(num_arguments <= PH_TRACE_MAX_ARGUMENTS);
    if (trace == NULL)
        return;
    size_t place = atomic_fetch_add_explicit(&trace->num_added, 1, memory_order_relaxed);
    if (place >= trace->max_events)
        return;
    struct ph__trace_event *event = &trace->events[place];
    *event = (struct ph__trace_event){
        name, category, start_ns, duration_ns, thread, (uint32_t)num_arguments, {{0}}};
    for (size_t i = 0; i < num_arguments; i++)
        event->arguments[i] = arguments[i];
}

bool ph__trace_is_full(const struct ph__trace *trace)
{
    return trace == NULL ||
           atomic_load_explicit(&trace->num_added, memory_order_relaxed) >= trace->max_events;
}

/* ---- writing ---- */

static ph_status write_text(struct ph__writer *writer, const char *text)
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

static ph_status write_arguments(struct ph__writer *writer, const struct ph__trace_event *event)
{
    for (uint32_t i = 0; i < event->num_arguments; i++) {
        PH_TRY(ph__writer_printf(writer, i == 0 ? ",\"args\":{" : ","));
        PH_TRY(write_text(writer, event->arguments[i].name));
        PH_TRY(ph__writer_printf(writer, ":%" PRIu64, event->arguments[i].value));
    }
    return ph__writer_printf(writer, "}");
}

static uint64_t common_time(const struct ph__trace_clock *clock, uint64_t time_ns)
{
    const double since = (double)time_ns - (double)clock->origin_ns;
    const double shift = clock->offset_ns + clock->drift * since;
    return shift == 0 ? time_ns : (uint64_t)((int64_t)time_ns - llround(shift));
}

/* Writes a time in microseconds, the format's unit; three decimals keep the nanoseconds. */
static ph_status write_time(struct ph__writer *writer, const char *key, uint64_t time_ns)
{
    return ph__writer_printf(
        writer, ",\"%s\":%" PRIu64 ".%03u", key, time_ns / 1000, (unsigned)(time_ns % 1000));
}

static ph_status write_event(const struct ph__trace_process *process, const struct ph__trace_event *event)
{
    struct ph__writer *writer = process->writer;
    PH_TRY(ph__writer_printf(writer,
        "{\"ph\":\"X\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":", process->id, event->thread));
    PH_TRY(write_text(writer, event->name));
    PH_TRY(ph__writer_printf(writer, ",\"cat\":"));
    PH_TRY(write_text(writer, event->category));
    PH_TRY(write_time(writer, "ts", common_time(&process->clock, event->start_ns)));
    PH_TRY(write_time(writer, "dur", event->duration_ns));
    if (event->num_arguments > 0)
        PH_TRY(write_arguments(writer, event));
    return ph__writer_printf(writer, "}");
}

static size_t count_kept(const struct ph__trace *trace)
{
    return ph__min(atomic_load(&trace->num_added), trace->max_events);
}

uint64_t ph__trace_num_dropped(const struct ph__trace *trace)
{
    return trace != NULL ? atomic_load(&trace->num_added) - count_kept(trace) : 0;
}

static ph_status write_events(struct ph__writer *writer, const struct ph__trace *trace)
{
    const struct ph__trace_process process = {.writer = writer};
    const size_t count = count_kept(trace);
    PH_TRY(ph__writer_printf(writer,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped_events\":%" PRIu64 "},",
        ph__trace_num_dropped(trace)));
    PH_TRY(ph__writer_printf(writer, "\"traceEvents\":[\n"));
    for (size_t i = 0; i < count; i++) {
        PH_TRY(write_event(&process, &trace->events[i]));
        PH_TRY(ph__writer_printf(writer, i + 1 < count ? ",\n" : "\n"));
    }
    return ph__writer_printf(writer, "]}\n");
}

ph_status ph__trace_write(const struct ph__trace *trace, const char *path)
{
    struct ph__writer *writer = NULL;
    PH_TRY(ph__writer_open(path, &writer));
    return ph__writer_end(writer, write_events(writer, trace));
}

/* ---- several processes ---- */

/* Writes a property `what` of a process or of one of its threads: a text or, when name is NULL, a number. */
static ph_status write_property(
    const struct ph__trace_process *process, uint32_t thread, const char *what, const char *name, uint32_t at)
{
    struct ph__writer *writer = process->writer;
    PH_TRY(ph__writer_printf(writer,
        "{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":\"%s\",\"args\":{", process->id,
        thread, what));
    if (name == NULL)
        return ph__writer_printf(writer, "\"sort_index\":%" PRIu32 "}},\n", at);
    PH_TRY(ph__writer_printf(writer, "\"name\":"));
    PH_TRY(write_text(writer, name));
    return ph__writer_printf(writer, "}},\n");
}

ph_status ph__trace_process_name(const struct ph__trace_process *process, const char *name)
{
    PH_TRY(write_property(process, 0, "process_name", name, 0));
    return write_property(process, 0, "process_sort_index", NULL, process->id);
}

ph_status ph__trace_thread_name(const struct ph__trace_process *process, uint32_t thread, const char *name)
{
    PH_TRY(write_property(process, thread, "thread_name", name, 0));
    return write_property(process, thread, "thread_sort_index", NULL, thread);
}

ph_status ph__trace_process_event(
    const struct ph__trace_process *process, const struct ph__trace_event *event)
{
    PH_TRY(write_event(process, event));
    return ph__writer_printf(process->writer, ",\n");
}

ph_status ph__trace_process_events(const struct ph__trace_process *process, const struct ph__trace *trace)
{
    const size_t count = trace != NULL ? count_kept(trace) : 0;
    for (size_t i = 0; i < count; i++)
        PH_TRY(ph__trace_process_event(process, &trace->events[i]));
    return PH_OK;
}

/* Writes an end of a flow, which belongs to the event at its time. */
static ph_status write_flow_end(const struct ph__trace_process *process, const char *phase, uint64_t flow,
    const struct ph__trace_event *event)
{
    struct ph__writer *writer = process->writer;
    PH_TRY(ph__writer_printf(writer,
        "{\"ph\":\"%s\",\"id\":%" PRIu64 ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
        ",\"name\":\"flow\",\"cat\":\"flow\"",
        phase, flow, process->id, event->thread));
    if (*phase == 'f')
        PH_TRY(ph__writer_printf(writer, ",\"bp\":\"e\""));
    PH_TRY(write_time(writer, "ts", common_time(&process->clock, event->start_ns)));
    return ph__writer_printf(writer, "},\n");
}

ph_status ph__trace_process_flow(const struct ph__trace_process *process, uint64_t flow,
    const struct ph__trace_event *from, const struct ph__trace_event *to)
{
    PH_TRY(write_flow_end(process, "s", flow, from));
    return write_flow_end(process, "f", flow, to);
}

ph_status ph__trace_merge_begin(struct ph__writer *writer)
{
    return ph__writer_printf(writer, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
}

/* Ends the file with an empty event, the only one without a comma. */
ph_status ph__trace_merge_end(struct ph__writer *writer, uint64_t num_dropped)
{
    return ph__writer_printf(writer,
        "{\"ph\":\"M\",\"pid\":0,\"name\":\"trace_end\",\"args\":{}}\n],"
        "\"otherData\":{\"dropped_events\":%" PRIu64 "}}\n",
        num_dropped);
}
