#include "train/ranks/rank_clock.h"

#include <math.h>

#include "base/thread/clock.h"
#include "comm/collective/comm.h"

enum { NUM_QUESTIONS = 8 };

static const char clock_name[] = "time of the ranks";

double ph__rank_clock_offset(uint64_t asked_ns, uint64_t answered_ns, uint64_t shown_ns)
{
    const double half = 0.5 * (double)(answered_ns - asked_ns);
    const double offset = (double)(int64_t)(shown_ns - asked_ns) - half;
    return fabs(offset) <= half ? 0 : offset;
}

/* The first rank's part with one other. */
static ph_status ask(struct ph_comm *comm, size_t rank)
{
    uint64_t soonest = UINT64_MAX;
    double offset = 0;
    for (int i = 0; i < NUM_QUESTIONS; i++) {
        uint64_t shown, asked = ph__clock_ns();
        PH_TRY(ph__comm_pass_once(comm, clock_name, 0, rank, NULL, 0));
        PH_TRY(ph__comm_pass_once(comm, clock_name, rank, 0, &shown, sizeof shown));
        const uint64_t answered = ph__clock_ns();
        if (answered - asked < soonest) {
            soonest = answered - asked;
            offset = ph__rank_clock_offset(asked, answered, shown);
        }
    }
    return ph__comm_pass_once(comm, clock_name, 0, rank, &offset, sizeof offset);
}

static ph_status answer(struct ph_comm *comm, double *offset_out)
{
    const size_t own = ph_comm_rank(comm);
    for (int i = 0; i < NUM_QUESTIONS; i++) {
        PH_TRY(ph__comm_pass_once(comm, clock_name, 0, own, NULL, 0));
        uint64_t shown = ph__clock_ns();
        PH_TRY(ph__comm_pass_once(comm, clock_name, own, 0, &shown, sizeof shown));
    }
    return ph__comm_pass_once(comm, clock_name, 0, own, offset_out, sizeof *offset_out);
}

ph_status ph__rank_clock_read(struct ph_comm *comm, struct ph__rank_clock *clock_out)
{
    double offset = 0;
    if (ph_comm_rank(comm) > 0)
        PH_TRY(answer(comm, &offset));
    for (size_t rank = 1; ph_comm_rank(comm) == 0 && rank < ph_comm_world_size(comm); rank++)
        PH_TRY(ask(comm, rank));
    *clock_out = (struct ph__rank_clock){ph__clock_ns(), offset};
    return PH_OK;
}

struct ph_trace_clock ph__rank_clock_between(
    const struct ph__rank_clock *first, const struct ph__rank_clock *last)
{
    const double passed = (double)(last->at_ns - first->at_ns);
    const double drift = last->at_ns > first->at_ns ? (last->offset_ns - first->offset_ns) / passed : 0;
    return (struct ph_trace_clock){first->at_ns, first->offset_ns, drift};
}
