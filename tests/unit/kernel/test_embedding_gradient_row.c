#include "kernel_test.h"

enum { SAMPLES = 13, FEATURES = 3, ENTRIES = 90 };

static struct ph_embedding_gradient_source random_source(size_t dim, int is_weighted, int is_mean)
{
    uint32_t *order = new_array(ENTRIES, sizeof *order);
    uint32_t *bags = new_array(ENTRIES, sizeof *bags);
    int32_t *lengths = new_array(SAMPLES * FEATURES, sizeof *lengths);
    for (uint32_t e = 0; e < ENTRIES; e++) {
        order[e] = (e * 7) % ENTRIES;
        bags[e] = random_word() % (SAMPLES * FEATURES);
    }
    for (size_t bag = 0; bag < SAMPLES * FEATURES; bag++)
        lengths[bag] = (int32_t)(1 + random_word() % 9);
    const size_t sample_stride = FEATURES * dim + 2; /* (B,F,D) with a gap behind each sample */
    return (struct ph_embedding_gradient_source){
        .order = order,
        .num_entries = ENTRIES,
        .bags = bags,
        .grad = random_floats((SAMPLES - 1) * sample_stride + FEATURES * dim, -1, 1),
        .num_samples = SAMPLES,
        .sample_stride = sample_stride,
        .feature_stride = dim,
        .dim = dim,
        .weights = is_weighted ? random_floats(ENTRIES, -2, 2) : NULL,
        .lengths = is_mean ? lengths : NULL,
    };
}

static double merged(const struct ph_embedding_gradient_source *source, size_t first, size_t last, size_t d)
{
    double sum = 0;
    for (size_t e = first; e < last; e++) {
        const size_t bag = source->bags[source->order[e]];
        const size_t row = bag % SAMPLES * source->sample_stride + bag / SAMPLES * source->feature_stride;
        double value = (double)source->grad[row + d];
        if (source->weights != NULL)
            value *= (double)source->weights[source->order[e]];
        if (source->lengths != NULL)
            value /= source->lengths[bag];
        sum += value;
    }
    return sum;
}

static void check_row(const struct ph_kernels *kernels, const struct ph_embedding_gradient_source *source,
    size_t first, size_t last)
{
    float *row = filled_floats(source->dim, NAN);
    kernels->embedding_gradient_row(source, first, last, row);
    for (size_t d = 0; d < source->dim; d++)
        assert_near((double)row[d], merged(source, first, last, d), 5e-6, 1e-5);
}

static void check_every_dimension(const struct ph_kernels *kernels)
{
    for (size_t dim = 1; dim <= 280; dim += dim < 34 ? 1 : dim % 16 == 0 ? 15 : 1) {
        for (int choice = 0; choice < 4; choice++) {
            reset_arrays(NULL);
            const struct ph_embedding_gradient_source source = random_source(dim, choice & 1, choice >> 1);
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

static void check_no_entries(const struct ph_kernels *kernels)
{
    const struct ph_embedding_gradient_source source = random_source(33, 1, 1);
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

static void check_unknown_end(const struct ph_kernels *kernels)
{
    struct ph_embedding_gradient_source source = random_source(64, 0, 0);
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
