/* Reading configs: what is given, what is not, and what is said when it is wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/option/option.h"
#include "support/test_support.h"
#include "unit/base/option_fixture.h"

#define CONFIG                           \
    "seed: 7\n"                          \
    "data:\n"                            \
    "  train: $PH_TEST_DATA/train.csv\n" \
    "  fields:\n"                        \
    "    - {name: label, kind: label}\n" \
    "    - name: user\n"                 \
    "      rows: 1000\n"                 \
    "train:\n"                           \
    "  epochs: 3\n"                      \
    "  learning_rate: 0.5e-1\n"          \
    "  fast: true\n"                     \
    "  schedule: cosine\n"               \
    "  title: \"a: b\"\n"                \
    "  steps: [1, 2, 3]\n"

static void every_type_is_read(void **state)
{
    (void)state;
    struct settings settings = {0};
    setenv("PH_TEST_DATA", "/data", 1);
    assert_ok(read_settings(&settings, test_write_file("all.yaml", CONFIG), NULL, 0));
    assert_int_equal(settings.top.seed, 7);
    assert_string_equal(settings.data.train, "/data/train.csv");
    assert_int_equal(settings.data.fields.count, 2);
    const struct field_settings *fields = settings.data.fields.items;
    assert_string_equal(fields[0].name, "label");
    assert_int_equal(fields[0].kind, 0);
    assert_int_equal(fields[0].rows, 10);
    assert_string_equal(fields[1].name, "user");
    assert_int_equal(fields[1].kind, 1);
    assert_int_equal(fields[1].rows, 1000);
    assert_int_equal(settings.train.epochs, 3);
    assert_true(settings.train.learning_rate == .05);
    assert_true(settings.train.is_fast);
    assert_int_equal(settings.train.schedule, 1);
    assert_string_equal(settings.train.title, "a: b");
    assert_int_equal(settings.train.steps.count, 3);
    assert_int_equal(settings.train.steps.items[2], 3);
    ph__arena_fini(&settings.arena);
}

static void what_is_not_given_has_its_default(void **state)
{
    (void)state;
    struct settings settings;
    memset(&settings, 0xee, sizeof settings);
    settings.arena = (struct ph__arena){0};
    assert_ok(read_settings(&settings, test_write_file("few.yaml", "data:\ntrain: {epochs: 1}\n"), NULL, 0));
    assert_int_equal(settings.top.seed, 1);
    assert_null(settings.data.train);
    assert_int_equal(settings.data.fields.count, 0);
    assert_true(settings.train.learning_rate == 1e-3);
    assert_false(settings.train.is_fast);
    assert_int_equal(settings.train.schedule, 0);
    assert_string_equal(settings.train.title, "");
    assert_int_equal(settings.train.steps.count, 2);
    assert_int_equal(settings.train.steps.items[1], 20);
    ph__arena_fini(&settings.arena);
}

static void sets_win_over_the_file_in_their_order(void **state)
{
    (void)state;
    static const char *const sets[] = {"train.epochs=4", "train.epochs=5", "train.title=x=y",
        "train.steps=", "data.fields[user].rows=77", "data.fields[0].kind=dense", "data.train="};
    struct settings settings = {0};
    setenv("PH_TEST_DATA", "/data", 1);
    assert_ok(
        read_settings(&settings, test_write_file("all.yaml", CONFIG), sets, sizeof sets / sizeof sets[0]));
    assert_int_equal(settings.train.epochs, 5);
    assert_string_equal(settings.train.title, "x=y");
    assert_int_equal(settings.train.steps.count, 0);
    const struct field_settings *fields = settings.data.fields.items;
    assert_int_equal(fields[1].rows, 77);
    assert_int_equal(fields[0].kind, 2);
    assert_null(settings.data.train);
    ph__arena_fini(&settings.arena);
}

static void a_set_replaces_a_list_of_mappings(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "data.fields=[{name: \"a b\", kind: dense},\n {name: c, rows: 5}] # two", "data.fields[c].rows=6"};
    struct settings settings = {0};
    setenv("PH_TEST_DATA", "/data", 1);
    assert_ok(
        read_settings(&settings, test_write_file("all.yaml", CONFIG), sets, sizeof sets / sizeof sets[0]));
    assert_int_equal(settings.data.fields.count, 2);
    const struct field_settings *fields = settings.data.fields.items;
    assert_string_equal(fields[0].name, "a b");
    assert_int_equal(fields[0].kind, 2);
    assert_int_equal(fields[1].rows, 6);
    ph__arena_fini(&settings.arena);
}

static void sections_can_be_read_without_the_others(void **state)
{
    (void)state;
    struct settings settings = {0};
    const struct ph__section sections[] = {{&top_table, &settings.top}, {&data_table, &settings.data}};
    setenv("PH_TEST_DATA", "/data", 1);
    assert_ok(ph__config_read_sections(test_write_file("all.yaml", CONFIG), sections, 2, &settings.arena));
    assert_int_equal(settings.top.seed, 7);
    assert_string_equal(settings.data.train, "/data/train.csv");
    assert_int_equal(settings.data.fields.count, 2);
    assert_int_equal(settings.train.epochs, 0); /* untouched, though its section is there */
    const char *misspelt = test_write_file("other.yaml", "trian: {epochs: 3}\ndata: {tain: a}\n");
    assert_fails(ph__config_read_sections(misspelt, sections, 2, &settings.arena), PH_ERROR_CONFIG,
        "other.yaml:2: unknown key 'data.tain'; did you mean 'data.train'?");
    ph__arena_fini(&settings.arena);
}

