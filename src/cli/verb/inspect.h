/* What phloem inspect shows, one function a kind of thing. All print to standard output. */
#ifndef PH_CLI_INSPECT_H
#define PH_CLI_INSPECT_H

#include <stdbool.h>

#include "cli/arguments.h"
#include "train/config/job_config.h"

/* Tells whether the path is a folder that phloem prepare made. */
bool cli_is_prepared(const char *path);

/* A config with its encoder: from a folder that phloem train left, or from a config and its training data. */
struct cli_source { /* zero-initialised is closed */
    struct ph_config config;
    struct ph_encoder *encoder;
};
ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets);
/* The same for who wants the data alone, which may lie in a folder that phloem prepare left. */
ph_status cli_source_open_data(struct cli_source *source, const char *path, const struct cli_texts *sets);
void cli_source_close(struct cli_source *source); /* also after a failure */

/* Features with their tables, and statistics of every file that the config names. */
ph_status cli_inspect_data(const struct cli_source *source);
/* Parameters, sizes and operators of the training program, or its graph for Graphviz. */
ph_status cli_inspect_model(const struct cli_source *source, bool is_dot);
/* Metadata, and shape and statistics of every tensor of a safetensors file or of a folder of such files. */
ph_status cli_inspect_checkpoint(const char *path);

#endif
