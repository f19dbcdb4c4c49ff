#include "serve/model_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/digest.h"
#include "serve/model_identity.h"
#include "serve/scorer.h"
#include "store/checkpoint_folder.h"
#include "store/store.h"

/* Returns true when the file is missing; one that cannot be looked up may exist. */
static bool is_missing(const char *path)
{
    return !ph__file_exists(path) && (errno == ENOENT || errno == ENOTDIR);
}

/* Finds a file of the folder by name; the path is owned by the arena. PH_ERROR_CHECKPOINT when missing. */
static ph_status find_file(
    struct ph__arena *arena, const char *folder, const char *name, const char **path_out)
{
    const char *path = ph__path_join(arena, folder, name);
    if (path == NULL)
        return ph__out_of_memory("a path");
    if (is_missing(path))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s does not exist: %s must be a run folder of phloem train", path, folder);
    if (!ph__file_exists(path))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: cannot read: %s", path, strerror(errno));
    *path_out = path;
    return PH_OK;
}

/* ---- the model's settings ---- */

static ph_status read_weights_settings(struct ph__arena *arena, const char *config_path,
    const char *weights_path, struct ph__model_origin *origin)
{
    struct ph__folder *file;
    PH_TRY(ph__folder_open(weights_path, &file));
    const char *text = ph__folder_metadata(file, PH_IDENTITY_KEY);
    ph_status status;
    if (text != NULL)
        status = ph__model_identity_sets(weights_path, text, arena, &origin->sets, &origin->num_sets);
    else
        status = ph_fail(PH_ERROR_CHECKPOINT,
            "%s does not exist, and %s does not name the model of its weights", config_path, weights_path);
    ph__folder_close(file);
    return status;
}

ph_status ph__model_origin_find(
    struct ph__arena *arena, const char *folder, struct ph__model_origin *origin_out)
{
    const char *config_path = ph__path_join(arena, folder, "config.yaml");
    const char *weights_path = ph__path_join(arena, folder, "model.safetensors");
    struct ph__model_origin origin = {0};
    if (config_path == NULL || weights_path == NULL)
        return ph__out_of_memory("a path");
    if (is_missing(config_path) && ph__file_exists(weights_path))
        PH_TRY(read_weights_settings(arena, config_path, weights_path, &origin));
    else
        PH_TRY(find_file(arena, folder, "config.yaml", &origin.config_path));
    *origin_out = origin;
    return PH_OK;
}

ph_status ph__model_folder_blame(ph_status status)
{
    if (status != PH_ERROR_CONFIG)
        return status;
    return ph_fail(PH_ERROR_CHECKPOINT, "%s; this file of the run folder is damaged", ph_error_text());
}

ph_status ph__model_config_read(struct ph__model_config *config, const char *folder)
{
    struct ph__model_origin origin;
    *config = (struct ph__model_config){0};
    struct ph__arena *arena = &config->arena;
    struct ph__section sections[1 + PH_NUM_MODEL_SECTIONS] = {{&ph__data_options, &config->data}};
    const size_t count = 1 + ph__model_sections(&config->model, sections + 1);
    PH_TRY(ph__model_origin_find(arena, folder, &origin));
    if (origin.config_path != NULL)
        PH_TRY(ph__model_folder_blame(ph__config_read_sections(origin.config_path, sections, count, arena)));
    else
        PH_TRY(ph__config_read(NULL, origin.sets, origin.num_sets, sections, count, arena));
    ph_status status = ph__model_section_finish(&config->model, origin.config_path, arena);
    return origin.config_path != NULL ? ph__model_folder_blame(status) : status;
}

void ph__model_config_fini(struct ph__model_config *config)
{
    ph__arena_fini(&config->arena);
}

/* ---- the files ---- */

struct files {
    const char *folder, *encoder, *weights;
    const char *config; /* NULL: none */
};

static ph_status find_files(struct ph__arena *arena, const char *folder, struct files *files_out)
{
    struct files files = {.folder = folder};
    const char *config = ph__path_join(arena, folder, "config.yaml");
    if (config == NULL)
        return PH_ERROR_MEMORY;
    files.config = is_missing(config) ? NULL : config;
    PH_TRY(find_file(arena, folder, "encoder.json", &files.encoder));
    PH_TRY(find_file(arena, folder, "model.safetensors", &files.weights));
    *files_out = files;
    return PH_OK;
}

static ph_status check_encoder(
    const struct ph__folder *file, const char *encoder_path, const char *weights_path)
{
    char digest[65];
    const char *wanted = ph__folder_metadata(file, PH_ENCODER_KEY);
    if (wanted == NULL)
        return PH_OK;
    PH_TRY(ph__digest_file(encoder_path, digest));
    if (strcmp(wanted, digest) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CHECKPOINT,
        "%s: was trained with another encoder than %s: the files are from two trainings", weights_path,
        encoder_path);
}

/* Checks the config against the settings in the weights' metadata. Weights without such metadata are
 * accepted; their settings replace a config.yaml that is missing. */
