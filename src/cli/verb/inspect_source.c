#include <string.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "cli/folder_config.h"
#include "cli/verb/inspect.h"
#include "data/data_options.h"

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

bool cli_is_prepared(const char *path)
{
    struct ph_arena arena = {0};
    const char *settings = ph__path_join(&arena, path, PH_PREPARED_SOURCE);
    const bool is_prepared = settings != NULL && ph__file_exists(settings);
    ph__arena_fini(&arena);
    return is_prepared;
}

/* Prepared data lies where it is, whatever place prepared.yaml names. */
static ph_status open_prepared(struct cli_source *source, const char *folder, const struct cli_texts *sets)
{
    struct ph_arena arena = {0};
    struct cli_texts all = *sets;
    const char *path = ph__path_protect(&arena, folder);
    ph_status status =
        path != NULL ? cli_sets_add(&all, &arena, "data.prepared", path) : (ph_status)PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__job_config_read(&source->config, NULL, all.items, all.count);
    ph__arena_fini(&arena);
    return status == PH_OK ? ph_encoder_create(&source->config.data, &source->encoder) : status;
}

ph_status cli_source_open_data(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    *source = (struct cli_source){0};
    return cli_is_prepared(path) ? open_prepared(source, path, sets) : cli_source_open(source, path, sets);
}

ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    *source = (struct cli_source){0};
    if (cli_is_prepared(path))
        return ph_fail(PH_ERROR_USAGE,
            "%s is prepared data, which names no model: give a config whose data.prepared is %s", path, path);
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
