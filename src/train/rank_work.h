/* Work of the first rank alone, for which the others wait however long it takes: now and then it tells them that it goes on, so
 * that nobody takes it for one that hangs. */
#ifndef PH_TRAIN_RANK_WORK_H
#define PH_TRAIN_RANK_WORK_H

#include "train/ranks.h"

/* What says that it goes on: to be called by the work again and again, several times within parallel.timeout_seconds. Cheap.
 * PH_ERROR_PEER: there is nobody to work for any more. */
struct ph__rank_work {
    struct ph_comm *comm;
    uint64_t told_ns;
};
ph_status ph__rank_work_goes_on(void *work);

/* All ranks call it; the first one does the work, and what it fails with ends the job of all, as by ph__ranks_all. */
ph_status ph__rank_work_do(
    struct ph__ranks *ranks, ph_status (*work)(void *context, struct ph__rank_work *progress), void *context);

#endif
