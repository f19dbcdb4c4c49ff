/* Marks the rows that training has learnt from, by what optimizer slots tell, and joins the marks of all
 * ranks.
 *
 * A slot begins as zeros, and only a gradient changes it, where an optimizer with slots updates the rows that
 * a batch touches, or decays none of the others; so too in a training that was resumed, since slots are
 * resumed with it. A rank sees its own samples of a batch alone, and of a table that is cut its own rows. All
 * ranks call all but ph__rows_learnt_mark alike; alone (comm NULL) they exchange nothing. */
#ifndef PH_TRAIN_ROWS_LEARNT_H
#define PH_TRAIN_ROWS_LEARNT_H

#include "comm/collective/comm.h"
#include "phloem/train.h"
#include "train/measure/id_coverage.h"

/* Marks the rows of the features whose rows are not known yet, where slots tell, of parts of tables those
 * that they have. Reads slots from end to end. PH_ERROR_MEMORY. */
ph_status ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage);

/* Gives every rank the marks of all; a feature's rows are known where they are on all ranks. Sends little
 * where nothing has been marked since the last time. PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__rows_learnt_gather(struct ph_comm *comm, struct ph__id_coverage *coverage);

/* Does that, then ph__rows_learnt_mark with all ranks' slots: they tell of a feature where they do on any
 * rank. */
ph_status ph__rows_learnt_mark_all(struct ph_comm *comm, const struct ph_store *store,
    const struct ph_optimizer_settings *settings, struct ph__id_coverage *coverage);

/* Replaces counts (num_features), which each rank has of its own samples, by those of all. */
ph_status ph__rows_learnt_sum(struct ph_comm *comm, size_t num_features, struct ph__id_counts *counts);

#endif
