/* Lists of texts, of a section and of a record. */
#include <stdio.h>
#include <string.h>

#include "base/option/option.h"
#include "support/test_support.h"

struct range {
    const char *key;
    struct ph__text_list values;
};

struct settings {
    struct ph__text_list words;
    struct ph__record_list ranges;
};

static const struct ph__key_filter all = {0};

static const struct ph__option range_options[] = {
    {.key = "key", .type = PH_OPTION_TEXT, .offset = offsetof(struct range, key), .help = "Of what."},
    {.key = "values",
        .type = PH_OPTION_TEXTS,
        .offset = offsetof(struct range, values),
        .default_text = "",
        .help = "Which."},
};
static const struct ph__option_table range_table = {
    "ranges", "One.", range_options, 2, sizeof(struct range), 0};

static const struct ph__option options[] = {
    {.key = "words",
        .type = PH_OPTION_TEXTS,
        .offset = offsetof(struct settings, words),
        .default_text = "x, y",
        .help = "Some."},
    {.key = "ranges",
        .type = PH_OPTION_RECORDS,
        .offset = offsetof(struct settings, ranges),
        .default_text = "",
        .records = &range_table,
        .help = "All."},
};
static const struct ph__option_table table = {"tune", "What.", options, 2, sizeof(struct settings), 0};

static struct settings settings;
static struct ph__arena arena;

static ph_status read_text(const char *text, const char *const *sets, size_t num_sets)
{
    const struct ph__section section = {&table, &settings};
    ph__arena_fini(&arena);
    return ph__config_read(test_write_file("texts.yaml", text), sets, num_sets, &section, 1, &arena);
}

static const struct range *range_at(size_t index)
{
    assert_true(index < settings.ranges.count);
    return (const struct range *)settings.ranges.items + index;
}

static const char three[] = "tune:\n"
                            "  words: [a]\n"
                            "  ranges:\n"
                            "  - {key: one, values: [0, .1, \"4,5\"]}\n"
                            "  - {key: two}\n"
                            "  - key: three\n"
                            "    values:\n"
                            "    - true\n";

static void lists_are_read_item_by_item(void **state)
{
    (void)state;
    assert_ok(read_text(three, NULL, 0));
    assert_int_equal(settings.words.count, 1);
    assert_string_equal(settings.words.items[0], "a");
    assert_int_equal(range_at(0)->values.count, 3);
    assert_string_equal(range_at(0)->values.items[1], ".1");
    assert_string_equal(range_at(0)->values.items[2], "4,5");
    assert_int_equal(range_at(1)->values.count, 0);
    assert_string_equal(range_at(2)->values.items[0], "true");
    assert_ok(read_text("tune: {}\n", NULL, 0));
    assert_int_equal(settings.words.count, 2);
    assert_string_equal(settings.words.items[1], "y");
}

static void lists_are_set_whole_or_by_item(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "tune.words=p, q,r", "tune.words[1]=s", "tune.ranges[1].values=u,v", "tune.ranges[0].values[3]=w"};
    assert_ok(read_text(three, sets, 4));
    assert_int_equal(settings.words.count, 3);
    assert_string_equal(settings.words.items[1], "s");
    assert_string_equal(settings.words.items[2], "r");
    assert_string_equal(range_at(1)->values.items[1], "v");
    assert_int_equal(range_at(0)->values.count, 4);
    assert_string_equal(range_at(0)->values.items[3], "w");
}

static void the_wrong_shape_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"tune: {words: {a: b}}\n", "tune.words: must be a list of texts, not a mapping"},
        {"tune: {words: [[a]]}\n", "tune.words[0]: must be a text, not a list"},
        {"tune: {ranges: [{key: [a]}]}\n", "tune.ranges[0].key: must be a text, not a list"},
        {"tune: {ranges: [{key: a, values: [{b: c}]}]}\n",
            "tune.ranges[0].values[0]: must be a text, not a mapping"},
        {"tune: {ranges: [{key: a, values: [[c]]}]}\n",
            "tune.ranges[0].values[0]: must be a text, not a list"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(read_text(wrong[i].text, NULL, 0), PH_ERROR_CONFIG, wrong[i].part);
}

static void items_that_are_not_there_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *set, *part;
    } wrong[] = {
        {"tune.ranges[0].values[9]=x", "the list has only 3 items"},
        {"tune.ranges[7].values[0]=x", "the list has only 3 items"},
        {"tune.ranges[0].values[x]=x", "the item does not exist"},
        {"tune.ranges[0].key[0]=x", "unknown key"},
        {"tune.ranges[0].valus[0]=x", "did you mean 'tune.ranges[0].values'?"},
        {"tune.words[5]=x", "the list has only 1 items"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(read_text(three, &wrong[i].set, 1), PH_ERROR_CONFIG, wrong[i].part);
}

static void what_is_written_reads_back_the_same(void **state)
{
    (void)state;
    const char *path = test_path("written.yaml");
    struct settings again;
    struct ph__arena other = {0};
    struct ph__writer *writer;
    const struct ph__section before = {&table, &settings}, after = {&table, &again};
    assert_ok(read_text(three, NULL, 0));
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__config_write(writer, &before, 1));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    assert_ok(ph__config_read(path, NULL, 0, &after, 1, &other));
    assert_ok(ph__config_compare(&before, &after, 1, all, "must agree"));
    assert_int_equal(((const struct range *)again.ranges.items)[0].values.count, 3);
    ph__arena_fini(&other);
}

/* As in --set, in a model's identity, and in what a run is known by. */
static void what_splits_a_list_is_quoted(void **state)
{
    (void)state;
    static const char *const items[] = {"", "a, b", "a", "b", " edge", "edge ", "say \"x\"", "back\\slash",
        "both\\\",", "two\nlines", "\"", "\\"};
    struct settings before = {0}, after = {0};
    const struct ph__section whole = {&table, &before}, part = {&table, &after};
    struct ph__arena other = {0};
    for (size_t count = 0; count <= sizeof items / sizeof *items; count++) {
        before.words.count = count;
        memcpy(before.words.items, items, count * sizeof *items);
        const char *text;
        assert_ok(ph__config_changes(&whole, 1, all, &other, &text));
        assert_null(strchr(strchr(text, '\n') + 1, '\n'));
        assert_ok(
            ph__config_read(NULL, (const char *const[]){strtok((char *)text, "\n")}, 1, &part, 1, &other));
        assert_int_equal(after.words.count, count);
        for (size_t i = 0; i < count; i++)
            assert_string_equal(after.words.items[i], items[i]);
    }
    before.words = (struct ph__text_list){1, {"a, b"}};
    after.words = (struct ph__text_list){2, {"a", "b"}};
    assert_fails(ph__config_compare(&whole, &part, 1, all, "must agree"), PH_ERROR_CONFIG, "must agree");
    ph__arena_fini(&other);
}

static void quotes_that_do_not_end_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "tune.words=a, \"b", "tune.words=\"", "tune.words=\"a\\\"", "tune.words=\"a\" b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(read_text(three, &wrong[i], 1), PH_ERROR_CONFIG,
            i < 3 ? "lacks its closing quote" : "must have a comma");
}

static int drop(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_item_by_item),
        cmocka_unit_test(lists_are_set_whole_or_by_item),
        cmocka_unit_test(the_wrong_shape_is_refused),
        cmocka_unit_test(items_that_are_not_there_are_named),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(what_splits_a_list_is_quoted),
        cmocka_unit_test(quotes_that_do_not_end_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, drop);
}
