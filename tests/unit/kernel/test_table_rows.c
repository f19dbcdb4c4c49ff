/* Rows that are learnt: every ISA has ref's bits, which are what the definition says; and rounding by chance
 * is right on average. */
#include "unit/kernel/kernel_test.h"

#include "tensor/float16.h"
#include "tensor/row_format.h"

enum { ROWS = 61 };

static const enum ph_row_format formats[] = {PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
enum { NUM_FORMATS = sizeof formats / sizeof *formats };

/* The second slice has no row; three are parts, of which two begin in the middle of eight columns. */
static const struct ph__row_slice slices[] = {
    {11, 7, 0, 0}, {12, 7, 3, 4}, {13, 30, 500, 12}, {14, 31, 0, 4096}, {15, ROWS, UINT32_MAX - 40u, 4}};
static const struct ph__row_slice whole_slices[] = {
    {11, 7, 0, 0}, {12, 7, 0, 0}, {13, 30, 0, 0}, {14, 31, 0, 0}, {15, ROWS, 0, 0}};

static struct ph__table_rows new_table(enum ph_row_format format, size_t dim)
{
    struct ph__table_rows table = {.format = format,
        .dim = dim,
        .memory = new_array(ROWS * dim, ph__row_bytes(format, 1)),
        .seed = test_seed(),
        .step = 5,
        .slices = slices,
        .num_slices = sizeof slices / sizeof *slices};
    memset(table.memory, 0x5a, ROWS * ph__row_bytes(format, dim));
    if (format == PH_ROWS_BF16_SPLIT) {
        table.low = new_array(ROWS * dim, sizeof *table.low);
        memset(table.low, 0x5a, ROWS * dim * sizeof *table.low);
    }
    return table;
}

static float special(size_t i)
{
    static const float numbers[] = {NAN, INFINITY, -INFINITY, 0, -0.0F, 65519, 70000, 3.4e38F, 1e-7F, -3e-9F,
        1e-13F, 6.1e-5F, 1e-40F, 0.1F};
    return numbers[i % (sizeof numbers / sizeof *numbers)];
}

static float *mixed_numbers(size_t count)
{
    float *numbers = random_floats(count, -1, 1);
    for (size_t i = 0; i < count; i++) {
        numbers[i] *= ldexpf(1, (int)(random_word() % 40) - 30);
        if (i % 11 == 3)
            numbers[i] = special(i / 11);
    }
    return numbers;
}

static void assert_same_table(const struct ph__table_rows *a, const struct ph__table_rows *b)
{
    assert_memory_equal(a->memory, b->memory, ROWS * ph__row_bytes(a->format, a->dim));
    if (a->low != NULL)
        assert_memory_equal(a->low, b->low, ROWS * a->dim * sizeof *a->low);
}

/* Some rows of the middle; the others stay as they are. */
static void check_as_ref(const struct ph__kernels *kernels, const struct ph__row_slice *of_slices,
    enum ph_row_format format, size_t dim)
{
    const struct ph__kernels *ref = ph__kernels_for(PH_ISA_REF);
    struct ph__table_rows table = new_table(format, dim), wanted = new_table(format, dim);
    table.slices = wanted.slices = of_slices;
    for (size_t first = 0; first < 10; first += 3) {
        const size_t count = ROWS - 5 - 2 * first;
        const float *numbers = mixed_numbers(count * dim);
        kernels->table_rows_store(&table, first, count, numbers);
        ref->table_rows_store(&wanted, first, count, numbers);
        assert_same_table(&table, &wanted);
        float *read = filled_floats(count * dim, 7), *wanted_read = filled_floats(count * dim, 7);
        kernels->table_rows_load(&table, first, count, read);
        ref->table_rows_load(&wanted, first, count, wanted_read);
        for (size_t i = 0; i < count * dim; i++)
            assert_true(read[i] == wanted_read[i] || (isnan(read[i]) && isnan(wanted_read[i])));
    }
}

static void check_every_dimension(const struct ph__kernels *kernels)
{
    for (size_t i = 0; i < NUM_FORMATS; i++)
        for (size_t dim = 0; dim <= 280; dim += dim < 70 ? 1 : 15) {
            reset_arrays(NULL);
            check_as_ref(kernels, slices, formats[i], dim);
            check_as_ref(kernels, whole_slices, formats[i], dim);
        }
}

static void every_isa_has_the_bits_of_ref(void **state)
{
    (void)state;
    on_every_isa(check_every_dimension);
}

/* ref against the definition: random bits by slice, row and element. */
static void bits_follow_slice_row_and_element(void **state)
{
    (void)state;
    enum { DIM = 21 };
    struct ph__table_rows table = new_table(PH_ROWS_BF16, DIM);
    const float *numbers = random_floats(ROWS * DIM, -1, 1);
    ph__kernels_for(PH_ISA_REF)->table_rows_store(&table, 0, ROWS, numbers);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t d = 0; d < DIM; d++) {
            const size_t slice = row < 7 ? 0 : row < 30 ? 2 : row < 31 ? 3 : 4;
            const size_t begin_row = slice == 0 ? 0 : slices[slice - 1].end_row;
            const size_t element = slices[slice].first_column + d;
            const struct ph__rng_key key = {test_seed(), 5, slices[slice].stream};
            const uint32_t word =
                ph__rng_word(&key, slices[slice].first_row + row - begin_row, (uint32_t)(element / 2));
            const uint32_t random = d % 2 == 0 ? word & 0xffff : word >> 16;
            assert_int_equal(((const uint16_t *)table.memory)[row * DIM + d],
                ph__bfloat_by_chance(numbers[row * DIM + d], random));
        }
}

