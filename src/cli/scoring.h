/* Scoring files with the model of a folder, under its whole config as far as it has one. */
#ifndef PH_CLI_SCORING_H
#define PH_CLI_SCORING_H

#include "cli/arguments.h"
#include "serve/model_folder.h"
#include "train/job_config.h"

struct cli_scoring { /* zero-initialised is closed */
    struct ph_config config;
    struct ph__model_folder model;
    struct ph_backend *backend;
    struct ph_scorer *scorer;
};

/* The flag of the verbs that score, and what becomes of it: the name of a row format, NULL for fp32. */
#define CLI_ROW_FORMAT_FLAG(target)                                   \
    {                                                                 \
        "--row-format", CLI_TEXT, target, "FORMAT",                   \
            "hold tables as fp32 (default), fp16, bf16, int8 or int4" \
    }

/* Reads DIR/config.yaml (with sets), or where there is none what the weights say of themselves, and opens the model in
 * DIR, its tables in row_format. Stays where it is; close it also after a failure. */
ph_status cli_scoring_open(
    struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets, const char *row_format);
void cli_scoring_close(struct cli_scoring *scoring);

#endif
