/* The candidates of a search: which values they have, and how long each is trained.
 *
 * A value is a pure function of the search's seed, the key and the candidate's number, never of what was
 * tried before: a search that is resumed, or given more runs, proposes the same ones, and so does one with a
 * range more or less. Candidate 0 is the config as it is. */
#ifndef PH_STUDY_CANDIDATE_H
#define PH_STUDY_CANDIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "train/config/study_options.h"

/* PH_ERROR_CONFIG for a range that contradicts itself, for a key that is given twice and for one that no
 * search may vary; naming it. What the key's own table says of the values, and whether they make a
 * difference, is for the caller to try. */
ph_status ph__ranges_check(const struct ph__tune_settings *settings);

/* The values that together have every way to be wrong: both ends, or all that are listed. In the arena. */
ph_status ph__range_extremes(const struct ph__range_settings *range, struct ph__arena *arena,
    const char *const **values_out, size_t *num_values_out);

/* Of candidate `index` > 0: uniform over the range on its scale. Numbers have four digits that count, and do
 * not leave the range for it. In the arena, NULL when out of memory. */
const char *ph__candidate_value(
    const struct ph__range_settings *range, uint64_t seed, uint64_t index, struct ph__arena *arena);

/* "key=value" of each range; none for candidate 0. In the arena. PH_ERROR_MEMORY. */
ph_status ph__candidate_sets(const struct ph__tune_settings *settings, uint64_t index,
    struct ph__arena *arena, const char *const **sets_out, size_t *num_sets_out);

/* ---- successive halving: who is trained for how long ----
 *
 * Source: Jamieson, Talwalkar: "Non-stochastic best arm identification and hyperparameter optimization",
 * AISTATS 2016, section 3; rungs as in Li et al.: "Hyperband", JMLR 18, 2018. */

#define PH_MAX_RUNGS 64

struct ph__rung {
    size_t num_candidates; /* the best of the rung before */
    int64_t epochs;        /* that they have been trained for at its end, from the beginning */
};

/* Rung 0 is everybody for min_epochs. From rung to rung the candidates are divided by eta (rounded down, at
 * least one), and the epochs multiplied by it, up to max_epochs, where the last rung ends. So the epochs of a
 * rung do not hang on how many candidates there are. num_candidates, min_epochs, max_epochs >= 1, eta >= 2.
 * Returns how many rungs there are. */
size_t ph__halving_rungs(size_t num_candidates, int64_t eta, int64_t min_epochs, int64_t max_epochs,
    struct ph__rung rungs_out[PH_MAX_RUNGS]);

#endif
