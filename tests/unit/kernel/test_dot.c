#include "unit/kernel/kernel_test.h"

enum { COUNT = 2, GAP = 5 };

struct shape {
    size_t num_fields, dim;
    int has_first;
};

static size_t num_pairs(const struct shape *shape)
{
    return shape->num_fields * (shape->num_fields - 1) / 2;
}

static size_t rest_fields(const struct shape *shape)
{
    return shape->has_first ? shape->num_fields - 1 : shape->num_fields;
}

/* Vector f of sample b in a pair (first, rest). */
static float *field(const struct shape *shape, float *first, float *rest, size_t b, size_t f)
{
    if (shape->has_first && f == 0)
        return first + b * shape->dim;
    return rest + (b * rest_fields(shape) + f - (shape->has_first ? 1 : 0)) * shape->dim;
}

static double product(size_t dim, const float *a, const float *b)
{
    double sum = 0;
    for (size_t d = 0; d < dim; d++)
        sum += (double)a[d] * (double)b[d];
    return sum;
}

static void check_forward(
    const struct ph__kernels *kernels, const struct shape *shape, float *first, float *rest)
{
    const size_t stride = num_pairs(shape) + GAP;
    float *out = filled_floats(COUNT * stride - GAP, 77);
    kernels->dot_forward(
        COUNT, shape->num_fields, shape->dim, shape->has_first ? first : NULL, rest, out, stride);
    for (size_t b = 0; b < COUNT; b++) {
        const float *pair = out + b * stride;
        for (size_t i = 1; i < shape->num_fields; i++) {
            for (size_t j = 0; j < i; j++) {
                const float *xi = field(shape, first, rest, b, i);
                const float *xj = field(shape, first, rest, b, j);
                assert_near((double)*pair++, product(shape->dim, xi, xj), 1e-6 * (double)shape->dim, 0);
            }
        }
        for (size_t k = 0; k < GAP && b + 1 < COUNT; k++)
            assert_true(*pair++ == 77);
    }
}

static double gradient(
    const struct shape *shape, const float *grad, float *first, float *rest, size_t b, size_t i, size_t d)
{
    double sum = 0;
    for (size_t j = 0; j < shape->num_fields; j++) {
        const size_t low = i < j ? i : j;
        const size_t high = i < j ? j : i;
        if (i != j)
            sum += (double)grad[high * (high - 1) / 2 + low] * (double)field(shape, first, rest, b, j)[d];
    }
    return sum;
}

static void check_backward(
    const struct ph__kernels *kernels, const struct shape *shape, float *first, float *rest, int add_to_first)
{
    const size_t stride = num_pairs(shape) + GAP;
    const float *grad = random_floats(COUNT * stride - GAP, -1, 1);
    float *d_first = filled_floats(COUNT * shape->dim, 0.5f);
    float *d_rest = filled_floats(COUNT * rest_fields(shape) * shape->dim, NAN);
    kernels->dot_backward(COUNT, shape->num_fields, shape->dim, shape->has_first ? first : NULL, rest, grad,
        stride, add_to_first, d_first, d_rest);
    for (size_t b = 0; b < COUNT; b++) {
        for (size_t i = 0; i < shape->num_fields; i++) {
            const float *dx = field(shape, d_first, d_rest, b, i);
            const double start = shape->has_first && i == 0 && add_to_first ? 0.5 : 0;
            for (size_t d = 0; d < shape->dim; d++)
                assert_near((double)dx[d], start + gradient(shape, grad + b * stride, first, rest, b, i, d),
                    1e-6 * (double)shape->num_fields, 0);
        }
        for (size_t d = 0; d < shape->dim && !shape->has_first; d++)
            assert_true(d_first[b * shape->dim + d] == 0.5f);
    }
}

static void check_shape(const struct ph__kernels *kernels, size_t num_fields, size_t dim)
{
    for (int choice = 0; choice < 4; choice++) {
        reset_arrays(NULL);
        const struct shape shape = {.num_fields = num_fields, .dim = dim, .has_first = choice & 1};
        float *first = random_floats(COUNT * dim, -1, 1);
        float *rest = random_floats(COUNT * rest_fields(&shape) * dim, -1, 1);
        check_forward(kernels, &shape, first, rest);
        check_backward(kernels, &shape, first, rest, choice >> 1);
    }
}

static void check_small_shapes(const struct ph__kernels *kernels)
{
    const size_t dims[] = {1, 3, 8, 10, 16, 17, 31, 32, 64, 80};
    for (size_t num_fields = 1; num_fields <= 28; num_fields++)
        for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
            check_shape(kernels, num_fields, dims[d]);
}

static void dots_and_their_gradients_follow_the_definition(void **state)
{
    (void)state;
    on_every_isa(check_small_shapes);
}

