/* Prints configs and their keys to standard output. */
#ifndef PH_CLI_CONFIG_TEXT_H
#define PH_CLI_CONFIG_TEXT_H

#include <stdbool.h>

#include "cli/arguments.h"

/* Prints a config (NULL: none), with sets, as it takes effect. */
ph_status cli_config_print(const char *path, const struct cli_texts *sets);

/* Prints the help of every key, as Markdown or plain text. */
ph_status cli_config_describe(bool is_markdown);

#endif
