/* phloem: the program. Finds the verb, runs it, and turns a status into one line and an exit code. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/verb.h"
#include "cli/with_ranks.h"

struct verb {
    const char *name;
    enum cli_verb_processes processes;
    const char *summary;
    cli_verb_function *run;
};

static const struct verb verbs[] = {
#define VERB(name, processes, summary) {#name, processes, summary, verb_##name},
#include "cli/verbs.def"
#undef VERB
};

#define NUM_VERBS (sizeof verbs / sizeof *verbs)

static const struct {
    const char *codes, *meaning;
} exit_codes[] = {{"0", "done"}, {"1", "a bug of phloem"}, {"2", "usage or config"},
    {"3", "bad data, or a training that diverged"}, {"4", "bad checkpoint"}, {"5", "out of memory or disk"},
    {"6", "a peer rank or hub failed"}, {"130, 143", "stopped by a signal, after saving"}};

static void print_text(void)
{
    printf("example: phloem train config.yaml --out runs/mine\n\nusage: phloem VERB [ARGUMENTS]\n\n"
           "Phloem trains recommendation models.\n\n");
    for (size_t i = 0; i < NUM_VERBS; i++)
        printf("  %-10s %s\n", verbs[i].name, verbs[i].summary);
    printf("  %-10s %s\n", "help", "explain a verb");
    printf("\nphloem help VERB explains a verb; phloem config --docs explains every config key.\n");
}

static void print_man(void)
{
    printf(".TH PHLOEM 1\n.SH NAME\nphloem \\- trains recommendation models\n.SH SYNOPSIS\n.B phloem VERB "
           "[ARGUMENTS]\n"
           ".SH EXAMPLE\nphloem train config.yaml \\-\\-out runs/mine\n.SH VERBS\n");
    for (size_t i = 0; i < NUM_VERBS; i++) {
        printf(".TP\n.BR phloem\\-%s (1)\n", verbs[i].name);
        cli_man_print(verbs[i].summary);
        printf("\n");
    }
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++)
        printf(".TP\n%s\n%s\n", exit_codes[i].codes, exit_codes[i].meaning);
}

static void print_words(void)
{
    for (size_t i = 0; i < NUM_VERBS; i++)
        printf("%s\n", verbs[i].name);
    printf("help\n");
}

static void print_help(enum cli_help_form form)
{
    if (form == CLI_HELP_MAN)
        print_man();
    else if (form == CLI_HELP_WORDS)
        print_words();
    else
        print_text();
}

static ph_status run_verb(int argc, char **argv)
{
    const char *known[NUM_VERBS + 1] = {[NUM_VERBS] = "help"};
    for (size_t i = 0; i < NUM_VERBS; i++) {
        known[i] = verbs[i].name;
        if (strcmp(argv[0], verbs[i].name) != 0)
            continue;
        if (verbs[i].processes == ONE_PROCESS)
            PH_TRY(cli_check_one_process(verbs[i].name));
        return verbs[i].run(argc, argv);
    }
    return cli_unknown("verb", argv[0], known, NUM_VERBS + 1);
}

/* Runs phloem help [VERB [PART]], the same as phloem VERB [PART] --help. */
static ph_status help(int num_words, char **words)
{
    static char flag[] = "--help";
    char *asked[] = {NULL, NULL, NULL, NULL};
    if (num_words == 0 || strcmp(words[0], "help") == 0) {
        print_help(CLI_HELP_TEXT);
        return PH_OK;
    }
    if (num_words > 2)
        return ph_fail(
            PH_ERROR_USAGE, "one argument too many: '%s'; usage: phloem help [VERB [PART]]", words[2]);
    memcpy(asked, words, (size_t)num_words * sizeof *asked);
    asked[num_words] = flag;
    return run_verb(num_words + 1, asked);
}

static ph_status run(int argc, char **argv)
{
    const enum cli_help_form form = cli_help_asked(argv[1]);
    if (form != CLI_HELP_NONE) {
        print_help(form);
        return PH_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("phloem %s\n", PH_VERSION);
        return PH_OK;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 2, argv + 2);
    return run_verb(argc - 1, argv + 1);
}

/* Returns true when all output was written. Earlier failures count, too: a stream that has failed once and
 * then flushes has lost something. */
static bool is_printed(void)
{
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

/* Opens the null device in place of closed standard descriptors. A closed one would be given to the next file
 * that is opened, and "-" or a printed line would mean that file. The null device is opened the wrong way
 * round, so that reading and printing fail as on a closed descriptor. */
static void fill_standard_descriptors(void)
{
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0)
            open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    if (argc < 2) {
        print_help(CLI_HELP_TEXT);
        return ph_status_exit_code(PH_ERROR_USAGE);
    }
    ph_status status = run(argc, argv);
    if (status == PH_OK && !is_printed())
        status = ph_fail(PH_ERROR_DISK, "cannot write standard output");
    if (status != PH_OK && ph_error_text()[0] != '\0') /* without a text: it is reported elsewhere */
        fprintf(stderr, "phloem: error: %s\n", ph_error_text());
    return ph_status_exit_code(status);
}
