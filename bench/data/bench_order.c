/* The order of shuffled prepared data, for several sizes of its window: the cost, in samples a second of one
 * core, and the distance from a full shuffle of data sorted by their label:
 *     correlation   of a row's place in the data with its place in the pass, root mean square over seeds;
 *                   0 in a full shuffle
 *     label spread  the variance of the share of positives over batches, divided by that of a full
 *                   shuffle, p (1 - p) / B: 1 is the best
 *
 * bench_order [--rounds N] [--rows N] [--json FILE] */
#include "bench_data.h"

#define BATCH 2048
#define SEEDS 10

struct order {
    double samples_per_s, correlation, label_spread;
};

/* Sums of the passes so far; places are in (-1/2, 1/2). */
struct sums {
    double num_rows, product; /* of the current pass: place in the data times place in the pass */
    double squared_correlations, squared_rates, num_batches;
};

static void add_batch(struct sums *sums, const struct ph_batch *batch, double num_rows)
{
    double rate = 0;
    for (size_t b = 0; b < batch->num_samples; b++) {
        double place = (double)batch->ids[b] / num_rows - 0.5,
               given = (sums->num_rows + (double)b) / num_rows - 0.5;
        sums->product += place * given;
        rate += (double)batch->labels[b] / (double)batch->num_samples - 0.5 / (double)batch->num_samples;
    }
    sums->num_rows += (double)batch->num_samples;
    if (batch->num_samples == BATCH) {
        sums->squared_rates += rate * rate; /* around one half: half of the rows are positive */
        sums->num_batches++;
    }
}

/* Runs a pass, adds it to sums (NULL: none), and returns its samples a second of one core. */
static double pass(struct bench *bench, const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options, struct sums *sums)
{
    struct ph_batches *batches;
    const struct ph_batch *batch;
    const double start = bench_cpu_seconds(), num_rows = (double)bench->num_rows;
    bench_check(ph_batches_open(encoder, path, options, &batches));
    for (bench_check(ph_batches_next(batches, &batch)); batch != NULL;
         bench_check(ph_batches_next(batches, &batch)))
        if (sums != NULL)
            add_batch(sums, batch, num_rows);
    ph_batches_close(batches);
    if (sums != NULL) {
        const double correlation = sums->product / num_rows * 12; /* the variance of places is 1/12 */
        sums->squared_correlations += correlation * correlation;
        sums->num_rows = sums->product = 0;
    }
    return num_rows / (bench_cpu_seconds() - start);
}

/* Runs passes of several seeds to measure the order, and further ones to measure its cost. */
static struct order measure(struct bench *bench, const struct ph_encoder *encoder, const char *path,
    bool is_shuffled, size_t window_bytes)
{
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = BATCH,
        .reading.is_shuffled = is_shuffled,
        .reading.shuffle_bytes = window_bytes};
    const size_t num_seeds = is_shuffled ? SEEDS : 1;
    struct sums sums = {0};
    double *speeds = ph__arena_alloc_array(&bench->arena, bench->rounds, sizeof *speeds);
    for (options.seed = 1; options.seed <= num_seeds; options.seed++)
        pass(bench, encoder, path, &options, &sums);
    for (size_t round = 0; round < bench->rounds; round++)
        speeds[round] = pass(bench, encoder, path, &options, NULL);
    return (struct order){.samples_per_s = bench_median(speeds, bench->rounds),
        .correlation = sqrt(sums.squared_correlations / (double)num_seeds),
        .label_spread = sums.squared_rates / sums.num_batches / (0.25 / BATCH)};
}

static void report(struct bench *bench, const char *name, const struct order *order)
{
    char text[128];
    snprintf(text, sizeof text, "data.order.%s", name);
    bench_tell(bench, text, "samples/s", order->samples_per_s, NULL, 0, NULL, 0);
    snprintf(text, sizeof text, "data.order.%s.correlation", name);
    bench_tell(bench, text, "1", order->correlation, NULL, 0, NULL, 0);
    snprintf(text, sizeof text, "data.order.%s.label_spread", name);
    bench_tell(bench, text, "1", order->label_spread, NULL, 0, NULL, 0);
}

int main(int argc, char **argv)
{
    struct bench bench = bench_begin(argc, argv, "bench_order", 1000000);
    struct ph_prepare_summary summary;
    struct ph_encoder *encoder;
    const char *path = bench_write_file(&bench, "train.tsv", true);
    struct ph_data_settings settings = bench_settings(&bench, path, true);
    const char *folder = bench_prepare(&bench, &settings, "prepared", 1, &summary);
    const char *train = ph__arena_printf(&bench.arena, "%s/train", folder);
    bench_check(ph_encoder_load(ph__arena_printf(&bench.arena, "%s/encoder.json", folder), &encoder));
    printf("%zu rows sorted by label, batches of %d\n", bench.num_rows, BATCH);
    struct order order = measure(&bench, encoder, train, false, 0);
    report(&bench, "none", &order);
    for (size_t megabytes = 4; megabytes <= 256; megabytes *= 4) {
        char name[32];
        snprintf(name, sizeof name, "%zuMiB", megabytes);
        order = measure(&bench, encoder, train, true, megabytes << 20);
        report(&bench, name, &order);
    }
    ph_encoder_destroy(encoder);
    bench_end(&bench);
    return 0;
}
