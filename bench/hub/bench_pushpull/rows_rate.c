/* Rate of a hub: 4 KiB keys that it takes and gives back in a second, by the number in flight. */
#include <stdio.h>

#include "pushpull_rows.h"

enum { KEY_BYTES = 4 << 10, NUM_KEYS = 1024, MAX_WORKERS = 2 };

static const uint32_t in_flight[] = {1, 4, 16, 64, 256, 1024};
enum { NUM_DEPTHS = sizeof in_flight / sizeof *in_flight };
static const double sample_seconds = 0.1;

/* Contestant with some keys in flight. */
struct rate {
    struct cluster *cluster;
    uint32_t in_flight, count;
};

struct rates {
    struct cluster clusters[ROW_TRANSPORTS][MAX_WORKERS];
    struct rate rates[ROW_TRANSPORTS][MAX_WORKERS][NUM_DEPTHS];
    struct contestant contestants[ROW_TRANSPORTS * MAX_WORKERS * NUM_DEPTHS];
    size_t num_contestants;
};

/* Returns the seconds for each pushpull of a worker. */
static double measure(const struct rate *rate, uint32_t count)
{
    struct job_samples samples;
    cluster_order(rate->cluster, VERB_STREAM, &count, rate->in_flight, &samples);
    const double seconds = samples.samples[count] - samples.samples[0];
    const double num_workers = rate->cluster->options.jobs[0].num_workers;
    job_samples_fini(&samples);
    return seconds / (num_workers * count * NUM_KEYS);
}

static void measure_rate(void *context, double values_out[TURN_VALUES])
{
    const struct rate *rate = context;
    values_out[0] = measure(rate, rate->count);
}

static void start(struct rates *rates, size_t transport, size_t workers)
{
    struct cluster *cluster = &rates->clusters[transport][workers];
    *cluster = cluster_start(&(struct cluster_options){.transport = row_transports[transport],
        .num_threads = 1,
        .jobs = {{.num_workers = (uint32_t)workers + 1, .num_keys = NUM_KEYS, .key_bytes = KEY_BYTES}},
        .num_jobs = 1});
    for (size_t i = 0; i < NUM_DEPTHS; i++) {
        struct rate *rate = &rates->rates[transport][workers][i];
        *rate = (struct rate){.cluster = cluster, .in_flight = in_flight[i]};
        const double all = measure(rate, 1) * (double)(workers + 1) * NUM_KEYS;
        rate->count = all < sample_seconds ? (uint32_t)(sample_seconds / all) + 1 : 1;
        rates->contestants[rates->num_contestants++] =
            (struct contestant){.measure = measure_rate, .context = rate};
    }
}

static void report(const struct rows *rows, const struct rates *rates, size_t index, const char *transport)
{
    const struct rate *rate = rates->contestants[index].context;
    const uint32_t workers = rate->cluster->options.jobs[0].num_workers;
    char name[ROW_NAME], series[ROW_NAME];
    snprintf(name, sizeof name, "hub.rate.%s.workers%u.in_flight%u", transport, workers, rate->in_flight);
    snprintf(series, sizeof series, "%s, %u worker%s", transport, workers, workers > 1 ? "s" : "");
    turn_record(rows->figures, &(struct turn_figure){.figure = {.name = name,
                                                         .unit = "k/s",
                                                         .sweep = "keys in flight",
                                                         .series = series,
                                                         .at = rate->in_flight},
                                   .ours = &rates->contestants[index],
                                   .scale = 1e-3,
                                   .is_rate = true});
}

void rows_rate(struct rows *rows)
{
    static struct rates rates;
    rates = (struct rates){0};
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++)
        for (size_t workers = 0; workers < MAX_WORKERS && rows_want(rows, transport); workers++)
            start(&rates, transport, workers);
    take_turns(rates.contestants, rates.num_contestants, rows->rounds);
    for (size_t i = 0, transport = 0; transport < ROW_TRANSPORTS; transport++) {
        const size_t count = rows_want(rows, transport) ? MAX_WORKERS * NUM_DEPTHS : 0;
        for (const size_t end = i + count; i < end; i++)
            report(rows, &rates, i, row_transport_names[transport]);
        for (size_t workers = 0; workers < MAX_WORKERS; workers++)
            cluster_end(&rates.clusters[transport][workers]);
    }
}
