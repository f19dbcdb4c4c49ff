/* Section "graph" of report.html: the forward entry of the program that learnt, as it ran. */
#include <stdlib.h>
#include <string.h>

#include "base/format/svg_graph.h"
#include "graph/graph.h"
#include "train/folder/run_report_parts.h"

#define MAX_DRAWN 400 /* nodes: more than anybody reads */
#define NOT_DRAWN SIZE_MAX

enum { COLOR_BATCH = 3, COLOR_TABLE = 2, COLOR_WEIGHTS = 1, COLOR_PLAIN = 0 };

struct picture {
    const struct ph_graph *graph;
    size_t num_graph_nodes; /* of the forward entry */
    struct ph_arena arena;
    size_t *drawn_node,
        *drawn_value; /* by node and by input of the batch: its number in the drawing, or NOT_DRAWN */
    struct ph_graph_node *nodes;
    struct ph_graph_edge *edges;
    size_t num_nodes, num_edges;
};

/* Whether a node reads something that comes from the batch: one that does not only prepares weights, as packing does. */
static bool reads_batch(const struct picture *picture, const struct ph_node *node)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph_value_info *info = &picture->graph->values[node->inputs[k]];
        if (node->inputs[k] == 0)
            continue;
        if (info->storage == PH_STORAGE_INPUT)
            return true;
        if (info->producer != PH_NO_NODE && picture->drawn_node[info->producer] != NOT_DRAWN)
            return true;
    }
    return false;
}

static size_t color_of(const struct ph_graph *graph, const struct ph_node *node)
{
    size_t color = COLOR_PLAIN;
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph_value_info *info = &graph->values[node->inputs[k]];
        if (node->inputs[k] == 0)
            continue;
        if (info->storage == PH_STORAGE_PARAMETER && graph->declarations[info->source].is_table)
            return COLOR_TABLE;
        if (info->storage == PH_STORAGE_PARAMETER ||
            (info->producer != PH_NO_NODE && info->type.kind == PH_DENSE &&
                (graph->nodes[info->producer].op->traits & PH_OP_ONCE_PER_VERSION) != 0))
            color = COLOR_WEIGHTS;
    }
    return color;
}

/* Name, operator, and what it reads and makes. */
static const char *describe(struct picture *picture, const struct ph_node *node)
{
    const struct ph_graph *graph = picture->graph;
    char type[96];
    char *text = ph__arena_printf(&picture->arena, "%s: %s", node->name, node->op->name);
    for (uint32_t k = 0; k < node->num_inputs && text != NULL; k++)
        if (node->inputs[k] != 0) {
            const struct ph_value_info *info = &graph->values[node->inputs[k]];
            text = ph__arena_printf(
                &picture->arena, "%s\nreads %s %s", text, info->name, ph__type_text(&info->type, type));
        }
    for (uint32_t k = 0; k < node->num_outputs && text != NULL; k++) {
        const struct ph_value_info *info = &graph->values[node->outputs[k]];
        text = ph__arena_printf(&picture->arena, "%s\nmakes %s", text, ph__type_text(&info->type, type));
    }
    return text;
}

static size_t add_node(struct picture *picture, struct ph_graph_node node)
{
    picture->nodes[picture->num_nodes] = node;
    return picture->num_nodes++;
}

static const char *type_note(struct picture *picture, ph_value value)
{
    char text[96];
    const char *note =
        ph__arena_strdup(&picture->arena, ph__type_text(&picture->graph->values[value].type, text));
    return note != NULL ? note : "";
}

static void add_inputs(struct picture *picture)
{
    for (size_t i = 0; i < PH_INPUT_COUNT; i++) {
        ph_value value = picture->graph->batch_inputs[i];
        bool is_read = false;
        for (size_t n = 0; value != 0 && n < picture->num_graph_nodes; n++)
            for (uint32_t k = 0; k < picture->graph->nodes[n].num_inputs; k++)
                is_read = is_read || picture->graph->nodes[n].inputs[k] == value;
        if (is_read)
            picture->drawn_value[i] =
                add_node(picture, (struct ph_graph_node){.label = picture->graph->values[value].name,
                                      .note = type_note(picture, value),
                                      .color = COLOR_BATCH});
    }
}

