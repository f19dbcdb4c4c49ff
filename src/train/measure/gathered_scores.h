/* What all ranks have scored of a batch, on every rank or on the first one alone. */
#ifndef PH_TRAIN_GATHERED_SCORES_H
#define PH_TRAIN_GATHERED_SCORES_H

#include "comm/collective/comm.h"

struct ph__gathered_scores {  /* zero-initialised is empty */
    bool are_for_first;       /* the other ranks' batch has no samples; alike on all, from the beginning */
    struct ph_batch batch;    /* labels, mask and groups of all samples; no features */
    ph_real *logits;          /* (B,T) */
    ph_real *sent, *received; /* logits, labels and mask, rank by rank */
    int64_t *groups;
    uint64_t *bytes; /* (world) */
    size_t sent_capacity, received_capacity, groups_capacity, logits_capacity, labels_capacity, mask_capacity,
        bytes_capacity;
    ph_real *labels, *mask;
};

/* This rank's part of a batch and its logits (B,T) to who is to have them. What `gathered` holds is its own, until the next call.
 * PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__gathered_scores_gather(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch *batch, const ph_real *logits);
/* In the place of a batch and logits that are this rank's, those of all ranks; alone (comm NULL) they stay. */
ph_status ph__gathered_scores_replace(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch **batch, const ph_real **logits);
void ph__gathered_scores_fini(struct ph__gathered_scores *gathered);

#endif
