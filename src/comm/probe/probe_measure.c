#include "comm/probe/probe_measure.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/statistics.h"
#include "base/thread/clock.h"

#define LEAST_ECHOES 3 /* that a latency is taken from */
#define PERCENTILE .1
#define STEADY_RATIO 1.5 /* between the third quarter and the last */
#define GROWTH 8.        /* most of one transfer over the one before */
#define CHUNK_BYTES (1 << 16)

/* Marks at half of a transfer, at three quarters, and at its end. */
enum {
    HALF = PH_NETPROBE_NUM_MARKS / 2 - 1,
    LATE = PH_NETPROBE_NUM_MARKS * 3 / 4 - 1,
    END = PH_NETPROBE_NUM_MARKS - 1
};

/* ---- marks ---- */

static double slope(const struct ph__netprobe_mark *from, const struct ph__netprobe_mark *to)
{
    return to->ns > from->ns ? (double)(to->bytes - from->bytes) / (double)(to->ns - from->ns) : (double)NAN;
}

double ph__netprobe_bandwidth(const struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS])
{
    const double late = slope(&marks[HALF], &marks[END]);
    return late > 0            ? late
           : marks[END].ns > 0 ? (double)marks[END].bytes / (double)marks[END].ns
                               : (double)NAN;
}

bool ph__netprobe_is_steady(const struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS])
{
    const double ratio = slope(&marks[HALF], &marks[LATE]) / slope(&marks[LATE], &marks[END]);
    return ratio < STEADY_RATIO && ratio > 1 / STEADY_RATIO;
}

/* Returns how many bytes of an answer's transfer had arrived `at_ns` after the request. */
static double arrived(const struct ph__netprobe_answer *answer, double at_ns)
{
    struct ph__netprobe_mark before = {0, 0};
    const double since_ns = at_ns - (double)answer->begin_ns;
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS; i++) {
        const struct ph__netprobe_mark *mark = &answer->marks[i];
        if ((double)mark->ns > since_ns) {
            const double share =
                fmax(0, (since_ns - (double)before.ns) / ((double)mark->ns - (double)before.ns));
            return (double)before.bytes + share * ((double)mark->bytes - (double)before.bytes);
        }
        before = *mark;
    }
    return (double)before.bytes;
}

double ph__netprobe_joint_bandwidth(const struct ph__netprobe_answer *answers, size_t num_answers)
{
    double first_ns = HUGE_VAL, best = 0;
    for (size_t i = 0; i < num_answers; i++)
        first_ns = fmin(first_ns, (double)answers[i].begin_ns);
    for (size_t end = 0; end < num_answers; end++) {
        const double end_ns = (double)(answers[end].begin_ns + answers[end].marks[END].ns);
        double sum = 0;
        for (size_t i = 0; i < num_answers; i++)
            sum += arrived(&answers[i], end_ns);
        best = fmax(best, sum / (end_ns - first_ns));
    }
    return best;
}

/* ---- echoes ---- */

static ph_status echo_once(const struct ph__netprobe_link *link, double *round_trip_ns_out)
{
    static const unsigned char body[PH_NETPROBE_ECHO_BYTES - 6];
    struct ph__netprobe_message message;
    const uint64_t began_ns = ph__clock_ns();
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_ECHO, body, sizeof body));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_ECHO, &message));
    *round_trip_ns_out = (double)(ph__clock_ns() - began_ns);
    return PH_OK;
}

static ph_status measure_latency(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    double *round_trips, struct ph__netprobe_answer *answer)
{
    const uint64_t until_ns = ph__clock_deadline(ask->limit_ms / 2);
    size_t count = 0;
    while (count < ask->num_echoes && (count < LEAST_ECHOES || ph__clock_ns() < until_ns))
        PH_TRY(echo_once(link, &round_trips[count++]));
    ph__sort_numbers(round_trips, count);
    answer->latency_ns = (uint64_t)fmax(1, round_trips[(size_t)(PERCENTILE * (double)(count - 1))] / 2);
    return PH_OK;
}

ph_status ph__netprobe_echo(const struct ph__netprobe_link *link, const struct ph__netprobe_message *message)
{
    return ph__netprobe_say(link, PH_NETPROBE_ECHO, message->body, message->size);
}

