#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/folder_config.h"
#include "cli/inspect.h"
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

/* "data.prepared=PATH", where a '$' of the path stands for itself. */
static const char *name_prepared(struct ph_arena *arena, const char *path)
{
    char *text = ph__arena_alloc(arena, sizeof "data.prepared=" + 2 * strlen(path));
    if (text == NULL)
        return NULL;
    char *end = stpcpy(text, "data.prepared=");
    for (; *path != '\0'; path++) {
        if (*path == '$')
            *end++ = '$';
        *end++ = *path;
    }
    *end = '\0';
    return text;
}

/* Prepared data lies where it is, whatever place prepared.yaml names. */
static ph_status open_prepared(struct cli_source *source, const char *folder, const struct cli_texts *sets)
{
    struct ph_arena arena = {0};
    struct cli_texts all = *sets;
    const char *set = name_prepared(&arena, folder);
    ph_status status = set != NULL ? cli_sets_add_text(&all, set) : PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__job_config_read(&source->config, NULL, all.items, all.count);
    ph__arena_fini(&arena);
    return status == PH_OK ? ph_encoder_create(&source->config.data, &source->encoder) : status;
}

ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets)
{
    *source = (struct cli_source){0};
    if (cli_is_prepared(path))
        return open_prepared(source, path, sets);
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
