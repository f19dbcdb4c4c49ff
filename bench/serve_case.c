#include "serve_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/rng.h"
#include "figures.h"
#include "serve/model_folder.h"
#include "serve/onnx_export.h"
#include "serve/scorer.h"
#include "serve/session.h"

#define CONFIG                                            \
    "data: {format: criteo, encoding: hash, rows: %zu}\n" \
    "model: {kind: dlrm, embedding_dim: %zu, bottom_units: [512, 256], top_units: [512, 256]%s}\n"

struct serve_rows *serve_rows_make(void)
{
    struct ph__rng_sequence rng = {.key = {.seed = 1}};
    struct serve_rows *rows = calloc(1, sizeof *rows);
    if (rows == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %d rows", SERVE_NUM_ROWS));
    for (size_t row = 0; row < SERVE_NUM_ROWS; row++) {
        struct ph_cell *cells = rows->cells + row * SERVE_NUM_COLUMNS;
        for (size_t i = 0; i < SERVE_NUM_DENSE; i++)
            cells[i] = (struct ph_cell){
                .kind = PH_CELL_INTEGER, .integer = (int64_t)exp(8 * ph__rng_next_uniform(&rng)) - 1};
        for (size_t i = 0; i < SERVE_NUM_SPARSE; i++) {
            char *text = rows->texts[row * SERVE_NUM_SPARSE + i];
            const uint32_t rank = (uint32_t)exp(15 * ph__rng_next_uniform(&rng));
            snprintf(text, 9, "%08x", rank * 2654435761u);
            cells[SERVE_NUM_DENSE + i] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = text, .length = 8};
        }
    }
    return rows;
}

const char *serve_path(struct ph__arena *arena, const char *folder, const char *name)
{
    const char *path = ph__path_join(arena, folder, name);
    if (path == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a path"));
    return path;
}

void serve_folder_make(struct ph__arena *arena, const char *folder, const struct serve_model *model)
{
    const char *config = ph__arena_printf(arena, CONFIG, model->table_rows, model->dim,
        model->is_lean ? ", block_norm: true, bias: last, activation: hard_swish" : "");
    if (config == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a config"));
    serve_folder_make_of(arena, folder, config, model->seed);
}

void serve_folder_make_of(struct ph__arena *arena, const char *folder, const char *text, uint64_t seed)
{
    struct ph__writer *writer = NULL;
    struct ph__model_config config;
    struct ph_encoder *encoder = NULL;
    struct ph_backend *backend = NULL;
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_scorer *scorer = NULL;
    bench_check(ph__directory_create(folder));
    bench_check(ph__writer_open(serve_path(arena, folder, "config.yaml"), &writer));
    bench_check(ph__writer_printf(writer, "%s", text));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
    bench_check(ph__model_config_read(&config, folder));
    bench_check(ph_encoder_create(&config.data, &encoder));
    bench_check(ph_encoder_save(encoder, serve_path(arena, folder, "encoder.json")));
    bench_check(ph_store_create(seed, &store));
    bench_check(ph_state_create(&state));
    bench_check(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    const struct ph_scorer_options options = {.size = sizeof options,
        .model = &config.model.settings,
        .encoder = encoder,
        .store = store,
        .state = state,
        .backend = backend,
        .batch_size = 1}; /* creating the scorer makes the weights */
    bench_check(ph_scorer_create(&options, &scorer));
    bench_check(ph_checkpoint_save(serve_path(arena, folder, "model.safetensors"), store, state, NULL));
    ph_scorer_destroy(scorer);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_encoder_destroy(encoder);
    ph__model_config_fini(&config);
}

static struct serve_encoded *encode(const struct ph_encoder *encoder, const struct serve_rows *rows)
{
    struct ph__inputs inputs;
    struct ph__row_encoder row_encoder;
    struct ph__rows encoded = {0};
    struct serve_encoded *result = calloc(1, sizeof *result);
    if (result == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %d encoded rows", SERVE_NUM_ROWS));
    bench_check(ph__inputs_init(encoder, &inputs));
    ph__row_encoder_init(&row_encoder, encoder, NULL);
    for (size_t row = 0; row < SERVE_NUM_ROWS; row++) {
        encoded.num_rows = 0;
        bench_check(
            ph__inputs_encode(&inputs, &row_encoder, rows->cells + row * SERVE_NUM_COLUMNS, &encoded));
        memcpy(result->dense[row], encoded.words + encoder->dense_word, sizeof result->dense[row]);
        for (size_t i = 0; i < SERVE_NUM_SPARSE; i++)
            result->ids[row][i] = encoded.words[encoder->sparse_word + i];
    }
    ph__rows_fini(&encoded);
    ph__row_encoder_fini(&row_encoder);
    ph__inputs_fini(&inputs);
    return result;
}

struct serve_encoded *serve_peer_make(
    struct ph__arena *arena, const char *folder, const struct serve_rows *rows)
{
    struct ph__model_config config;
    struct ph__model_folder model = {0};
    bench_check(ph__model_config_read(&config, folder));
    bench_check(ph__model_folder_open(
        &model, folder, &config.model.settings, config.data.reading.negative_rate, PH_ROWS_FP32, NULL));
    bench_check(ph__onnx_export(&model, "dlrm", serve_path(arena, folder, "model.onnx")));
    struct serve_encoded *encoded = encode(model.encoder, rows);
    ph__model_folder_close(&model);
    ph__model_config_fini(&config);
    return encoded;
}

/* Begins an .npy file of (SERVE_NUM_ROWS, columns) numbers in C order. */
static FILE *open_npy(const char *path, const char *type, int columns)
{
    char header[118]; /* with the ten bytes before it, a multiple of 64 */
    FILE *file = fopen(path, "w");
    if (file == NULL)
        bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot write", path));
    memset(header, ' ', sizeof header);
    int length = snprintf(header, sizeof header,
        "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", type, SERVE_NUM_ROWS, columns);
    header[length] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    return file;
}

static void close_npy(FILE *file, const char *path)
{
    if (fclose(file) != 0)
        bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot write", path));
}

void serve_peer_files(struct ph__arena *arena, const char *folder, const struct serve_rows *rows)
{
    struct serve_encoded *encoded = serve_peer_make(arena, folder, rows);
    const char *const dense_path = serve_path(arena, folder, "dense.npy");
    const char *const ids_path = serve_path(arena, folder, "ids.npy");
    FILE *dense = open_npy(dense_path, "<f4", SERVE_NUM_DENSE),
         *ids = open_npy(ids_path, "<i8", SERVE_NUM_SPARSE);
    fwrite(encoded->dense, sizeof encoded->dense, 1, dense);
    fwrite(encoded->ids, sizeof encoded->ids, 1, ids);
    close_npy(dense, dense_path);
    close_npy(ids, ids_path);
    free(encoded);
}