static ph_status check_config(const struct ph__folder *file, const char *folder, const char *weights_path)
{
    struct ph__model_config config;
    const char *wanted = NULL, *trained = ph__folder_metadata(file, PH_IDENTITY_KEY);
    if (trained == NULL)
        return PH_OK;
    ph_status status = ph__model_config_read(&config, folder);
    if (status == PH_OK)
        status = ph__model_identity(
            &config.model.settings, config.data.reading.negative_rate, &config.arena, &wanted);
    if (status == PH_OK)
        status = ph__model_identity_check(weights_path, trained, wanted);
    ph__model_config_fini(&config);
    return status;
}

static ph_status check_origin(const struct files *files)
{
    struct ph__folder *file;
    PH_TRY(ph__folder_open(files->weights, &file));
    ph_status status = check_encoder(file, files->encoder, files->weights);
    if (status == PH_OK && files->config != NULL)
        status = check_config(file, files->folder, files->weights);
    ph__folder_close(file);
    return status;
}

/* ---- the model itself ---- */

static ph_status build_program(struct ph__model_folder *model, const struct ph_model_settings *settings)
{
    struct ph_model_features features;
    PH_TRY(ph__features_init(model->encoder, &features));
    ph_status status = ph__scoring_program_build_unfused(settings, &features, &model->program);
    ph__features_fini(&features);
    return status;
}

/* Builds a model from the settings in the weights' metadata, which are trusted only as far as encoder and
 * weights allow: checks sizes before memory is allocated for a model that the weights cannot fill. */
static ph_status build_unvouched(
    struct ph__model_folder *model, const struct ph_model_settings *settings, const char *weights_path)
{
    uint64_t wanted_bytes, tensor_bytes;
    struct ph__folder *weights;
    ph_status status = build_program(model, settings);
    if (status == PH_ERROR_CONFIG)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: %s", weights_path, ph_error_text());
    PH_TRY(status);
    PH_TRY(ph_program_missing_bytes(model->program, model->store, &wanted_bytes));
    PH_TRY(ph__folder_open(weights_path, &weights));
    tensor_bytes = ph__folder_tensor_bytes(weights);
    ph__folder_close(weights);
    if (wanted_bytes / 2 <= tensor_bytes) /* rows of 16 bits become twice as large */
        return PH_OK;
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: has %" PRIu64 " bytes of weights, but the model needs %" PRIu64,
        weights_path, tensor_bytes, wanted_bytes);
}

/* Loads the weights: an executor adds the program's parameters to store and state, the checkpoint fills
 * them. */
static ph_status load_weights(struct ph__model_folder *model, const char *path, const struct ph_store *donor)
{
    struct ph_backend *backend;
    struct ph_executor *executor;
    PH_TRY(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    ph_status status = ph_executor_create(model->program, model->store, model->state, backend, &executor);
    if (status == PH_OK)
        ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    PH_TRY(status);
    return ph__checkpoint_load_beside(path, model->store, model->state, donor);
}

static ph_status open_files(struct ph__model_folder *model, const struct files *files,
    const struct ph_model_settings *settings, enum ph_row_format row_format, const struct ph_store *donor)
{
    PH_TRY(ph_encoder_load(files->encoder, &model->encoder));
    PH_TRY(check_origin(files));
    PH_TRY(ph_store_create(0, &model->store));
    ph__store_set_row_format(model->store, row_format);
    ph__store_will_be_loaded(model->store);
    PH_TRY(ph_state_create(&model->state));
    if (files->config != NULL)
        PH_TRY(build_program(model, settings));
    else
        PH_TRY(build_unvouched(model, settings, files->weights));
    return load_weights(model, files->weights, donor);
}

static ph_status read_recipes(struct ph__model_folder *model, const char *folder)
{
    const char *path = ph__path_join(&model->arena, folder, PH_RECIPE_TABLE_FILE);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    return ph__file_exists(path) ? ph__recipe_table_read(path, &model->arena, &model->recipes) : PH_OK;
}

ph_status ph__model_folder_open(struct ph__model_folder *model, const char *folder,
    const struct ph_model_settings *settings, double negative_rate, enum ph_row_format row_format,
    const struct ph_store *donor)
{
    struct ph__arena arena = {0};
    struct files files;
    *model = (struct ph__model_folder){.logit_shift = ph__negative_rate_shift(negative_rate)};
    ph_status status = find_files(&arena, folder, &files);
    if (status == PH_OK)
        status = open_files(model, &files, settings, row_format, donor);
    if (status == PH_OK)
        status = read_recipes(model, folder);
    ph__arena_fini(&arena);
    return status;
}

void ph__model_folder_close(struct ph__model_folder *model)
{
    ph_program_destroy(model->program);
    ph_state_destroy(model->state);
    ph_store_destroy(model->store);
    ph_encoder_destroy(model->encoder);
    ph__arena_fini(&model->arena);
    *model = (struct ph__model_folder){0};
}
