#include "cli/help.h"

#include <stdio.h>
#include <string.h>

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

/* ---- text ---- */

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

/* ---- a manual page ---- */

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

/* ---- */

static void print_words(const struct cli_command *command)
{
    for (size_t i = 0; i < command->num_flags; i++)
        printf("%s%s%s\n", command->flags[i].name, command->flags[i].type != CLI_SWITCH ? " " : "",
            command->flags[i].type != CLI_SWITCH ? command->flags[i].value : "");
}

void cli_help_print(const struct cli_command *command, enum cli_help_form form)
{
    if (form == CLI_HELP_TEXT)
        print_text(command);
    else if (form == CLI_HELP_MAN)
        print_man(command);
    else if (form == CLI_HELP_WORDS)
        print_words(command);
}
