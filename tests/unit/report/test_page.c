#include "report/page.h"

#include <math.h>

#include "unit/report/page_reader.h"

static struct ph__json *write_and_read(struct ph__page *page)
{
    const char *path = test_path("page.html");
    assert_ok(ph__page_write(page, path));
    ph__page_fini(page);
    return page_read(path);
}

static void a_page_holds_what_was_added(void **state)
{
    (void)state;
    static const struct ph__page_column columns[] = {{"name", NULL, "which"}, {"bytes", "bytes", NULL}};
    struct ph__page page;
    ph__page_init(&page, "window", "heading", NULL);
    ph__page_set_state(&page, false, "stopped");
    ph__page_add_fact(&page, "seed", "7");
    struct ph__json *blocks = ph__page_add_section(&page, "first", "First", "a note");
    ph__page_add_figure(ph__page_add_figures(blocks), "AUC", 0.75, ".5", NULL);
    struct ph__page_table table = ph__page_add_table(blocks, "table", columns, 2, 1);
    struct ph__json *row = ph__page_add_row(&table, 0.5);
    ph__json_append_text(row, "a");
    ph__json_append_integer(row, 1024);
    ph__page_add_text(ph__page_add_details(blocks, "more"), "preformatted", "seed: 1\n");
    struct ph__json *read = write_and_read(&page);
    assert_string_equal(ph__json_as_text(ph__json_get(read, "title"), ""), "window");
    assert_true(ph__json_is_null(ph__json_get(read, "about")));
    page_expect(read, "\"state\":{\"is_done\":false,\"text\":\"stopped\"}");
    page_expect(read, "\"facts\":[{\"name\":\"seed\",\"value\":\"7\"}]");
    page_expect(page_find(read, "first"), "\"heading\":\"First\",\"note\":\"a note\"");
    page_expect(read, "{\"name\":\"AUC\",\"value\":0.75,\"format\":\".5\",\"note\":null}");
    page_expect(page_row(read, "table", "a"), "[\"a\",1024]");
    page_expect(page_find(read, "table"), "\"bars\":[0.5]");
    page_expect(
        read, "\"summary\":\"more\",\"blocks\":[{\"kind\":\"preformatted\",\"text\":\"seed: 1\\n\"}]");
    ph__json_destroy(read);
}

static void a_text_table_is_shown_as_it_is(void **state)
{
    (void)state;
    static const struct ph__text_column columns[] = {{"name", false}, {"bytes", true}};
    struct ph__text_table table;
    struct ph__page page;
    ph__text_table_init(&table, columns, 2);
    ph__text_table_cell(&table, "a");
    ph__text_table_cell(&table, "1 KiB");
    ph__page_init(&page, "window", "heading", NULL);
    ph__page_add_text_table(ph__page_add_section(&page, "first", "First", NULL), "table", &table);
    ph__text_table_fini(&table);
    struct ph__json *read = write_and_read(&page);
    page_expect(page_row(read, "table", "a"), "[\"a\",\"1 KiB\"]");
    page_expect(page_find(read, "table"), "{\"name\":\"bytes\",\"format\":\"number\",\"title\":null}");
    page_expect(page_find(read, "table"), "\"num_rows\":1");
    ph__json_destroy(read);
}

/* A text may hold what would end the script element, or begin a comment in it. */
static void texts_are_never_markup(void **state)
{
    (void)state;
    static const char text[] = "</script><!--<script> & \" \\ \xC3\xA9";
    struct ph__page page;
    struct ph__arena arena = {0};
    char *file, *at;
    size_t size, num_ends = 0;
    ph__page_init(&page, text, text, text);
    struct ph__json *read = write_and_read(&page);
    assert_string_equal(ph__json_as_text(ph__json_get(read, "heading"), ""), text);
    assert_ok(ph__file_read(&arena, test_path("page.html"), 1 << 24, &file, &size));
    for (at = file; (at = strstr(at, "</script>")) != NULL; at++)
        num_ends++;
    assert_int_equal(num_ends, 2); /* the document's and the program's */
    assert_null(strstr(file, "<!--<script>"));
    ph__json_destroy(read);
    ph__arena_fini(&arena);
}

