/* Scores files with the model of a folder, under the folder's whole config if it has one. */
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

/* Formats that the scoring verbs take by flags; NULL: fp32. */
struct cli_formats {
    const char *row_format, *precision;
    bool ignores_recipes; /* true: DIR/recipes.json is left alone */
};
#define CLI_FORMAT_FLAGS(formats)                                            \
    {"--row-format", CLI_TEXT, &(formats).row_format, "FORMAT",              \
        "holds tables as fp32 (default), fp16, bf16, int8 or int4"},         \
    {                                                                        \
        "--precision", CLI_TEXT, &(formats).precision, "FORMAT",             \
            "format of the weights of linear layers: fp32 (default) or bf16" \
    }

/* Opens the model in DIR, with numbers in these formats, by DIR/config.yaml (with sets) or, without that, by
 * what the weights say of themselves. May not be moved; close it also after a failure. */
ph_status cli_scoring_open(struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets,
    const struct cli_formats *formats);
void cli_scoring_close(struct cli_scoring *scoring);

#endif
