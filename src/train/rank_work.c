#include "train/rank_work.h"

#include "base/clock.h"
#include "comm/comm.h"

#define TELL_NS 50000000u

enum { IS_DONE, GOES_ON };

ph_status ph__rank_work_goes_on(void *work)
{
    struct ph__rank_work *progress = work;
    const uint64_t now_ns = ph__clock_ns();
    int heard;
    if (now_ns - progress->told_ns < TELL_NS)
        return PH_OK;
    progress->told_ns = now_ns;
    return ph__comm_largest(progress->comm, GOES_ON, &heard);
}

static ph_status wait_for_it(struct ph_comm *comm)
{
    int heard = GOES_ON;
    while (heard == GOES_ON)
        PH_TRY(ph__comm_largest(comm, IS_DONE, &heard));
    return PH_OK;
}

static ph_status do_it(
    struct ph_comm *comm, ph_status (*work)(void *context, struct ph__rank_work *progress), void *context)
{
    struct ph__rank_work progress = {comm, ph__clock_ns()};
    int heard;
    const ph_status status = work(context, &progress);
    return status == PH_OK ? ph__comm_largest(comm, IS_DONE, &heard) : ph_comm_fail(comm, status);
}

ph_status ph__rank_work_do(
    struct ph__ranks *ranks, ph_status (*work)(void *context, struct ph__rank_work *progress), void *context)
{
    return ph__ranks_is_first(ranks) ? do_it(ranks->comm, work, context) : wait_for_it(ranks->comm);
}
