/* Measures how long gradients take in chunks of different sizes: a worker or two and a shard of a core thread, moved in turns by
 * one thread, with the links, the shard and the kernel that jobs have. */
#ifndef PH_HUB_AUTOTUNE_MEASURE_H
#define PH_HUB_AUTOTUNE_MEASURE_H

#include "hub/autotune.h"
#include "phloem/status.h"

/* Rounds of all sizes, for about 0.1 s of the thread's time, PH_AUTOTUNE_MIN_ROUNDS at least; times are of the thread alone.
 * PH_ERROR_MEMORY; PH_ERROR_PEER when links cannot be had, or when it takes more than a second. */
ph_status ph__autotune_measure(enum ph_autotune_path path, const struct ph_kernels *kernels,
    bool is_non_temporal, struct ph_autotune_times *times_out);

#endif
