/* From rows to batches: samples a second of one core, with 13 counts and 26 ids, from prepared data in order
 * and block-shuffled, from the text that it was prepared from, and from text whose reading is recorded, as
 * training records it for --resume. Processor time, so that a loaded machine gives the same figures.
 *
 * bench_batches [--rounds N] [--rows N] [--json FILE] */
#include "bench_data.h"
#include "data/batch/batches.h"

#define BATCH 2048

/* Returns the samples a second of a whole pass; fingerprint NULL: none. */
static double measure_fingerprinted(const struct ph_encoder *encoder, const char *path,
    struct ph__fingerprint *fingerprint, bool is_shuffled, uint64_t epoch)
{
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = BATCH,
        .reading.is_shuffled = is_shuffled,
        .seed = 1,
        .epoch = epoch};
    struct ph_batches *batches;
    const struct ph_batch *batch;
    size_t num_samples = 0;
    double start = bench_cpu_seconds();
    bench_check(ph__batches_open(
        encoder, &(struct ph__rows_origin){.path = path, .fingerprint = fingerprint}, &options, &batches));
    for (bench_check(ph_batches_next(batches, &batch)); batch != NULL;
         bench_check(ph_batches_next(batches, &batch)))
        num_samples += batch->num_samples;
    ph_batches_close(batches);
    return (double)num_samples / (bench_cpu_seconds() - start);
}

static double measure(const struct ph_encoder *encoder, const char *path, bool is_shuffled, uint64_t epoch)
{
    return measure_fingerprinted(encoder, path, NULL, is_shuffled, epoch);
}

/* Measures text with a fingerprint, which sums every byte. */
static double measure_text_recorded(const struct ph_encoder *encoder, const char *path)
{
    struct ph__fingerprint fingerprint;
    bench_check(ph__fingerprint_look(&fingerprint, path, false));
    const double rate = measure_fingerprinted(encoder, path, &fingerprint, false, 0);
    ph__fingerprint_fini(&fingerprint);
    return rate;
}

/* Returns the bytes that a row moves through memory: encoded bytes read, decoded words written and read, the
 * batch written. */
static double bytes_of_row(const struct ph_prepare_summary *summary)
{
    double words = 1 + BENCH_COUNTS + BENCH_CATEGORIES;
    double batch = 4 * (2 + BENCH_COUNTS) + BENCH_CATEGORIES * (8 + 4 + 4);
    return (double)summary->num_bytes / (double)summary->num_rows + 2 * 4 * words + batch;
}

int main(int argc, char **argv)
{
    struct bench bench = bench_begin(argc, argv, "bench_batches", 500000);
    struct ph_prepare_summary summary;
    struct ph_encoder *encoder;
    double text[64], recorded[64], in_order[64], shuffled[64];
    size_t rounds = bench.rounds < 64 ? bench.rounds : 64;
    const char *path = bench_write_file(&bench, "train.tsv", false);
    struct ph_data_settings settings = bench_settings(&bench, path, false);
    const char *folder = bench_prepare(&bench, &settings, "prepared", 1, &summary);
    const char *train = ph__arena_printf(&bench.arena, "%s/train", folder);
    bench_check(ph_encoder_load(ph__arena_printf(&bench.arena, "%s/encoder.json", folder), &encoder));
    for (size_t round = 0; round < rounds; round++) {
        text[round] = measure(encoder, path, false, 0);
        recorded[round] = measure_text_recorded(encoder, path);
        in_order[round] = measure(encoder, train, false, 0);
        shuffled[round] = measure(encoder, train, true, round);
    }
    char limit[128];
    double bandwidth = bench_memory_bandwidth(), bytes = bytes_of_row(&summary);
    snprintf(limit, sizeof limit, "%.0f bytes a row at %.1f GB/s of memcpy", bytes, bandwidth * 1e-9);
    double of_text = bench_median(text, rounds);
    printf("to batches of %d, %zu rows, %.1f bytes a row prepared, %.1f in text; CPU time of one core\n",
        BATCH, bench.num_rows, (double)summary.num_bytes / (double)summary.num_rows,
        (double)summary.num_text_bytes / (double)summary.num_rows);
    bench_tell(&bench, "data.batches.text", "samples/s", of_text, NULL, 0, NULL, 0);
    bench_tell(&bench, "data.batches.text.recorded", "samples/s", bench_median(recorded, rounds), "text",
        of_text, NULL, 0);
    bench_tell(&bench, "data.batches.prepared.sequential", "samples/s", bench_median(in_order, rounds),
        "text", of_text, limit, bandwidth / bytes);
    bench_tell(&bench, "data.batches.prepared.shuffled", "samples/s", bench_median(shuffled, rounds), "text",
        of_text, limit, bandwidth / bytes);
    ph_encoder_destroy(encoder);
    bench_end(&bench);
    return 0;
}
