#include "cli/model_folder.h"

#include "base/file.h"

static ph_status find_file(
    struct cli_model_folder *model, const char *folder, const char *name, const char **path_out)
{
    const char *path = ph__path_join(&model->config.arena, folder, name);
    if (path == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a path");
    if (!ph__file_exists(path))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s is missing: is %s a folder that phloem train made?", path, folder);
    *path_out = path;
    return PH_OK;
}

static ph_status read_config(struct cli_model_folder *model, const char *folder, const struct cli_texts *sets)
{
    const char *path;
    struct ph_arena arena = {0};
    ph_status status = PH_OK;
    if ((path = ph__path_join(&arena, folder, "config.yaml")) == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory for a path");
    else if (!ph__file_exists(path))
        status = ph_fail(
            PH_ERROR_CHECKPOINT, "%s is missing: is %s a folder that phloem train made?", path, folder);
    else
        status = cli_job_config_read(&model->config, path, sets);
    ph__arena_fini(&arena);
    return status;
}

static ph_status create_scorer(struct cli_model_folder *model)
{
    const struct cli_job_config *config = &model->config;
    struct ph_backend_options backend_options = {(size_t)config->top.threads, !config->train.deterministic};
    PH_TRY(ph_backend_create(&backend_options, &model->backend));
    PH_TRY(ph_store_create((uint64_t)config->top.seed, &model->store));
    PH_TRY(ph_state_create(&model->state));
    struct ph_scorer_options options = {
        .model = &config->model.settings,
        .encoder = model->encoder,
        .store = model->store,
        .state = model->state,
        .backend = model->backend,
        .batch_size = (size_t)config->train.batch_size,
        .num_prefetched = (size_t)config->data.num_prefetched,
    };
    return ph_scorer_create(&options, &model->scorer);
}

ph_status cli_model_folder_open(
    struct cli_model_folder *model, const char *folder, const struct cli_texts *sets)
{
    const char *encoder_path = NULL, *checkpoint_path = NULL;
    *model = (struct cli_model_folder){0};
    PH_TRY(read_config(model, folder, sets));
    PH_TRY(find_file(model, folder, "encoder.json", &encoder_path));
    PH_TRY(find_file(model, folder, "model.safetensors", &checkpoint_path));
    PH_TRY(ph_encoder_load(encoder_path, &model->encoder));
    PH_TRY(create_scorer(model));
    return ph_checkpoint_load(checkpoint_path, model->store, model->state);
}

void cli_model_folder_close(struct cli_model_folder *model)
{
    ph_scorer_destroy(model->scorer);
    ph_backend_destroy(model->backend);
    ph_state_destroy(model->state);
    ph_store_destroy(model->store);
    ph_encoder_destroy(model->encoder);
    cli_job_config_fini(&model->config);
}
