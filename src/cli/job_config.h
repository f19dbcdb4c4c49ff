/* A training job's config: the rooms' option tables put together. */
#ifndef PH_CLI_JOB_CONFIG_H
#define PH_CLI_JOB_CONFIG_H

#include "base/arena.h"
#include "base/option.h"
#include "cli/arguments.h"
#include "data/data_options.h"
#include "data/prepare_options.h"
#include "data/synth_options.h"
#include "model/model_options.h"
#include "phloem/train.h"
#include "train/train_options.h"

struct cli_top_settings { /* keys without a section */
    int64_t seed;
    int64_t threads;
};

/* Stays where it is: settings point into it. Init, read once, fini. */
struct cli_job_config {
    struct ph_arena arena;
    struct cli_top_settings top;
    struct ph_data_settings data;
    struct ph_model_section model;
    struct ph_train_settings train;
    struct ph_optimizer_section optimizer;
    struct ph_parallel_settings parallel;
    struct ph_prepare_settings prepare;
    struct ph_synth_settings synth;
};

/* path NULL: defaults and sets alone. The config is finished by cli_job_config_fini also after a failure. */
ph_status cli_job_config_read(struct cli_job_config *config, const char *path, const struct cli_texts *sets);
void cli_job_config_fini(struct cli_job_config *config);

/* The effective config of a training (all but "prepare" and "synth"), as YAML: a file that is replaced in one moment, or "-" for
 * standard output. */
ph_status cli_job_config_write(struct cli_job_config *config, const char *path);

/* PH_ERROR_CONFIG when the config differs from the one at `path` in a key that may not change on resume. */
ph_status cli_job_config_compare(struct cli_job_config *config, const char *path);

/* Reads a config and prints it as it takes effect, to standard output. */
ph_status cli_job_config_print(const char *path, const struct cli_texts *sets);

/* Every key: Markdown or plain text, to standard output. */
ph_status cli_job_config_describe(bool is_markdown);

/* Fills what a job takes from a config: all but folder, encoder and observers. */
struct ph_train_job cli_job_config_job(const struct cli_job_config *config);

#endif
