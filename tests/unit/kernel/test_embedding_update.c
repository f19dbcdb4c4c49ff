#include "kernel_test.h"

enum { SAMPLES = 40, ROWS = 30, BASE = 4 };

/* One id a sample into a table of ROWS, sorted; one feature. */
struct problem {
    struct ph_embedding_gradient_source source;
    uint32_t slots[SAMPLES], order[SAMPLES], unique[SAMPLES], starts[SAMPLES];
    size_t num_unique;
};

static void make_problem(struct problem *problem, size_t dim)
{
    uint64_t scratch[2 * SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        problem->slots[i] = BASE + random_word() % (ROWS - BASE);
    problem->num_unique = ph__slot_sort(problem->slots, SAMPLES, BASE, ROWS - BASE, 0, problem->order,
        problem->unique, problem->starts, scratch);
    problem->source = (struct ph_embedding_gradient_source){
        .num_entries = SAMPLES,
        .rows = problem->order,
        .grad = random_floats(SAMPLES * dim, -1, 1),
        .dim = dim,
    };
}

/* The same without sorting: the dense gradient of the table, then one update a touched row. */
static void update_densely(const struct ph_kernels *kernels, const struct problem *problem,
    const struct ph_optimizer_step *step, float *table, float *m, float *s, size_t s_width)
{
    const size_t dim = problem->source.dim;
    float *dense = filled_floats(ROWS * dim, 0);
    int is_touched[ROWS] = {0};
    for (size_t i = 0; i < SAMPLES; i++) {
        is_touched[problem->slots[i]] = 1;
        for (size_t d = 0; d < dim; d++)
            dense[problem->slots[i] * dim + d] += problem->source.grad[i * dim + d];
    }
    for (size_t row = 0; row < ROWS; row++) {
        if (!is_touched[row])
            continue;
        if (step->kind == PH_ROWWISE_ADAGRAD)
            kernels->rowwise_adagrad_update(
                step, dim, dense + row * dim, table + row * dim, s + row * s_width);
        else
            kernels->optimizer_update(
                step, dim, dense + row * dim, table + row * dim, m + row * dim, s + row * s_width);
    }
}

static void check_kind(const struct ph_kernels *kernels, enum ph_optimizer_kind kind, size_t dim)
{
    const struct ph_optimizer_step step = {.kind = kind,
        .learning_rate = 0.1f,
        .gradient_scale = 0.5f,
        .l2 = 0.01f,
        .momentum = 0.9f,
        .beta1 = 0.9f,
        .beta2 = 0.99f,
        .epsilon = 1e-6f,
        .bias_correction1 = 0.5f,
        .bias_correction2 = 0.25f};
    const size_t s_width = kind == PH_ROWWISE_ADAGRAD ? 1 : dim;
    struct problem problem;
    make_problem(&problem, dim);
    float *table = random_floats(ROWS * dim, -1, 1);
    float *m = random_floats(ROWS * dim, -1, 1), *s = random_floats(ROWS * s_width, 0, 1);
    float *wanted_table = copied_floats(ROWS * dim, table);
    float *wanted_m = copied_floats(ROWS * dim, m), *wanted_s = copied_floats(ROWS * s_width, s);
    update_densely(kernels, &problem, &step, wanted_table, wanted_m, wanted_s, s_width);

    const struct ph_embedding_update_args args = {.source = &problem.source,
        .step = &step,
        .unique = problem.unique,
        .starts = problem.starts,
        .num_unique = problem.num_unique,
        .table = table,
        .m = m,
        .s = s};
    float *row = filled_floats(dim, NAN);
    const size_t half = problem.num_unique / 2;
    kernels->embedding_update(&args, half, problem.num_unique, row);
    kernels->embedding_update(&args, 0, half, row);
    for (size_t i = 0; i < ROWS * dim; i++) {
        assert_near((double)table[i], (double)wanted_table[i], 1e-6, 1e-6);
        assert_near((double)m[i], (double)wanted_m[i], 1e-6, 1e-6);
    }
    for (size_t i = 0; i < ROWS * s_width; i++)
        assert_near((double)s[i], (double)wanted_s[i], 1e-6, 1e-6);
}

static void check_update(const struct ph_kernels *kernels)
{
    const size_t dims[] = {1, 4, 8, 15, 16, 18, 32, 33, 64, 67, 128, 200};
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++)
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            reset_arrays(NULL);
            check_kind(kernels, (enum ph_optimizer_kind)kind, dims[i]);
        }
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
