#include "train/ranks/rank_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"

#define MOST_TEXT_BYTES ((size_t)4 << 30) /* of one rank: far more than its events take */

/* ---- clocks ---- */

enum { NUM_QUESTIONS = 8 };

static const char clock_name[] = "time of the ranks";

double ph__rank_clock_offset(uint64_t asked_ns, uint64_t answered_ns, uint64_t shown_ns)
{
    const double half = 0.5 * (double)(answered_ns - asked_ns);
    const double offset = (double)(int64_t)(shown_ns - asked_ns) - half;
    return fabs(offset) <= half ? 0 : offset;
}

/* Asks another rank for the time, as the first rank, and sends it its offset. */
static ph_status ask(struct ph_comm *comm, size_t rank)
{
    uint64_t soonest = UINT64_MAX;
    double offset = 0;
    for (int i = 0; i < NUM_QUESTIONS; i++) {
        uint64_t shown, asked = ph__clock_ns();
        PH_TRY(ph__comm_pass_once(comm, clock_name, 0, rank, NULL, 0));
        PH_TRY(ph__comm_pass_once(comm, clock_name, rank, 0, &shown, sizeof shown));
        const uint64_t answered = ph__clock_ns();
        if (answered - asked < soonest) {
            soonest = answered - asked;
            offset = ph__rank_clock_offset(asked, answered, shown);
        }
    }
    return ph__comm_pass_once(comm, clock_name, 0, rank, &offset, sizeof offset);
}

static ph_status answer(struct ph_comm *comm, double *offset_out)
{
    const size_t own = ph_comm_rank(comm);
    for (int i = 0; i < NUM_QUESTIONS; i++) {
        PH_TRY(ph__comm_pass_once(comm, clock_name, 0, own, NULL, 0));
        uint64_t shown = ph__clock_ns();
        PH_TRY(ph__comm_pass_once(comm, clock_name, own, 0, &shown, sizeof shown));
    }
    return ph__comm_pass_once(comm, clock_name, 0, own, offset_out, sizeof *offset_out);
}

ph_status ph__rank_clock_read(struct ph_comm *comm, struct ph__rank_clock *clock_out)
{
    const size_t num_clocks = ph__comm_is_simulated(comm) ? 1 : ph_comm_world_size(comm);
    double offset = 0;
    if (ph_comm_rank(comm) > 0 && num_clocks > 1)
        PH_TRY(answer(comm, &offset));
    for (size_t rank = 1; ph_comm_rank(comm) == 0 && rank < num_clocks; rank++)
        PH_TRY(ask(comm, rank));
    *clock_out = (struct ph__rank_clock){ph__clock_ns(), offset};
    return PH_OK;
}

struct ph__trace_clock ph__rank_clock_between(
    const struct ph__rank_clock *first, const struct ph__rank_clock *last)
{
    const double passed = (double)(last->at_ns - first->at_ns);
    const double drift = last->at_ns > first->at_ns ? (last->offset_ns - first->offset_ns) / passed : 0;
    return (struct ph__trace_clock){first->at_ns, first->offset_ns, drift};
}

/* ---- steps ---- */

void ph__rank_trace_step(struct ph__trace *trace, const struct ph__rank_figures *figures, uint64_t step)
{
    const struct ph__trace_argument argument = {"step", step};
    if (figures->profile != NULL)
        ph__trace_add_with(
            trace, "step", "step", PH_RANK_TRACK_STEPS, figures->begun_ns, figures->latest_ns, &argument, 1);
}

/* ---- tracks of operations in flight ---- */

static int by_start(const void *left, const void *right)
{
    const struct ph__comm_flight *a = left, *b = right;
    if (a->started_ns != b->started_ns)
        return a->started_ns < b->started_ns ? -1 : 1;
    return a->done_ns < b->done_ns ? -1 : a->done_ns > b->done_ns;
}

/* Tracks, each with the end of its latest operation. */
struct lanes {
    uint64_t *ends;
    size_t count;
};

/* Returns the first track that is free again, or a new one. */
static uint32_t take_lane(struct lanes *lanes, const struct ph__comm_flight *flight)
{
    size_t lane = 0;
    while (lane < lanes->count && lanes->ends[lane] > flight->started_ns)
        lane++;
    if (lane == lanes->count)
        lanes->count++;
    lanes->ends[lane] = flight->done_ns;
    return (uint32_t)(PH_RANK_TRACK_FLIGHTS + lane);
}

/* ---- events ---- */

static ph_status write_flight(const struct ph__trace_process *process, const struct ph__comm_profile *profile,
    const struct ph__comm_flight *flight, uint32_t track, uint64_t flow)
{
    const char *what = profile->topics[flight->topic].what;
    const struct ph__trace_event event = {what, "in flight", flight->started_ns,
        flight->done_ns - flight->started_ns, track, 3,
        {{"sent_bytes", flight->sent_bytes}, {"received_bytes", flight->received_bytes},
            {"messages", flight->num_messages}}};
    const struct ph__trace_event wait = {
        what, "wait", flight->wait_ns, flight->waited_ns, PH_RANK_TRACK_WAITS, 0, {{0}}};
    PH_TRY(ph__trace_process_event(process, &event));
    if (flight->waited_ns == 0)
        return PH_OK;
    PH_TRY(ph__trace_process_event(process, &wait));
    return ph__trace_process_flow(process, flow, &event, &wait);
}

