#include <string.h>

#include "base/file/file.h"
#include "support/test_support.h"
#include "unit/base/option_fixture.h"

static const char *write_settings(struct settings *settings, const char *name)
{
    struct ph__section sections[NUM_SECTIONS];
    struct ph__writer *writer = NULL;
    const char *path = ph__path_join(&settings->arena, test_folder(), name);
    bind_sections(settings, sections);
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__config_write(writer, sections, NUM_SECTIONS));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static const char *text_of(struct settings *settings, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__file_read(&settings->arena, path, 100000, &text, &size));
    return text;
}

static void the_effective_config_is_yaml(void **state)
{
    (void)state;
    static const char *const sets[] = {"train.epochs=3"};
    struct settings settings = {0};
    assert_ok(read_settings(&settings, NULL, sets, 1));
    assert_string_equal(text_of(&settings, write_settings(&settings, "defaults.yaml")),
        "seed: 1\n"
        "data:\n"
        "  train: \"\"\n"
        "  fields: []\n"
        "train:\n"
        "  epochs: 3\n"
        "  learning_rate: 0.001\n"
        "  fast: false\n"
        "  schedule: constant\n"
        "  title: \"\"\n"
        "  steps: [10, 20]\n");
    ph__arena_fini(&settings.arena);
}

/* U+0081, U+0085, U+2028, U+FEFF, U+FFFE, U+FFFF and U+1F331. */
#define ODD_CHARACTERS "\xc2\x81\xc2\x85\xe2\x80\xa8\xef\xbb\xbf\xef\xbf\xbe\xef\xbf\xbf\xf0\x9f\x8c\xb1"

/* Texts that YAML, or the expansion of paths, would take for something else. */
static void what_is_written_reads_back_the_same(void **state)
{
    (void)state;
    static const char *const sets[] = {"train.epochs=1000", "train.learning_rate=0.1234567890123456",
        ("train.title=\"quotes\" \\ # no comment: \t\x01 caf\xc3\xa9 " ODD_CHARACTERS),
        "data.train=$$a/$$PH_TEST_NONE", "train.steps=", "train.fast=true", "train.schedule=step",
        "data.fields[0].name=null", "data.fields[1].name=- {x}"};
    struct settings first = {0}, second = {0};
    const char *fields =
        test_write_file("fields.yaml", "data: {fields: [{name: a, kind: dense}, {name: b, rows: 5}]}");
    assert_ok(read_settings(&first, fields, sets, sizeof sets / sizeof sets[0]));
    assert_string_equal(first.data.train, "$a/$PH_TEST_NONE");
    const char *path = write_settings(&first, "first.yaml");
    assert_ok(read_settings(&second, path, NULL, 0));
    const char *again = write_settings(&second, "second.yaml");
    assert_string_equal(text_of(&first, path), text_of(&second, again));
    assert_string_equal(second.train.title, first.train.title);
    assert_string_equal(second.data.train, first.data.train);
    assert_true(second.train.learning_rate == first.train.learning_rate);
    assert_int_equal(second.train.schedule, 2);
    const struct field_settings *records = second.data.fields.items;
    assert_int_equal(second.data.fields.count, 2);
    assert_string_equal(records[0].name, "null");
    assert_int_equal(records[0].kind, 2);
    assert_string_equal(records[1].name, "- {x}");
    assert_int_equal(records[1].rows, 5);
    ph__arena_fini(&first.arena);
    ph__arena_fini(&second.arena);
}

/* A program may have set what no config could have said. */
static void what_cannot_be_read_back_is_not_written(void **state)
{
    (void)state;
    struct ph__writer *writer = NULL;
    assert_ok(ph__writer_open(test_write_file("latin.yaml", ""), &writer));
    assert_fails(ph__config_write_path(writer, "caf\xe9.csv"), PH_ERROR_USAGE, "is not UTF-8");
    ph__writer_close(writer);
}

static const char *describe(struct ph__arena *arena, bool is_markdown)
{
    struct ph__writer *writer = NULL;
    const char *path = ph__path_join(arena, test_folder(), "description");
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__config_describe(writer, all_tables, NUM_SECTIONS, is_markdown));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    assert_ok(ph__file_read(arena, path, 100000, &text, &size));
    return text;
}

static void expect_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in:\n%s", part, text);
}

static void markdown_has_a_table_for_each_section(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *text = describe(&arena, true);
    expect_part(text, "\n## top level\n\nFor the whole run.\n\n| key | type | default | range | meaning |\n"
                      "|---|---|---|---|---|\n| `seed` | integer | 1 |  | Of everything random. |\n");
    expect_part(text, "| `train.epochs` | integer | required | 1 to 1000 | Passes over the data. |\n");
    expect_part(text, "| `train.schedule` | choice | constant | constant, cosine, step | ");
    expect_part(text, "| `train.learning_rate` | number | 1e-3 | 0 to 10 | ");
    expect_part(text, "| `train.title` | text | \"\" |  | ");
    expect_part(text, "| `data.train` | path | none |  | Training file. May change on resume. |\n");
    expect_part(text, "\n### data.fields[]\n\nOne column; '*' is any | all.\n");
    expect_part(text, "| `data.fields[].rows` | integer | 10 | 1 to 4294967295 | Of its table. |\n");
    ph__arena_fini(&arena);
}

static void plain_text_has_every_key(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *text = describe(&arena, false);
    expect_part(text, "\ntrain: How it is trained.\n");
    expect_part(text, "  train.epochs  (integer, required, 1 to 1000)\n      Passes over the data.\n");
    expect_part(text, "  data.train  (path, none)\n      Training file. May change on resume.\n");
    expect_part(text, "  train.fast  (true or false, false)\n");
    expect_part(text, "  data.fields[].name  (text, required)\n");
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_effective_config_is_yaml),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(what_cannot_be_read_back_is_not_written),
        cmocka_unit_test(markdown_has_a_table_for_each_section),
        cmocka_unit_test(plain_text_has_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
