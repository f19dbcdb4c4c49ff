#include <sys/stat.h>

#include "base/file.h"
#include "cli/folder_config.h"
#include "cli/inspect.h"

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static ph_status open_folder(struct cli_source *source, const char *folder, const struct cli_texts *sets)
{
    PH_TRY(cli_folder_config_read(&source->config, folder, sets));
    const char *encoder = ph__path_join(&source->config.arena, folder, "encoder.json");
    if (encoder == NULL)
        return PH_ERROR_MEMORY;
    return ph_encoder_load(encoder, &source->encoder);
}

ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    *source = (struct cli_source){0};
    if (is_folder(path))
        return open_folder(source, path, sets);
    PH_TRY(ph__job_config_read(&source->config, path, sets->items, sets->count));
    return ph_encoder_create(&source->config.data, &source->encoder);
}

void cli_source_close(struct cli_source *source)
{
    ph_encoder_destroy(source->encoder);
    source->encoder = NULL;
    ph__job_config_fini(&source->config);
}
