#include "study/candidate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/text/number.h"

static const struct ph__range_settings *range_at(const struct ph__tune_settings *settings, size_t index)
{
    return (const struct ph__range_settings *)settings->ranges.items + index;
}

/* ---- checking ranges ---- */

/* Returns what is wrong with the range's bounds, or NULL. */
static const char *fault_of_bounds(const struct ph__range_settings *range)
{
    const bool has_bounds = range->min != 0 || range->max != 0;
    if (has_bounds && range->values.count > 0)
        return "must have either min and max or values, not both";
    if (!has_bounds && range->values.count == 0)
        return "requires min and max, or values";
    if (range->values.count > 0)
        return NULL;
    if (!(range->min < range->max))
        return "must have min below max";
    if (range->scale == PH_RANGE_LOG && range->min <= 0)
        return "has scale: log, which requires min above 0";
    const bool is_whole = range->min == floor(range->min) && range->max == floor(range->max);
    const bool is_exact = fabs(range->min) < 9007199254740992.0 && fabs(range->max) < 9007199254740992.0;
    if (range->kind == PH_RANGE_INTEGER && (!is_whole || !is_exact))
        return "has kind: integer, which requires integers as min and max";
    return NULL;
}

static const char *fault_of_key(const char *key)
{
    static const char *const others[] = {"tune.", "synth.", "prepare.", "published.", "data.train",
        "data.valid", "data.test", "data.prepared"};
    if (strcmp(key, "seed") == 0 || strcmp(key, "threads") == 0)
        return "cannot be tuned";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(key, others[i], strlen(others[i])) == 0)
            return "cannot be tuned";
    return NULL;
}

static ph_status check_range(const struct ph__tune_settings *settings, size_t index)
{
    const struct ph__range_settings *range = range_at(settings, index);
    const char *fault = fault_of_key(range->key);
    const bool is_resource = settings->search == PH_TUNE_HALVING && strcmp(range->key, "train.epochs") == 0;
    if (fault == NULL)
        fault = is_resource ? "cannot be tuned with search: halving, which sets it" : fault_of_bounds(range);
    for (size_t i = 0; i < index && fault == NULL; i++)
        if (strcmp(range_at(settings, i)->key, range->key) == 0)
            fault = "is given twice";
    if (fault == NULL)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "tune.ranges[%zu]: %s %s", index, range->key, fault);
}

ph_status ph__ranges_check(const struct ph__tune_settings *settings)
{
    if (settings->ranges.count == 0)
        return ph_fail(PH_ERROR_CONFIG, "tune.ranges is empty: name the keys to vary");
    for (size_t i = 0; i < settings->ranges.count; i++)
        PH_TRY(check_range(settings, i));
    return PH_OK;
}

/* ---- values ---- */

static const char *integer_text(double number, struct ph__arena *arena)
{
    return ph__arena_printf(arena, "%.0f", number);
}

static const char *number_text(double number, struct ph__arena *arena)
{
    char text[PH_NUMBER_TEXT_BYTES];
    return ph__arena_strdup(arena, ph__number_format(number, text));
}

ph_status ph__range_extremes(const struct ph__range_settings *range, struct ph__arena *arena,
    const char *const **values_out, size_t *num_values_out)
{
    const char **ends = ph__arena_alloc_array(arena, 2, sizeof *ends);
    if (range->values.count > 0) {
        *values_out = range->values.items;
        *num_values_out = range->values.count;
        return PH_OK;
    }
    if (ends == NULL)
        return PH_ERROR_MEMORY;
    ends[0] = (range->kind == PH_RANGE_INTEGER ? integer_text : number_text)(range->min, arena);
    ends[1] = (range->kind == PH_RANGE_INTEGER ? integer_text : number_text)(range->max, arena);
    *values_out = ends;
    *num_values_out = 2;
    return ends[0] != NULL && ends[1] != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Returns the number at `share` (0 to 1) of the way from low to high, on the range's scale. */
static double interpolate(const struct ph__range_settings *range, double low, double high, double share)
{
    if (range->scale == PH_RANGE_LOG)
        return exp(log(low) + share * (log(high) - log(low)));
    return low + share * (high - low);
}

/* Rounds to four significant digits, within the range's bounds. */
static double round_digits(const struct ph__range_settings *range, double number)
{
    char text[PH_NUMBER_TEXT_BYTES];
    snprintf(text, sizeof text, "%.4g", number);
    return fmin(fmax(strtod(text, NULL), range->min), range->max);
}

const char *ph__candidate_value(
    const struct ph__range_settings *range, uint64_t seed, uint64_t index, struct ph__arena *arena)
{
    const struct ph__rng_key key = {.seed = seed, .stream = ph__hash_name(range->key)};
    const double share = ph__rng_uniform(&key, index, 0);
    if (range->values.count > 0)
        return range->values.items[(size_t)(share * (double)range->values.count)];
    if (range->kind == PH_RANGE_INTEGER)
        return integer_text(
            fmin(floor(interpolate(range, range->min, range->max + 1, share)), range->max), arena);
    return number_text(round_digits(range, interpolate(range, range->min, range->max, share)), arena);
}

ph_status ph__candidate_sets(const struct ph__tune_settings *settings, uint64_t index,
    struct ph__arena *arena, const char *const **sets_out, size_t *num_sets_out)
{
    const size_t count = index > 0 ? settings->ranges.count : 0;
    const char **sets = ph__arena_alloc_array(arena, count, sizeof *sets);
    if (sets == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct ph__range_settings *range = range_at(settings, i);
        const char *value = ph__candidate_value(range, (uint64_t)settings->seed, index, arena);
        sets[i] = value != NULL ? ph__arena_printf(arena, "%s=%s", range->key, value) : NULL;
        if (sets[i] == NULL)
            return PH_ERROR_MEMORY;
    }
    *sets_out = sets;
    *num_sets_out = count;
    return PH_OK;
}

/* ---- successive halving ---- */

static size_t divide(size_t num_candidates, int64_t eta)
{
    const size_t left = num_candidates / (size_t)eta;
    return left > 0 ? left : 1;
}

/* Multiplies epochs, which are below max_epochs, by eta, up to max_epochs. */
static int64_t multiply(int64_t epochs, int64_t eta, int64_t max_epochs)
{
    return epochs > max_epochs / eta ? max_epochs : epochs * eta;
}

size_t ph__halving_rungs(size_t num_candidates, int64_t eta, int64_t min_epochs, int64_t max_epochs,
    struct ph__rung rungs_out[PH_MAX_RUNGS])
{
    size_t count = 0;
    struct ph__rung rung = {num_candidates, min_epochs < max_epochs ? min_epochs : max_epochs};
    while (rung.epochs < max_epochs) {
        rungs_out[count++] = rung;
        rung.num_candidates = divide(rung.num_candidates, eta);
        rung.epochs = multiply(rung.epochs, eta, max_epochs);
    }
    rungs_out[count++] = rung;
    return count;
}
