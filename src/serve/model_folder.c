#include "serve/model_folder.h"

#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "serve/features.h"
#include "serve/model_identity.h"
#include "serve/probability.h"
#include "serve/scoring_program.h"
#include "store/safetensors.h"

ph_status ph__model_folder_find(
    struct ph_arena *arena, const char *folder, const char *name, const char **path_out)
{
    const char *path = ph__path_join(arena, folder, name);
    if (path == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a path");
    if (!ph__file_exists(path))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s is missing: is %s a folder that phloem train made?", path, folder);
    *path_out = path;
    return PH_OK;
}

ph_status ph__model_config_read(struct ph__model_config *config, const char *folder)
{
    const char *path = NULL;
    *config = (struct ph__model_config){0};
    const struct ph_section sections[] = {
        {&ph__data_options, &config->data}, {&ph__model_options, &config->model}};
    PH_TRY(ph__model_folder_find(&config->arena, folder, "config.yaml", &path));
    PH_TRY(ph__config_read_sections(path, sections, sizeof sections / sizeof *sections, &config->arena));
    ph__model_section_finish(&config->model);
    return PH_OK;
}

void ph__model_config_fini(struct ph__model_config *config)
{
    ph__arena_fini(&config->arena);
}

static ph_status build_program(struct ph__model_folder *model, const struct ph_model_settings *settings)
{
    struct ph_model_features features;
    PH_TRY(ph__features_init(model->encoder, &features));
    ph_status status = ph__scoring_program_build(settings, &features, &model->program);
    ph__features_fini(&features);
    return status;
}

/* An executor adds the program's parameters to store and state; the checkpoint then fills them. */
static ph_status load_weights(struct ph__model_folder *model, const char *path)
{
    struct ph_backend *backend;
    struct ph_executor *executor;
    PH_TRY(ph_store_create(0, &model->store));
    PH_TRY(ph_state_create(&model->state));
    PH_TRY(ph_backend_create(&(struct ph_backend_options){.num_threads = 1}, &backend));
    ph_status status = ph_executor_create(model->program, model->store, model->state, backend, &executor);
    if (status == PH_OK)
        ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    PH_TRY(status);
    return ph_checkpoint_load(path, model->store, model->state);
}

static ph_status check_encoder(
    const struct ph_safetensors *file, const char *encoder_path, const char *weights_path)
{
    char digest[65];
    const char *wanted = ph__safetensors_metadata(file, PH_ENCODER_KEY);
    if (wanted == NULL)
        return PH_OK;
    PH_TRY(ph__digest_file(encoder_path, digest));
    if (strcmp(wanted, digest) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CHECKPOINT,
        "%s: was learnt with another encoder than %s: the files are of two trainings", weights_path,
        encoder_path);
}

static ph_status check_config(const struct ph_safetensors *file, const char *folder, const char *weights_path)
{
    struct ph__model_config config;
    const char *wanted = NULL, *trained = ph__safetensors_metadata(file, PH_IDENTITY_KEY);
    if (trained == NULL)
        return PH_OK;
    ph_status status = ph__model_config_read(&config, folder);
    if (status == PH_OK)
        status =
            ph__model_identity(&config.model.settings, config.data.negative_rate, &config.arena, &wanted);
    if (status == PH_OK)
        status = ph__model_identity_check(weights_path, trained, wanted);
    ph__model_config_fini(&config);
    return status;
}

/* Weights that do not say what they were learnt with are taken as they are. */
static ph_status check_origin(const char *folder, const char *encoder_path, const char *weights_path)
{
    struct ph_safetensors *file;
    PH_TRY(ph__safetensors_open(weights_path, &file));
    ph_status status = check_encoder(file, encoder_path, weights_path);
    if (status == PH_OK)
        status = check_config(file, folder, weights_path);
    ph__safetensors_close(file);
    return status;
}

ph_status ph__model_folder_open(struct ph__model_folder *model, const char *folder,
    const struct ph_model_settings *settings, double negative_rate)
{
    struct ph_arena arena = {0};
    const char *encoder_path = NULL, *weights_path = NULL;
    *model = (struct ph__model_folder){.logit_shift = ph__negative_rate_shift(negative_rate)};
    ph_status status = ph__model_folder_find(&arena, folder, "encoder.json", &encoder_path);
    if (status == PH_OK)
        status = ph__model_folder_find(&arena, folder, "model.safetensors", &weights_path);
    if (status == PH_OK)
        status = ph_encoder_load(encoder_path, &model->encoder);
    if (status == PH_OK)
        status = check_origin(folder, encoder_path, weights_path);
    if (status == PH_OK)
        status = build_program(model, settings);
    if (status == PH_OK)
        status = load_weights(model, weights_path);
    ph__arena_fini(&arena);
    return status;
}

void ph__model_folder_close(struct ph__model_folder *model)
{
    ph_program_destroy(model->program);
    ph_state_destroy(model->state);
    ph_store_destroy(model->store);
    ph_encoder_destroy(model->encoder);
    *model = (struct ph__model_folder){0};
}
