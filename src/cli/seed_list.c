#include "cli/seed_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"

#define MAX_SEED 9007199254740992 /* of the key "seed" */

static ph_status refuse(const char *text)
{
    return ph_fail(PH_ERROR_USAGE,
        "--seeds %s: must be how many (3: the seeds 1, 2, 3), a list (1,2,5) or a range (4-6), at most %d",
        text, PH_CLI_MAX_SEEDS);
}

/* The whole number that stands in text before `length`. */
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
