/* Declarations shared by the parts of bench_kernels: a case is one kernel on one shape, run on the table of
 * every ISA. */
#ifndef PH_BENCH_KERNEL_CASES_H
#define PH_BENCH_KERNEL_CASES_H

#include <stddef.h>

#include "kernel/kernel.h"

/* FLOOR: the larger of two times, both measured beside the case in every round: of its FLOPs at the speed of
 * a good product, and of copying as many bytes. A kernel that has to do both is hardly faster. */
enum bench_limit { LIMIT_NONE, LIMIT_MEMORY, LIMIT_FMA, LIMIT_FLOOR };

struct bench_case {
    const char *name;       /* kernel.shape */
    double bytes, flops;    /* moved and done by one call; 0: not printed */
    enum bench_limit limit; /* bound of its speed on this machine */
    void (*run)(const struct ph__kernels *kernels, const void *state); /* one call */
    const void *state;
    /* Measured beside it, both on the best table alone; NULL: none. */
    void (*peer)(const struct ph__kernels *kernels, const void *state);
    const char *peer_name;
};

struct bench; /* the rounds and the results so far */

/* Measures one case: rounds in which the ISAs take turns; prints and records medians. */
void bench_measure(struct bench *bench, const struct bench_case *bench_case);

void bench_embedding(struct bench *bench);
void bench_update_formats(struct bench *bench);
void bench_interaction(struct bench *bench);
void bench_attention(struct bench *bench);
void bench_elementwise(struct bench *bench);
void bench_optimizer(struct bench *bench);
void bench_aggregation(struct bench *bench);
void bench_product(struct bench *bench);
void bench_small_product(struct bench *bench);

double bench_clock_ns(void); /* processor time of this thread */

/* Return zeroed memory, and memory filled with numbers in (-1, 1) or words below a bound, kept until the
 * program ends; end the program when there is none. */
void *bench_memory(size_t count, size_t size);
float *bench_floats(size_t count);
uint32_t *bench_words(size_t count, uint32_t bound);

/* Operands with which a case's floor is measured. The arrays of the copy are as large as the case's, so that
 * they lie in the same cache. */
struct case_floor {
    const struct ph__kernels *kernels;
    size_t copied_bytes; /* half of the case's: each byte is read and written */
    char *from, *to;
    float *x, *packed, *y; /* of a product that stays in the first cache */
};

struct case_floor case_floor_make(const struct ph__kernels *kernels, double bytes);
double case_floor_copy_ns(const struct case_floor *floor);
double case_floor_product_rate(const struct case_floor *floor); /* GFLOP/s */

#endif
