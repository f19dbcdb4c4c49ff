/* Configs and their keys on standard output. */
#ifndef PH_CLI_CONFIG_TEXT_H
#define PH_CLI_CONFIG_TEXT_H

#include <stdbool.h>

#include "cli/arguments.h"

/* Reads a config (NULL: none) with sets and prints it as it takes effect. */
ph_status cli_config_print(const char *path, const struct cli_texts *sets);

/* Every key: Markdown or plain text. */
ph_status cli_config_describe(bool is_markdown);

#endif
