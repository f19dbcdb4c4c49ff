#include "unit/kernel/kernel_test.h"

enum { ROWS = 39, ENTRIES = 90 };

static struct ph__embedding_gradient_source random_source(size_t dim, int has_coefficients)
{
    uint32_t *rows = new_array(ENTRIES, sizeof *rows);
    for (uint32_t e = 0; e < ENTRIES; e++)
        rows[e] = random_word() % ROWS;
    return (struct ph__embedding_gradient_source){
        .num_entries = ENTRIES,
        .rows = rows,
        .coefficients = has_coefficients ? random_floats(ENTRIES, -2, 2) : NULL,
        .grad = random_floats(ROWS * dim, -1, 1),
        .dim = dim,
    };
}

static double merged(const struct ph__embedding_gradient_source *source, size_t first, size_t last, size_t d)
{
    double sum = 0;
    for (size_t e = first; e < last; e++)
        sum += (source->coefficients != NULL ? (double)source->coefficients[e] : 1) *
               (double)source->grad[source->rows[e] * source->dim + d];
    return sum;
}

static void check_row(const struct ph__kernels *kernels, const struct ph__embedding_gradient_source *source,
    size_t first, size_t last)
{
    float *row = filled_floats(source->dim, NAN);
    kernels->embedding_gradient_row(source, first, last, row);
    for (size_t d = 0; d < source->dim; d++)
        assert_near((double)row[d], merged(source, first, last, d), 5e-6, 1e-5);
}

static void check_every_dimension(const struct ph__kernels *kernels)
{
    for (size_t dim = 1; dim <= 280; dim += dim < 34 ? 1 : dim % 16 == 0 ? 15 : 1) {
        for (int has_coefficients = 0; has_coefficients < 2; has_coefficients++) {
            reset_arrays(NULL);
            const struct ph__embedding_gradient_source source = random_source(dim, has_coefficients);
            check_row(kernels, &source, 0, 1);
            check_row(kernels, &source, 3, 17);
            check_row(kernels, &source, 0, ENTRIES);
        }
    }
}

static void gradient_row_sums_its_entries(void **state)
{
    (void)state;
    on_every_isa(check_every_dimension);
}

static void check_no_entries(const struct ph__kernels *kernels)
{
    const struct ph__embedding_gradient_source source = random_source(33, 1);
    float *row = filled_floats(33, NAN);
    kernels->embedding_gradient_row(&source, 4, 4, row);
    for (size_t d = 0; d < 33; d++)
        assert_true(row[d] == 0);
}

static void gradient_row_of_no_entries_is_zero(void **state)
{
    (void)state;
    on_every_isa(check_no_entries);
}

static void check_unknown_end(const struct ph__kernels *kernels)
{
    struct ph__embedding_gradient_source source = random_source(64, 0);
    float *known = filled_floats(64, NAN);
    float *unknown = filled_floats(64, NAN);
    kernels->embedding_gradient_row(&source, 70, ENTRIES, known);
    source.num_entries = 0;
    kernels->embedding_gradient_row(&source, 70, ENTRIES, unknown);
    assert_memory_equal(known, unknown, 64 * sizeof *known);
}

static void prefetching_does_not_change_the_row(void **state)
{
    (void)state;
    on_every_isa(check_unknown_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gradient_row_sums_its_entries, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(gradient_row_of_no_entries_is_zero, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(prefetching_does_not_change_the_row, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