/* ---- transfers ---- */

static ph_status transfer(
    const struct ph__netprobe_link *link, uint64_t bytes, struct ph__netprobe_mark *marks)
{
    static const unsigned char zeros[CHUNK_BYTES];
    unsigned char body[8];
    struct ph__wire_writer writer;
    struct ph__netprobe_message message;
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__wire_put_u64(&writer, bytes);
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_SEND, body, sizeof body));
    for (uint64_t left = bytes; left > 0; left -= ph__min(left, sizeof zeros))
        PH_TRY(ph__netprobe_write(link, zeros, ph__min(left, sizeof zeros)));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_ARRIVED, &message));
    return ph__netprobe_get_marks(message.body, message.size, marks);
}

/* Returns the length of the next transfer; 0: this one is good, or there may be no other. */
static uint64_t next_length(const struct ph__netprobe_ask *ask, const struct ph__netprobe_answer *answer,
    uint64_t bytes, uint32_t *num_retries)
{
    const double least_ns = 1e3 * ask->least_us, took_ns = (double)answer->marks[END].ns;
    const bool is_long = took_ns >= least_ns;
    if (is_long && (ph__netprobe_is_steady(answer->marks) || (*num_retries)-- == 0))
        return 0;
    const double growth = fmin(GROWTH, fmax(2, 1.2 * least_ns / fmax(1, took_ns)));
    const uint64_t left = ask->max_bytes - answer->sent_bytes;
    const uint64_t next = (uint64_t)ceil(growth * (double)bytes);
    return next <= left ? next : left > bytes ? left : 0;
}

static ph_status measure_bandwidth(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    uint64_t asked_ns, struct ph__netprobe_answer *answer)
{
    uint32_t num_retries = ask->num_retries;
    for (uint64_t bytes = ask->bytes; bytes > 0; bytes = next_length(ask, answer, bytes, &num_retries)) {
        answer->begin_ns = ph__clock_ns() - asked_ns;
        PH_TRY(transfer(link, bytes, answer->marks));
        answer->sent_bytes += bytes;
    }
    return PH_OK;
}

ph_status ph__netprobe_take(const struct ph__netprobe_link *link, const struct ph__netprobe_message *message)
{
    const uint64_t began_ns = ph__clock_ns();
    unsigned char chunk[CHUNK_BYTES], body[PH_NETPROBE_NUM_MARKS * 16];
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS] = {{0}};
    struct ph__wire_reader reader;
    struct ph__wire_writer writer;
    uint64_t received = 0;
    size_t got, next = 0;
    ph__wire_reader_init(&reader, message->body, message->size);
    const uint64_t bytes = ph__wire_get_u64(&reader);
    PH_TRY(ph__wire_reader_finish(&reader, "SEND"));
    if (bytes == 0 || bytes > PH_NETPROBE_MAX_TRANSFER_BYTES)
        return ph_fail(PH_ERROR_PEER, "%s sends %llu bytes at once", link->peer, (unsigned long long)bytes);
    while (received < bytes) {
        PH_TRY(ph__netprobe_read_some(link, chunk, ph__min(bytes - received, sizeof chunk), &got));
        received += got;
        const struct ph__netprobe_mark mark = {received, ph__clock_ns() - began_ns};
        while (next < PH_NETPROBE_NUM_MARKS && received >= (next + 1) * bytes / PH_NETPROBE_NUM_MARKS)
            marks[next++] = mark;
    }
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__netprobe_put_marks(&writer, marks);
    return ph__netprobe_say(link, PH_NETPROBE_ARRIVED, body, writer.used);
}

/* ---- both ---- */

ph_status ph__netprobe_measure(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    uint64_t asked_ns, struct ph__netprobe_answer *answer)
{
    if (ask->num_echoes > 0) {
        double *round_trips = calloc(ph__max(LEAST_ECHOES, ask->num_echoes), sizeof *round_trips);
        if (round_trips == NULL)
            return ph__out_of_memory("%u round trips", ask->num_echoes);
        const ph_status status = measure_latency(link, ask, round_trips, answer);
        free(round_trips);
        PH_TRY(status);
    }
    return measure_bandwidth(link, ask, asked_ns, answer);
}
