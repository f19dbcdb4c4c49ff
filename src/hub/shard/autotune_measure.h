/* Measures how long gradients take in chunks of different sizes: a worker or two and a shard of a core thread, moved in turns by
 * one thread, with the links, the shard and the kernel that jobs have. */
#ifndef PH_HUB_AUTOTUNE_MEASURE_H
#define PH_HUB_AUTOTUNE_MEASURE_H

#include "hub/shard/autotune.h"
#include "phloem/status.h"

/* How long it may take: of the thread's own time, about, and of everybody's. */
struct ph_autotune_patience {
    double thread_seconds, seconds;
};

/* Rounds of all sizes, PH_AUTOTUNE_MIN_ROUNDS at least, until the thread's time is over; times are of the thread alone.
 * PH_ERROR_MEMORY; PH_ERROR_PEER when links cannot be had, or when everybody's time is over before. */
ph_status ph__autotune_measure(enum ph_autotune_path path, const struct ph_kernels *kernels,
    bool is_non_temporal, const struct ph_autotune_patience *patience, struct ph_autotune_times *times_out);

#endif
