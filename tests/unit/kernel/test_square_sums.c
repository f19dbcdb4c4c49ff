#include "unit/kernel/kernel_test.h"

enum { ROWS = 5 };

/* The sum of kernel.h, written down once more: every addition by itself. */
static float written_sum(const float *blocks, size_t count)
{
    float a[16] = {0};
    for (size_t k = 0; k < count; k++)
        a[k % 16] = a[k % 16] + blocks[k];
    const float c0 = (a[0] + a[2]) + (a[1] + a[3]), c1 = (a[4] + a[6]) + (a[5] + a[7]);
    const float c2 = (a[8] + a[10]) + (a[9] + a[11]), c3 = (a[12] + a[14]) + (a[13] + a[15]);
    return (c0 + c2) + (c1 + c3);
}

/* blocks (ROWS, count) cut into random parts. */
static size_t cut(const float *blocks, size_t count, struct ph__square_shard *parts)
{
    size_t num_parts = 0;
    for (size_t first = 0; first < count;) {
        const size_t width = 1 + random_word() % (count - first);
        float *part = new_array(ROWS * width, sizeof *part);
        for (size_t row = 0; row < ROWS; row++)
            memcpy(part + row * width, blocks + row * count + first, width * sizeof *part);
        parts[num_parts++] = (struct ph__square_shard){part, width};
        first += width;
    }
    return num_parts;
}

static void sums_do_not_depend_on_the_parts(void **state)
{
    enum { MOST_BLOCKS = 50 };
    (void)state;
    for (size_t count = 1; count <= MOST_BLOCKS; count++) {
        reset_arrays(NULL);
        struct ph__square_shard parts[MOST_BLOCKS];
        const float *blocks = random_floats(ROWS * count, 0, 1);
        const size_t num_parts = cut(blocks, count, parts);
        float sums[ROWS] = {-1, -1, -1, -1, -1};
        ph__square_sums(parts, num_parts, 1, ROWS, sums);
        assert_true(sums[0] == -1);
        for (size_t row = 1; row < ROWS; row++)
            assert_true(sums[row] == written_sum(blocks + row * count, count));
    }
}

static void sum_of_no_blocks_is_zero(void **state)
{
    (void)state;
    float sum = 1;
    ph__square_sums(NULL, 0, 0, 1, &sum);
    assert_true(sum == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_do_not_depend_on_the_parts, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(sum_of_no_blocks_is_zero, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
