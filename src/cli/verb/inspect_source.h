/* Sources: a config with its encoder, and what phloem inspect shows of its data. */
#ifndef PH_CLI_INSPECT_SOURCE_H
#define PH_CLI_INSPECT_SOURCE_H

#include <stdbool.h>

#include "cli/arguments.h"
#include "train/config/job_config.h"

/* Returns true when the path is a folder that phloem prepare made. */
bool cli_is_prepared(const char *path);

/* A config with its encoder: from a folder that phloem train left, or from a config and its training data. */
struct cli_source { /* zero-initialised is closed */
    struct ph_config config;
    struct ph_encoder *encoder;
};
ph_status cli_source_open(struct cli_source *source, const char *path, const struct cli_texts *sets);
/* Does the same for a verb that needs only the data, which may lie in a folder that phloem prepare made. */
ph_status cli_source_open_data(struct cli_source *source, const char *path, const struct cli_texts *sets);
void cli_source_close(struct cli_source *source); /* also after a failure */

/* Prints features with their tables, and statistics of every file that the config names. */
ph_status cli_inspect_data(const struct cli_source *source);

#endif