static void add_edges(struct picture *picture, const struct ph_node *node, size_t to)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph_value_info *info = &picture->graph->values[node->inputs[k]];
        size_t from = NOT_DRAWN;
        if (node->inputs[k] != 0 && info->storage == PH_STORAGE_INPUT)
            from = picture->drawn_value[info->source];
        else if (node->inputs[k] != 0 && info->producer != PH_NO_NODE)
            from = picture->drawn_node[info->producer];
        if (from != NOT_DRAWN)
            picture->edges[picture->num_edges++] = (struct ph_graph_edge){from, to};
    }
}

static void add_nodes(struct picture *picture)
{
    const struct ph_graph *graph = picture->graph;
    for (size_t i = 0; i < picture->num_graph_nodes; i++) {
        const struct ph_node *node = &graph->nodes[i];
        if (!reads_batch(picture, node))
            continue;
        const char *note = node->num_outputs > 0 ? type_note(picture, node->outputs[0]) : "";
        size_t drawn = add_node(picture, (struct ph_graph_node){.label = node->name,
                                             .note = note,
                                             .title = describe(picture, node),
                                             .color = color_of(graph, node)});
        picture->drawn_node[i] = drawn;
        add_edges(picture, node, drawn);
    }
}

static ph_status picture_init(const struct ph_program *program, struct picture *picture)
{
    size_t num_edges = 0, count = program->entry_begin[1] - program->entry_begin[0];
    *picture = (struct picture){.graph = &program->graph, .num_graph_nodes = count};
    for (size_t i = 0; i < count; i++)
        num_edges += program->graph.nodes[i].num_inputs;
    picture->drawn_node = ph__arena_alloc_array(&picture->arena, count, sizeof *picture->drawn_node);
    picture->drawn_value =
        ph__arena_alloc_array(&picture->arena, PH_INPUT_COUNT, sizeof *picture->drawn_value);
    picture->nodes = ph__arena_alloc_array(&picture->arena, count + PH_INPUT_COUNT, sizeof *picture->nodes);
    picture->edges = ph__arena_alloc_array(&picture->arena, num_edges, sizeof *picture->edges);
    if (picture->drawn_node == NULL || picture->drawn_value == NULL || picture->nodes == NULL ||
        picture->edges == NULL)
        return PH_ERROR_MEMORY;
    memset(picture->drawn_node, 0xff, count * sizeof *picture->drawn_node); /* NOT_DRAWN */
    memset(picture->drawn_value, 0xff, PH_INPUT_COUNT * sizeof *picture->drawn_value);
    return PH_OK;
}

static void draw(struct ph_html *html, struct picture *picture)
{
    add_inputs(picture);
    add_nodes(picture);
    if (picture->num_nodes > MAX_DRAWN) {
        ph__html_element(html, "p", NULL,
            "It has %zu nodes, too many to draw: phloem inspect model DIR --dot writes them for Graphviz.",
            picture->num_nodes);
        return;
    }
    ph__html_graph(html, &(struct ph_graph_drawing){.id = "model-graph",
                             .nodes = picture->nodes,
                             .num_nodes = picture->num_nodes,
                             .edges = picture->edges,
                             .num_edges = picture->num_edges});
}

void ph__run_report_graph(struct ph_html *html, const struct ph__trainer *trainer)
{
    struct picture picture;
    ph_status status = picture_init(trainer->learning.program, &picture);
    ph__html_begin_section(html, "graph", "Graph",
        "The forward pass as it ran, operators fused, down to the loss. Coloured are what the batch brings, "
        "operators that read "
        "tables, and operators that read weights; the preparation of weights is left out. B is the batch, N "
        "its ids.");
    if (status == PH_OK)
        draw(html, &picture);
    else
        ph__html_fail(html, status);
    ph__html_end_section(html);
    ph__arena_fini(&picture.arena);
}
