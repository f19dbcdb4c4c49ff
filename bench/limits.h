/* Limits of this machine at this moment: the denominators of every floor. Each function takes some
 * milliseconds and is called again in every round, since the machine's cores are shared and their speed
 * changes from second to second. Figures are those of the whole team, in FLOP/s and bytes/s. */
#ifndef PH_BENCH_LIMITS_H
#define PH_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/thread/parallel.h"

/* Operands of a team's measurements, made once. The team is borrowed. */
struct bench_limits;
struct bench_limits *bench_limits_create(struct ph__team *team);
void bench_limits_destroy(struct bench_limits *limits);
struct ph__team *bench_limits_team(const struct bench_limits *limits);

/* Measure independent multiply-adds in registers with the widest vectors; bf16: pairs of products summed in
 * fp32 (vdpbf16ps); int8: four products of bytes summed in s32 (vpdpbusd). Return 0 where the processor has
 * no such instruction. */
double bench_peak_fp32(struct bench_limits *limits);
double bench_peak_bf16(struct bench_limits *limits);
double bench_peak_int8(struct bench_limits *limits);

/* Measures the fastest fp32 matrix product that we know of: the better of the library's 1024 x 512 -> 512
 * with packed weights, 1024 rows a thread, and of a product whose operands all fit in the first cache. */
double bench_peak_product(struct bench_limits *limits);

/* Measures bytes read plus written, when one pass moves `bytes` of them, up to BENCH_MAX_COPIED: the better
 * of copying and scaling in place. A rate belongs to a size, since operators may pass data to each other in a
 * cache. */
#define BENCH_MAX_COPIED ((size_t)256 << 20)
double bench_copy(struct bench_limits *limits, size_t bytes);

/* Rows of a table to sweep. gather reads every cache line of rows slots[0 .. count), in this order. update
 * reads, adds to and writes every number of the rows; slots are distinct. Both give the best of several
 * prefetch distances and hints; each is tried on another of num_sets lists of slots in turn, so that no list
 * finds rows in a cache that the one before has left there. */
struct bench_rows {
    float *table; /* its numbers do not change */
    size_t dim;   /* numbers a row */
    size_t num_sets;
    const struct bench_slots {
        const uint32_t *slots;
        size_t count;
    } * sets;
};
double bench_gather(struct bench_limits *limits, const struct bench_rows *rows);
double bench_update(struct bench_limits *limits, const struct bench_rows *rows);

/* Returns the nanoseconds that a cache line takes from one processor to another: half a round trip between
 * two threads, each on a processor of its own; 0 where this process has only one. */
double bench_core_latency(void);

/* Names the placement of two processors before and after a sample: "same complex", "across dies", or "moved"
 * where the two differ; "one thread" for a team of one. */
const char *bench_placement(size_t num_threads, double latency_before_ns, double latency_after_ns);

#endif
