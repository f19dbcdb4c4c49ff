#include "base/file.h"
#include "cli/inspect.h"

ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    struct ph_arena arena = {0};
    *source = (struct cli_source){0};
    const char *config = ph__path_join(&arena, path, "config.yaml");
    const char *encoder = ph__path_join(&arena, path, "encoder.json");
    ph_status status = PH_OK;
    if (config == NULL || encoder == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory for a path");
    bool is_folder = status == PH_OK && ph__file_exists(config);
    if (status == PH_OK)
        status = ph__job_config_read(&source->config, is_folder ? config : path, sets->items, sets->count);
    if (status == PH_OK)
        status = is_folder ? ph_encoder_load(encoder, &source->encoder)
                           : ph_encoder_create(&source->config.data, &source->encoder);
    ph__arena_fini(&arena);
    return status;
}

void cli_source_close(struct cli_source *source)
{
    ph_encoder_destroy(source->encoder);
    source->encoder = NULL;
    ph__job_config_fini(&source->config);
}
