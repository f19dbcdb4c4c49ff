#include "unit/kernel/kernel_test.h"

#include "tensor/row_format.h"

enum { ROWS = 37, BAGS = 29, GAP = 3 };

struct bags {
    struct ph__embedding_bag_args args;
    size_t num_slots;
};

/* Rows of fp32 are aligned as numbers are, all others not at all. */
static const void *encoded_rows(enum ph_row_format format, size_t dim)
{
    const size_t align = format == PH_ROWS_FP32 ? sizeof(float) : 1;
    void *rows = new_array(ROWS * ph__row_bytes(format, dim) / align, align);
    ph__rows_encode(format, ROWS, dim, random_floats(ROWS * dim, -1, 1), rows, NULL);
    return rows;
}

/* Bags of 0 to 5 slots; every ninth is empty. */
static struct bags random_bags(
    enum ph_row_format format, size_t dim, size_t num_features, int is_weighted, int is_mean)
{
    const size_t num_bags = num_features * BAGS;
    uint32_t *offsets = new_array(num_bags + 1, sizeof *offsets);
    offsets[0] = 0;
    for (size_t bag = 0; bag < num_bags; bag++)
        offsets[bag + 1] = offsets[bag] + (bag % 9 == 0 ? 0 : random_word() % 6);
    const size_t num_slots = offsets[num_bags];
    uint32_t *slots = new_array(num_slots, sizeof *slots);
    for (size_t j = 0; j < num_slots; j++)
        slots[j] = random_word() % ROWS;
    const size_t out_stride = num_features * dim + GAP;
    return (struct bags){
        .num_slots = num_slots,
        .args = {.table = encoded_rows(format, dim),
            .format = format,
            .dim = dim,
            .slots = slots,
            .weights = is_weighted ? random_floats(num_slots, -2, 2) : NULL,
            .offsets = offsets,
            .num_samples = BAGS,
            .num_features = num_features,
            .feature_stride = BAGS,
            .out_stride = out_stride,
            .is_mean = is_mean,
            .out = filled_floats((BAGS - 1) * out_stride + num_features * dim, 77)},
    };
}

static double number_of(const struct ph__embedding_bag_args *args, uint32_t slot, size_t d)
{
    const unsigned char *table = args->table;
    return (double)ph__row_number(
        args->format, args->dim, table + slot * ph__row_bytes(args->format, args->dim), d);
}

static double pooled(const struct ph__embedding_bag_args *args, size_t bag, size_t d)
{
    const size_t first = args->offsets[bag];
    const size_t last = args->offsets[bag + 1];
    double sum = 0;
    for (size_t j = first; j < last; j++)
        sum += (args->weights != NULL ? (double)args->weights[j] : 1) * number_of(args, args->slots[j], d);
    return args->is_mean && last > first ? sum / (double)(last - first) : sum;
}

static void check_bags(const struct ph__kernels *kernels, const struct ph__embedding_bag_args *args)
{
    const size_t width = args->num_features * args->dim;
    kernels->embedding_bag(args);
    for (size_t s = 0; s < args->num_samples; s++) {
        const float *out = args->out + s * args->out_stride;
        for (size_t i = 0; i < width; i++) {
            const size_t bag = i / args->dim * args->feature_stride + s;
            assert_near((double)out[i], pooled(args, bag, i % args->dim), 4e-6, 0);
        }
        for (size_t i = width; i < args->out_stride && s + 1 < args->num_samples; i++)
            assert_true(out[i] == 77);
    }
}

static void check_every_dimension(const struct ph__kernels *kernels, enum ph_row_format format)
{
    for (size_t dim = 1; dim <= 280; dim += dim < 34 ? 1 : dim % 16 == 0 ? 15 : 1) {
        for (int choice = 0; choice < 4; choice++) {
            reset_arrays(NULL);
            const struct bags bags = random_bags(format, dim, dim % 3 + 1, choice & 1, choice >> 1);
            check_bags(kernels, &bags.args);
        }
    }
}

