#include <math.h>
#include <stdlib.h>
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

/* What a page holds of the plot alone. */
static const char *draw(const struct ph__plot *plot)
{
    struct ph__html *html = NULL;
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__html_open(test_path("plot.html"), "plot", &html));
    ph__html_plot(html, plot);
    assert_ok(ph__html_finish(html));
    ph__html_close(html);
    assert_ok(ph__file_read(&arena, test_path("plot.html"), 1 << 24, &text, &size));
    const char *svg = strstr(text, "<svg");
    assert_non_null(svg);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    return svg;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static struct ph__plot plot_of(const struct ph__plot_series *series, size_t num_series)
{
    return (struct ph__plot){.id = "p",
        .width = 400,
        .height = 300,
        .x = {.label = "x < y"},
        .y = {.label = "y"},
        .series = series,
        .num_series = num_series};
}

/* The numbers of the path's points, in pixels; how many points there are. */
static size_t path_points(const char *svg, double *xs, double *ys, size_t max, size_t *num_moves)
{
    const char *at = strstr(svg, "<path class=\"line s1\" d=\"") + strlen("<path class=\"line s1\" d=\"");
    size_t count = 0;
    *num_moves = 0;
    while (*at != '"' && count < max) {
        char *next;
        *num_moves += *at == 'M';
        assert_true(*at == 'M' || *at == 'L');
        xs[count] = strtod(at + 1, &next);
        ys[count++] = strtod(next, &next);
        at = next;
    }
    return count;
}

static void a_line_goes_through_its_points_in_proportion(void **state)
{
    (void)state;
    const double x[] = {0, 1, 4}, y[] = {0, 10, 20};
    const struct ph__plot_series series = {.id = "curve", .color = 1, .count = 3, .x = x, .y = y};
    struct ph__plot plot = plot_of(&series, 1);
    double xs[8], ys[8];
    size_t num_moves;
    const char *svg = draw(&plot);
    assert_non_null(strstr(svg, "<g id=\"curve\" data-points=\"3\">"));
    assert_non_null(strstr(svg, "x &lt; y"));
    assert_int_equal(path_points(svg, xs, ys, 8, &num_moves), 3);
    assert_int_equal(num_moves, 1);
    assert_near((xs[1] - xs[0]) / (xs[2] - xs[0]), 0.25, 1e-3, 0);
    assert_near((ys[1] - ys[0]) / (ys[2] - ys[0]), 0.5, 1e-3, 0);
    assert_true(ys[2] < ys[0]); /* more is higher up */
    assert_true(xs[0] > 0 && xs[2] < 400 && ys[2] > 0 && ys[0] < 300);
}

static void numbers_that_are_not_finite_are_gaps(void **state)
{
    (void)state;
    const double x[] = {0, 1, 2, 3, 4}, y[] = {1, 2, (double)NAN, (double)INFINITY, 2};
    const struct ph__plot_series series = {.color = 1, .count = 5, .x = x, .y = y};
    struct ph__plot plot = plot_of(&series, 1);
    double xs[8], ys[8];
    size_t num_moves;
    const char *svg = draw(&plot);
    assert_int_equal(path_points(svg, xs, ys, 8, &num_moves), 3);
    assert_int_equal(num_moves, 2);
    assert_non_null(strstr(svg, "data-points=\"3\""));
}

static void a_plot_of_nothing_says_so(void **state)
{
    (void)state;
    const double x[] = {1}, y[] = {(double)NAN};
    const struct ph__plot_series series[] = {
        {.color = 1}, {.color = 2, .count = 1, .x = x, .y = y}, {.color = 3, .style = PH_PLOT_BARS}};
    struct ph__plot plot = plot_of(series, 3);
    assert_non_null(strstr(draw(&plot), "nothing to show"));
    plot.num_series = 0;
    plot.x.is_log = plot.y.is_log = true;
    assert_non_null(strstr(draw(&plot), "nothing to show"));
}

static void one_point_is_seen(void **state)
{
    (void)state;
    const double x[] = {7}, y[] = {7};
    const struct ph__plot_series series = {.name = "<one>", .color = 2, .count = 1, .x = x, .y = y};
    struct ph__plot plot = plot_of(&series, 1);
    const char *svg = draw(&plot);
    assert_int_equal(count_of(svg, "class=\"f2\" cx="), 1);
    assert_non_null(strstr(svg, "<title>&lt;one&gt;: 7 at 7</title>"));
}

