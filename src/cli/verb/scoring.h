/* Scoring files with the model of a folder, under its whole config as far as it has one. */
#ifndef PH_CLI_SCORING_H
#define PH_CLI_SCORING_H

#include "cli/arguments.h"
#include "serve/model_folder.h"
#include "train/config/job_config.h"

struct cli_scoring { /* zero-initialised is closed */
    struct ph_config config;
    struct ph__model_folder model;
    struct ph_backend *backend;
    struct ph_scorer *scorer;
};

/* What the verbs that score are told by flags; NULL: fp32. */
struct cli_formats {
    const char *row_format, *precision;
};
#define CLI_FORMAT_FLAGS(formats)                                        \
    {"--row-format", CLI_TEXT, &(formats).row_format, "FORMAT",          \
        "hold tables as fp32 (default), fp16, bf16, int8 or int4"},      \
    {                                                                    \
        "--precision", CLI_TEXT, &(formats).precision, "FORMAT",         \
            "round the weights of linear layers to bf16 (default: fp32)" \
    }

/* Reads DIR/config.yaml (with sets), or where there is none what the weights say of themselves, and opens the
 * model in DIR, its numbers as the formats say. Stays where it is; close it also after a failure. */
ph_status cli_scoring_open(struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets,
    const struct cli_formats *formats);
void cli_scoring_close(struct cli_scoring *scoring);

#endif