static ph_status write_flights(const struct ph__trace_process *process,
    const struct ph__comm_profile *profile, struct ph__comm_flight *flights, struct lanes *lanes)
{
    memcpy(flights, profile->flights, profile->num_flights * sizeof *flights);
    qsort(flights, profile->num_flights, sizeof *flights, by_start);
    for (size_t i = 0; i < profile->num_flights; i++) {
        const uint64_t flow = (uint64_t)process->id << 32 | i;
        PH_TRY(write_flight(process, profile, &flights[i], take_lane(lanes, &flights[i]), flow));
    }
    return PH_OK;
}

static ph_status write_polls(const struct ph__trace_process *process, const struct ph__comm_profile *profile)
{
    for (size_t i = 0; i < profile->num_polls; i++) {
        const struct ph__comm_poll *poll = &profile->polls[i];
        const struct ph__trace_event event = {
            "poll", "poll", poll->began_ns, poll->duration_ns, PH_RANK_TRACK_WAITS, 0, {{0}}};
        PH_TRY(ph__trace_process_event(process, &event));
    }
    return PH_OK;
}

static ph_status write_profile(
    const struct ph__trace_process *process, const struct ph__comm_profile *profile, size_t *num_lanes_out)
{
    struct ph__comm_flight *flights = calloc(profile->num_flights + 1, sizeof *flights);
    struct lanes lanes = {.ends = calloc(profile->num_flights + 1, sizeof *lanes.ends)};
    const ph_status status = flights != NULL && lanes.ends != NULL
                                 ? write_flights(process, profile, flights, &lanes)
                                 : ph__out_of_memory("a trace of what ranks exchange");
    *num_lanes_out = lanes.count;
    free(flights);
    free(lanes.ends);
    return status;
}

static ph_status name_tracks(
    const struct ph__trace_process *process, const char *rank, size_t num_threads, size_t num_lanes)
{
    char name[48];
    PH_TRY(ph__trace_process_name(process, rank));
    for (uint32_t thread = 0; thread < num_threads; thread++) {
        snprintf(name, sizeof name, "operators, thread %" PRIu32, thread);
        PH_TRY(ph__trace_thread_name(process, thread, name));
    }
    PH_TRY(ph__trace_thread_name(process, PH_RANK_TRACK_STEPS, "steps"));
    PH_TRY(ph__trace_thread_name(process, PH_RANK_TRACK_WAITS, "waits and polls"));
    for (uint32_t lane = 0; lane < num_lanes; lane++) {
        snprintf(name, sizeof name, "in flight %" PRIu32, lane + 1);
        PH_TRY(ph__trace_thread_name(process, PH_RANK_TRACK_FLIGHTS + lane, name));
    }
    return PH_OK;
}

/* ---- one rank's text ---- */

/* Writes this rank's part. Its first line is the number of events that there was no room for. */
static ph_status write_own(
    const struct ph__rank_trace_sources *sources, const struct ph_comm *comm, struct ph__writer *writer)
{
    const struct ph__trace_process process = {
        (uint32_t)ph_comm_rank(comm), ph__rank_clock_between(&sources->first, &sources->last), writer};
    uint64_t num_dropped = ph__trace_num_dropped(sources->trace) + sources->profile->num_dropped;
    char rank[64];
    size_t num_lanes;
    snprintf(rank, sizeof rank, "rank %zu of %zu, host %zu", ph_comm_rank(comm), ph_comm_world_size(comm),
        ph__comm_own_host(comm));
    PH_TRY(ph__writer_printf(writer, "%" PRIu64 "\n", num_dropped));
    PH_TRY(ph__trace_process_events(&process, sources->trace));
    PH_TRY(write_polls(&process, sources->profile));
    PH_TRY(write_profile(&process, sources->profile, &num_lanes));
    PH_TRY(name_tracks(&process, rank, sources->num_threads, num_lanes));
    return ph__writer_finish(writer);
}

static ph_status own_text(const struct ph__rank_trace_sources *sources, const struct ph_comm *comm,
    char **text_out, size_t *size_out)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_memory("trace of a rank", MOST_TEXT_BYTES, &writer));
    const ph_status status = write_own(sources, comm, writer);
    if (status == PH_OK)
        *text_out = ph__writer_take(writer, size_out);
    ph__writer_close(writer);
    return status;
}

/* ---- the file ---- */

struct merging {
    struct ph__writer *writer; /* NULL: this rank writes no file */
    uint64_t num_dropped;
};

static ph_status append(void *context, size_t rank, const char *text, size_t size)
{
    struct merging *merging = context;
    char *end;
    merging->num_dropped += strtoull(text, &end, 10);
    if (end == text || *end != '\n')
        return ph_fail(PH_ERROR_PEER, "rank %zu sent no trace", rank);
    end++;
    return ph__writer_write(merging->writer, end, size - (size_t)(end - text));
}

static ph_status merge(struct ph_comm *comm, struct ph__writer *writer, const char *text, size_t size)
{
    struct merging merging = {.writer = writer};
    if (writer != NULL)
        PH_TRY(ph__trace_merge_begin(writer));
    PH_TRY(ph__comm_read_texts(comm, "timelines of the ranks", text, size, append, &merging));
    if (writer == NULL)
        return PH_OK;
    PH_TRY(ph__trace_merge_end(writer, merging.num_dropped));
    return ph__writer_finish(writer);
}

ph_status ph__rank_trace_write(
    const struct ph__rank_trace_sources *sources, struct ph_comm *comm, const char *path)
{
    struct ph__writer *writer = NULL;
    char *text;
    size_t size;
    PH_TRY(own_text(sources, comm, &text, &size));
    ph_status status = ph_comm_rank(comm) == 0 ? ph__writer_open(path, &writer) : PH_OK;
    if (status == PH_OK)
        status = merge(comm, writer, text, size);
    ph__writer_close(writer);
    free(text);
    return status;
}
