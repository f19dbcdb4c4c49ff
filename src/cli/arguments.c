#include "cli/arguments.h"

#include <stdio.h>
#include <string.h>

#include "base/option/option.h"
#include "base/text/number.h"
#include "cli/help.h"
#include "phloem/comm.h"

#define MAX_FLAGS 16

ph_status cli_unknown(const char *what, const char *word, const char *const *known, size_t num_known)
{
    const char *nearest = ph__nearest_word(word, known, num_known);
    if (nearest != NULL)
        return ph_fail(PH_ERROR_USAGE, "unknown %s '%s'; did you mean '%s'?", what, word, nearest);
    char list[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < num_known && used < sizeof list; i++) {
        const int written = snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", known[i]);
        used += written > 0 ? (size_t)written : 0;
    }
    return ph_fail(PH_ERROR_USAGE, "unknown %s '%s'; known: %s", what, word, list);
}

static const struct cli_flag *find_flag(const struct cli_command *command, const char *text, size_t length)
{
    for (size_t i = 0; i < command->num_flags; i++)
        if (strlen(command->flags[i].name) == length && memcmp(command->flags[i].name, text, length) == 0)
            return &command->flags[i];
    return NULL;
}

static ph_status unknown_flag(const struct cli_command *command, const char *word)
{
    const char *known[MAX_FLAGS];
    size_t num_known = 0;
    for (size_t i = 0; i < command->num_flags && i < MAX_FLAGS; i++)
        known[num_known++] = command->flags[i].name;
    return cli_unknown("flag", word, known, num_known);
}

static ph_status add_text(struct cli_texts *texts, const char *flag, const char *text)
{
    if (texts->count == PH_CLI_MAX_SETS)
        return ph_fail(PH_ERROR_USAGE, "%s is given more than %d times", flag, PH_CLI_MAX_SETS);
    texts->items[texts->count++] = text;
    return PH_OK;
}

ph_status cli_sets_add(struct cli_texts *sets, struct ph__arena *arena, const char *key, const char *value)
{
    if (value == NULL)
        return PH_OK;
    const char *text = ph__arena_printf(arena, "%s=%s", key, value);
    return text != NULL ? add_text(sets, "--set", text) : PH_ERROR_MEMORY;
}

/* Takes the flag at argv[*at] and, if it needs one, the value behind it. */
static ph_status take_flag(const struct cli_command *command, int argc, char **argv, int *at)
{
    const char *text = argv[*at];
    size_t length = strcspn(text, "=");
    const struct cli_flag *flag = find_flag(command, text, length);
    if (flag == NULL)
        return unknown_flag(command, text);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    if (flag->type == CLI_SWITCH) {
        if (value != NULL)
            return ph_fail(PH_ERROR_USAGE, "%s takes no value", flag->name);
        *(bool *)flag->target = true;
        return PH_OK;
    }
    if (value == NULL && *at + 1 < argc)
        value = argv[++*at];
    bool is_empty = value == NULL || (flag->type == CLI_TEXT && value[0] == '\0');
    if (is_empty)
        return ph_fail(PH_ERROR_USAGE, "%s needs a value: %s %s", flag->name, flag->name, flag->value);
    if (flag->type == CLI_TEXTS)
        return add_text(flag->target, flag->name, value);
    *(const char **)flag->target = value;
    return PH_OK;
}

static ph_status take_positional(
    const struct cli_command *command, const char *text, struct cli_arguments *arguments)
{
    if (arguments->num_positional == command->max_positional)
        return ph_fail(PH_ERROR_USAGE, "one argument too many: '%s'; usage: phloem %s %s", text,
            command->verb, command->positional);
    if (text[0] == '\0')
        return ph_fail(
            PH_ERROR_USAGE, "an argument is empty; usage: phloem %s %s", command->verb, command->positional);
    arguments->positional[arguments->num_positional++] = text;
    return PH_OK;
}

ph_status cli_parse(
    const struct cli_command *command, int argc, char **argv, struct cli_arguments *arguments_out)
{
    struct cli_arguments arguments = {0};
    bool has_flags = true;
    for (int i = 1; i < argc; i++) {
        const enum cli_help_form help = has_flags ? cli_help_asked(argv[i]) : CLI_HELP_NONE;
        if (help != CLI_HELP_NONE) {
            if (ph_comm_speaks(NULL)) /* the other ranks of a launcher's job are silent */
                cli_help_print(command, help);
            arguments.has_printed_help = true;
            *arguments_out = arguments;
            return PH_OK;
        }
        if (has_flags && strcmp(argv[i], "--") == 0)
            has_flags = false;
        else if (has_flags && argv[i][0] == '-' && argv[i][1] != '\0')
            PH_TRY(take_flag(command, argc, argv, &i));
        else
            PH_TRY(take_positional(command, argv[i], &arguments));
    }
    if (arguments.num_positional < command->min_positional)
        return ph_fail(PH_ERROR_USAGE, "an argument is missing; usage: phloem %s %s", command->verb,
            command->positional);
    *arguments_out = arguments;
    return PH_OK;
}

/* ---- seeds ---- */

#define MAX_SEED 9007199254740992 /* greatest value of the key "seed" */

static ph_status refuse(const char *text)
{
    return ph_fail(PH_ERROR_USAGE,
        "--seeds %s: must be a number of seeds (3: seeds 1, 2, 3), a list (1,2,5) or a range (4-6), at most "
        "%d seeds",
        text, PH_CLI_MAX_SEEDS);
}

/* Parses the first `length` bytes of text as a whole number. */
static bool parse_seed(const char *text, size_t length, int64_t *seed_out)
{
    char digits[24];
    if (length == 0 || length >= sizeof digits || text[0] < '0' || text[0] > '9')
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    return ph__integer_parse(digits, seed_out) && *seed_out <= MAX_SEED;
}

static bool append_range(int64_t first, int64_t last, struct cli_seeds *seeds)
{
    if (last < first || last - first >= (int64_t)(PH_CLI_MAX_SEEDS - seeds->count))
        return false;
    for (int64_t seed = first; seed <= last; seed++)
        seeds->items[seeds->count++] = seed;
    return true;
}

static ph_status check_once(const struct cli_seeds *seeds)
{
    for (size_t i = 0; i < seeds->count; i++)
        for (size_t j = 0; j < i; j++)
            if (seeds->items[i] == seeds->items[j])
                return ph_fail(PH_ERROR_USAGE, "--seeds: %lld is given twice", (long long)seeds->items[i]);
    return PH_OK;
}

static ph_status parse_list(const char *text, struct cli_seeds *seeds)
{
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        int64_t seed;
        if (!parse_seed(at, length, &seed) || !append_range(seed, seed, seeds))
            return refuse(text);
        at += length;
        if (*at == '\0')
            return check_once(seeds);
    }
}

ph_status cli_seeds_parse(const char *text, struct cli_seeds *seeds_out)
{
    struct cli_seeds seeds = {0};
    const char *dash = strchr(text, '-');
    int64_t first = 1, last;
    if (strchr(text, ',') != NULL) {
        PH_TRY(parse_list(text, &seeds));
    } else {
        const char *end = dash != NULL ? dash + 1 : text;
        const bool has_first = dash == NULL || parse_seed(text, (size_t)(dash - text), &first);
        if (!has_first || !parse_seed(end, strlen(end), &last) || !append_range(first, last, &seeds))
            return refuse(text);
    }
    *seeds_out = seeds;
    return PH_OK;
}
