/* Merges the timelines of all ranks (steps, operators, exchanges) into one Chrome trace.
 *
 * Each rank is a process of the file. Its tracks: the threads that run operators; its steps; its waits for
 * others, and polls that took some time; and what it has in flight, on as many tracks as are in flight at
 * once. An arrow leads from the start of what was waited for to the wait. Times are the first rank's clock's.
 */
#ifndef PH_TRAIN_RANK_TRACE_H
#define PH_TRAIN_RANK_TRACE_H

#include "base/trace.h"
#include "comm/collective/comm.h"
#include "train/ranks/rank_figures.h"

/* ---- how the ranks' clocks stand to the first one's ---- */

/* What this rank's clock showed beyond the first one's, when it showed at_ns. */
struct ph__rank_clock {
    uint64_t at_ns;
    double offset_ns;
};

/* Reads the clocks; all ranks call it. The first one asks each other for the time, several times, and
 * believes the answer that came soonest: the clock was read half way. Clocks that agree as far as that tells
 * are one clock, of one machine: their offset is 0. */
ph_status ph__rank_clock_read(struct ph_comm *comm, struct ph__rank_clock *clock_out);

/* Gives the offset by one answer: asked and answered by the first clock, shown by the other. */
double ph__rank_clock_offset(uint64_t asked_ns, uint64_t answered_ns, uint64_t shown_ns);

/* Gives the clock that goes evenly between two readings. */
struct ph__trace_clock ph__rank_clock_between(
    const struct ph__rank_clock *first, const struct ph__rank_clock *last);

/* ---- the trace ---- */

/* Numbers of tracks, behind those of threads. */
enum ph__rank_track { PH_RANK_TRACK_STEPS = 2000, PH_RANK_TRACK_WAITS, PH_RANK_TRACK_FLIGHTS };

/* Adds the latest step that figures have counted to the trace of its operators. NULL trace: nothing. */
void ph__rank_trace_step(struct ph__trace *trace, const struct ph__rank_figures *figures, uint64_t step);

struct ph__rank_trace_sources {
    const struct ph__trace *trace;          /* of operators and steps; NULL: none */
    const struct ph__comm_profile *profile; /* of what was in flight */
    size_t num_threads;
    struct ph__rank_clock first, last; /* readings before and behind it all */
};

/* All ranks call it; the first one writes the file. Errors: PH_ERROR_DISK, PH_ERROR_MEMORY, those of
 * ph__comm_wait. */
ph_status ph__rank_trace_write(
    const struct ph__rank_trace_sources *sources, struct ph_comm *comm, const char *path);

#endif
