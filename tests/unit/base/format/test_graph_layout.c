#include "base/format/graph_layout.h"

#include "support/test_support.h"

#define MAX_NODES 64

static struct ph__arena arena;

static int end(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static const struct ph__graph_node nodes[MAX_NODES];

/* Lays out, and looks at what holds for any graph: edges lead to the next layer, places of a layer do not overlap. */
static struct ph__layout lay_out(const struct ph__graph_edge *edges, size_t num_edges, size_t num_nodes)
{
    double widths[MAX_NODES];
    struct ph__layout layout = {0};
    for (size_t v = 0; v < num_nodes; v++)
        widths[v] = 40 + 10 * (double)(v % 5);
    const struct ph__graph_drawing drawing = {
        .id = "g", .nodes = nodes, .num_nodes = num_nodes, .edges = edges, .num_edges = num_edges};
    assert_ok(ph__graph_layout(&drawing, widths, &arena, &layout));
    for (size_t e = 0; e < num_edges; e++)
        assert_true(layout.places[edges[e].from].layer < layout.places[edges[e].to].layer);
    for (size_t p = 0; p < layout.num_places; p++)
        for (size_t k = 0; k < layout.places[p].num_below; k++)
            assert_int_equal(layout.places[layout.places[p].below[k]].layer, layout.places[p].layer + 1);
    for (size_t l = 0; l < layout.num_layers; l++)
        for (size_t i = 0; i < layout.layer_sizes[l]; i++) {
            const struct ph__layout_place *place = &layout.places[layout.layers[l][i]];
            assert_int_equal(place->layer, l);
            assert_true(place->x - place->width / 2 >= -1e-6);
            assert_true(place->x + place->width / 2 <= layout.width + 1e-6);
            if (i > 0) {
                const struct ph__layout_place *left = &layout.places[layout.layers[l][i - 1]];
                assert_true(left->x + left->width / 2 < place->x - place->width / 2);
            }
        }
    return layout;
}

static void a_chain_stands_in_a_line(void **state)
{
    (void)state;
    const struct ph__graph_edge edges[] = {{0, 1}, {1, 2}, {2, 3}};
    struct ph__layout layout = lay_out(edges, 3, 4);
    assert_int_equal(layout.num_layers, 4);
    for (size_t v = 1; v < 4; v++)
        assert_near(layout.places[v].x, layout.places[0].x, 1e-6, 0);
}

/* 0 -> 1 -> 2 -> 3, and 0 -> 3 passes by two layers. */
static void a_long_edge_passes_through_each_layer(void **state)
{
    (void)state;
    const struct ph__graph_edge edges[] = {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 3}};
    struct ph__layout layout = lay_out(edges, 5, 4);
    assert_int_equal(layout.num_places, 6);
    assert_int_equal(layout.layer_sizes[1], 2);
    assert_int_equal(layout.places[0].num_below, 2);
}

/* A source that is read late stands just above its reader. */
static void a_source_stands_above_its_reader(void **state)
{
    (void)state;
    const struct ph__graph_edge edges[] = {{0, 2}, {2, 3}, {3, 4}, {1, 4}};
    struct ph__layout layout = lay_out(edges, 4, 5);
    assert_int_equal(layout.places[1].layer, 2);
    assert_int_equal(layout.num_places, 5);
}

/* Two chains given crosswise: 0 -> 3 -> 5 and 1 -> 2 -> 4 need not cross. */
static void edges_that_need_not_cross_do_not(void **state)
{
    (void)state;
    const struct ph__graph_edge edges[] = {{0, 3}, {1, 2}, {3, 5}, {2, 4}};
    struct ph__layout layout = lay_out(edges, 4, 6);
    bool is_left = layout.places[0].x < layout.places[1].x;
    assert_true((layout.places[3].x < layout.places[2].x) == is_left);
    assert_true((layout.places[5].x < layout.places[4].x) == is_left);
}

static void any_graph_has_a_layout(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (int round = 0; round < 50; round++) {
        struct ph__graph_edge edges[3 * MAX_NODES];
        size_t num_nodes = 1 + (size_t)round, num_edges = 0;
        for (size_t to = 1; to < num_nodes; to++)
            for (int k = 0; k < 3; k++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                if ((random >> 60) < 11)
                    edges[num_edges++] = (struct ph__graph_edge){(size_t)(random >> 33) % to, to};
            }
        lay_out(edges, num_edges, num_nodes);
    }
    assert_int_equal(lay_out(NULL, 0, 0).num_places, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_chain_stands_in_a_line, end),
        cmocka_unit_test_teardown(a_long_edge_passes_through_each_layer, end),
        cmocka_unit_test_teardown(a_source_stands_above_its_reader, end),
        cmocka_unit_test_teardown(edges_that_need_not_cross_do_not, end),
        cmocka_unit_test_teardown(any_graph_has_a_layout, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
