#include "cli/verb/inspect_source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "cli/folder_config.h"
#include "data/data_options.h"

static ph_status open_folder(struct cli_source *source, const char *folder, const struct cli_texts *sets)
{
    PH_TRY(cli_folder_config_read(&source->config, folder, sets));
    const char *encoder = ph__path_join(&source->config.arena, folder, "encoder.json");
    if (encoder == NULL)
        return PH_ERROR_MEMORY;
    return ph_encoder_load(encoder, &source->encoder);
}

bool cli_is_prepared(const char *path)
{
    struct ph__arena arena = {0};
    const char *settings = ph__path_join(&arena, path, PH_PREPARED_SOURCE);
    const bool is_prepared = settings != NULL && ph__file_exists(settings);
    ph__arena_fini(&arena);
    return is_prepared;
}

/* Opens prepared data in the folder where it is, whatever place prepared.yaml names. */
static ph_status open_prepared(struct cli_source *source, const char *folder, const struct cli_texts *sets)
{
    struct ph__arena arena = {0};
    struct cli_texts all = *sets;
    const char *path = ph__path_protect(&arena, folder);
    ph_status status =
        path != NULL ? cli_sets_add(&all, &arena, "data.prepared", path) : (ph_status)PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__job_config_read(&source->config, NULL, all.items, all.count);
    ph__arena_fini(&arena);
    return status == PH_OK ? ph_encoder_create(&source->config.data, &source->encoder) : status;
}

ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    *source = (struct cli_source){0};
    if (cli_is_prepared(path))
        return ph_fail(PH_ERROR_USAGE,
            "%s is prepared data, which names no model: give a config whose data.prepared is %s", path, path);
    if (ph__directory_exists(path))
        return open_folder(source, path, sets);
    PH_TRY(ph__job_config_read(&source->config, path, sets->items, sets->count));
    return ph_encoder_create(&source->config.data, &source->encoder);
}

ph_status cli_source_open_data(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    *source = (struct cli_source){0};
    return cli_is_prepared(path) ? open_prepared(source, path, sets) : cli_source_open(source, path, sets);
}

void cli_source_close(struct cli_source *source)
{
    ph_encoder_destroy(source->encoder);
    source->encoder = NULL;
    ph__job_config_fini(&source->config);
}

/* ---- phloem inspect data: features, and statistics by one pass over each file ---- */

struct dense_statistics {
    double min, max, sum;
};

struct sparse_statistics {
    uint64_t ids, unknown_ids, empty_bags;
};

struct statistics {
    size_t num_dense, num_sparse, num_tasks;
    uint64_t samples, bad_rows;
    double *labels; /* (T) sums */
    struct dense_statistics *dense;
    struct sparse_statistics *sparse;
};

static void statistics_fini(struct statistics *statistics)
{
    free(statistics->labels);
    free(statistics->dense);
    free(statistics->sparse);
}

static ph_status statistics_init(struct statistics *statistics, const struct ph_encoder *encoder)
{
    *statistics = (struct statistics){
        .num_dense = ph_encoder_num_dense(encoder),
        .num_sparse = ph_encoder_num_sparse(encoder),
        .num_tasks = ph_encoder_num_tasks(encoder),
    };
    statistics->labels = calloc(statistics->num_tasks + 1, sizeof *statistics->labels);
    statistics->dense = calloc(statistics->num_dense + 1, sizeof *statistics->dense);
    statistics->sparse = calloc(statistics->num_sparse + 1, sizeof *statistics->sparse);
    if (statistics->labels == NULL || statistics->dense == NULL || statistics->sparse == NULL) {
        statistics_fini(statistics);
        return ph__out_of_memory("statistics");
    }
    for (size_t f = 0; f < statistics->num_dense; f++)
        statistics->dense[f] = (struct dense_statistics){.min = INFINITY, .max = -INFINITY};
    return PH_OK;
}

static void add_dense(struct statistics *statistics, const struct ph_batch *batch)
{
    for (size_t b = 0; b < batch->num_samples; b++) {
        for (size_t f = 0; f < statistics->num_dense; f++) {
            double value = (double)batch->dense[b * statistics->num_dense + f];
            struct dense_statistics *dense = &statistics->dense[f];
            dense->min = fmin(dense->min, value);
            dense->max = fmax(dense->max, value);
            dense->sum += value;
        }
        for (size_t task = 0; task < statistics->num_tasks; task++)
            statistics->labels[task] += (double)batch->labels[b * statistics->num_tasks + task];
    }
}

