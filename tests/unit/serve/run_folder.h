/* A folder as phloem train leaves it, with random weights: columns of every encoding, of any model. */
#ifndef PH_TEST_RUN_FOLDER_H
#define PH_TEST_RUN_FOLDER_H

#include "support/test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/sum/digest.h"
#include "serve/model_folder.h"
#include "serve/model_identity.h"
#include "serve/scorer.h"

enum { NUM_ROWS = 250 };

/* Line `row` of the data, without label and newline: group (the row's number), blanks now and then, lists of
 * 0 to 4 items. */
static inline void write_cells(char text[200], unsigned row)
{
    char clicks[16] = "", topics[64] = "", seen[64] = "";
    if (row % 7 != 3)
        snprintf(clicks, sizeof clicks, "%u", row * 13 % 1000);
    for (unsigned i = 0, length = 0; i < row % 5; i++)
        length += (unsigned)snprintf(
            topics + length, sizeof topics - length, "%st%u", i > 0 ? "|" : "", (row * 3 + i) % 17);
    for (unsigned i = 0, length = 0; i < row % 4; i++)
        length += (unsigned)snprintf(
            seen + length, sizeof seen - length, "%s%u", i > 0 ? "|" : "", (row * 5 + i * 7) % 30);
    snprintf(text, 200, "%u,%s,%.3f,\"u%u\",%d,%u,%s,%s,noise", row, clicks, (double)row / 7 - 11,
        row * 5 % 23, (int)(row * 11 % 101) - 50, row * 7 % 50, topics, seen);
}

static inline const char *write_rows(const char *name)
{
    char *text = malloc((NUM_ROWS + 1) * (size_t)220), cells[200];
    assert_non_null(text);
    int length = sprintf(text, "label,row,clicks,price,user,city,shop,topics,seen,other\n");
    for (unsigned row = 0; row < NUM_ROWS; row++) {
        write_cells(cells, row);
        length += sprintf(text + length, "%d,%s\n", row % 3 == 0, cells);
    }
    const char *path = test_write_file(name, text);
    free(text);
    return path;
}

#define RUN_FOLDER_CONFIG                                                                        \
    "seed: 3\ntrain: {batch_size: 64}\n"                                                         \
    "data:\n"                                                                                    \
    "  train: %s\n"                                                                              \
    "  fields:\n"                                                                                \
    "    - {name: label, kind: label}\n"                                                         \
    "    - {name: row, kind: group}\n"                                                           \
    "    - {name: clicks, kind: dense, transform: log1p, missing: 2, missing_indicator: true}\n" \
    "    - {name: price, kind: dense, transform: standardise}\n"                                 \
    "    - {name: user, kind: id, encoding: vocabulary}\n"                                       \
    "    - {name: city, kind: id, encoding: hash, rows: 40}\n"                                   \
    "    - {name: shop, kind: id, encoding: raw, rows: 50}\n"                                    \
    "    - {name: topics, kind: id, encoding: vocabulary, list: true, max_length: 3}\n"          \
    "    - {name: seen, kind: id, encoding: vocabulary, list: true}\n"                           \
    "    - {name: other, kind: ignore}\n"                                                        \
    "    - {name: price_class, from: price, kind: id, encoding: bucket, buckets: 5}\n"           \
    "model: {kind: %s, embedding_dim: 6, embedding_init_std: 0.3, hidden_units: [37, 20], %s, "  \
    "bottom_units: "                                                                             \
    "[19]}\n"

/* Statistics such as a training leaves: all different, above zero. */
static inline void fill(struct ph_tensor tensor)
{
    ph_real *numbers = tensor.data;
    for (size_t i = 0; i < ph_shape_elements(&tensor.shape); i++)
        numbers[i] = (ph_real)(0.05 + (double)(i * 37 % 101) / 300);
}

