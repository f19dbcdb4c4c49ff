/* How the ranks' clocks stand to the first one's, for a trace of all of them. */
#ifndef PH_TRAIN_RANK_CLOCK_H
#define PH_TRAIN_RANK_CLOCK_H

#include "base/trace.h"
#include "comm/collective/comm.h"

/* What this rank's clock showed beyond the first one's, when it showed at_ns. */
struct ph__rank_clock {
    uint64_t at_ns;
    double offset_ns;
};

/* All ranks call it. The first one asks each other for the time, several times, and believes the answer that came soonest: the
 * clock was read half way. Clocks that agree as far as that tells are one clock, of one machine: their offset is 0. */
ph_status ph__rank_clock_read(struct ph_comm *comm, struct ph__rank_clock *clock_out);

/* The offset by one answer: asked and answered by the first clock, shown by the other. */
double ph__rank_clock_offset(uint64_t asked_ns, uint64_t answered_ns, uint64_t shown_ns);

/* Of a clock that goes evenly between two readings. */
struct ph_trace_clock ph__rank_clock_between(
    const struct ph__rank_clock *first, const struct ph__rank_clock *last);

#endif