static void check_every_format(const struct ph__kernels *kernels)
{
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++)
        check_every_dimension(kernels, (enum ph_row_format)format);
}

static void embedding_bag_pools_as_the_formula_says(void **state)
{
    (void)state;
    on_every_isa(check_every_format);
}

/* Split rows with their low words are those of fp32. */
static void check_whole_split(const struct ph__kernels *kernels)
{
    static const size_t dims[] = {1, 5, 16, 37, 131};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        reset_arrays(NULL);
        const struct bags bags = random_bags(PH_ROWS_FP32, dims[i], 1 + i % 3, 1, 1);
        struct ph__embedding_bag_args split = bags.args;
        const size_t elements = ROWS * split.dim,
                     size = (BAGS - 1) * split.out_stride + split.num_features * split.dim;
        uint16_t *high = new_array(elements, sizeof *high), *low = new_array(elements, sizeof *low);
        ph__rows_encode(PH_ROWS_BF16_SPLIT, ROWS, split.dim, bags.args.table, high, low);
        split.table = high;
        split.low = low;
        split.format = PH_ROWS_BF16_SPLIT;
        split.out = filled_floats(size, 77);
        kernels->embedding_bag(&bags.args);
        kernels->embedding_bag(&split);
        assert_memory_equal(split.out, bags.args.out, size * sizeof *split.out);
    }
}

static void split_rows_pool_with_their_low_words_to_the_bits_of_fp32(void **state)
{
    (void)state;
    on_every_isa(check_whole_split);
}

/* What is learnt in 16 bits scores with the same bits where it is loaded as fp32. */
static void check_as_fp32(const struct ph__kernels *kernels)
{
    static const enum ph_row_format formats[] = {PH_ROWS_FP16, PH_ROWS_BF16};
    static const size_t dims[] = {1, 5, 16, 37, 131};
    for (size_t i = 0; i < 2 * sizeof dims / sizeof *dims; i++) {
        reset_arrays(NULL);
        const struct bags bags = random_bags(formats[i % 2], dims[i / 2], 1 + i % 3, 1, 1);
        struct ph__embedding_bag_args wide = bags.args;
        float *rows = new_array(ROWS * wide.dim, sizeof *rows);
        for (size_t k = 0; k < ROWS * wide.dim; k++)
            rows[k] = (float)number_of(&bags.args, (uint32_t)(k / wide.dim), k % wide.dim);
        wide.table = rows;
        wide.format = PH_ROWS_FP32;
        const size_t size = (BAGS - 1) * wide.out_stride + wide.num_features * wide.dim;
        wide.out = filled_floats(size, 77);
        kernels->embedding_bag(&bags.args);
        kernels->embedding_bag(&wide);
        assert_memory_equal(wide.out, bags.args.out, size * sizeof *wide.out);
    }
}

static void rows_of_16_bits_pool_to_the_bits_of_the_same_numbers_in_fp32(void **state)
{
    (void)state;
    on_every_isa(check_as_fp32);
}

/* Each bag once more, alone. */
static void check_alone(const struct ph__kernels *kernels, const struct bags *bags)
{
    const struct ph__embedding_bag_args *all = &bags->args;
    kernels->embedding_bag(all);
    for (size_t bag = 0; bag < all->num_features * BAGS; bag++) {
        struct ph__embedding_bag_args one = *all;
        one.offsets += bag;
        one.num_samples = one.num_features = 1;
        one.out_stride = one.dim;
        one.out = filled_floats(one.dim, 77);
        kernels->embedding_bag(&one);
        assert_memory_equal(one.out, all->out + bag % BAGS * all->out_stride + bag / BAGS * all->dim,
            one.dim * sizeof *one.out);
    }
}

static void check_each_alone(const struct ph__kernels *kernels)
{
    static const size_t dims[] = {1, 5, 16, 37, 131};
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++) {
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            reset_arrays(NULL);
            const struct bags bags = random_bags((enum ph_row_format)format, dims[i], 1 + i % 3, 1, 1);
            check_alone(kernels, &bags);
        }
    }
}

