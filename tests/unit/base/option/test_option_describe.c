#include <string.h>

#include "base/file/file.h"
#include "support/test_support.h"
#include "unit/base/option_fixture.h"

static const char *describe(struct ph_arena *arena, bool is_markdown)
{
    struct ph_writer *writer = NULL;
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
    struct ph_arena arena = {0};
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
    struct ph_arena arena = {0};
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
        cmocka_unit_test(markdown_has_a_table_for_each_section),
        cmocka_unit_test(plain_text_has_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
