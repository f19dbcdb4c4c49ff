#include "cli/folder_config.h"

#include "serve/model_folder.h"

static ph_status read_joined(struct ph_config *config, const struct ph__model_origin *origin,
    const struct cli_texts *sets, struct ph__arena *arena)
{
    const size_t count = origin->num_sets + sets->count;
    const char **all = ph__arena_alloc_array(arena, count, sizeof *all);
    if (all == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        all[i] = i < origin->num_sets ? origin->sets[i] : sets->items[i - origin->num_sets];
    return ph__kept_config_read(config, origin->config_path, all, count);
}

ph_status cli_folder_config_read(struct ph_config *config, const char *folder, const struct cli_texts *sets)
{
    struct ph__model_origin origin;
    struct ph__arena arena = {0};
    *config = (struct ph_config){0};
    ph_status status = ph__model_origin_find(&arena, folder, &origin);
    if (status == PH_OK)
        status = read_joined(config, &origin, sets, &arena);
    ph__arena_fini(&arena);
    return status;
}
