/* Reading of locality statistics: bad text is refused with its line. */
#include "train/cost/locality.h"

#include <stdio.h>

#include "support/test_support.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void a_read_row_lies_in_one_bin(void **state)
{
    (void)state;
    static const uint64_t reads[] = {1, 2, 3, 4, 5, 32768, 32769, UINT64_MAX};
    static const size_t bins[] = {0, 1, 2, 2, 3, 15, 16, 16};
    for (size_t i = 0; i < COUNT(reads); i++)
        assert_int_equal(ph__access_bin(reads[i]), bins[i]);
}

static void expect_refused(const char *text, const char *reason)
{
    struct ph__locality locality;
    const char *path = "locality.txt";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_fails(ph__locality_read(path, &locality), PH_ERROR_CONFIG, reason);
}

#define BEGIN "ids_t10_bs4.pt\nLocality stats after processing 1 batches of size 4\nAvg # of indices: 80\n"

static void bad_text_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_refused("", "locality.txt:1: expected ''");
    expect_refused("tables\n", "locality.txt:1: expected a title");
    expect_refused(BEGIN "Avg # of unique cols: 81\n", "locality.txt:4: expected a number from 1 to 80");
    expect_refused(BEGIN "Avg # of unique cols: 20\nAvg col size: 4\nHistogram of col sizes:\n(0, 2]: .5\n",
        "locality.txt:7: expected '(0, 1]: '");
    expect_refused(BEGIN, "but found 'the end of the file'");
}

static void figures_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    const char *begin =
        BEGIN "Avg # of unique cols: 20\nAvg col size: 4\nHistogram of col sizes:\n(0, 1]: .9\n";
    char text[2048];
    size_t length = (size_t)snprintf(text, sizeof text, "%s", begin);
    for (size_t low = 1; low < 32768; low *= 2)
        length += (size_t)snprintf(text + length, sizeof text - length, "(%zu, %zu]: 0\n", low, 2 * low);
    snprintf(text + length, sizeof text - length, "(32768+: 0\n");
    expect_refused(text, "locality.txt:23: the shares of 'Histogram of col sizes:' sum to 0.9, not to 1");
    expect_refused(BEGIN "Avg # of unique cols: 20\nAvg col size: 5\n",
        "locality.txt:5: 80 ids of 20 rows are 4 a row, not 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_row_lies_in_one_bin),
        cmocka_unit_test(bad_text_is_refused_with_its_line),
        cmocka_unit_test(figures_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
