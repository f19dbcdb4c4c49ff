/* Help on a command, made from its table of flags: as text, as a manual page, and as words for shells to
 * complete. */
#ifndef PH_CLI_HELP_H
#define PH_CLI_HELP_H

#include <stdbool.h>

#include "cli/arguments.h"

enum cli_help_form {
    CLI_HELP_NONE,
    CLI_HELP_TEXT, /* --help */
    CLI_HELP_MAN,  /* --help=man: a manual page, for man(7) */
    CLI_HELP_WORDS /* --help=words: a flag a line, with its value behind it: for completion
                      (completions/phloem.bash) */
};

/* Returns the form of help that an argument asks for, or CLI_HELP_NONE. */
enum cli_help_form cli_help_asked(const char *argument);

/* Prints help on a command to standard output. */
void cli_help_print(const struct cli_command *command, enum cli_help_form form);

/* Prints a text as it stands in a manual page: nothing in it is taken for a request. */
void cli_man_print(const char *text);

#endif
