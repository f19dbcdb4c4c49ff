/* Measures the contestants of rows in their turns: see pushpull_rows.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pushpull_rows.h"

enum { MAX_ANSWERED = 64, LEAST_TRIPS = 50, TRIED_TRIPS = 20, TRIED_TURNS = 3 };
static const double sample_seconds = 0.1; /* time of a turn's round trips */

bool rows_want(const struct rows *rows, size_t transport)
{
    return rows->transport == NULL || strcmp(rows->transport, row_transport_names[transport]) == 0;
}

size_t rows_large_bytes(const struct rows *rows)
{
    return (size_t)(rows->is_quick ? 1 : 64) << 20;
}

const char *rows_size_name(size_t bytes, char name_out[ROW_SIZE])
{
    const bool is_large = bytes >= (size_t)1 << 20;
    snprintf(name_out, ROW_SIZE, "%zu%s", bytes >> (is_large ? 20 : 10), is_large ? "MiB" : "KiB");
    return name_out;
}

void row_rounds(void *context, double values_out[TURN_VALUES])
{
    struct row_cluster *of = context;
    values_out[0] = cluster_round_seconds(&of->cluster, of->calls);
}

static int is_above(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void measure_latency(struct cluster *cluster, uint32_t calls, double values_out[TURN_VALUES])
{
    struct job_samples samples[CLUSTER_MAX_JOBS];
    const uint32_t counts[CLUSTER_MAX_JOBS] = {calls};
    cluster_order(cluster, VERB_LATENCY, counts, 0, samples);
    const size_t count = samples[0].count;
    qsort(samples[0].samples, count, sizeof(double), is_above);
    values_out[0] = samples[0].samples[count / 2];
    values_out[1] = samples[0].samples[count - 1 - count / 100];
    job_samples_fini(&samples[0]);
}

void row_latency(void *context, double values_out[TURN_VALUES])
{
    struct row_cluster *of = context;
    measure_latency(&of->cluster, of->calls, values_out);
}

uint32_t row_calibrate_latency(struct row_cluster *of)
{
    double values[TURN_VALUES];
    measure_latency(&of->cluster, TRIED_TRIPS, values);
    const double calls = sample_seconds / values[0];
    return calls < LEAST_TRIPS          ? LEAST_TRIPS
           : calls > WORKER_MAX_SAMPLES ? WORKER_MAX_SAMPLES
                                        : (uint32_t)calls;
}

/* Asks the peer, and gives the numbers of its answer. Returns their number; 0 on failure. */
static size_t ask_numbers(const struct row_peer *of, double numbers_out[MAX_ANSWERED])
{
    const char *answer = of->peer != NULL ? peer_ask(of->peer, "%s %u", of->verb, of->calls) : NULL;
    size_t count = 0;
    for (char *end; answer != NULL && count < MAX_ANSWERED; answer = end, count++) {
        numbers_out[count] = strtod(answer, &end);
        if (end == answer)
            break;
    }
    return count;
}

void row_peer_rounds(void *context, double values_out[TURN_VALUES])
{
    const struct row_peer *of = context;
    double numbers[MAX_ANSWERED], seconds[MAX_ANSWERED];
    const size_t count = ask_numbers(of, numbers) / of->numbers;
    for (size_t call = 0; call < count; call++) {
        seconds[call] = 0;
        for (size_t i = 0; i < of->numbers; i++)
            seconds[call] += numbers[call * of->numbers + i];
    }
    values_out[0] = count > 0 ? bench_median(seconds, count) : (double)NAN;
}

void row_peer_latency(void *context, double values_out[TURN_VALUES])
{
    double numbers[MAX_ANSWERED];
    const size_t count = ask_numbers(context, numbers);
    for (size_t value = 0; value < TURN_VALUES; value++)
        values_out[value] = count >= TURN_VALUES ? 1e-6 * numbers[value] : (double)NAN;
}

/* Returns the least seconds of some turns; NAN if the peer refuses the case. */
static double try_case(struct row_peer *of, struct peer *peer, turn_measure *measure, const char *line)
{
    double least = (double)NAN, values[TURN_VALUES];
    if (!peer_accepts(peer, "%s", line))
        return least;
    of->peer = peer;
    for (size_t i = 0; i < TRIED_TURNS; i++) {
        measure(of, values);
        least = fmin(least, values[0]);
    }
    of->peer = NULL;
    return least;
}

size_t row_peer_choose(struct row_peer *of, struct peer *peer, turn_measure *measure,
    const struct row_case *cases, size_t num_cases)
{
    size_t best = num_cases;
    double least = (double)INFINITY;
    for (size_t i = 0; i < num_cases && peer_is_there(peer); i++) {
        const double seconds = try_case(of, peer, measure, cases[i].line);
        if (isnan(seconds))
            continue;
        printf("tried: %s, %s: %.4f ms\n", peer->version, cases[i].words, 1e3 * seconds);
        if (seconds < least) {
            least = seconds;
            best = i;
        }
    }
    if (best == num_cases || (best + 1 < num_cases && !peer_accepts(peer, "%s", cases[best].line)))
        return num_cases;
    of->peer = peer;
    return best;
}
