/* Merges the timelines of all ranks (steps, operators, exchanges) into one Chrome trace.
 *
 * Each rank is a process of the file. Its tracks: the threads that run operators; its steps; its waits for
 * others, and polls that took some time; and its operations in flight, on as many tracks as there are at
 * once. An arrow leads from the start of an operation to the wait for it. Times are those of the first rank's
 * clock. */
#ifndef PH_TRAIN_RANK_TRACE_H
#define PH_TRAIN_RANK_TRACE_H

#include "base/trace.h"
#include "comm/collective/comm.h"
#include "train/ranks/rank_figures.h"

/* ---- offsets of the ranks' clocks from the first one ---- */

/* Offset of this rank's clock from the first rank's (own less first), when this one showed at_ns. */
struct ph__rank_clock {
    uint64_t at_ns;
    double offset_ns;
};

/* Reads the clocks; all ranks call it. The first rank asks each other one for the time, several times, and
 * takes the answer that came soonest, as read half way. An offset within that uncertainty becomes 0: the
 * ranks share the clock of one machine. Simulated ranks ask nothing: theirs is one clock, and asking would
 * take its time. */
ph_status ph__rank_clock_read(struct ph_comm *comm, struct ph__rank_clock *clock_out);

/* Returns the offset by one answer: asked and answered by the first clock, shown by the other. */
double ph__rank_clock_offset(uint64_t asked_ns, uint64_t answered_ns, uint64_t shown_ns);

/* Returns the clock that runs evenly between two readings. */
struct ph__trace_clock ph__rank_clock_between(
    const struct ph__rank_clock *first, const struct ph__rank_clock *last);

/* ---- the trace ---- */

/* Numbers of tracks, behind those of threads. */
enum ph__rank_track { PH_RANK_TRACK_STEPS = 2000, PH_RANK_TRACK_WAITS, PH_RANK_TRACK_FLIGHTS };

/* Adds the latest step of the figures to the trace of its operators. Does nothing with a NULL trace. */
void ph__rank_trace_step(struct ph__trace *trace, const struct ph__rank_figures *figures, uint64_t step);

struct ph__rank_trace_sources {
    const struct ph__trace *trace;          /* of operators and steps; NULL: none */
    const struct ph__comm_profile *profile; /* of operations in flight */
    size_t num_threads;
    struct ph__rank_clock first, last; /* readings before the first and after the last event */
};

/* Writes the file, on the first rank; all ranks call it. Errors: PH_ERROR_DISK, PH_ERROR_MEMORY, those of
 * ph__comm_wait. */
ph_status ph__rank_trace_write(
    const struct ph__rank_trace_sources *sources, struct ph_comm *comm, const char *path);

#endif
