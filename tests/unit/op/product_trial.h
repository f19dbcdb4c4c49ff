/* Operators that multiply, against naive loops in double: on every instruction set, with the same bits for
 * one thread and for three and, where a sample's result is its own, whatever samples stand beside it. */
#ifndef PH_TEST_PRODUCT_TRIAL_H
#define PH_TEST_PRODUCT_TRIAL_H

#include <stdlib.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "graph/op.h"
#include "op/registry.h"
#include "support/op_trial.h"

struct product_trial {
    size_t num_samples, num_dense, num_parameters; /* num_parameters: numbers of all of them */
    ph_value (*build)(struct ph_builder *builder, ph_value x);
    /* The result from x (B,num_dense) and the parameters; returns how many numbers it has. */
    size_t (*expect)(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out);
    bool is_of_all_samples; /* the result is summed over the batch */
};

enum { MAX_NUMBERS = 1 << 17, MAX_RUNS = 2 * PH_ISA_COUNT };

/* What the runs of a trial gave: for each instruction set one with one thread, then one with three. */
static struct {
    ph_real *y[MAX_RUNS];
    size_t numbers, num_runs;
    size_t first; /* while a part is run again: where it begins in y */
    bool is_again;
} recorded;

static void *trial_memory(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

static ph_real *random_reals(size_t count, uint64_t *state)
{
    ph_real *numbers = trial_memory(count, sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        numbers[i] = (ph_real)((double)(*state >> 32) / 2147483648.0 - 1);
    }
    return numbers;
}

static void record_run(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    const ph_real *y = NULL;
    struct ph_shape shape;
    const size_t run = recorded.num_runs++;
    assert_ok(ph_workspace_output(workspace, "y", &y, &shape));
    const size_t numbers = ph_shape_elements(&shape);
    if (recorded.is_again) {
        assert_memory_equal(y, recorded.y[run] + recorded.first, numbers * sizeof *y);
        return;
    }
    recorded.numbers = numbers;
    recorded.y[run] = trial_memory(numbers, sizeof *y);
    memcpy(recorded.y[run], y, numbers * sizeof *y);
    if (run % 2 != 0)
        assert_memory_equal(y, recorded.y[run - 1], numbers * sizeof *y);
}

static void run_samples(const struct product_trial *trial, size_t first, size_t count, const ph_real *x,
    const ph_real *parameters)
{
    double *expected = trial_memory(MAX_NUMBERS, sizeof *expected);
    const ph_real *from = x + first * trial->num_dense;
    const size_t num_expected = trial->expect(count, from, parameters, expected);
    assert_true(num_expected <= MAX_NUMBERS);
    recorded.num_runs = 0;
    check_trial(
        &(struct op_trial){.batch = {.num_samples = count, .num_dense = trial->num_dense, .dense = from},
            .parameters = trial->num_parameters > 0 ? parameters : NULL,
            .build = trial->build,
            .num_expected = num_expected,
            .expected = expected,
            .tolerance = 2e-5,
            .check = record_run});
    free(expected);
}

static void check_products(const struct product_trial *trial)
{
    uint64_t state = test_seed();
    ph_real *x = random_reals(trial->num_samples * trial->num_dense, &state);
    ph_real *parameters = random_reals(trial->num_parameters, &state);
    memset(&recorded, 0, sizeof recorded);
    run_samples(trial, 0, trial->num_samples, x, parameters);
    const size_t numbers = recorded.numbers;
    recorded.is_again = true;
    for (size_t i = 0; i < trial->num_samples && !trial->is_of_all_samples; i += 1 + trial->num_samples / 4) {
        recorded.first = i * (numbers / trial->num_samples);
        run_samples(trial, i, 1, x, parameters);
    }
    for (size_t run = 0; run < MAX_RUNS; run++)
        free(recorded.y[run]);
    free(x);
    free(parameters);
}

/* x's columns [begin, begin + rows * columns) as (B,rows,columns). */
static inline ph_value matrix_of(
    struct ph_builder *builder, ph_value x, size_t begin, size_t rows, size_t columns)
{
    return ph_reshape(builder, ph_slice(builder, x, 1, begin, rows * columns), 2, (size_t[]){rows, columns});
}

static inline ph_value learnt(struct ph_builder *builder, const char *name, size_t rank, const size_t *dims)
{
    return ph_parameter(builder, name, rank, dims, (struct ph_init){PH_INIT_NORMAL, 1.0});
}

#endif
