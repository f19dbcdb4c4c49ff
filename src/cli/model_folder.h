/* A folder that phloem train left: everything needed to score with its best model. */
#ifndef PH_CLI_MODEL_FOLDER_H
#define PH_CLI_MODEL_FOLDER_H

#include "cli/job_config.h"

struct cli_model_folder { /* zero-initialised is closed */
    struct cli_job_config config;
    struct ph_encoder *encoder;
    struct ph_backend *backend;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_scorer *scorer;
};

/* Reads DIR/config.yaml (with sets), DIR/encoder.json and DIR/model.safetensors. Stays where it is; close it also after
 * a failure. */
ph_status cli_model_folder_open(
    struct cli_model_folder *model, const char *folder, const struct cli_texts *sets);
void cli_model_folder_close(struct cli_model_folder *model);

#endif
