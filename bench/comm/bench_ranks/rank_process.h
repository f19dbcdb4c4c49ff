/* A rank of the benchmarks: a process started by mpirun, or alone. The first rank reads orders, a line each,
 * and answers each with a line. Before, once every row of its batches has been touched, it prints "ranks" and
 * a description of its world.
 *
 *   overlapped N   N steps, exchanging gradients while others are made (parallel.overlap)
 *   plain N        the same without overlap
 *
 * An answer is three numbers: seconds of a step, of the slowest rank; seconds of the step spent waiting for
 * other ranks, or sending, receiving and summing, of the rank that spent most; bytes that a rank sent in the
 * step, of the rank that sent most. */
#ifndef PH_BENCH_RANK_PROCESS_H
#define PH_BENCH_RANK_PROCESS_H

#include "rank_model.h"

#define RANK_PROCESS_NAME "ranks"

/* Runs a rank until the orders end. */
void rank_process_run(const struct rank_settings *settings);

#endif