static void lists_are_set_whole_or_by_item(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "train.epochs=1", "train.steps=5, 6,7", "train.steps[0]=9", "train.steps[3]=8"};
    struct settings settings = {0};
    assert_ok(read_settings(&settings, NULL, sets, 4));
    static const int64_t wanted[] = {9, 6, 7, 8};
    assert_int_equal(settings.train.steps.count, 4);
    assert_memory_equal(settings.train.steps.items, wanted, sizeof wanted);
    ph__arena_fini(&settings.arena);
}

static void expect_refusal(const char *text, const char *part)
{
    struct settings settings = {0};
    assert_fails(read_settings(&settings, test_write_file("bad.yaml", text), NULL, 0), PH_ERROR_CONFIG, part);
    ph__arena_fini(&settings.arena);
}

static void unknown_keys_name_the_nearest(void **state)
{
    (void)state;
    expect_refusal("seed: 1\ntrain:\n  epoch: 3\n",
        "bad.yaml:3: unknown key 'train.epoch'; did you mean 'train.epochs'?");
    expect_refusal("trian:\n  epochs: 3\n", "bad.yaml:1: unknown key 'trian'; did you mean 'train'?");
    expect_refusal("epochs: 3\n", "unknown key 'epochs'; did you mean 'train.epochs'?");
    expect_refusal(
        "data:\n  schedule: step\n", "unknown key 'data.schedule'; did you mean 'train.schedule'?");
    expect_refusal("data:\n  fields:\n    - {name: a, rwos: 2}\n",
        "bad.yaml:3: unknown key 'data.fields[0].rwos'; did you mean 'data.fields[0].rows'?");
    expect_refusal("wholly_unheard_of: 1\n", "bad.yaml:1: unknown key 'wholly_unheard_of'");
    expect_refusal("train:\n  epochs[0]: 1\n", "unknown key 'train.epochs[0]'");
    expect_refusal("train:\n  steps[x: 1\n", "unknown key 'train.steps[x'");
}

static void wrong_values_say_what_is_wanted(void **state)
{
    (void)state;
    expect_refusal("train:\n  epochs: three\n",
        "bad.yaml:2: train.epochs: must be an integer from 1 to 1000, not 'three'");
    expect_refusal("train: {epochs: 0}\n", "train.epochs: must be an integer from 1 to 1000, not '0'");
    expect_refusal("train: {epochs: 1e2}\n", "not '1e2'");
    expect_refusal("train: {epochs: 1_0}\n", "not '1_0'");
    expect_refusal("train: {epochs: }\n", "must be an integer from 1 to 1000, not empty");
    expect_refusal("seed: 1.5\n", "seed: must be an integer, not '1.5'");
    expect_refusal("train: {learning_rate: 1_000}\n", "must be a number from 0 to 10, not '1_000'");
    expect_refusal("train: {learning_rate: 10.5}\n", "must be a number from 0 to 10, not '10.5'");
    expect_refusal("train: {learning_rate: .nan}\n", "must be a number");
    expect_refusal("train: {fast: yes}\n", "train.fast: must be true or false, not 'yes'");
    expect_refusal("train: {schedule: cosin}\n",
        "train.schedule: must be one of constant, cosine, step, not 'cosin'; did you mean 'cosine'?");
    expect_refusal("train: {steps: [1, x]}\n", "train.steps[1]: must be an integer from 1 to 100, not 'x'");
    expect_refusal("train: {steps: [1, 200]}\n", "train.steps[1]: must be an integer");
    expect_refusal("train: {steps: \"1,,2\"}\n", "train.steps: must be a list of integers");
    char text[32 + 2 * (PH_LIST_MAX + 1)] = "train: {steps: [1";
    for (size_t i = 0; i < PH_LIST_MAX; i++)
        strcat(text, ",1");
    strcat(text, "]}\n");
    expect_refusal(text, "must have at most");
}

