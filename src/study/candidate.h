/* The candidates of a search: their values, and the epochs that each is trained for.
 *
 * A value is a pure function of the search's seed, the key and the candidate's number, never of earlier
 * results: a search that is resumed, or given more runs, proposes the same candidates, and so does one with a
 * range more or less. Candidate 0 is the config as it is. */
#ifndef PH_STUDY_CANDIDATE_H
#define PH_STUDY_CANDIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "train/config/study_options.h"

/* PH_ERROR_CONFIG naming a range that contradicts itself, a key that is given twice, or a key that no search
 * may vary. The caller must try whether the key's own table takes the values, and whether they make a
 * difference. */
ph_status ph__ranges_check(const struct ph__tune_settings *settings);

/* Gives the values that show every possible fault: both ends of the range, or all listed values. In the
 * arena. */
ph_status ph__range_extremes(const struct ph__range_settings *range, struct ph__arena *arena,
    const char *const **values_out, size_t *num_values_out);

/* Returns the value of candidate `index` > 0: uniform over the range on its scale, rounded to four
 * significant digits within the range. In the arena; NULL when out of memory. */
const char *ph__candidate_value(
    const struct ph__range_settings *range, uint64_t seed, uint64_t index, struct ph__arena *arena);

/* Gives "key=value" for each range; nothing for candidate 0. In the arena. PH_ERROR_MEMORY. */
ph_status ph__candidate_sets(const struct ph__tune_settings *settings, uint64_t index,
    struct ph__arena *arena, const char *const **sets_out, size_t *num_sets_out);

/* ---- successive halving: the epochs of each candidate ----
 *
 * Source: Jamieson, Talwalkar: "Non-stochastic best arm identification and hyperparameter optimization",
 * AISTATS 2016, section 3; rungs as in Li et al.: "Hyperband", JMLR 18, 2018. */

#define PH_MAX_RUNGS 64

struct ph__rung {
    size_t num_candidates; /* the best of the rung before */
    int64_t epochs;        /* trained by the end of the rung, from the beginning */
};

/* Fills the rungs, and returns how many there are. Rung 0 trains all candidates for min_epochs. From rung to
 * rung the candidates are divided by eta (rounded down, at least one), and the epochs multiplied by it, up to
 * max_epochs, where the last rung ends: the epochs of a rung do not depend on the number of candidates.
 * num_candidates, min_epochs, max_epochs >= 1, eta >= 2. */
size_t ph__halving_rungs(size_t num_candidates, int64_t eta, int64_t min_epochs, int64_t max_epochs,
    struct ph__rung rungs_out[PH_MAX_RUNGS]);

#endif
