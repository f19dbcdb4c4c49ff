/* What the tests of kernels share: every table that this machine runs, and arrays that show overruns.
 *
 * Arrays are never aligned to more than one number and end where their allocation ends, so that the address
 * sanitizer sees a read or write beyond them; they are released together after each test. */
#ifndef PH_KERNEL_TEST_H
#define PH_KERNEL_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "support/test_support.h"

enum { MAX_ARRAYS = 4096 };
static void *arrays[MAX_ARRAYS];
static size_t num_arrays;
static uint64_t random_state;

static inline int reset_arrays(void **state)
{
    (void)state;
    while (num_arrays > 0)
        free(arrays[--num_arrays]);
    random_state = test_seed();
    return 0;
}

static inline void *new_array(size_t count, size_t size)
{
    assert_true(num_arrays < MAX_ARRAYS);
    char *memory = malloc((count + 1) * size);
    assert_non_null(memory);
    arrays[num_arrays++] = memory;
    return memory + size;
}

static inline uint32_t random_word(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static inline double random_between(double low, double high)
{
    return low + (high - low) * (double)random_word() / 4294967296.0;
}

static inline float *random_floats(size_t n, double low, double high)
{
    float *x = new_array(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)random_between(low, high);
    return x;
}

static inline float *filled_floats(size_t n, float value)
{
    float *x = new_array(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = value;
    return x;
}

static inline float *copied_floats(size_t n, const float *from)
{
    float *x = new_array(n, sizeof *x);
    memcpy(x, from, n * sizeof *x);
    return x;
}

static inline double *zero_doubles(size_t n)
{
    double *x = new_array(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = 0;
    return x;
}

/* Runs `check` on the table of every ISA that this machine and this build have; each starts from the same
 * seed. */
static inline void on_every_isa(void (*check)(const struct ph__kernels *kernels))
{
    enum ph__isa best;
    assert_ok(ph__cpu_isa(&best));
    for (int isa = PH_ISA_REF; isa <= (int)best; isa++) {
        reset_arrays(NULL);
        check(ph__kernels_for((enum ph__isa)isa));
    }
    reset_arrays(NULL);
}

#endif
