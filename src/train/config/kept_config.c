#include "train/config/kept_config.h"

#include <string.h>

#include "serve/model_folder.h"

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = folder != NULL ? strlen(folder) : 0;
    return path != NULL && length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Splits of the former prepared data give way to those of the latter. */
static ph_status find_splits_anew(struct ph_config *config, const char *former)
{
    const char **splits[] = {&config->data.paths.train, &config->data.paths.valid, &config->data.paths.test};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (lies_in(*splits[i], former))
            *splits[i] = NULL;
    return ph__data_settings_finish(&config->data, &config->arena);
}

ph_status ph__kept_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets)
{
    struct ph_config kept = {0};
    *config = (struct ph_config){0};
    ph_status status = ph__model_folder_blame(ph__job_config_parse(&kept, path, NULL, 0));
    if (status == PH_OK)
        status = ph__job_config_parse(config, path, sets, num_sets);
    if (status == PH_OK && !is_same(kept.data.prepared, config->data.prepared))
        status = find_splits_anew(config, kept.data.prepared);
    ph__job_config_fini(&kept);
    return status;
}

ph_status ph__kept_config_compare(const struct ph_config *config, const char *path)
{
    struct ph_config kept = {0};
    ph_status status = ph__kept_config_read(&kept, path, NULL, 0);
    if (status == PH_OK)
        status = ph__job_config_compare(&kept, config);
    ph__job_config_fini(&kept);
    return status;
}
