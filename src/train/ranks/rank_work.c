#include "train/ranks/rank_work.h"

#include "base/thread/clock.h"

#define TELL_NS 50000000u

enum { IS_DONE, GOES_ON };

struct telling {
    struct ph_comm *comm;
    uint64_t told_ns;
};

static ph_status tell(void *context)
{
    struct telling *telling = context;
    int heard;
    if (ph__clock_ns() - telling->told_ns < TELL_NS)
        return PH_OK;
    const ph_status status = ph__comm_largest(telling->comm, GOES_ON, &heard);
    telling->told_ns = ph__clock_ns();
    return status;
}

static ph_status work_and_tell(struct ph_comm *comm, ph__rank_work *work, void *context)
{
    struct telling telling = {comm, ph__clock_ns()};
    return work(context, &(struct ph_meanwhile){tell, &telling});
}

/* Until no rank works any more. */
static ph_status wait_for_all(struct ph_comm *comm)
{
    int heard = GOES_ON;
    while (heard == GOES_ON)
        PH_TRY(ph__comm_largest(comm, IS_DONE, &heard));
    return PH_OK;
}

ph_status ph__rank_work_by_first(struct ph_comm *comm, ph__rank_work *work, void *context)
{
    const ph_status status = ph_comm_rank(comm) == 0 ? work_and_tell(comm, work, context) : PH_OK;
    return status == PH_OK ? wait_for_all(comm) : ph_comm_fail(comm, status);
}

ph_status ph__rank_work_by_all(struct ph_comm *comm, ph__rank_work *work, void *context)
{
    if (comm == NULL)
        return work(context, &(struct ph_meanwhile){0});
    const ph_status status = work_and_tell(comm, work, context);
    PH_TRY(wait_for_all(comm));
    return ph__comm_share(comm, status);
}