/* With what the weights shall say of themselves; NULL: nothing. */
static inline void save_weights_as(
    const struct ph_model_settings *settings, const char *folder, const char *identity)
{
    struct ph__model_folder model = {0};
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_model_features features;
    char path[600];
    snprintf(path, sizeof path, "%s/encoder.json", folder);
    assert_ok(ph_encoder_load(path, &model.encoder));
    assert_ok(ph__features_init(model.encoder, &features));
    assert_ok(
        ph__scoring_program_build(&(struct ph_scorer_options){.model = settings}, &features, &model.program));
    assert_ok(ph_store_create(11, &model.store));
    assert_ok(ph_state_create(&model.state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph_executor_create(model.program, model.store, model.state, backend, &executor));
    for (size_t i = 0; i < ph_state_num_tensors(model.state); i++)
        fill(ph_state_tensor(model.state, i));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    char digest[65], encoder_path[600];
    snprintf(encoder_path, sizeof encoder_path, "%s/encoder.json", folder);
    assert_ok(ph__digest_file(encoder_path, digest));
    const char *const metadata[] = {
        PH_ENCODER_KEY, digest, identity != NULL ? PH_IDENTITY_KEY : NULL, identity, NULL};
    assert_ok(ph_checkpoint_save(path, model.store, model.state, metadata));
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph__features_fini(&features);
    ph__model_folder_close(&model);
}

/* Makes a folder of that name with this config; the path is static until the next one. */
static inline const char *make_folder(const char *name, const char *config_text)
{
    static char folder[512];
    char path[600];
    struct ph__model_config config = {0};
    struct ph_encoder *encoder = NULL;
    snprintf(folder, sizeof folder, "%s/%s", test_folder(), name);
    assert_ok(ph__directory_create(folder));
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    test_write_text(path, config_text);
    assert_ok(ph__model_config_read(&config, folder));
    assert_ok(ph_encoder_create(&config.data, &encoder));
    snprintf(path, sizeof path, "%s/encoder.json", folder);
    assert_ok(ph_encoder_save(encoder, path));
    save_weights_as(&config.model.settings, folder, NULL);
    ph_encoder_destroy(encoder);
    ph__model_config_fini(&config);
    return folder;
}

/* Keys of models whose layers lose least in few bits. */
#define LEAN_KEYS "block_norm: true, bias: last, activation: hard_swish"

/* The folder of a model of this kind with these keys, by default batch norm; its data beside it. */
static inline const char *make_run_folder_with(const char *kind, const char *keys)
{
    char text[2048], name[64];
    snprintf(text, sizeof text, RUN_FOLDER_CONFIG, write_rows("rows.csv"), kind, keys);
    snprintf(name, sizeof name, "%s%s", kind, strcmp(keys, LEAN_KEYS) == 0 ? ".lean" : "");
    return make_folder(name, text);
}

static inline const char *make_run_folder(const char *kind)
{
    return make_run_folder_with(kind, "batch_norm: true");
}

/* ---- what is wanted, by a scorer over a file ---- */

static inline void score_batches(
    struct ph_scorer *scorer, const struct ph_encoder *encoder, const char *path, float *probabilities)
{
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    const ph_real *logits = NULL;
    struct ph_batches_options options = {.size = sizeof options, .batch_size = 100};
    assert_ok(ph_batches_open(encoder, path, &options, &batches));
    for (;;) {
        assert_ok(ph_batches_next(batches, &batch));
        if (batch == NULL)
            break;
        assert_ok(ph_scorer_score(scorer, batch, &logits));
        ph__probabilities(batch->num_samples * batch->num_tasks, logits, probabilities);
        probabilities += batch->num_samples * batch->num_tasks;
    }
    ph_batches_close(batches);
}

static inline void score_file(const char *folder, const char *path, float *probabilities)
{
    struct ph__model_config config = {0};
    struct ph__model_folder model = {0};
    struct ph_backend *backend = NULL;
    struct ph_scorer *scorer = NULL;
    assert_ok(ph__model_config_read(&config, folder));
    assert_ok(ph__model_folder_open(
        &model, folder, &config.model.settings, config.data.reading.negative_rate, PH_ROWS_FP32, NULL));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    struct ph_scorer_options options = {.size = sizeof options,
        .model = &config.model.settings,
        .encoder = model.encoder,
        .store = model.store,
        .state = model.state,
        .backend = backend,
        .batch_size = 100};
    assert_ok(ph_scorer_create(&options, &scorer));
    score_batches(scorer, model.encoder, path, probabilities);
    ph_scorer_destroy(scorer);
    ph_backend_destroy(backend);
    ph__model_folder_close(&model);
    ph__model_config_fini(&config);
}

#endif