static void check_many_fields(const struct ph__kernels *kernels)
{
    for (size_t num_fields = 29; num_fields <= 70; num_fields++)
        check_shape(kernels, num_fields, num_fields % 19 + 1);
    check_shape(kernels, 131, 20);
    check_shape(kernels, 514, 9);
}

static void any_number_of_fields_is_taken(void **state)
{
    (void)state;
    on_every_isa(check_many_fields);
}

static void check_long_vectors(const struct ph__kernels *kernels)
{
    const size_t dims[] = {127, 128, 129, 144, 259, 512};
    const size_t fields[] = {2, 5, 6, 27, 34, 37};
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
            check_shape(kernels, fields[f], dims[d]);
}

static void vectors_of_any_length_are_taken(void **state)
{
    (void)state;
    on_every_isa(check_long_vectors);
}

/* Each sample of a batch against itself alone, to the bit. */
static void check_places(const struct ph__kernels *kernels)
{
    enum { SAMPLES = 5, FIELDS = 39, DIM = 45, PAIRS = FIELDS * (FIELDS - 1) / 2 };
    const float *x = random_floats(SAMPLES * FIELDS * DIM, -1, 1);
    const float *grad = random_floats(SAMPLES * PAIRS, -1, 1);
    float *out = filled_floats(SAMPLES * PAIRS, NAN), *out_alone = filled_floats(PAIRS, NAN);
    float *dx = filled_floats(SAMPLES * FIELDS * DIM, NAN), *dx_alone = filled_floats(FIELDS * DIM, NAN);
    kernels->dot_forward(SAMPLES, FIELDS, DIM, NULL, x, out, PAIRS);
    kernels->dot_backward(SAMPLES, FIELDS, DIM, NULL, x, grad, PAIRS, 0, NULL, dx);
    for (size_t b = 0; b < SAMPLES; b++) {
        const float *sample = copied_floats(FIELDS * DIM, x + b * FIELDS * DIM);
        kernels->dot_forward(1, FIELDS, DIM, NULL, sample, out_alone, PAIRS);
        kernels->dot_backward(1, FIELDS, DIM, NULL, sample, grad + b * PAIRS, PAIRS, 0, NULL, dx_alone);
        assert_memory_equal(out + b * PAIRS, out_alone, PAIRS * sizeof *out);
        assert_memory_equal(dx + b * FIELDS * DIM, dx_alone, FIELDS * DIM * sizeof *dx);
    }
}

static void the_bits_of_a_sample_do_not_depend_on_its_place(void **state)
{
    (void)state;
    on_every_isa(check_places);
}

/* An infinite number reaches its field's products and the other fields' gradients, and nothing else. */
static void check_infinity(const struct ph__kernels *kernels)
{
    enum { FIELDS = 11, DIM = 64 + 32 + 16 + 1, PAIRS = FIELDS * (FIELDS - 1) / 2 };
    const struct shape shape = {.num_fields = FIELDS, .dim = DIM};
    float *x = filled_floats(FIELDS * DIM, 1);
    const float *grad = filled_floats(PAIRS, 1);
    float *dx = filled_floats(FIELDS * DIM, 0), *out = filled_floats(PAIRS, 0);
    for (size_t infinite = 0; infinite < FIELDS; infinite++) {
        for (size_t d = 0; d < DIM; d += 8) {
            x[infinite * DIM + d] = INFINITY;
            kernels->dot_backward(1, FIELDS, DIM, NULL, x, grad, PAIRS, 0, NULL, dx);
            kernels->dot_forward(1, FIELDS, DIM, NULL, x, out, PAIRS);
            for (size_t i = 0, pair = 0; i < FIELDS; i++) {
                assert_int_equal(isfinite(field(&shape, NULL, dx, 0, i)[d]), i == infinite);
                for (size_t j = 0; j < i; j++)
                    assert_int_equal(isfinite(out[pair++]), i != infinite && j != infinite);
            }
            x[infinite * DIM + d] = 1;
        }
    }
}

static void infinity_reaches_what_it_takes_part_in_only(void **state)
{
    (void)state;
    on_every_isa(check_infinity);
}

static void check_no_samples(const struct ph__kernels *kernels)
{
    float out = 5;
    kernels->dot_forward(0, 4, 16, NULL, NULL, &out, 6);
    kernels->dot_backward(0, 4, 16, NULL, NULL, NULL, 6, 0, NULL, &out);
    assert_true(out == 5);
}

static void no_samples_write_nothing(void **state)
{
    (void)state;
    on_every_isa(check_no_samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            dots_and_their_gradients_follow_the_definition, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(any_number_of_fields_is_taken, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(vectors_of_any_length_are_taken, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            the_bits_of_a_sample_do_not_depend_on_its_place, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            infinity_reaches_what_it_takes_part_in_only, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(no_samples_write_nothing, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
