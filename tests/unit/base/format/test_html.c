#include <math.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/html.h"
#include "base/memory/arena.h"
#include "support/test_support.h"

static struct ph__arena arena;
static struct ph__html *html;

static int begin(void **state)
{
    (void)state;
    assert_ok(ph__html_open(test_path("page.html"), "a & b", &html));
    return 0;
}

static int end(void **state)
{
    (void)state;
    ph__html_close(html);
    ph__arena_fini(&arena);
    return 0;
}

/* The page, finished. */
static const char *page(void)
{
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__html_finish(html));
    assert_ok(ph__file_read(&arena, test_path("page.html"), 1 << 20, &text, &size));
    assert_int_equal(size, strlen(text));
    return text;
}

static void assert_holds(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is missing in: %s", part, text);
}

static void a_page_is_whole_and_needs_nothing_beside_itself(void **state)
{
    (void)state;
    const char *text = page();
    assert_true(strncmp(text, "<!DOCTYPE html>", 15) == 0);
    assert_holds(text, "<title>a &amp; b</title>");
    assert_holds(text, "prefers-color-scheme:dark");
    assert_holds(text, "</html>\n");
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "http:"));
    assert_null(strstr(text, "https:"));
    assert_null(strstr(text, "url("));
}

static void what_html_would_take_for_markup_is_escaped(void **state)
{
    (void)state;
    ph__html_text(html, "<script>alert(\"1\" & '2')</script>");
    assert_holds(page(), "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    (void)state;
    ph__html_text(html, "a\x01"
                        "b\x7f"
                        "c\xff"
                        "d\xc3\xa9"
                        "e\xe2\x82");
    assert_holds(page(), "a\xEF\xBF\xBD"
                         "b\xEF\xBF\xBD"
                         "c\xEF\xBF\xBD"
                         "d\xc3\xa9"
                         "e\xEF\xBF\xBD\xEF\xBF\xBD");
}

static void arguments_are_escaped_and_formats_of_markup_are_not(void **state)
{
    (void)state;
    ph__html_element(html, "p", "note", "%s at %d", "<x>", 3);
    ph__html_text(html, NULL);
    assert_holds(page(), "<p class=\"note\">&lt;x&gt; at 3</p>");
}

static void cells_know_their_columns(void **state)
{
    (void)state;
    static const struct ph__html_column columns[] = {{"name", false, NULL}, {"n", true, "how \"many\""}};
    ph__html_begin_table(html, "rows", columns, 2);
    ph__html_begin_row(html);
    ph__html_cell(html, "%s", "a<b");
    ph__html_number_cell(html, "%.1f", 2.25);
    ph__html_end_row(html);
    ph__html_begin_row(html);
    ph__html_bar_cell(html, 3.5, "all");
    ph__html_number_cell(html, "%.1f", (double)NAN);
    ph__html_end_row(html);
    ph__html_end_table(html);
    const char *text = page();
    assert_holds(text, "<th scope=\"col\" class=\"number\" title=\"how &quot;many&quot;\">n</th>");
    assert_holds(text, "<tr><td>a&lt;b</td><td class=\"number\">2.2</td></tr>");
    assert_holds(
        text, "style=\"width:100.00%\"></span><span>all</span></td><td class=\"number\">–</td></tr>");
}

static void the_first_error_is_kept_and_nothing_replaces_the_file(void **state)
{
    (void)state;
    test_write_file("page.html", "former");
    ph__html_fail(html, ph_fail(PH_ERROR_MEMORY, "first"));
    ph__html_fail(html, PH_ERROR_DISK);
    ph__html_text(html, "text");
    assert_int_equal(ph__html_finish(html), PH_ERROR_MEMORY);
    ph__html_close(html);
    html = NULL;
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__file_read(&arena, test_path("page.html"), 1 << 20, &text, &size));
    assert_string_equal(text, "former");
}

static void a_page_that_cannot_be_written_says_so(void **state)
{
    (void)state;
    struct ph__html *none = NULL;
    assert_fails(ph__html_open(test_path("no/such/folder.html"), "t", &none), PH_ERROR_DISK, "folder.html");
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_page_is_whole_and_needs_nothing_beside_itself, begin, end),
        cmocka_unit_test_setup_teardown(what_html_would_take_for_markup_is_escaped, begin, end),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_text_are_replaced, begin, end),
        cmocka_unit_test_setup_teardown(arguments_are_escaped_and_formats_of_markup_are_not, begin, end),
        cmocka_unit_test_setup_teardown(cells_know_their_columns, begin, end),
        cmocka_unit_test_setup_teardown(the_first_error_is_kept_and_nothing_replaces_the_file, begin, end),
        cmocka_unit_test(a_page_that_cannot_be_written_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
