/* Numbers that each rank has counted of its own part, as all ranks together have them. All ranks call these alike, with as
 * many numbers; alone (comm NULL) they stay as they are. Numbers that did not arrive are as they were, and then it is
 * PH_ERROR_MEMORY or an error of ph__comm_wait. */
#ifndef PH_TRAIN_RANK_NUMBERS_H
#define PH_TRAIN_RANK_NUMBERS_H

#include "comm/collective/comm.h"

/* counts (count) become their sums. */
ph_status ph__rank_numbers_sum(struct ph_comm *comm, size_t count, uint64_t *counts);
/* A bit is set where any rank has set it. */
ph_status ph__rank_numbers_unite(struct ph_comm *comm, size_t num_words, uint64_t *words);

#endif
