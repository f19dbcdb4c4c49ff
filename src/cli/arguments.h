/* Command lines: flags by table, positional arguments, and help made from the same table. */
#ifndef PH_CLI_ARGUMENTS_H
#define PH_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

#define PH_CLI_MAX_SETS 256
#define PH_CLI_MAX_POSITIONAL 256
/* As max_positional: the first is a program, and all that is behind it is the program's. */
#define PH_CLI_PROGRAM (PH_CLI_MAX_POSITIONAL - 1)

struct cli_texts { /* zero-initialised is empty; texts are borrowed, mostly from argv */
    size_t count;
    const char *items[PH_CLI_MAX_SETS];
};

enum cli_flag_type {
    CLI_SWITCH, /* bool */
    CLI_TEXT,   /* const char *, never empty */
    CLI_TEXTS,  /* struct cli_texts: may be repeated */
};

struct cli_flag {
    const char *name; /* "--out" */
    enum cli_flag_type type;
    void *target;
    const char *value; /* name of the value in the help: "DIR" */
    const char *help;
};

struct cli_command {
    const char *verb;
    const char *example; /* a command that works, without the program's name */
    const char *summary;
    const char *positional; /* names of the positional arguments in the help: "CONFIG" */
    size_t min_positional, max_positional;
    const struct cli_flag *flags;
    size_t num_flags;
};

struct cli_arguments {
    size_t num_positional;
    const char *positional[PH_CLI_MAX_POSITIONAL];
    bool has_printed_help; /* help was asked for: nothing is left to do */
};

/* Parses a command line; argv[0] is the verb. Takes "--flag value" and "--flag=value"; "--" ends the flags.
 * PH_ERROR_USAGE names an unknown flag, and the nearest known one; also for an empty argument, which is no
 * name of a file or folder. */
ph_status cli_parse(
    const struct cli_command *command, int argc, char **argv, struct cli_arguments *arguments_out);

/* Adds one more --set KEY=VALUE on behalf of a shorter flag; nothing when value is NULL. The text lives as
 * long as the arena. */
ph_status cli_sets_add(struct cli_texts *sets, struct ph__arena *arena, const char *key, const char *value);

/* Parse a flag's whole number, or number, from `least` to `most`; NULL, a flag that is not given, leaves what
 * is there. PH_ERROR_USAGE names the flag, its value and the range; a most of INT64_MAX is no limit. */
ph_status cli_count_parse(const char *flag, const char *text, int64_t least, int64_t most, int64_t *count);
ph_status cli_number_parse(const char *flag, const char *text, double least, double most, double *number);

/* PH_ERROR_USAGE: "unknown <what> '<word>'", with the nearest known word if one is near, else all known
 * words. */
ph_status cli_unknown(const char *what, const char *word, const char *const *known, size_t num_known);

/* ---- help ---- */

enum cli_help_form {
    CLI_HELP_NONE,
    CLI_HELP_TEXT, /* --help */
    CLI_HELP_MAN,  /* --help=man: a manual page, for man(7) */
    CLI_HELP_WORDS /* --help=words: a flag a line, with its value behind it: for completion
                      (completions/phloem.bash) */
};

/* Returns the form of help that an argument asks for, or CLI_HELP_NONE. */
enum cli_help_form cli_help_asked(const char *argument);

/* Prints a text as it stands in a manual page: nothing in it is taken for a request. */
void cli_man_print(const char *text);

/* ---- seeds ---- */

#define PH_CLI_MAX_SEEDS 1024

struct cli_seeds {
    size_t count;
    int64_t items[PH_CLI_MAX_SEEDS];
};

/* Parses seeds: "3" stands for 1, 2, 3; "1,2,5" for these; "4-6" for 4, 5, 6. PH_ERROR_USAGE for anything
 * else, and for a repeated seed. */
ph_status cli_seeds_parse(const char *text, struct cli_seeds *seeds_out);

#endif
