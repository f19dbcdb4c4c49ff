#include "unit/kernel/kernel_test.h"

static const struct ph__optimizer_step step = {.kind = PH_ROWWISE_ADAGRAD,
    .learning_rate = 0.05f,
    .gradient_scale = 0.5f,
    .l2 = 0.01f,
    .epsilon = 1e-6f};

static void check_row(const struct ph__kernels *kernels, size_t dim, int has_gradient)
{
    const float *grad = random_floats(dim, -1, 1);
    float *w = random_floats(dim, -1, 1);
    const float *before = copied_floats(dim, w);
    float s = 0.25f;
    kernels->rowwise_adagrad_update(&step, dim, has_gradient ? grad : NULL, w, &s);

    double g[300], squares = 0;
    for (size_t d = 0; d < dim; d++) {
        g[d] = (has_gradient ? 0.5 * (double)grad[d] : 0) + (double)step.l2 * (double)before[d];
        squares += g[d] * g[d];
    }
    const double sum = 0.25 + squares / (double)dim;
    assert_near((double)s, sum, 0, 2e-6);
    for (size_t d = 0; d < dim; d++)
        assert_near((double)w[d], (double)before[d] - (double)step.learning_rate * g[d] / (sqrt(sum) + 1e-6),
            1e-6, 0);
}

static void check_dimensions(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= 150; dim++) {
        reset_arrays(NULL);
        check_row(kernels, dim, 1);
        check_row(kernels, dim, 0);
    }
}

static void rowwise_adagrad_keeps_one_sum_a_row(void **state)
{
    (void)state;
    on_every_isa(check_dimensions);
}

/* ---- rows in parts ---- */

enum { MOST_COLUMNS = 130, MOST_BLOCKS = MOST_COLUMNS / PH_SQUARES_COLUMNS + 1 };

/* Without penalty and scale, with either, with both. */
static struct ph__optimizer_step step_of(size_t kind)
{
    struct ph__optimizer_step other = step;
    other.gradient_scale = kind % 2 == 0 ? 1 : 0.3f;
    other.l2 = kind < 2 ? 0 : 0.01f;
    return other;
}

/* A row with the sum of its squares so far. */
struct row {
    size_t dim;
    const float *grad; /* or NULL */
    float *weight;
    float s;
};

static struct row random_row(size_t dim)
{
    return (struct row){
        dim, dim % 7 != 3 ? random_floats(dim, -1, 1) : NULL, random_floats(dim, -1, 1), 0.25f};
}

static struct row copied_row(const struct row *row)
{
    struct row copy = *row;
    copy.weight = copied_floats(row->dim, row->weight);
    return copy;
}

static void assert_same_row(const struct row *a, const struct row *b)
{
    assert_memory_equal(a->weight, b->weight, a->dim * sizeof(float));
    assert_memory_equal(&a->s, &b->s, sizeof a->s);
}

static void check_update_of_ref(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= MOST_COLUMNS; dim++)
        for (size_t kind = 0; kind < 4; kind++) {
            reset_arrays(NULL);
            const struct ph__optimizer_step other = step_of(kind);
            struct row wanted = random_row(dim), row = copied_row(&wanted);
            ph__kernels_for(PH_ISA_REF)
                ->rowwise_adagrad_update(&other, dim, wanted.grad, wanted.weight, &wanted.s);
            kernels->rowwise_adagrad_update(&other, dim, row.grad, row.weight, &row.s);
            assert_same_row(&row, &wanted);
        }
}

static void every_isa_gives_a_row_the_same_bits(void **state)
{
    (void)state;
    on_every_isa(check_update_of_ref);
}

/* (g_0^2 + g_1^2) + (g_2^2 + g_3^2), every operation by itself. */
static float written_block(const struct row *row, const struct ph__optimizer_step *other, size_t first)
{
    float square[PH_SQUARES_COLUMNS] = {0};
    for (size_t d = first; d < row->dim && d < first + PH_SQUARES_COLUMNS; d++) {
        const float scaled = (row->grad != NULL ? row->grad[d] : 0) * other->gradient_scale;
        const float g = other->l2 != 0 ? fmaf(other->l2, row->weight[d], scaled) : scaled;
        square[d - first] = g * g;
    }
    return (square[0] + square[1]) + (square[2] + square[3]);
}

