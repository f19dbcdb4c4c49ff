/* A rank of the benchmarks: a process that was started by mpirun, or alone. The first one reads orders, a
 * line each, and answers each with a line; unasked it says "ranks" and what its world is, once every row of
 * its batches has been touched.
 *
 *   overlapped N   N steps, gradients being exchanged while others are made (parallel.overlap)
 *   plain N        the same without that
 *
 * The answer: seconds of a step, of the slowest rank; seconds of it that were spent waiting for other ranks,
 * or sending, receiving and summing by itself, of the one that spent most; bytes that a rank sent in it, of
 * the one that sent most. */
#ifndef PH_BENCH_RANK_PROCESS_H
#define PH_BENCH_RANK_PROCESS_H

#include "rank_model.h"

#define RANK_PROCESS_NAME "ranks"

/* Until the orders end. */
void rank_process_run(const struct rank_settings *settings);

#endif
