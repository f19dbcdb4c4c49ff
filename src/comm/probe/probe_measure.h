/* Measures the way to an agent, over a connection to it.
 *
 * The latency is half of the 10th percentile of the echoes' round trips: the rest waits for a processor or a
 * queue. The bandwidth is the slope between two lengths of one transfer, half of it and all: what it takes to
 * begin, TCP's slow start, and what passes at once by token buckets and buffers, is before the first. The
 * receiver looks at its clock as bytes arrive, since a sender's buffers take bytes that have not left.
 * Transfers grow until one lasts long enough and is steady: its third quarter and its last take about as
 * long. */
#ifndef PH_COMM_PROBE_MEASURE_H
#define PH_COMM_PROBE_MEASURE_H

#include <stdbool.h>

#include "comm/probe/probe_link.h"

/* Measures what was asked for at asked_ns, into an answer of zeros. Makes as many echoes as half of limit_ms
 * allows. After an error, the answer has what was measured before. */
ph_status ph__netprobe_measure(const struct ph__netprobe_link *link, const struct ph__netprobe_ask *ask,
    uint64_t asked_ns, struct ph__netprobe_answer *answer);
/* Receives the bytes that SEND has announced, and says when they have arrived. */
ph_status ph__netprobe_take(const struct ph__netprobe_link *link, uint64_t bytes);

/* ---- pure functions of marks ---- */

/* Returns the bandwidth of a transfer, in bytes a nanosecond; NaN: its marks do not tell. */
double ph__netprobe_bandwidth(
    const struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS], bool *is_steady_out);

/* Returns the bytes a nanosecond that several transfers have together: the most of what had arrived when one
 * of them ended, over the time since the first began. Bytes that wait behind a lost one do not count, as they
 * would in a window between two marks. */
double ph__netprobe_joint_bandwidth(const struct ph__netprobe_answer *answers, size_t num_answers);

#endif
