/* Ways to sum workers' copies and to step a momentum optimizer with the sum. All give the same bits. */
#ifndef PH_BENCH_WAYS_H
#define PH_BENCH_WAYS_H

#include "base/thread/parallel.h"
#include "kernel/kernel.h"
#include "model_keys.h"

enum { MAX_WORKERS = 8 };

enum way {
    WAY_TALL, /* each chunk by its owner: sum and step in one pass */
    WAY_WIDE, /* key by key: for each copy all threads add their stripe and meet, then all step and meet */
    WAY_WIDE_ASLEEP, /* wide, with threads that sleep until all have come */
    WAY_SEPARATE,    /* tall sums of everything, then the step over everything */
    WAY_CHUNKWISE,   /* tall sums of one chunk, then its step while it is in the cache */
    WAY_REPLIES,     /* tall, and the new weights also written once for every worker */
    WAY_REPLIES_NT,  /* replies, past the caches */
    NUM_WAYS,
    NUM_TALL_WIDE = WAY_WIDE_ASLEEP + 1
};
extern const char *const way_names[NUM_WAYS];

struct hub_memory {
    float *copies[MAX_WORKERS], *results[MAX_WORKERS]; /* results: reply_numbers each */
    float *weight, *m, *sum;
    float *scratch[MAX_OWNERS]; /* a thread's: a sum of at most scratch_numbers */
    size_t numbers, reply_numbers, scratch_numbers;
};
struct hub_memory hub_memory_create(size_t numbers, size_t reply_numbers, size_t scratch_numbers);
void hub_memory_destroy(struct hub_memory *memory);

struct job {
    const struct ph__kernels *kernels;
    struct ph__team *team;
    const struct hub_memory *memory;
    const struct model_keys *keys;
    const struct chunks *chunks;
    size_t num_workers;
};

double way_seconds(const struct job *job, enum way way);
double way_bytes_a_number(enum way way, size_t num_workers); /* moved between memory and threads */
/* Ends the program unless this way of the job makes the same weights and momentum as tall. */
void way_check(const struct job *job, enum way way);

#endif
