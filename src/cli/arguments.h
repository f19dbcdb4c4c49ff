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

struct cli_texts { /* zero-initialised is empty; borrowed, mostly from argv */
    size_t count;
    const char *items[PH_CLI_MAX_SETS];
};

enum cli_flag_type {
    CLI_SWITCH, /* bool */
    CLI_TEXT,   /* const char *, never empty */
    CLI_TEXTS,  /* struct cli_texts: may be given again */
};

struct cli_flag {
    const char *name; /* "--out" */
    enum cli_flag_type type;
    void *target;
    const char *value; /* how help calls the value: "DIR" */
    const char *help;
};

struct cli_command {
    const char *verb;
    const char *example; /* a command that works, without the program's name */
    const char *summary;
    const char *positional; /* how help calls the positional arguments: "CONFIG" */
    size_t min_positional, max_positional;
    const struct cli_flag *flags;
    size_t num_flags;
};

struct cli_arguments {
    size_t num_positional;
    const char *positional[PH_CLI_MAX_POSITIONAL];
    bool has_printed_help; /* help was asked for: nothing is left to do */
};

/* argv[0] is the verb. "--flag value" and "--flag=value" alike; "--" ends the flags. PH_ERROR_USAGE names
 * what it does not know, and the nearest that it does; also for an empty argument, which no file or folder is
 * called. */
ph_status cli_parse(
    const struct cli_command *command, int argc, char **argv, struct cli_arguments *arguments_out);

/* One more --set KEY=VALUE, for a flag that is short for it; nothing when value is NULL. Lives as long as the
 * arena. */
ph_status cli_sets_add(struct cli_texts *sets, struct ph__arena *arena, const char *key, const char *value);

/* PH_ERROR_USAGE: "unknown <what> '<word>'", with the nearest of known where one is near, or all of them. */
ph_status cli_unknown(const char *what, const char *word, const char *const *known, size_t num_known);

/* ---- seeds ---- */

#define PH_CLI_MAX_SEEDS 1024

struct cli_seeds {
    size_t count;
    int64_t items[PH_CLI_MAX_SEEDS];
};

/* Parses "3", the seeds 1, 2, 3; "1,2,5", these; and "4-6", 4, 5, 6. PH_ERROR_USAGE for anything else, and
 * for a seed that comes twice. */
ph_status cli_seeds_parse(const char *text, struct cli_seeds *seeds_out);

#endif