static void values_that_are_not_finite_are_null(void **state)
{
    (void)state;
    static const struct ph__page_column columns[] = {{"name", NULL, NULL}, {"share", "percent", NULL}};
    struct ph__page page;
    ph__page_init(&page, "t", "h", NULL);
    struct ph__json *blocks = ph__page_add_section(&page, "s", "S", NULL);
    struct ph__page_table table = ph__page_add_table(blocks, "table", columns, 2, 1);
    struct ph__json *row = ph__page_add_row(&table, (double)NAN);
    ph__json_append_text(row, "a");
    ph__json_append_number(row, (double)INFINITY);
    struct ph__json *read = write_and_read(&page);
    page_expect(page_row(read, "table", "a"), "[\"a\",null]");
    page_expect(page_find(read, "table"), "\"bars\":[null]");
    ph__json_destroy(read);
}

/* ---- plots ---- */

static struct ph__json *plot_of(const struct ph__page_series *series)
{
    struct ph__page page;
    ph__page_init(&page, "t", "h", NULL);
    const struct ph__page_mark mark = {2, "two"};
    const struct ph__page_plot plot = {.id = "plot",
        .x = {.label = "x"},
        .y = {.label = "y", .is_log = true, .is_fixed = true, .low = 1, .high = 8},
        .series = series,
        .num_series = 1,
        .marks = &mark,
        .num_marks = 1};
    ph__page_add_plot(ph__page_add_plots(ph__page_add_section(&page, "s", "S", NULL)), &plot);
    return write_and_read(&page);
}

static void a_plot_holds_its_series_axes_and_marks(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, y[] = {4, (double)NAN, 6}, low[] = {3, 3, 3}, high[] = {7, 7, 7};
    const struct ph__page_series series = {.name = "n",
        .id = "series",
        .style = PH_PAGE_LINE_AND_DOTS,
        .color = 2,
        .count = 3,
        .x = x,
        .y = y,
        .low = low,
        .high = high};
    struct ph__json *read = plot_of(&series);
    page_expect(page_find(read, "series"),
        "\"style\":\"line and "
        "dots\",\"color\":2,\"x\":[1.0,2.0,3.0],\"y\":[4.0,null,6.0],\"low\":[3.0,3.0,3.0],"
        "\"high\":[7.0,7.0,7.0]");
    assert_int_equal(page_points(read, "series"), 2);
    page_expect(read, "\"y\":{\"label\":\"y\",\"is_log\":true,\"has_zero\":false,\"low\":1.0,\"high\":8.0}");
    page_expect(read, "\"marks\":[{\"x\":2.0,\"text\":\"two\"}]");
    ph__json_destroy(read);
}

/* A spike of one point is among those that are kept, wherever it is; a gap does not hide it. */
static void a_long_series_keeps_its_peaks(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static double x[COUNT], y[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (double)i;
        y[i] = i % 3 == 0 ? (double)NAN : 1 + 1e-7 * (double)i;
    }
    y[4999] = 50;
    y[77776] = -50;
    const struct ph__page_series series = {.id = "series", .count = COUNT, .x = x, .y = y};
    struct ph__json *read = plot_of(&series);
    const struct ph__json *kept = page_find(read, "series");
    const size_t num_kept = ph__json_size(ph__json_get(kept, "x"));
    assert_in_range(num_kept, PH_PAGE_MAX_POINTS / 2, PH_PAGE_MAX_POINTS);
    assert_int_equal(page_points(read, "series"), num_kept);
    double last = -1;
    for (size_t i = 0; i < num_kept; i++) {
        const double at = ph__json_as_number(ph__json_at(ph__json_get(kept, "x"), i), -1);
        assert_true(at > last);
        last = at;
    }
    page_expect(kept, ",50.0,");
    page_expect(kept, ",-50.0,");
    ph__json_destroy(read);
}

/* ---- errors ---- */

static void a_page_that_cannot_be_written_keeps_the_former_one(void **state)
{
    (void)state;
    struct ph__page page;
    ph__page_init(&page, "t", "h", NULL);
    const char *path = test_path("missing/page.html");
    assert_fails(ph__page_write(&page, path), PH_ERROR_DISK, "missing/page.html");
    ph__page_fini(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_holds_what_was_added),
        cmocka_unit_test(a_text_table_is_shown_as_it_is),
        cmocka_unit_test(texts_are_never_markup),
        cmocka_unit_test(values_that_are_not_finite_are_null),
        cmocka_unit_test(a_plot_holds_its_series_axes_and_marks),
        cmocka_unit_test(a_long_series_keeps_its_peaks),
        cmocka_unit_test(a_page_that_cannot_be_written_keeps_the_former_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
