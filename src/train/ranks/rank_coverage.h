/* Which rows all ranks have learnt from, out of what each knows: of a batch a rank sees its own samples alone, and of a table
 * that is cut its own rows. All ranks call these alike; alone (comm NULL) nothing is asked. */
#ifndef PH_TRAIN_RANK_COVERAGE_H
#define PH_TRAIN_RANK_COVERAGE_H

#include "comm/collective/comm.h"
#include "train/ranks/rows_learnt.h"

/* Every rank gets the marks of all; a feature's rows are known where they are on all ranks. Little is sent where nothing has
 * been marked since the last time. PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__rank_coverage_gather(struct ph_comm *comm, struct ph__id_coverage *coverage);

/* That, and ph__rows_learnt_mark of all ranks' slots: they tell of a feature where they do on any rank. */
ph_status ph__rank_coverage_mark(struct ph_comm *comm, const struct ph_store *store,
    const struct ph_optimizer_settings *settings, struct ph__id_coverage *coverage);

/* counts (num_features), which each rank has of its own samples, become those of all. */
ph_status ph__rank_coverage_sum(struct ph_comm *comm, size_t num_features, struct ph__id_counts *counts);

#endif
