/* Measures whether training waits for its data: the samples a second that the reader delivers, from text and
 * from prepared data, beside those that a DLRM's training step takes, and the share of training that waits
 * all the same.
 *
 * Rows are Criteo-like, 13 counts and 26 hashed ids. The DLRM is that of dlrm_case.h at pooling 1, but with
 * small tables, because each training leaves files: its step is faster for that, and asks more of the reader.
 * The reader alone is one pass by wall clock on one thread, and takes turns with trainings that read as
 * `phloem train` does. A step's speed is that of a training less its waiting.
 *
 * bench_reader [--rounds N] [--rows N] [--json FILE] */
#include "data/bench_data.h"

#include "base/thread/clock.h"
#include "train/config/job_config.h"

enum { BATCH = 2048, TABLE_ROWS = 10000, NUM_SOURCES = 2 };

struct source {
    const char *name, *path;
    bool is_shuffled;
    double delivered[BENCH_MAX_ROUNDS], taken[BENCH_MAX_ROUNDS], waited[BENCH_MAX_ROUNDS];
};

/* Returns the samples a second of a whole pass. */
static double read_all(const struct ph_encoder *encoder, const struct source *source)
{
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = BATCH, .reading.is_shuffled = source->is_shuffled, .seed = 1};
    struct ph_batches *batches;
    const struct ph_batch *batch;
    size_t num_samples = 0;
    const double start = ph__clock_seconds();
    bench_check(ph_batches_open(encoder, source->path, &options, &batches));
    for (bench_check(ph_batches_next(batches, &batch)); batch != NULL;
         bench_check(ph_batches_next(batches, &batch)))
        num_samples += batch->num_samples;
    ph_batches_close(batches);
    return (double)num_samples / (ph__clock_seconds() - start);
}

static struct ph_config *read_config(void)
{
    static const char *const sets[] = {"model.kind=dlrm", "model.embedding_dim=64",
        "model.bottom_units=512,256", "model.top_units=512,256", "train.batch_size=2048", "train.epochs=1",
        "train.max_steps=60", "train.checkpoint_seconds=0", "optimizer.kind=adagrad", "threads=2"};
    struct ph_config *config;
    bench_check(ph_config_read(NULL, sets, sizeof sets / sizeof *sets, &config));
    return config;
}

static struct ph_train_summary train(struct bench *bench, const struct ph_config *config,
    const struct ph_encoder *encoder, const struct source *source, size_t round)
{
    struct ph__train_job job = ph__config_job(config);
    struct ph_train_summary summary;
    job.encoder = encoder;
    job.paths.train = source->path;
    job.reading.is_shuffled = source->is_shuffled;
    job.options.folder = ph__arena_printf(&bench->arena, "%s/%s-%zu", bench->folder, source->name, round);
    bench_check(ph__train(&job, &summary));
    bench_remove_folder(job.options.folder);
    return summary;
}

static void tell(struct bench *bench, const struct source *source)
{
    const double delivered = bench_median(source->delivered, bench->rounds);
    double ratios[BENCH_MAX_ROUNDS];
    char name[64];
    for (size_t i = 0; i < bench->rounds; i++)
        ratios[i] = source->delivered[i] / source->taken[i];
    snprintf(name, sizeof name, "train.reader.%s", source->name);
    const struct bench_figure figure = {.name = name,
        .unit = "samples/s",
        .value = delivered,
        .spread = bench_spread(source->delivered, bench->rounds),
        .peer = "the step of dlrm, 2 threads",
        .peer_value = bench_median(source->taken, bench->rounds),
        .ratio = bench_median(ratios, bench->rounds)};
    bench_record(bench->results, &figure);
    printf("%-24s %10.0f samples/s, the step takes %.0f: %.1fx; training waits %.1f%% of its time\n", name,
        delivered, figure.peer_value, figure.ratio, 100 * bench_median(source->waited, bench->rounds));
}

int main(int argc, char **argv)
{
    struct bench bench = bench_begin(argc, argv, "bench_reader", 200000);
    struct ph_prepare_summary prepared;
    struct ph_encoder *encoder;
    const char *text = bench_write_file(&bench, "train.tsv", false);
    struct ph_data_settings settings = bench_settings(&bench, text, false);
    settings.rows = TABLE_ROWS;
    const char *folder = bench_prepare(&bench, &settings, "prepared", 1, &prepared);
    static struct source sources[NUM_SOURCES] = {{.name = "text"}, {.name = "prepared", .is_shuffled = true}};
    sources[0].path = text;
    sources[1].path = ph__arena_printf(&bench.arena, "%s/train", folder);
    bench_check(ph_encoder_load(ph__arena_printf(&bench.arena, "%s/encoder.json", folder), &encoder));
    struct ph_config *config = read_config();
    for (size_t round = 0; round < bench.rounds; round++)
        for (size_t i = 0; i < NUM_SOURCES; i++) {
            struct source *source = &sources[i];
            source->delivered[round] = read_all(encoder, source);
            const struct ph_train_summary summary = train(&bench, config, encoder, source, round);
            source->taken[round] = summary.samples_per_s / (1 - summary.reader_wait_share);
            source->waited[round] = summary.reader_wait_share;
        }
    for (size_t i = 0; i < NUM_SOURCES; i++)
        tell(&bench, &sources[i]);
    ph_config_destroy(config);
    ph_encoder_destroy(encoder);
    bench_end(&bench);
    return 0;
}
