/* What ranks exchange outside of steps: signs of life during long work, texts for the first rank, and sums of counts. All ranks
 * make the same calls. */
#ifndef PH_TRAIN_RANK_EXCHANGE_H
#define PH_TRAIN_RANK_EXCHANGE_H

#include "base/thread/stop.h"
#include "comm/collective/comm.h"

/* ---- work that ranks wait for, however long it takes ------------------------------------------------------------------ */

/* A rank that works tells the others now and then that it goes on, so that nobody takes it for one that hangs: the work calls
 * ph__meanwhile several times within parallel.timeout_seconds, which is cheap; that fails when no rank needs the work any more. */
typedef ph_status ph__rank_work(void *context, const struct ph__meanwhile *meanwhile);

/* Lets the first rank do the work. A failure of it ends the job of all. */
ph_status ph__rank_work_by_first(struct ph_comm *comm, ph__rank_work *work, void *context);

/* Lets each rank do its own work; all return the status of the lowest rank that fails, and the job goes on. comm NULL: alone. */
ph_status ph__rank_work_by_all(struct ph_comm *comm, ph__rank_work *work, void *context);

/* ---- texts of any length for the first rank --------------------------------------------------------------------------- */

/* Takes the text of each rank, in their order, on the first rank; it ends with a NUL behind its `size` bytes and is borrowed. */
typedef ph_status ph__rank_text_reader(void *context, size_t rank, const char *text, size_t size);
/* Sends this rank's text to the first rank's reader. `what` is the same on all ranks, and named in errors. However many ranks
 * there are, none waits longer than one text takes. A failure of the reader ends the job of all. PH_ERROR_MEMORY; errors of
 * ph__comm_wait. */
ph_status ph__rank_texts_read(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__rank_text_reader *reader, void *context);

/* ---- numbers that each rank has counted of its own part ------------------------------------------------------------------ */

/* Replaces counts (count), as many on all ranks, by their sums over the ranks; alone (comm NULL) they stay. After PH_ERROR_MEMORY
 * or an error of ph__comm_wait, numbers that did not arrive are unchanged. */
ph_status ph__rank_numbers_sum(struct ph_comm *comm, size_t count, uint64_t *counts);
/* The same for bits: sets each that any rank has set. */
ph_status ph__rank_numbers_unite(struct ph_comm *comm, size_t num_words, uint64_t *words);

#endif
