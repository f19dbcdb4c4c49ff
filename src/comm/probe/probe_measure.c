#include "comm/probe/probe_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

double ph__netprobe_bandwidth(
    const struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS], bool *is_steady_out)
{
    const double ratio = slope(&marks[HALF], &marks[LATE]) / slope(&marks[LATE], &marks[END]);
    const double late = slope(&marks[HALF], &marks[END]);
    *is_steady_out = ratio < STEADY_RATIO && ratio > 1 / STEADY_RATIO;
    return late > 0 ? late : slope(&(struct ph__netprobe_mark){0, 0}, &marks[END]);
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
    struct ph__netprobe_echo echo = {{0}};
    const uint64_t began_ns = ph__clock_ns();
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_ECHO, &echo));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_ECHO, &echo));
    *round_trip_ns_out = (double)(ph__clock_ns() - began_ns);
    return PH_OK;
}

static ph_status measure_latency(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    double *round_trips, struct ph__netprobe_answer *answer)
{
    const uint64_t until_ns = ph__clock_deadline((uint32_t)ask->limit_ms / 2);
    size_t count = 0;
    while (count < ask->num_echoes && (count < LEAST_ECHOES || ph__clock_ns() < until_ns))
        PH_TRY(echo_once(link, &round_trips[count++]));
    ph__sort_numbers(round_trips, count);
    answer->latency_ns = (uint64_t)fmax(1, round_trips[(size_t)(PERCENTILE * (double)(count - 1))] / 2);
    return PH_OK;
}

/* ---- transfers ---- */

static ph_status transfer(
    const struct ph__netprobe_link *link, uint64_t bytes, struct ph__netprobe_answer *answer)
{
    static const unsigned char zeros[CHUNK_BYTES];
    struct ph__netprobe_arrived arrived;
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_SEND, &(struct ph__netprobe_send){bytes}));
    for (uint64_t left = bytes; left > 0; left -= ph__min(left, sizeof zeros))
        PH_TRY(ph__netprobe_write(link, zeros, ph__min(left, sizeof zeros)));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_ARRIVED, &arrived));
    memcpy(answer->marks, arrived.marks, sizeof answer->marks);
    answer->sent_bytes += bytes;
    return PH_OK;
}

/* Returns the length of the next transfer; 0: this one is good, or there may be no other. */
static uint64_t next_length(const struct ph__netprobe_ask *ask, const struct ph__netprobe_answer *answer,
    uint64_t bytes, uint64_t *num_retries)
{
    const double least_ns = (double)ask->least_ns, took_ns = (double)answer->marks[END].ns;
    bool is_steady;
    ph__netprobe_bandwidth(answer->marks, &is_steady);
    if (took_ns >= least_ns && (is_steady || (*num_retries)-- == 0))
        return 0;
    const double growth = fmin(GROWTH, fmax(2, 1.2 * least_ns / fmax(1, took_ns)));
    const uint64_t left = ask->max_bytes > answer->sent_bytes ? ask->max_bytes - answer->sent_bytes : 0;
    const uint64_t next = (uint64_t)ceil(growth * (double)bytes);
    return next <= left ? next : left > bytes ? left : 0;
}

static ph_status measure_bandwidth(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    uint64_t asked_ns, struct ph__netprobe_answer *answer)
{
    uint64_t num_retries = ask->num_retries;
    for (uint64_t bytes = ask->bytes; bytes > 0; bytes = next_length(ask, answer, bytes, &num_retries)) {
        answer->begin_ns = ph__clock_ns() - asked_ns;
        PH_TRY(transfer(link, bytes, answer));
    }
    return PH_OK;
}

ph_status ph__netprobe_take(const struct ph__netprobe_link *link, uint64_t bytes)
{
    const uint64_t began_ns = ph__clock_ns();
    unsigned char chunk[CHUNK_BYTES];
    struct ph__netprobe_arrived arrived = {{{0, 0}}};
    uint64_t received = 0;
    size_t got, next = 0;
    if (bytes == 0 || bytes > PH_NETPROBE_MAX_TRANSFER_BYTES)
        return ph_fail(PH_ERROR_PEER, "%s sends %llu bytes at once", link->peer, (unsigned long long)bytes);
    while (received < bytes) {
        PH_TRY(ph__netprobe_read_some(link, chunk, ph__min(bytes - received, sizeof chunk), &got));
        received += got;
        const struct ph__netprobe_mark mark = {received, ph__clock_ns() - began_ns};
        while (next < PH_NETPROBE_NUM_MARKS && received >= (next + 1) * bytes / PH_NETPROBE_NUM_MARKS)
            arrived.marks[next++] = mark;
    }
    return ph__netprobe_say(link, PH_NETPROBE_ARRIVED, &arrived);
}

/* ---- both ---- */

ph_status ph__netprobe_measure(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    uint64_t asked_ns, struct ph__netprobe_answer *answer)
{
    if (ask->num_echoes > PH_NETPROBE_MAX_ECHOES || ask->bytes > ask->max_bytes ||
        ask->max_bytes > PH_NETPROBE_MAX_TRANSFER_BYTES)
        return ph_fail(PH_ERROR_PEER, "ASK: a probe of %llu echoes and %llu of at most %llu bytes",
            (unsigned long long)ask->num_echoes, (unsigned long long)ask->bytes,
            (unsigned long long)ask->max_bytes);
    if (ask->num_echoes > 0) {
        double *round_trips = calloc(ph__max(LEAST_ECHOES, ask->num_echoes), sizeof *round_trips);
        if (round_trips == NULL)
            return ph__out_of_memory("%llu round trips", (unsigned long long)ask->num_echoes);
        const ph_status status = measure_latency(link, ask, round_trips, answer);
        free(round_trips);
        PH_TRY(status);
    }
    return measure_bandwidth(link, ask, asked_ns, answer);
}
