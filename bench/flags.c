#include "flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

_Noreturn static void refuse(const char *what, const char *flag, const char *value, const char *words)
{
    fprintf(stderr, "bench: %s", flag);
    if (value != NULL)
        fprintf(stderr, " '%s'", value);
    fprintf(stderr, ": %s%s\n", what, words != NULL ? words : "");
    exit(2);
}

static size_t positive_number(const char *flag, const char *text)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || number == 0 || *end != '\0')
        refuse("not a positive number", flag, text, NULL);
    return number;
}

/* Returns true when `words`, such as "shm|tcp", has this word. */
static bool is_among(const char *word, const char *words)
{
    const size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return length > 0;
    }
    return false;
}

static void take_value(const struct bench_flag *flag, const char *value)
{
    if (value == NULL)
        refuse("requires a value", flag->name, NULL, NULL);
    if (flag->number != NULL)
        *flag->number = positive_number(flag->name, value);
    else if (value[0] == '\0' || (flag->words != NULL && !is_among(value, flag->words)))
        refuse(flag->words != NULL ? "must be one of " : "must not be empty", flag->name, value, flag->words);
    else
        *flag->word = value;
}

static const struct bench_flag *find(const char *name, const struct bench_flag *flags, size_t num_flags)
{
    for (size_t i = 0; i < num_flags; i++)
        if (strcmp(name, flags[i].name) == 0)
            return &flags[i];
    return NULL;
}

void bench_read_flags(
    int argc, char **argv, struct bench_run *run, const struct bench_flag *own, size_t num_own)
{
    const struct bench_flag of_all[] = {{.name = "--rounds", .number = &run->rounds},
        {.name = "--quick", .is_set = &run->is_quick}, {.name = "--peers", .word = &run->peers},
        {.name = "--json", .word = &run->json}};
    const size_t most = run->most_rounds > 0 ? run->most_rounds : BENCH_MAX_ROUNDS;
    for (int i = 1; i < argc; i++) {
        const struct bench_flag *flag = find(argv[i], of_all, sizeof of_all / sizeof *of_all);
        if (flag == NULL)
            flag = find(argv[i], own, num_own);
        if (flag == NULL)
            refuse("unknown flag", argv[i], NULL, NULL);
        if (flag->is_set != NULL)
            *flag->is_set = true;
        else
            take_value(flag, argv[++i]); /* argv ends with a NULL */
    }
    run->rounds = run->is_quick ? 1 : run->rounds < most ? run->rounds : most;
}