static void the_wrong_shape_is_refused(void **state)
{
    (void)state;
    expect_refusal("train: 3\n", "bad.yaml:1: train: must be a section");
    expect_refusal("train: [1]\n", "train: must be a section");
    expect_refusal("train:\n  epochs: [3]\n", "must be an integer from 1 to 1000, not a list");
    expect_refusal(
        "train:\n  epochs:\n    x: 3\n", "train.epochs: must be an integer from 1 to 1000, not a mapping");
    expect_refusal("train: {steps: [[1]]}\n", "train.steps[0]: must be an integer, not a list");
    expect_refusal("data: {fields: user}\n", "data.fields: must be a list of mappings, not a text");
    expect_refusal(
        "data: {fields: {name: user}}\n", "data.fields: must be a list of mappings, not a mapping");
    expect_refusal("data: {fields: [user]}\n", "data.fields[0]: must be a mapping, not a text");
    expect_refusal("data: {fields: [{name: [a]}]}\n", "data.fields[0].name: must be a text, not a list");
    expect_refusal("seed: 1\nseed: 2\n", "bad.yaml:2: the key 'seed' is given twice");
}

static void missing_keys_are_named(void **state)
{
    (void)state;
    struct settings settings = {0};
    expect_refusal("seed: 1\n", "bad.yaml: missing key 'train.epochs'");
    expect_refusal("train: {epochs: 1}\ndata:\n  fields:\n    - name: a\n    - kind: id\n",
        "bad.yaml:5: missing key 'data.fields[1].name'");
    assert_fails(read_settings(&settings, NULL, NULL, 0), PH_ERROR_CONFIG, "missing key 'train.epochs'");
    ph__arena_fini(&settings.arena);
}

static void variables_that_are_not_set_are_named(void **state)
{
    (void)state;
    unsetenv("PH_TEST_NONE");
    expect_refusal(
        "data:\n  train: $PH_TEST_NONE/x\n", "bad.yaml:2: data.train: $PH_TEST_NONE/x: the environment");
}

static void expect_set_refusal(const char *set, const char *part)
{
    struct settings settings = {0};
    setenv("PH_TEST_DATA", "/data", 1);
    setenv("PH_TEST_LATIN", "\xff", 1);
    assert_fails(
        read_settings(&settings, test_write_file("all.yaml", CONFIG), &set, 1), PH_ERROR_CONFIG, part);
    ph__arena_fini(&settings.arena);
}

static void wrong_sets_are_quoted(void **state)
{
    (void)state;
    expect_set_refusal(
        "train.epoch=3", "--set train.epoch=3: unknown key 'train.epoch'; did you mean 'train.epochs'?");
    expect_set_refusal("train.epochs=x", "--set train.epochs=x: train.epochs: must be an integer");
    expect_set_refusal("train.epochs", "--set train.epochs: must be key=value");
    expect_set_refusal("data.fields=[{nam: a}]", "unknown key 'data.fields[0].nam'; did you mean");
    expect_set_refusal("data.fields=[{name: a}", "--set:2: not valid YAML");
    expect_set_refusal("=3", "--set =3: must be key=value");
    expect_set_refusal("train=3", "--set train=3: 'train' is a section: name one of its keys");
    expect_set_refusal("train.title=caf\xe9", "train.title: must be UTF-8, not 'caf");
    expect_set_refusal("data.train=$PH_TEST_LATIN/x", "data.train: must be UTF-8, not '\xff/x'");
    expect_set_refusal("data.fields[2].rows=3", "the list has only 2 items");
    expect_set_refusal("data.fields[item].rows=3", "the item does not exist");
    expect_set_refusal("data.fields[].rows=3", "the item does not exist");
    expect_set_refusal("data.fields[0]rows=3", "unknown key");
    expect_set_refusal("data.fields[0].rosw=3", "did you mean 'data.fields[0].rows'?");
    expect_set_refusal("data.fields[0]=x", "must be a mapping");
    expect_set_refusal("data.fields[99999999999999999999].rows=1", "the item does not exist");
    expect_set_refusal("train.steps[9]=1", "the list has only 3 items");
    expect_set_refusal("train.steps[0].x=1", "unknown key");
}

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
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(sets_win_over_the_file_in_their_order),
        cmocka_unit_test(a_set_replaces_a_list_of_mappings),
        cmocka_unit_test(sections_can_be_read_without_the_others),
        cmocka_unit_test(lists_are_set_whole_or_by_item),
        cmocka_unit_test(unknown_keys_name_the_nearest),
        cmocka_unit_test(wrong_values_say_what_is_wanted),
        cmocka_unit_test(the_wrong_shape_is_refused),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(variables_that_are_not_set_are_named),
        cmocka_unit_test(wrong_sets_are_quoted),
        cmocka_unit_test(a_slip_finds_its_word),
        cmocka_unit_test(a_stranger_finds_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