static void a_bag_has_the_same_bits_whatever_bags_stand_beside_it(void **state)
{
    (void)state;
    on_every_isa(check_each_alone);
}

static void check_empty(const struct ph__kernels *kernels)
{
    const uint32_t offsets[] = {5, 5, 5, 5};
    const float table[16] = {1};
    float out[3 * 16];
    for (size_t i = 0; i < 48; i++)
        out[i] = NAN;
    struct ph__embedding_bag_args args = {.table = table,
        .dim = 16,
        .offsets = offsets,
        .num_samples = 3,
        .num_features = 1,
        .out_stride = 16,
        .is_mean = 1,
        .out = out};
    kernels->embedding_bag(&args);
    for (size_t i = 0; i < 48; i++)
        assert_true(out[i] == 0);
    out[0] = 5;
    args.num_samples = 0;
    kernels->embedding_bag(&args);
    assert_true(out[0] == 5);
}

static void embedding_bag_of_no_ids_is_zero(void **state)
{
    (void)state;
    on_every_isa(check_empty);
}

static void check_equal_ids(const struct ph__kernels *kernels)
{
    enum { DIM = 64, LENGTH = 100 };
    const uint32_t offsets[] = {0, LENGTH};
    const uint32_t slots[LENGTH] = {0};
    const float *table = random_floats(DIM, -1, 1);
    float *out = filled_floats(DIM, 0);
    kernels->embedding_bag(&(struct ph__embedding_bag_args){.table = table,
        .dim = DIM,
        .slots = slots,
        .offsets = offsets,
        .num_samples = 1,
        .num_features = 1,
        .out_stride = DIM,
        .is_mean = 1,
        .out = out});
    for (size_t d = 0; d < DIM; d++)
        assert_near((double)out[d], (double)table[d], 1e-5, 1e-5);
}

static void mean_of_equal_ids_is_their_row(void **state)
{
    (void)state;
    on_every_isa(check_equal_ids);
}

static void check_offset_start(const struct ph__kernels *kernels)
{
    struct bags bags = random_bags(PH_ROWS_FP32, 64, 1, 1, 0);
    bags.args.offsets += 10;
    bags.args.num_samples = 5;
    check_bags(kernels, &bags.args);
}

static void offsets_index_slots_and_weights_absolutely(void **state)
{
    (void)state;
    on_every_isa(check_offset_start);
}

static void check_nan_of(const struct ph__kernels *kernels, enum ph_row_format format)
{
    enum { DIM = 24 };
    struct bags bags = random_bags(format, DIM, 1, 0, 0);
    float row[DIM] = {[DIM - 1] = NAN};
    const size_t row_bytes = ph__row_bytes(format, DIM);
    ph__rows_encode(format, 1, DIM, row,
        (unsigned char *)(uintptr_t)bags.args.table + bags.args.slots[0] * row_bytes, NULL);
    kernels->embedding_bag(&bags.args);
    for (size_t bag = 0; bag < BAGS; bag++) {
        const float *out = bags.args.out + bag * bags.args.out_stride;
        for (size_t d = 0; d < DIM; d++)
            assert_int_equal(isnan(out[d]), isnan(pooled(&bags.args, bag, d)));
    }
}

static void check_nan(const struct ph__kernels *kernels)
{
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++)
        check_nan_of(kernels, (enum ph_row_format)format);
}

static void nan_reaches_exactly_the_bags_that_look_it_up(void **state)
{
    (void)state;
    on_every_isa(check_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(embedding_bag_pools_as_the_formula_says, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            split_rows_pool_with_their_low_words_to_the_bits_of_fp32, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            rows_of_16_bits_pool_to_the_bits_of_the_same_numbers_in_fp32, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            a_bag_has_the_same_bits_whatever_bags_stand_beside_it, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(embedding_bag_of_no_ids_is_zero, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(mean_of_equal_ids_is_their_row, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            offsets_index_slots_and_weights_absolutely, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            nan_reaches_exactly_the_bags_that_look_it_up, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