static void add_sparse(struct statistics *statistics, const struct ph_batch *batch)
{
    size_t num_samples = batch->num_samples;
    for (size_t f = 0; f < statistics->num_sparse; f++) {
        struct sparse_statistics *sparse = &statistics->sparse[f];
        size_t first = f * num_samples;
        for (size_t b = 0; b < num_samples; b++)
            sparse->empty_bags += batch->lengths[first + b] == 0;
        for (uint32_t i = batch->offsets[first]; i < batch->offsets[first + num_samples]; i++)
            sparse->unknown_ids += batch->ids[i] == 0;
        sparse->ids += batch->offsets[first + num_samples] - batch->offsets[first];
    }
}

static ph_status add_file(struct statistics *statistics, const struct cli_source *source, const char *path)
{
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = 4096,
        .reading.max_bad_rows = source->config.data.reading.max_bad_rows};
    struct ph_batches *batches;
    PH_TRY(ph_batches_open(source->encoder, path, &options, &batches));
    const struct ph_batch *batch = NULL;
    ph_status status;
    while ((status = ph_batches_next(batches, &batch)) == PH_OK && batch != NULL) {
        add_dense(statistics, batch);
        add_sparse(statistics, batch);
        statistics->samples += batch->num_samples;
    }
    statistics->bad_rows = ph_batches_num_bad_rows(batches);
    ph_batches_close(batches);
    return status;
}

static void print_statistics(const struct statistics *statistics, const struct ph_encoder *encoder)
{
    double samples = (double)statistics->samples;
    for (size_t task = 0; task < statistics->num_tasks; task++)
        printf("  label %zu: mean %.4f\n", task, statistics->labels[task] / samples);
    if (statistics->num_dense > 0)
        printf("  %-24s %12s %12s %12s\n", "dense feature", "min", "mean", "max");
    for (size_t f = 0; f < statistics->num_dense; f++)
        printf("  %-24s %12.5g %12.5g %12.5g\n", ph_encoder_dense_name(encoder, f), statistics->dense[f].min,
            statistics->dense[f].sum / samples, statistics->dense[f].max);
    if (statistics->num_sparse > 0)
        printf("  %-24s %12s %12s %12s\n", "sparse feature", "ids/sample", "row 0", "no id");
    for (size_t f = 0; f < statistics->num_sparse; f++) {
        const struct sparse_statistics *sparse = &statistics->sparse[f];
        double ids = (double)sparse->ids;
        printf("  %-24s %12.3f %11.2f%% %11.2f%%\n", ph_encoder_sparse(encoder, f)->name, ids / samples,
            ids > 0 ? 100 * (double)sparse->unknown_ids / ids : 0.0,
            100 * (double)sparse->empty_bags / samples);
    }
}

static ph_status inspect_file(const char *what, const char *path, const struct cli_source *source)
{
    struct statistics statistics;
    if (path == NULL)
        return PH_OK;
    PH_TRY(statistics_init(&statistics, source->encoder));
    ph_status status = add_file(&statistics, source, path);
    if (status == PH_OK) {
        printf("\ndata.%s: %s: %" PRIu64 " samples\n", what, path, statistics.samples);
        if (statistics.bad_rows > 0)
            printf("  left out %" PRIu64 " bad rows\n", statistics.bad_rows);
        if (statistics.samples > 0)
            print_statistics(&statistics, source->encoder);
    }
    statistics_fini(&statistics);
    return status;
}

static void print_features(const struct ph_encoder *encoder)
{
    size_t num_rows = 0;
    for (size_t f = 0; f < ph_encoder_num_sparse(encoder); f++)
        num_rows += ph_encoder_sparse(encoder, f)->owner == f ? ph_encoder_sparse(encoder, f)->num_rows : 0;
    printf("%zu labels, %zu dense features, %zu sparse features with %zu rows\n",
        ph_encoder_num_tasks(encoder), ph_encoder_num_dense(encoder), ph_encoder_num_sparse(encoder),
        num_rows);
    for (size_t f = 0; f < ph_encoder_num_sparse(encoder); f++) {
        const struct ph_sparse_feature *feature = ph_encoder_sparse(encoder, f);
        const bool is_sharing = feature->owner != f;
        printf("  %-24s %12zu rows%s%s\n", feature->name, feature->num_rows, is_sharing ? ", those of " : "",
            is_sharing ? ph_encoder_sparse(encoder, feature->owner)->name : "");
    }
}

ph_status cli_inspect_data(const struct cli_source *source)
{
    const struct ph_data_settings *data = &source->config.data;
    print_features(source->encoder);
    PH_TRY(inspect_file("train", data->paths.train, source));
    PH_TRY(inspect_file("valid", data->paths.valid, source));
    return inspect_file("test", data->paths.test, source);
}
