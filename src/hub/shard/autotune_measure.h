/* Measures how long gradients take in chunks of different sizes: one thread moves one or two workers and a
 * core thread's shard in turns, with the links, the shard and the kernel that jobs have. */
#ifndef PH_HUB_AUTOTUNE_MEASURE_H
#define PH_HUB_AUTOTUNE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"
#include "phloem/status.h"

#define PH_AUTOTUNE_NUM_SIZES 9  /* 8 KiB, 16 KiB ... 2 MiB */
#define PH_AUTOTUNE_MIN_ROUNDS 3 /* fewer are not significant */
#define PH_AUTOTUNE_MAX_ROUNDS 9

enum ph__autotune_path { PH_AUTOTUNE_SHARED, PH_AUTOTUNE_TCP, PH_AUTOTUNE_NUM_PATHS };

/* Seconds of each size in each round, which measures all sizes one after the other. */
struct ph__autotune_times {
    size_t num_rounds;
    double seconds[PH_AUTOTUNE_MAX_ROUNDS][PH_AUTOTUNE_NUM_SIZES];
};

static inline uint32_t ph__autotune_size(size_t index)
{
    return (uint32_t)8192 << index;
}

/* Limits on the measurement: about, of the thread's own time; and of wall-clock time. */
struct ph__autotune_patience {
    double thread_seconds, seconds;
};

/* Measures rounds of all sizes until the thread's time is over, at least PH_AUTOTUNE_MIN_ROUNDS. Times are of
 * the thread alone. PH_ERROR_MEMORY; PH_ERROR_PEER when links cannot be made, or when the wall-clock time is
 * over first. */
ph_status ph__autotune_measure(enum ph__autotune_path path, const struct ph__kernels *kernels,
    bool is_non_temporal, const struct ph__autotune_patience *patience, struct ph__autotune_times *times_out);

#endif
