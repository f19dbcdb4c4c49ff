#include "unit/kernel/kernel_test.h"

#include "tensor/row_format.h"

enum { SAMPLES = 40, ROWS = 30, MOST_COLUMNS = 130 };

/* One id a sample into a table of ROWS rows, merged; the whole gradient (SAMPLES, dim) and table. */
struct problem {
    size_t dim;
    uint32_t order[SAMPLES], unique[SAMPLES], starts[SAMPLES];
    size_t num_unique;
    const float *coefficients, *grad, *numbers;
    enum ph_row_format format;
    struct ph__optimizer_step step;
};

static void make_problem(struct problem *problem, size_t dim, size_t kind)
{
    uint64_t scratch[2 * SAMPLES];
    uint32_t slots[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        slots[i] = random_word() % ROWS;
    *problem = (struct problem){.dim = dim,
        .coefficients = kind % 2 != 0 ? random_floats(SAMPLES, -2, 2) : NULL,
        .grad = random_floats(SAMPLES * dim, -1, 1),
        .numbers = random_floats(ROWS * dim, -1, 1),
        .format = kind < 4 ? PH_ROWS_FP32 : PH_ROWS_BF16_SPLIT,
        .step = {.kind = PH_ROWWISE_ADAGRAD,
            .learning_rate = 0.1f,
            .gradient_scale = kind % 4 < 2 ? 1 : 0.5f,
            .l2 = kind % 4 < 2 ? 0 : 0.01f,
            .epsilon = 1e-6f}};
    problem->num_unique = ph__slot_sort(ph__kernels_for(PH_ISA_REF), slots, SAMPLES, 0, ROWS, 0,
        problem->order, problem->unique, problem->starts, scratch);
}

/* Columns [first, first + dim) of it, with slots of their own. */
struct shard {
    struct ph__embedding_gradient_source source;
    struct ph__table_rows table;
    struct ph__embedding_update_args args;
    float *row_scratch, *blocks;
};

static const float *columns_of(const float *numbers, size_t rows, size_t stride, size_t first, size_t dim)
{
    float *part = new_array(rows * dim, sizeof *part);
    for (size_t row = 0; row < rows; row++)
        memcpy(part + row * dim, numbers + row * stride + first, dim * sizeof *part);
    return part;
}

static void make_shard(struct shard *shard, const struct problem *problem, size_t first, size_t dim)
{
    const float *numbers = columns_of(problem->numbers, ROWS, problem->dim, first, dim);
    *shard = (struct shard){.source = {.num_entries = SAMPLES,
                                .rows = problem->order,
                                .coefficients = problem->coefficients,
                                .grad = columns_of(problem->grad, SAMPLES, problem->dim, first, dim),
                                .dim = dim},
        .table = {.format = problem->format,
            .dim = dim,
            .memory = new_array(ROWS * dim, ph__row_bytes(problem->format, 1)),
            .low = new_array(ROWS * dim, sizeof(uint16_t))},
        .args = {.source = &shard->source,
            .step = &problem->step,
            .unique = problem->unique,
            .starts = problem->starts,
            .num_unique = problem->num_unique,
            .table = &shard->table,
            .s = filled_floats(ROWS, 0.25f)},
        .row_scratch = filled_floats(2 * dim, NAN),
        .blocks = filled_floats(SAMPLES * ph__square_blocks(dim), NAN)};
    ph__rows_encode(problem->format, ROWS, dim, numbers, shard->table.memory, shard->table.low);
}

/* In two calls, the last runs first. */
static void square(const struct ph__kernels *kernels, const struct shard *shard)
{
    const size_t num_unique = shard->args.num_unique, half = num_unique / 2;
    kernels->embedding_squares(&shard->args, half, num_unique, shard->row_scratch, shard->blocks);
    kernels->embedding_squares(&shard->args, 0, half, shard->row_scratch, shard->blocks);
}

/* The same row by row, the gradient in memory. */
static void check_squares(const struct ph__kernels *kernels, size_t dim, size_t kind)
{
    struct problem problem;
    struct shard shard;
    make_problem(&problem, dim, kind);
    make_shard(&shard, &problem, 0, dim);
    square(kernels, &shard);
    float *gradient = filled_floats(dim, NAN), *weights = filled_floats(dim, NAN);
    float *wanted = filled_floats(ph__square_blocks(dim), NAN);
    for (size_t r = 0; r < problem.num_unique; r++) {
        const size_t end = r + 1 < problem.num_unique ? problem.starts[r + 1] : SAMPLES;
        kernels->embedding_gradient_row(&shard.source, problem.starts[r], end, gradient);
        kernels->table_rows_load(&shard.table, problem.unique[r], 1, weights);
        kernels->row_squares(&problem.step, dim, gradient, weights, wanted);
        assert_memory_equal(
            shard.blocks + r * ph__square_blocks(dim), wanted, ph__square_blocks(dim) * sizeof *wanted);
    }
}

static void check_all_squares(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= MOST_COLUMNS; dim++)
        for (size_t kind = 0; kind < 8; kind++) {
            reset_arrays(NULL);
            check_squares(kernels, dim, kind);
        }
}