static void a_slice_has_its_bits_wherever_it_lies(void **state)
{
    (void)state;
    enum { DIM = 18 };
    static const struct ph__row_slice alone = {13, 23, 500, 12};
    struct ph__table_rows table = new_table(PH_ROWS_FP16, DIM), other = new_table(PH_ROWS_FP16, DIM);
    other.slices = &alone;
    other.num_slices = 1;
    enum ph__isa best;
    assert_ok(ph__cpu_isa(&best));
    const struct ph__kernels *kernels = ph__kernels_for(best);
    const float *numbers = random_floats(ROWS * DIM, -1, 1);
    kernels->table_rows_store(&table, 0, ROWS, numbers);
    kernels->table_rows_store(&other, 0, 23, numbers + (size_t)7 * DIM);
    assert_memory_equal(
        other.memory, (const uint16_t *)table.memory + (size_t)7 * DIM, (size_t)23 * DIM * sizeof(uint16_t));
    const uint16_t before = ((const uint16_t *)other.memory)[0];
    size_t num_equal = 0;
    for (uint64_t step = 6; step < 106; step++) { /* and others at another step */
        other.step = step;
        kernels->table_rows_store(&other, 0, 1, numbers + (size_t)7 * DIM);
        num_equal += ((const uint16_t *)other.memory)[0] == before;
    }
    assert_true(num_equal > 0 && num_equal < 100);
}

/* One number in many elements: how often it is rounded up is binomial. */
static void check_mean(const struct ph__kernels *kernels)
{
    enum { DIM = 64, STEPS = 60 };
    static const double shares[] = {0.5, 0.1, 0.9, 0.003, 0.75};
    const double trials = (double)ROWS * DIM * STEPS;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (size_t k = 1; k <= 2; k++) {
            reset_arrays(NULL);
            struct ph__table_rows table = new_table(formats[k], DIM);
            const double unit = formats[k] == PH_ROWS_FP16 ? 0x1p-10 : 0x1p-7;
            const float number = (float)(1 + shares[i] * unit);
            const float *numbers = filled_floats((size_t)ROWS * DIM, number);
            double sum = 0;
            for (table.step = 1; table.step <= STEPS; table.step++) {
                kernels->table_rows_store(&table, 0, ROWS, numbers);
                for (size_t j = 0; j < (size_t)ROWS * DIM; j++)
                    sum +=
                        ((double)ph__row_number(formats[k], (size_t)ROWS * DIM, table.memory, j) - 1) / unit;
            }
            const double share = ((double)number - 1) / unit, deviation = sqrt(share * (1 - share) / trials);
            assert_true(fabs(sum / trials - share) <= 4.5 * deviation);
        }
}

static void rounding_by_chance_is_right_on_average(void **state)
{
    (void)state;
    on_every_isa(check_mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_isa_has_the_bits_of_ref, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(bits_follow_slice_row_and_element, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(a_slice_has_its_bits_wherever_it_lies, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(rounding_by_chance_is_right_on_average, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