/* Far more points than pixels: the line is short, and yet has both of its extremes. */
static void a_long_line_keeps_its_extremes(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    double *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    double xs[4096], ys[4096];
    size_t num_moves;
    assert_non_null(x);
    assert_non_null(y);
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (double)i;
        y[i] = sin(0.37 * (double)i);
    }
    y[123457] = 9;
    y[77] = -9;
    const struct ph__plot_series series = {.color = 1, .count = COUNT, .x = x, .y = y};
    struct ph__plot plot = plot_of(&series, 1);
    plot.y = (struct ph__plot_axis){.is_fixed = true, .low = -10, .high = 10};
    size_t count = path_points(draw(&plot), xs, ys, 4096, &num_moves);
    assert_in_range(count, 300, 4 * 400);
    double least = ys[0], most = ys[0];
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, ys[i]);
        most = fmax(most, ys[i]);
        assert_true(i == 0 || xs[i] >= xs[i - 1]);
    }
    const double zero = (300 - 46 + 38) / 2.0, unit = (300 - 46 - 38) / 20.0;
    assert_near(least, zero - 9 * unit, 0.06, 0);
    assert_near(most, zero + 9 * unit, 0.06, 0);
    free(x);
    free(y);
}

static void bars_stand_on_the_bottom(void **state)
{
    (void)state;
    const double x[] = {0, 1}, x_end[] = {1, 2}, y[] = {0, 4};
    const struct ph__plot_series series = {
        .style = PH_PLOT_BARS, .color = 3, .count = 2, .x = x, .x_end = x_end, .y = y};
    struct ph__plot plot = plot_of(&series, 1);
    plot.y.has_zero = true;
    const char *svg = draw(&plot), *bar = strstr(svg, "<rect class=\"f3\"");
    assert_int_equal(count_of(svg, "<rect class=\"f3\""), 2);
    assert_non_null(strstr(bar, "height=\"0.0\""));
}

static void a_logarithmic_axis_leaves_out_what_has_no_place(void **state)
{
    (void)state;
    const double x[] = {1, 10, 100, 1000}, y[] = {0, 1, -1, 2};
    const struct ph__plot_series series = {.color = 1, .style = PH_PLOT_DOTS, .count = 4, .x = x, .y = y};
    struct ph__plot plot = plot_of(&series, 1);
    plot.y.is_log = true;
    assert_non_null(strstr(draw(&plot), "data-points=\"2\""));
}

static void marks_and_whiskers_say_what_they_are(void **state)
{
    (void)state;
    const double x[] = {1, 2}, y[] = {3, 4}, low[] = {2, (double)NAN}, high[] = {5, (double)NAN};
    const struct ph__plot_series series = {
        .style = PH_PLOT_DOTS, .color = 1, .count = 2, .x = x, .y = y, .low = low, .high = high};
    const struct ph__plot_mark mark = {1.5, "cut to 1e-4 & on"};
    struct ph__plot plot = plot_of(&series, 1);
    plot.marks = &mark;
    plot.num_marks = 1;
    plot.has_diagonal = true;
    const char *svg = draw(&plot);
    assert_int_equal(count_of(svg, "class=\"whisker"), 1);
    assert_int_equal(count_of(svg, "class=\"mark\""), 2);
    assert_non_null(strstr(svg, "<title>cut to 1e-4 &amp; on</title>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_line_goes_through_its_points_in_proportion, end),
        cmocka_unit_test_teardown(numbers_that_are_not_finite_are_gaps, end),
        cmocka_unit_test_teardown(a_plot_of_nothing_says_so, end),
        cmocka_unit_test_teardown(one_point_is_seen, end),
        cmocka_unit_test_teardown(a_long_line_keeps_its_extremes, end),
        cmocka_unit_test_teardown(bars_stand_on_the_bottom, end),
        cmocka_unit_test_teardown(a_logarithmic_axis_leaves_out_what_has_no_place, end),
        cmocka_unit_test_teardown(marks_and_whiskers_say_what_they_are, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
