/* Work that ranks wait for, however long it takes: who works tells the others now and then that it goes on, so that nobody takes
 * it for one that hangs. All ranks make the same calls. */
#ifndef PH_TRAIN_RANK_WORK_H
#define PH_TRAIN_RANK_WORK_H

#include "base/thread/meanwhile.h"
#include "comm/collective/comm.h"

/* Calls ph__meanwhile several times within parallel.timeout_seconds, which is cheap; that fails when there is nobody to work for
 * any more. */
typedef ph_status ph__rank_work(void *context, const struct ph_meanwhile *meanwhile);

/* The first rank does it. What it fails with ends the job of all. */
ph_status ph__rank_work_by_first(struct ph_comm *comm, ph__rank_work *work, void *context);

/* Each does its own, and all return what the lowest of those that fail has failed with; the job goes on. comm NULL: alone. */
ph_status ph__rank_work_by_all(struct ph_comm *comm, ph__rank_work *work, void *context);

#endif
