#include "kernel_test.h"

enum { SAMPLES = 40, ROWS = 30, DIM = 18, BASE = 4 };

/* One id a sample into a table of ROWS, sorted; one feature. */
struct problem {
    struct ph_embedding_gradient_source source;
    uint32_t slots[SAMPLES], bags[SAMPLES], order[SAMPLES], unique[SAMPLES], starts[SAMPLES];
    size_t num_unique;
};

static void make_problem(struct problem *problem)
{
    uint64_t scratch[2 * SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++) {
        problem->bags[i] = i;
        problem->slots[i] = BASE + random_word() % (ROWS - BASE);
    }
    problem->num_unique = ph__slot_sort(problem->slots, SAMPLES, BASE, ROWS - BASE, 0, problem->order,
        problem->unique, problem->starts, scratch);
    problem->source = (struct ph_embedding_gradient_source){
        .order = problem->order,
        .num_entries = SAMPLES,
        .bags = problem->bags,
        .grad = random_floats(SAMPLES * DIM, -1, 1),
        .num_samples = SAMPLES,
        .sample_stride = DIM,
        .dim = DIM,
    };
}

/* The same without sorting: the dense gradient of the table, then one update a touched row. */
static void update_densely(const struct ph_kernels *kernels, const struct problem *problem,
    const struct ph_optimizer_step *step, float *table, float *s, size_t s_width)
{
    float *dense = filled_floats(ROWS * DIM, 0);
    int is_touched[ROWS] = {0};
    for (size_t i = 0; i < SAMPLES; i++) {
        is_touched[problem->slots[i]] = 1;
        for (size_t d = 0; d < DIM; d++)
            dense[problem->slots[i] * DIM + d] += problem->source.grad[i * DIM + d];
    }
    for (size_t row = 0; row < ROWS; row++) {
        if (!is_touched[row])
            continue;
        if (step->kind == PH_ROWWISE_ADAGRAD)
            kernels->rowwise_adagrad_update(
                step, DIM, dense + row * DIM, table + row * DIM, s + row * s_width);
        else
            kernels->optimizer_update(
                step, DIM, dense + row * DIM, table + row * DIM, NULL, s + row * s_width);
    }
}

static void check_kind(const struct ph_kernels *kernels, enum ph_optimizer_kind kind)
{
    const struct ph_optimizer_step step = {
        .kind = kind, .learning_rate = 0.1f, .gradient_scale = 1, .epsilon = 1e-6f};
    const size_t s_width = kind == PH_ROWWISE_ADAGRAD ? 1 : DIM;
    struct problem problem;
    make_problem(&problem);
    float *table = random_floats(ROWS * DIM, -1, 1);
    float *s = random_floats(ROWS * s_width, 0, 1);
    float *wanted_table = copied_floats(ROWS * DIM, table);
    float *wanted_s = copied_floats(ROWS * s_width, s);
    update_densely(kernels, &problem, &step, wanted_table, wanted_s, s_width);

    const struct ph_embedding_update_args args = {.source = &problem.source,
        .step = &step,
        .unique = problem.unique,
        .starts = problem.starts,
        .num_unique = problem.num_unique,
        .table = table,
        .s = s};
    float row[DIM];
    const size_t half = problem.num_unique / 2;
    ph__embedding_update(kernels, &args, half, problem.num_unique, row);
    ph__embedding_update(kernels, &args, 0, half, row);
    for (size_t i = 0; i < ROWS * DIM; i++)
        assert_near((double)table[i], (double)wanted_table[i], 1e-6, 0);
    for (size_t i = 0; i < ROWS * s_width; i++)
        assert_near((double)s[i], (double)wanted_s[i], 1e-6, 1e-6);
}

static void check_update(const struct ph_kernels *kernels)
{
    check_kind(kernels, PH_ADAGRAD);
    check_kind(kernels, PH_ROWWISE_ADAGRAD);
}

static void duplicates_are_merged_before_one_update(void **state)
{
    (void)state;
    on_every_isa(check_update);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(duplicates_are_merged_before_one_update, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