static void the_sweep_has_the_block_sums_of_its_rows(void **state)
{
    (void)state;
    on_every_isa(check_all_squares);
}

/* ---- tables cut by columns ---- */

/* A whole table's update beside that of its two parts, which exchange their block sums. */
static void update_parts(const struct ph__kernels *kernels, struct shard parts[2], size_t whole_dim)
{
    struct ph__square_shard squares[2];
    float *sums = filled_floats(SAMPLES, NAN);
    for (size_t part = 0; part < 2; part++) {
        square(kernels, &parts[part]);
        squares[part] =
            (struct ph__square_shard){parts[part].blocks, ph__square_blocks(parts[part].source.dim)};
    }
    ph__square_sums(squares, 2, 0, parts[0].args.num_unique, sums);
    for (size_t part = 0; part < 2; part++) {
        parts[part].args.square_sums = sums;
        parts[part].args.whole_dim = whole_dim;
        kernels->embedding_update(&parts[part].args, 0, parts[part].args.num_unique, parts[part].row_scratch);
    }
}

static void assert_part_of(const struct shard *whole, const struct shard *part, size_t first)
{
    const size_t dim = part->source.dim, whole_dim = whole->source.dim;
    float *wanted = filled_floats(ROWS * whole_dim, NAN), *numbers = filled_floats(ROWS * dim, NAN);
    const struct ph__kernels *kernels = ph__kernels_for(PH_ISA_REF);
    kernels->table_rows_load(&whole->table, 0, ROWS, wanted);
    kernels->table_rows_load(&part->table, 0, ROWS, numbers);
    assert_memory_equal(
        numbers, columns_of(wanted, ROWS, whole_dim, first, dim), ROWS * dim * sizeof *numbers);
    assert_memory_equal(part->args.s, whole->args.s, ROWS * sizeof(float));
}

static void check_cut(const struct ph__kernels *kernels, size_t dim, size_t kind)
{
    struct problem problem;
    struct shard whole, parts[2];
    const size_t cut = PH_SQUARES_COLUMNS * (1 + random_word() % ((dim - 1) / PH_SQUARES_COLUMNS));
    make_problem(&problem, dim, kind);
    make_shard(&whole, &problem, 0, dim);
    make_shard(&parts[0], &problem, 0, cut);
    make_shard(&parts[1], &problem, cut, dim - cut);
    kernels->embedding_update(&whole.args, 0, problem.num_unique, whole.row_scratch);
    update_parts(kernels, parts, dim);
    assert_part_of(&whole, &parts[0], 0);
    assert_part_of(&whole, &parts[1], cut);
}

static void check_cuts(const struct ph__kernels *kernels)
{
    for (size_t dim = PH_SQUARES_COLUMNS + 1; dim <= MOST_COLUMNS; dim++)
        for (size_t kind = 0; kind < 8; kind++) {
            reset_arrays(NULL);
            check_cut(kernels, dim, kind);
        }
}

static void parts_of_a_table_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    on_every_isa(check_cuts);
}

/* Entries without coefficients, whose gradients have the same bits on every ISA. */
static void check_update_of_ref(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= MOST_COLUMNS; dim++)
        for (size_t kind = 0; kind < 8; kind += 2) {
            reset_arrays(NULL);
            struct problem problem;
            struct shard shard, wanted;
            make_problem(&problem, dim, kind);
            make_shard(&shard, &problem, 0, dim);
            make_shard(&wanted, &problem, 0, dim);
            kernels->embedding_update(&shard.args, 0, problem.num_unique, shard.row_scratch);
            ph__kernels_for(PH_ISA_REF)
                ->embedding_update(&wanted.args, 0, problem.num_unique, wanted.row_scratch);
            assert_part_of(&wanted, &shard, 0);
        }
}

static void every_isa_gives_a_table_the_same_bits(void **state)
{
    (void)state;
    on_every_isa(check_update_of_ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_sweep_has_the_block_sums_of_its_rows, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            parts_of_a_table_have_the_bits_of_the_whole, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(every_isa_gives_a_table_the_same_bits, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
