/* Configs that trainings have left in their folders. */
#ifndef PH_TRAIN_KEPT_CONFIG_H
#define PH_TRAIN_KEPT_CONFIG_H

#include "train/config/job_config.h"

/* The config.yaml at `path` (NULL: defaults) with sets over it. In it the splits of prepared data stand as files, which may
 * be elsewhere by now: they are looked for again only where sets name other prepared data. PH_ERROR_CHECKPOINT when the
 * file is missing or damaged; sets are not its fault. To be finished by ph__job_config_fini also after a failure. */
ph_status ph__kept_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets);

/* PH_ERROR_CONFIG when the config differs from the kept one in a key that may not change on resume. */
ph_status ph__kept_config_compare(const struct ph_config *config, const char *path);

#endif
