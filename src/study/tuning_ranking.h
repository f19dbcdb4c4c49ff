/* Who is best in a search. */
#ifndef PH_STUDY_TUNING_RANKING_H
#define PH_STUDY_TUNING_RANKING_H

#include "study/tuning.h"

/* Whether by logloss; else by AUC. */
bool ph__tuning_is_by_logloss(const struct ph__tuning *tuning);

/* The trials that have finished a rung, the best first: by how far they came, then by the metric, then by number. In the
 * arena, with those behind them that have not. PH_ERROR_MEMORY. */
ph_status ph__tuning_ranking(
    struct ph__tuning *tuning, const struct ph__trial ***trials_out, size_t *num_ranked_out);

#endif
