#include "unit/kernel/kernel_test.h"

#include "tensor/row_format.h"

enum { SAMPLES = 40, ROWS = 30, BASE = 4 };

/* One id a sample into a table of ROWS, sorted; one feature. */
struct problem {
    struct ph__embedding_gradient_source source;
    uint32_t slots[SAMPLES], order[SAMPLES], unique[SAMPLES], starts[SAMPLES];
    size_t num_unique;
};

static void make_problem(struct problem *problem, size_t dim)
{
    uint64_t scratch[2 * SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        problem->slots[i] = BASE + random_word() % (ROWS - BASE);
    problem->num_unique = ph__slot_sort(ph__kernels_for(PH_ISA_REF), problem->slots, SAMPLES, BASE,
        ROWS - BASE, 0, problem->order, problem->unique, problem->starts, scratch);
    problem->source = (struct ph__embedding_gradient_source){
        .num_entries = SAMPLES,
        .rows = problem->order,
        .grad = random_floats(SAMPLES * dim, -1, 1),
        .dim = dim,
    };
}

/* The same without sorting: the dense gradient of the table, then one update a touched row. */
static void update_densely(const struct ph__kernels *kernels, const struct problem *problem,
    const struct ph__optimizer_step *step, float *table, float *m, float *s, size_t s_width)
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

static struct ph__optimizer_step usual_step(enum ph_optimizer_kind kind)
{
    return (struct ph__optimizer_step){.kind = kind,
        .learning_rate = 0.1f,
        .gradient_scale = 0.5f,
        .l2 = 0.01f,
        .momentum = 0.9f,
        .beta1 = 0.9f,
        .beta2 = 0.99f,
        .epsilon = 1e-6f,
        .bias_correction1 = 0.5f,
        .bias_correction2 = 0.25f};
}

static void check_kind(const struct ph__kernels *kernels, enum ph_optimizer_kind kind, size_t dim)
{
    const struct ph__optimizer_step step = usual_step(kind);
    const size_t s_width = kind == PH_ROWWISE_ADAGRAD ? 1 : dim;
    struct problem problem;
    make_problem(&problem, dim);
    float *table = random_floats(ROWS * dim, -1, 1);
    float *m = random_floats(ROWS * dim, -1, 1), *s = random_floats(ROWS * s_width, 0, 1);
    float *wanted_table = copied_floats(ROWS * dim, table);
    float *wanted_m = copied_floats(ROWS * dim, m), *wanted_s = copied_floats(ROWS * s_width, s);
    update_densely(kernels, &problem, &step, wanted_table, wanted_m, wanted_s, s_width);

    const struct ph__embedding_update_args args = {.source = &problem.source,
        .step = &step,
        .unique = problem.unique,
        .starts = problem.starts,
        .num_unique = problem.num_unique,
        .table = &(struct ph__table_rows){.dim = dim, .memory = table},
        .m = m,
        .s = s};
    float *row = filled_floats(2 * dim, NAN);
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

static void check_update(const struct ph__kernels *kernels)
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

/* ---- rows in fewer bytes ---- */

static const struct ph__row_slice slices[] = {
    {101, BASE + 3, 0, 0}, {102, BASE + 4, 5, 12}, {103, ROWS, 1000, 16}};

/* A table with its optimizer's slots. */
struct learnt {
    struct ph__table_rows table;
    float *m, *s;
};

static struct learnt make_learnt(enum ph_row_format format, size_t dim, const float *numbers)
{
    struct learnt learnt = {.table = {.format = format,
                                .dim = dim,
                                .memory = new_array(ROWS * dim, ph__row_bytes(format, 1)),
                                .seed = test_seed(),
                                .step = 9,
                                .slices = slices,
                                .num_slices = sizeof slices / sizeof *slices},
        .m = filled_floats(ROWS * dim, 0.25f),
        .s = filled_floats(ROWS * dim, 0.5f)};
    if (format == PH_ROWS_BF16_SPLIT)
        learnt.table.low = new_array(ROWS * dim, sizeof(uint16_t));
    ph__rows_encode(format, ROWS, dim, numbers, learnt.table.memory, learnt.table.low);
    return learnt;
}

static void assert_same_learnt(const struct learnt *a, const struct learnt *b)
{
    const size_t elements = ROWS * a->table.dim;
    assert_memory_equal(a->table.memory, b->table.memory, elements * ph__row_bytes(a->table.format, 1));
    if (a->table.low != NULL)
        assert_memory_equal(a->table.low, b->table.low, elements * sizeof(uint16_t));
    assert_memory_equal(a->m, b->m, elements * sizeof(float));
    assert_memory_equal(a->s, b->s, elements * sizeof(float));
}

/* In parts, the last one first: what a call updates does not depend on the calls. */
static void update_fused(const struct ph__kernels *kernels, const struct problem *problem,
    const struct ph__optimizer_step *step, const struct learnt *learnt, size_t num_parts)
{
    const struct ph__embedding_update_args args = {.source = &problem->source,
        .step = step,
        .unique = problem->unique,
        .starts = problem->starts,
        .num_unique = problem->num_unique,
        .table = &learnt->table,
        .m = learnt->m,
        .s = learnt->s};
    float *rows = filled_floats(2 * problem->source.dim, NAN);
    for (size_t part = num_parts; part-- > 0;)
        kernels->embedding_update(&args, problem->num_unique * part / num_parts,
            problem->num_unique * (part + 1) / num_parts, rows);
}

/* Row by row: gradient, numbers of the row, step, and back. */
static void update_by_parts(const struct ph__kernels *kernels, const struct problem *problem,
    const struct ph__optimizer_step *step, const struct learnt *learnt)
{
    const size_t dim = problem->source.dim;
    float *gradient = filled_floats(dim, NAN), *numbers = filled_floats(dim, NAN);
    for (size_t r = 0; r < problem->num_unique; r++) {
        const size_t row = problem->unique[r];
        const size_t end = r + 1 < problem->num_unique ? problem->starts[r + 1] : SAMPLES;
        kernels->embedding_gradient_row(&problem->source, problem->starts[r], end, gradient);
        kernels->table_rows_load(&learnt->table, row, 1, numbers);
        if (step->kind == PH_ROWWISE_ADAGRAD)
            kernels->rowwise_adagrad_update(step, dim, gradient, numbers, learnt->s + row);
        else
            kernels->optimizer_update(
                step, dim, gradient, numbers, learnt->m + row * dim, learnt->s + row * dim);
        kernels->table_rows_store(&learnt->table, row, 1, numbers);
    }
}

static const size_t all_dims[] = {1, 4, 8, 10, 15, 16, 18, 32, 33, 64, 67, 128, 130, 136, 200};
enum { NUM_DIMS = sizeof all_dims / sizeof *all_dims };

static void check_formats(const struct ph__kernels *kernels)
{
    static const enum ph_row_format formats[] = {
        PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    struct problem problem;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++)
        for (size_t i = 0; i < 4 * NUM_DIMS; i++) {
            reset_arrays(NULL);
            const struct ph__optimizer_step step = usual_step((enum ph_optimizer_kind)kind);
            make_problem(&problem, all_dims[i / 4]);
            const float *numbers = random_floats(ROWS * all_dims[i / 4], -1, 1);
            const struct learnt wanted = make_learnt(formats[i % 4], all_dims[i / 4], numbers);
            update_by_parts(kernels, &problem, &step, &wanted);
            for (size_t num_parts = 1; num_parts < 4; num_parts++) {
                const struct learnt learnt = make_learnt(formats[i % 4], all_dims[i / 4], numbers);
                update_fused(kernels, &problem, &step, &learnt, num_parts);
                assert_same_learnt(&learnt, &wanted);
            }
        }
}

static void the_sweep_has_the_bits_of_its_parts_in_every_format(void **state)
{
    (void)state;
    on_every_isa(check_formats);
}

/* Given the same gradients: three steps, then both numbers of a pair together. */
static void check_split(const struct ph__kernels *kernels)
{
    struct problem problem;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++)
        for (size_t i = 0; i < NUM_DIMS; i++) {
            reset_arrays(NULL);
            const size_t dim = all_dims[i];
            const struct ph__optimizer_step step = usual_step((enum ph_optimizer_kind)kind);
            const float *numbers = random_floats(ROWS * dim, -1, 1);
            const struct learnt split = make_learnt(PH_ROWS_BF16_SPLIT, dim, numbers);
            const struct learnt whole = make_learnt(PH_ROWS_FP32, dim, numbers);
            for (int times = 0; times < 3; times++) {
                make_problem(&problem, dim);
                update_fused(kernels, &problem, &step, &split, 1);
                update_fused(kernels, &problem, &step, &whole, 1);
            }
            float *joined = filled_floats(ROWS * dim, 0);
            kernels->table_rows_load(&split.table, 0, ROWS, joined);
            assert_memory_equal(joined, whole.table.memory, ROWS * dim * sizeof *joined);
            assert_memory_equal(split.s, whole.s, ROWS * dim * sizeof(float));
            assert_memory_equal(split.m, whole.m, ROWS * dim * sizeof(float));
        }
}

static void split_rows_are_updated_as_those_of_fp32(void **state)
{
    (void)state;
    on_every_isa(check_split);
}

/* Steps of a fiftieth of a row's last bit: rounded to the nearest they would never move it. */
static void check_small_steps(const struct ph__kernels *kernels)
{
    enum { DIM = 64, STEPS = 400 };
    static const struct ph__row_slice slice = {.stream = 7, .end_row = 1};
    static const uint32_t unique[] = {0}, starts[] = {0}, rows[] = {0};
    const struct ph__embedding_gradient_source source = {
        .num_entries = 1, .rows = rows, .grad = filled_floats(DIM, 1), .dim = DIM};
    const struct ph__optimizer_step step = {
        .kind = PH_SGD, .learning_rate = 0x1p-8f / 50, .gradient_scale = 1};
    struct ph__table_rows table = {.format = PH_ROWS_BF16,
        .dim = DIM,
        .memory = new_array(DIM, sizeof(uint16_t)),
        .slices = &slice,
        .num_slices = 1};
    ph__rows_encode(PH_ROWS_BF16, 1, DIM, filled_floats(DIM, 1), table.memory, NULL);
    const struct ph__embedding_update_args args = {.source = &source,
        .step = &step,
        .unique = unique,
        .starts = starts,
        .num_unique = 1,
        .table = &table};
    for (table.step = 1; table.step <= STEPS; table.step++)
        kernels->embedding_update(&args, 0, 1, filled_floats((size_t)2 * DIM, 0));
    double sum = 0;
    for (size_t d = 0; d < DIM; d++)
        sum += (double)ph__row_number(PH_ROWS_BF16, DIM, table.memory, d);
    const double wanted = 1 - STEPS * 0x1p-8 / 50; /* a step's deviation is .14 units of 2^-8 */
    assert_true(fabs(sum / DIM - wanted) < 5 * 0.14 * 0x1p-8 * sqrt((double)STEPS / DIM));
}

static void steps_too_small_for_a_rows_last_bit_count_on_average(void **state)
{
    (void)state;
    on_every_isa(check_small_steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(duplicates_are_merged_before_one_update, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            the_sweep_has_the_bits_of_its_parts_in_every_format, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(split_rows_are_updated_as_those_of_fp32, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            steps_too_small_for_a_rows_last_bit_count_on_average, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