static void check_blocks(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= MOST_COLUMNS; dim++)
        for (size_t kind = 0; kind < 4; kind++) {
            reset_arrays(NULL);
            const struct ph__optimizer_step other = step_of(kind);
            const struct row row = random_row(dim);
            float *blocks = filled_floats(ph__square_blocks(dim), NAN);
            kernels->row_squares(&other, dim, row.grad, other.l2 != 0 ? row.weight : NULL, blocks);
            for (size_t k = 0; k < ph__square_blocks(dim); k++)
                assert_true(blocks[k] == written_block(&row, &other, k * PH_SQUARES_COLUMNS));
        }
}

static void squares_are_summed_by_blocks_of_columns(void **state)
{
    (void)state;
    on_every_isa(check_blocks);
}

/* Where parts begin: multiples of PH_SQUARES_COLUMNS, from 0; ends with dim. Returns how many there are. */
static size_t cut_columns(size_t dim, size_t *first_out)
{
    size_t num_parts = 0;
    for (size_t block = 0; block < ph__square_blocks(dim);
         block += 1 + random_word() % (ph__square_blocks(dim) - block))
        first_out[num_parts++] = block * PH_SQUARES_COLUMNS;
    first_out[num_parts] = dim;
    return num_parts;
}

/* Every other part's squares are those of ref: parts need not be on like machines. */
static float sum_of_parts(const struct ph__kernels *kernels, const struct ph__optimizer_step *other,
    const struct row *row, const size_t *first, size_t num_parts)
{
    struct ph__square_shard parts[MOST_BLOCKS];
    float sum;
    for (size_t part = 0; part < num_parts; part++) {
        const size_t begin = first[part], width = first[part + 1] - begin;
        float *blocks = filled_floats(ph__square_blocks(width), NAN);
        const struct ph__kernels *used = part % 2 == 0 ? kernels : ph__kernels_for(PH_ISA_REF);
        used->row_squares(
            other, width, row->grad != NULL ? row->grad + begin : NULL, row->weight + begin, blocks);
        parts[part] = (struct ph__square_shard){blocks, ph__square_blocks(width)};
    }
    ph__square_sums(parts, num_parts, 0, 1, &sum);
    return sum;
}

static void check_parts(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= MOST_COLUMNS; dim++)
        for (size_t kind = 0; kind < 4; kind++) {
            reset_arrays(NULL);
            size_t first[MOST_BLOCKS + 1];
            const struct ph__optimizer_step other = step_of(kind);
            struct row wanted = random_row(dim);
            const struct row row = copied_row(&wanted);
            const size_t num_parts = cut_columns(dim, first);
            const float mean = sum_of_parts(kernels, &other, &row, first, num_parts) / (float)dim;
            kernels->rowwise_adagrad_update(&other, dim, wanted.grad, wanted.weight, &wanted.s);
            for (size_t part = 0; part < num_parts; part++) {
                const size_t begin = first[part];
                float s = row.s;
                kernels->rowwise_adagrad_step(&other, mean, first[part + 1] - begin,
                    row.grad != NULL ? row.grad + begin : NULL, row.weight + begin, &s);
                assert_memory_equal(&s, &wanted.s, sizeof s);
            }
            assert_memory_equal(row.weight, wanted.weight, dim * sizeof *row.weight);
        }
}

static void parts_of_a_row_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    on_every_isa(check_parts);
}

static void check_no_columns(const struct ph__kernels *kernels)
{
    float s = 3;
    kernels->rowwise_adagrad_update(&step, 0, NULL, NULL, &s);
    assert_true(s == 3);
}

static void row_of_no_columns_changes_nothing(void **state)
{
    (void)state;
    on_every_isa(check_no_columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rowwise_adagrad_keeps_one_sum_a_row, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(every_isa_gives_a_row_the_same_bits, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(squares_are_summed_by_blocks_of_columns, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            parts_of_a_row_have_the_bits_of_the_whole, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(row_of_no_columns_changes_nothing, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
