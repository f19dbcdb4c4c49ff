/* The configs of trained folders. */
#ifndef PH_CLI_FOLDER_CONFIG_H
#define PH_CLI_FOLDER_CONFIG_H

#include "cli/arguments.h"
#include "train/config/job_config.h"

/* What the folder says of its model (serve/model_folder.h), and sets over it. PH_ERROR_CHECKPOINT when what
 * the folder says is missing or damaged; sets are not the folder's fault. To be finished also after a
 * failure. */
ph_status cli_folder_config_read(struct ph_config *config, const char *folder, const struct cli_texts *sets);

#endif
