/* Marks the rows that training has learnt from, as optimizer slots tell them, and joins the marks of all
 * ranks.
 *
 * A slot begins as zeros, and only a gradient changes it, if the optimizer updates only the rows that a batch
 * touches, or decays none of the others. This holds in a resumed training, too, since slots are resumed with
 * it. A rank sees only its own samples of a batch, and only its own rows of a sharded table. All ranks call
 * all functions but ph__rows_learnt_mark alike; alone (comm NULL) they exchange nothing. */
#ifndef PH_TRAIN_ROWS_LEARNT_H
#define PH_TRAIN_ROWS_LEARNT_H

#include "comm/collective/comm.h"
#include "phloem/train.h"
#include "train/measure/id_coverage.h"

/* Marks the rows of features that are not known yet, where slots tell; of a sharded table, this rank's rows.
 * Reads slots from end to end. PH_ERROR_MEMORY. */
ph_status ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage);

/* Gives every rank the marks of all; a feature stays known only if it is known on all ranks. Sends little
 * when nothing was marked since the last call. PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__rows_learnt_gather(struct ph_comm *comm, struct ph__id_coverage *coverage);

/* Does ph__rows_learnt_gather, then ph__rows_learnt_mark on all ranks: a feature becomes known when the slots
 * of any rank tell of it. */
ph_status ph__rows_learnt_mark_all(struct ph_comm *comm, const struct ph_store *store,
    const struct ph_optimizer_settings *settings, struct ph__id_coverage *coverage);

/* Replaces each rank's counts (num_features) of its own samples by those of all ranks. */
ph_status ph__rows_learnt_sum(struct ph_comm *comm, size_t num_features, struct ph__id_counts *counts);

#endif
