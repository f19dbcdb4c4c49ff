/* Measures how long gradients take in chunks of different sizes: a worker or two and a shard of a core
 * thread, moved in turns by one thread, with the links, the shard and the kernel that jobs have. */
#ifndef PH_HUB_AUTOTUNE_MEASURE_H
#define PH_HUB_AUTOTUNE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"
#include "phloem/status.h"

#define PH_AUTOTUNE_NUM_SIZES 9  /* 8 KiB, 16 KiB ... 2 MiB */
#define PH_AUTOTUNE_MIN_ROUNDS 3 /* fewer tell nothing */
#define PH_AUTOTUNE_MAX_ROUNDS 9

enum ph__autotune_path { PH_AUTOTUNE_SHARED, PH_AUTOTUNE_TCP, PH_AUTOTUNE_NUM_PATHS };

/* Each round measures all sizes, one after the other. */
struct ph__autotune_times {
    size_t num_rounds;
    double seconds[PH_AUTOTUNE_MAX_ROUNDS][PH_AUTOTUNE_NUM_SIZES];
};

static inline uint32_t ph__autotune_size(size_t index)
{
    return (uint32_t)8192 << index;
}

/* How long it may take: of the thread's own time, about, and of everybody's. */
struct ph__autotune_patience {
    double thread_seconds, seconds;
};

/* Rounds of all sizes, PH_AUTOTUNE_MIN_ROUNDS at least, until the thread's time is over; times are of the
 * thread alone. PH_ERROR_MEMORY; PH_ERROR_PEER when links cannot be had, or when everybody's time is over
 * before. */
ph_status ph__autotune_measure(enum ph__autotune_path path, const struct ph__kernels *kernels,
    bool is_non_temporal, const struct ph__autotune_patience *patience, struct ph__autotune_times *times_out);

#endif
