#include "study/tuning_ranking.h"

#include <math.h>
#include <stdlib.h>

bool ph__tuning_is_by_logloss(const struct ph__tuning *tuning)
{
    const struct ph_config *config = tuning->config;
    if (config->tune.metric == PH_TUNE_SELECTION)
        return config->train.selection == PH_SELECT_LOGLOSS;
    return config->tune.metric == PH_TUNE_LOGLOSS;
}

/* Larger is better; what is undefined is worst. */
static double merit(const struct ph__trial *trial, bool is_by_logloss)
{
    const double merit = is_by_logloss ? -trial->valid_logloss : trial->valid_auc;
    return isnan(merit) ? -INFINITY : merit;
}

/* Failed trials last, then as ph__tuning_ranking says. */
static int compare(const struct ph__trial *left, const struct ph__trial *right, bool is_by_logloss)
{
    const bool left_fails = left->failure != NULL, right_fails = right->failure != NULL;
    const double left_merit = merit(left, is_by_logloss), right_merit = merit(right, is_by_logloss);
    if (left_fails != right_fails)
        return left_fails ? 1 : -1;
    if (left->num_rungs != right->num_rungs)
        return left->num_rungs > right->num_rungs ? -1 : 1;
    if (left_merit != right_merit)
        return left_merit > right_merit ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

static int compare_by_auc(const void *left, const void *right)
{
    return compare(*(const struct ph__trial *const *)left, *(const struct ph__trial *const *)right, false);
}

static int compare_by_logloss(const void *left, const void *right)
{
    return compare(*(const struct ph__trial *const *)left, *(const struct ph__trial *const *)right, true);
}

ph_status ph__tuning_ranking(
    struct ph__tuning *tuning, const struct ph__trial ***trials_out, size_t *num_ranked_out)
{
    const struct ph__trial **trials =
        ph__arena_alloc_array(&tuning->arena, tuning->num_trials, sizeof *trials);
    if (trials == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < tuning->num_trials; i++)
        trials[i] = &tuning->trials[i];
    qsort(trials, tuning->num_trials, sizeof *trials,
        ph__tuning_is_by_logloss(tuning) ? compare_by_logloss : compare_by_auc);
    size_t num_ranked = 0;
    while (num_ranked < tuning->num_trials && trials[num_ranked]->num_rungs > 0 &&
           trials[num_ranked]->failure == NULL)
        num_ranked++;
    *trials_out = trials;
    *num_ranked_out = num_ranked;
    return PH_OK;
}
