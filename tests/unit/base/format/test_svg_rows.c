#include <math.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/svg.h"
#include "base/memory/arena.h"
#include "support/test_support.h"

static struct ph__arena arena;

static int end(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static const char *draw(const struct ph__plot_row *rows, size_t num_rows)
{
    struct ph__html *html = NULL;
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__html_open(test_path("rows.html"), "rows", &html));
    ph__html_row_plot(html, &(struct ph__row_plot){.id = "r",
                                .label = "AUC",
                                .width = 600,
                                .format = "%.3f",
                                .reference_name = "published",
                                .rows = rows,
                                .num_rows = num_rows});
    assert_ok(ph__html_finish(html));
    ph__html_close(html);
    assert_ok(ph__file_read(&arena, test_path("rows.html"), 1 << 20, &text, &size));
    const char *svg = strstr(text, "<svg");
    assert_non_null(svg);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    return svg;
}

static void a_row_shows_its_value_spread_and_singles(void **state)
{
    (void)state;
    const double singles[] = {0.7, 0.72, (double)NAN};
    const struct ph__plot_row row = {.name = "dcn<2>",
        .value = 0.71,
        .low = 0.69,
        .high = 0.73,
        .singles = singles,
        .num_singles = 3,
        .reference = 0.75,
        .color = 1};
    const char *svg = draw(&row, 1);
    assert_non_null(strstr(svg, ">0.710</text>"));
    assert_non_null(strstr(svg, "<title>dcn&lt;2&gt;: 0.710, 0.690 to 0.730, published 0.750</title>"));
    assert_non_null(strstr(svg, "class=\"whisker s2\""));
}

static void a_row_without_a_number_keeps_its_name(void **state)
{
    (void)state;
    const double none = (double)NAN;
    const struct ph__plot_row rows[] = {
        {.name = "failed", .value = none, .low = none, .high = none, .reference = none},
        {.name = "fine", .value = 1, .low = none, .high = none, .reference = none, .color = 1}};
    const char *svg = draw(rows, 2);
    assert_non_null(strstr(svg, ">failed</text>"));
    assert_non_null(strstr(svg, ">–</text>"));
    assert_non_null(strstr(draw(rows, 1), ">failed</text>"));
    draw(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_row_shows_its_value_spread_and_singles, end),
        cmocka_unit_test_teardown(a_row_without_a_number_keeps_its_name, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
