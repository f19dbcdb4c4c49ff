#include "comm/wire/wire_format.h"

#include <float.h>
#include <stdlib.h>

#include "base/thread/cpu.h"
#include "support/test_support.h"
#include "unit/comm/wire_oracle.h"

enum { MOST_NUMBERS = 4096 };

static const struct shape {
    size_t rows, columns, stride;
} shapes[] = {
    {0, 5, 5}, {5, 0, 3}, {1, 1, 1}, {1, 1000, 1000}, {7, 13, 13}, {7, 13, 20}, {3, 64, 64}, {33, 16, 90}};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

static const float odd_numbers[] = {NAN, INFINITY, -INFINITY, 0, -0.0F, FLT_TRUE_MIN, -FLT_MIN, FLT_MAX,
    -FLT_MAX, 65504, 65519.996F, 65520, -65520, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1p-14F, 1, 3e-39F};
enum { NUM_ODD = sizeof odd_numbers / sizeof *odd_numbers };

struct trial {
    const struct ph__kernels *kernels;
    enum ph_wire_format wire;
    struct shape shape;
};

static void gather_rows(const struct shape *shape, const float *from, float *out)
{
    for (size_t row = 0; row < shape->rows; row++)
        for (size_t column = 0; column < shape->columns; column++)
            out[row * shape->columns + column] = from[row * shape->stride + column];
}

static void check_gaps(const struct shape *shape, const float *numbers)
{
    for (size_t row = 0; row < shape->rows; row++)
        for (size_t column = shape->columns; column < shape->stride; column++)
            assert_true(numbers[row * shape->stride + column] == -8);
}

/* There, back, and added onto a thousand; the bytes end where their allocation does. */
static void check_numbers(const struct trial *trial, const float *numbers)
{
    const struct shape *shape = &trial->shape;
    const size_t n = shape->rows * shape->columns;
    const size_t bytes = ph__wire_bytes(trial->wire, shape->rows, shape->columns);
    float dense[MOST_NUMBERS], wanted[MOST_NUMBERS], back[MOST_NUMBERS], found[MOST_NUMBERS];
    void *packed = malloc(bytes + 1);
    assert_non_null(packed);
    ((unsigned char *)packed)[bytes] = 0xA5;
    for (size_t i = 0; i < MOST_NUMBERS; i++)
        back[i] = -8;
    ph__wire_pack(trial->kernels, trial->wire, shape->rows, shape->columns, numbers, shape->stride, packed);
    assert_int_equal(((unsigned char *)packed)[bytes], 0xA5);
    ph__wire_unpack(trial->kernels, trial->wire, shape->rows, shape->columns, packed, back, shape->stride);
    gather_rows(shape, numbers, dense);
    wire_oracle(trial->wire, shape->rows, shape->columns, dense, wanted);
    gather_rows(shape, back, found);
    assert_true(wire_oracle_is_same(n, found, wanted));
    check_gaps(shape, back);
    for (size_t row = 0; row < shape->rows; row++)
        for (size_t column = 0; column < shape->columns; column++)
            back[row * shape->stride + column] = 1000;
    ph__wire_add(trial->kernels, trial->wire, shape->rows, shape->columns, packed, back, shape->stride);
    gather_rows(shape, back, found);
    for (size_t i = 0; i < n; i++)
        wanted[i] = 1000 + wanted[i];
    assert_true(wire_oracle_is_same(n, found, wanted));
    check_gaps(shape, back);
    free(packed);
}

/* Two runs of rows, each by itself, give what all of them do. */
static void check_runs(const struct trial *trial, const float *numbers)
{
    const struct shape *shape = &trial->shape;
    const size_t bytes = ph__wire_bytes(trial->wire, shape->rows, shape->columns);
    const size_t cut = shape->rows / 3, runs[2][2] = {{0, cut}, {cut, shape->rows - cut}};
    float dense[MOST_NUMBERS], wanted[MOST_NUMBERS], found[MOST_NUMBERS];
    unsigned char *packed = calloc(1, bytes + 1), *whole = calloc(1, bytes + 1);
    assert_true(packed != NULL && whole != NULL);
    gather_rows(shape, numbers, dense);
    for (size_t i = 0; i < 2; i++)
        ph__wire_pack_rows(trial->kernels, trial->wire, shape->rows, shape->columns,
            dense + runs[i][0] * shape->columns, runs[i][0], runs[i][1], packed);
    ph__wire_pack(trial->kernels, trial->wire, shape->rows, shape->columns, dense, shape->columns, whole);
    assert_memory_equal(packed, whole, bytes + 1);
    for (size_t i = 0; i < 2; i++)
        ph__wire_unpack_rows(trial->kernels, trial->wire, shape->rows, shape->columns, packed, runs[i][0],
            runs[i][1], found + runs[i][0] * shape->columns);
    wire_oracle(trial->wire, shape->rows, shape->columns, dense, wanted);
    assert_true(wire_oracle_is_same(shape->rows * shape->columns, found, wanted));
    free(packed);
    free(whole);
}

