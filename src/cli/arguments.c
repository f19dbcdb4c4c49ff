#include "cli/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/option/option.h"
#include "base/text/number.h"
#include "phloem/comm.h"

#define MAX_FLAGS 16

ph_status cli_count_parse(const char *flag, const char *text, int64_t least, int64_t most, int64_t *count)
{
    int64_t parsed;
    if (text == NULL)
        return PH_OK;
    if (ph__integer_parse(text, &parsed) && parsed >= least && parsed <= most) {
        *count = parsed;
        return PH_OK;
    }
    if (most == INT64_MAX)
        return ph_fail(
            PH_ERROR_USAGE, "%s must be a whole number above %" PRId64 ", not '%s'", flag, least - 1, text);
    return ph_fail(PH_ERROR_USAGE, "%s must be a whole number from %" PRId64 " to %" PRId64 ", not '%s'",
        flag, least, most, text);
}

ph_status cli_number_parse(const char *flag, const char *text, double least, double most, double *number)
{
    double parsed;
    if (text == NULL)
        return PH_OK;
    if (!ph__number_parse(text, &parsed) || !(parsed >= least && parsed <= most))
        return ph_fail(
            PH_ERROR_USAGE, "%s must be a number from %g to %g, not '%s'", flag, least, most, text);
    *number = parsed;
    return PH_OK;
}

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

/* ---- help ---- */

enum cli_help_form cli_help_asked(const char *argument)
{
    static const struct {
        const char *argument;
        enum cli_help_form form;
    } forms[] = {{"--help", CLI_HELP_TEXT}, {"-h", CLI_HELP_TEXT}, {"--help=man", CLI_HELP_MAN},
        {"--help=words", CLI_HELP_WORDS}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(argument, forms[i].argument) == 0)
            return forms[i].form;
    return CLI_HELP_NONE;
}

static void print_usage(const struct cli_command *command)
{
    printf("phloem %s", command->verb);
    if (command->positional[0] != '\0')
        printf(" %s", command->positional);
    for (size_t i = 0; i < command->num_flags; i++) {
        const struct cli_flag *flag = &command->flags[i];
        const bool has_value = flag->type != CLI_SWITCH;
        printf(" [%s%s%s]%s", flag->name, has_value ? " " : "", has_value ? flag->value : "",
            flag->type == CLI_TEXTS ? "..." : "");
    }
    printf("\n");
}

static void print_text(const struct cli_command *command)
{
    printf("example: phloem %s\n\nusage: ", command->example);
    print_usage(command);
    printf("\n%s\n\n", command->summary);
    for (size_t i = 0; i < command->num_flags; i++) {
        const struct cli_flag *flag = &command->flags[i];
        char name[64];
        snprintf(name, sizeof name, "%s %s", flag->name, flag->type != CLI_SWITCH ? flag->value : "");
        printf("  %-22s %s\n", name, flag->help);
    }
}

void cli_man_print(const char *text)
{
    for (bool is_line_start = true; *text != '\0'; text++) {
        if (is_line_start && (*text == '.' || *text == '\''))
            printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
        is_line_start = *text == '\n';
    }
}

/* Prints the name of the page, "phloem-hub-status", in small letters or capital ones. */
static void print_page_name(const struct cli_command *command, bool is_capital)
{
    printf(is_capital ? "PHLOEM\\-" : "phloem\\-");
    for (const char *at = command->verb; *at != '\0'; at++)
        if (*at == ' ')
            printf("\\-");
        else
            putchar(is_capital && *at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
}

/* Prints the summary up to its first full stop. */
static void print_first_sentence(const char *summary)
{
    for (; *summary != '\0' && !(summary[0] == '.' && (summary[1] == ' ' || summary[1] == '\n')); summary++)
        putchar(*summary == '\n' ? ' ' : *summary);
}

static void print_man(const struct cli_command *command)
{
    printf(".TH ");
    print_page_name(command, true);
    printf(" 1\n.SH NAME\n");
    print_page_name(command, false);
    printf(" \\- ");
    print_first_sentence(command->summary);
    printf("\n.SH SYNOPSIS\n.B ");
    print_usage(command);
    printf(".SH EXAMPLE\n.nf\nphloem ");
    cli_man_print(command->example);
    printf("\n.fi\n.SH DESCRIPTION\n");
    cli_man_print(command->summary);
    printf("\n");
    if (command->num_flags > 0)
        printf(".SH OPTIONS\n");
    for (size_t i = 0; i < command->num_flags; i++) {
        const struct cli_flag *flag = &command->flags[i];
        printf(".TP\n.B ");
        cli_man_print(flag->name);
        printf(flag->type != CLI_SWITCH ? " \\fI%s\\fR\n" : "\n", flag->value);
        cli_man_print(flag->help);
        printf("\n");
    }
    printf(".SH SEE ALSO\n.BR phloem (1)\n");
}

static void print_words(const struct cli_command *command)
{
    for (size_t i = 0; i < command->num_flags; i++)
        printf("%s%s%s\n", command->flags[i].name, command->flags[i].type != CLI_SWITCH ? " " : "",
            command->flags[i].type != CLI_SWITCH ? command->flags[i].value : "");
}

static void print_help(const struct cli_command *command, enum cli_help_form form)
{
    if (form == CLI_HELP_TEXT)
        print_text(command);
    else if (form == CLI_HELP_MAN)
        print_man(command);
    else if (form == CLI_HELP_WORDS)
        print_words(command);
}

/* ---- parsing ---- */

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
    if (text[0] == '\0' && (command->max_positional != PH_CLI_PROGRAM || arguments->num_positional == 0))
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
                print_help(command, help);
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
        has_flags = has_flags && !(command->max_positional == PH_CLI_PROGRAM && arguments.num_positional > 0);
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
