#include "base/option/option.h"
#include "support/test_support.h"

static const char *const known[] = {
    "train.epochs", "train.batch_size", "data.train", "model.kind", "sum", "mean"};

static const char *nearest(const char *word)
{
    return ph__nearest_word(word, known, sizeof known / sizeof known[0]);
}

static void a_slip_finds_its_word(void **state)
{
    (void)state;
    assert_string_equal(nearest("train.epoch"), "train.epochs");
    assert_string_equal(nearest("trian.epochs"), "train.epochs");
    assert_string_equal(nearest("train.batchsize"), "train.batch_size");
    assert_string_equal(nearest("model.kidn"), "model.kind");
    assert_string_equal(nearest("sun"), "sum");
    assert_string_equal(nearest("mean"), "mean");
}

static void a_stranger_finds_none(void **state)
{
    (void)state;
    char longer[200];
    for (size_t i = 0; i < sizeof longer; i++)
        longer[i] = i + 1 < sizeof longer ? 'x' : '\0';
    assert_null(nearest("optimizer"));
    assert_null(nearest("xyz"));
    assert_null(nearest(""));
    assert_null(nearest(longer));
    assert_null(ph__nearest_word("sum", known, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_finds_its_word),
        cmocka_unit_test(a_stranger_finds_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
