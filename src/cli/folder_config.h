/* The configs of trained models' folders. */
#ifndef PH_CLI_FOLDER_CONFIG_H
#define PH_CLI_FOLDER_CONFIG_H

#include "cli/arguments.h"
#include "train/config/job_config.h"

/* Reads the config of the folder's model (serve/model_folder.h), with sets over it. PH_ERROR_CHECKPOINT when
 * the folder's part is missing or damaged; errors in sets keep their own code. Call ph__job_config_fini also
 * after a failure. */
ph_status cli_folder_config_read(struct ph_config *config, const char *folder, const struct cli_texts *sets);

#endif