static void check_shape(const struct trial *trial)
{
    float numbers[MOST_NUMBERS];
    wire_oracle_numbers(0, trial->shape.columns, MOST_NUMBERS, numbers);
    check_numbers(trial, numbers);
    check_runs(trial, numbers);
    for (size_t i = 0; i < MOST_NUMBERS; i++)
        numbers[i] = odd_numbers[i / 3 % NUM_ODD];
    check_numbers(trial, numbers);
    for (size_t odd = 0; odd < NUM_ODD; odd++) {
        for (size_t i = 0; i < MOST_NUMBERS; i++)
            numbers[i] = i % 41 == 5 ? odd_numbers[odd] : .25F * (float)(i % 7);
        check_numbers(trial, numbers);
    }
}

static void every_format_is_what_its_definition_says(void **state)
{
    (void)state;
    enum ph__isa best;
    assert_ok(ph__cpu_isa(&best));
    for (int isa = PH_ISA_REF; isa <= (int)best; isa++)
        for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
            for (size_t s = 0; s < NUM_SHAPES; s++)
                check_shape(&(struct trial){
                    ph__kernels_for((enum ph__isa)isa), (enum ph_wire_format)wire, shapes[s]});
}

static void bytes_are_those_of_the_numbers_and_the_scales(void **state)
{
    (void)state;
    assert_int_equal(ph__wire_bytes(PH_WIRE_FP32, 6, 10), 240);
    assert_int_equal(ph__wire_bytes(PH_WIRE_FP16, 6, 10), 120);
    assert_int_equal(ph__wire_bytes(PH_WIRE_BF16, 6, 10), 120);
    assert_int_equal(ph__wire_bytes(PH_WIRE_INT8, 6, 10), 60 + 24);
    assert_int_equal(ph__wire_bytes(PH_WIRE_INT8, 0, 10), 0);
    assert_string_equal(ph__wire_name(PH_WIRE_FP16), "fp16");
}

/* A row at a time is what a caller may send of a table. */
static void what_a_row_becomes_depends_on_no_other(void **state)
{
    (void)state;
    enum { ROWS = 9, COLUMNS = 21 };
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    const struct ph__kernels *kernels = ph__kernels_for(isa);
    float numbers[ROWS * COLUMNS], whole[ROWS * COLUMNS], one[COLUMNS];
    unsigned char packed[sizeof numbers + ROWS * sizeof(float)] __attribute__((aligned(64)));
    wire_oracle_numbers(0, 1, ROWS * COLUMNS, numbers);
    for (int wire = 0; wire < PH_WIRE_COUNT; wire++) {
        ph__wire_pack(kernels, (enum ph_wire_format)wire, ROWS, COLUMNS, numbers, COLUMNS, packed);
        ph__wire_unpack(kernels, (enum ph_wire_format)wire, ROWS, COLUMNS, packed, whole, COLUMNS);
        for (size_t row = 0; row < ROWS; row++) {
            ph__wire_pack(
                kernels, (enum ph_wire_format)wire, 1, COLUMNS, numbers + row * COLUMNS, 77, packed);
            ph__wire_unpack(kernels, (enum ph_wire_format)wire, 1, COLUMNS, packed, one, 77);
            assert_memory_equal(one, whole + row * COLUMNS, sizeof one);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_what_its_definition_says),
        cmocka_unit_test(bytes_are_those_of_the_numbers_and_the_scales),
        cmocka_unit_test(what_a_row_becomes_depends_on_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
