#include "cli/folder_config.h"

#include "serve/model_folder.h"

/* Data that it names may be elsewhere by now: whoever needs it says so. */
ph_status cli_folder_config_check(const char *path)
{
    struct ph_config config = {0};
    ph_status status = ph__job_config_read(&config, path, NULL, 0);
    ph__job_config_fini(&config);
    return status == PH_ERROR_DATA ? PH_OK : ph__model_folder_blame(status);
}

static ph_status read_joined(struct ph_config *config, const struct ph__model_origin *origin,
    const struct cli_texts *sets, struct ph_arena *arena)
{
    const size_t count = origin->num_sets + sets->count;
    const char **all = ph__arena_alloc_array(arena, count, sizeof *all);
    if (all == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        all[i] = i < origin->num_sets ? origin->sets[i] : sets->items[i - origin->num_sets];
    return ph__job_config_read(config, origin->config_path, all, count);
}

ph_status cli_folder_config_read(struct ph_config *config, const char *folder, const struct cli_texts *sets)
{
    struct ph__model_origin origin;
    struct ph_arena arena = {0};
    *config = (struct ph_config){0};
    ph_status status = ph__model_origin_find(&arena, folder, &origin);
    if (status == PH_OK && origin.config_path != NULL)
        status = cli_folder_config_check(origin.config_path);
    if (status == PH_OK)
        status = read_joined(config, &origin, sets, &arena);
    ph__arena_fini(&arena);
    return status;
}
