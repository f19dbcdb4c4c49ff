#include "base/format/svg.h"

#include <string.h>

#include "base/file/file.h"
#include "base/memory/arena.h"
#include "support/test_support.h"

static struct ph__arena arena;

static const char *draw(const struct ph__graph_drawing *drawing)
{
    struct ph__html *html = NULL;
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__html_open(test_path("graph.html"), "graph", &html));
    ph__html_graph(html, drawing);
    assert_ok(ph__html_finish(html));
    ph__html_close(html);
    assert_ok(ph__file_read(&arena, test_path("graph.html"), 1 << 20, &text, &size));
    return strstr(text, "<main>");
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void nodes_and_edges_are_drawn_once_and_escaped(void **state)
{
    (void)state;
    const struct ph__graph_node nodes[] = {{"ids", "(B,26)", NULL, 3}, {"a<b>", "", "linear & more", 0}};
    const struct ph__graph_edge edges[] = {{0, 1}, {0, 1}};
    const char *text = draw(&(struct ph__graph_drawing){"g", nodes, 2, edges, 2});
    assert_int_equal(count_of(text, "<rect class=\"node"), 2);
    assert_int_equal(count_of(text, "<path class=\"edge\""), 1);
    assert_non_null(strstr(text, ">a&lt;b&gt;</text>"));
    assert_non_null(strstr(text, "<title>linear &amp; more</title>"));
    assert_non_null(strstr(text, ">(B,26)</text>"));
    assert_null(strstr(text, "nan"));
    ph__arena_fini(&arena);
}

static void a_graph_of_nothing_is_nothing(void **state)
{
    (void)state;
    assert_null(strstr(draw(&(struct ph__graph_drawing){.id = "g"}), "<svg"));
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_and_edges_are_drawn_once_and_escaped),
        cmocka_unit_test(a_graph_of_nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
