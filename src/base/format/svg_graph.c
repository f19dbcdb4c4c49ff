#include "base/format/svg.h"

#include <math.h>
#include <string.h>

#include "base/format/graph_layout.h"

#define NODE_PIXELS 38  /* of height */
#define LAYER_PIXELS 70 /* from layer to layer */
#define MARGIN_PIXELS 8
#define LABEL_LETTER_PIXELS 7.2
#define NOTE_LETTER_PIXELS 6.0
#define MIN_NODE_PIXELS 64

/* As wide as its longer line may be; a letter of several bytes counts more than it takes. */
static double node_width(const struct ph__graph_node *node)
{
    double label = LABEL_LETTER_PIXELS * (double)strlen(node->label);
    double note = NOTE_LETTER_PIXELS * (double)strlen(node->note);
    return fmax(fmax(label, note) + 16, MIN_NODE_PIXELS);
}

static double top_of(size_t layer)
{
    return MARGIN_PIXELS + LAYER_PIXELS * (double)layer;
}

static void draw_curve(
    struct ph__html *html, const struct ph__layout_place *from, const struct ph__layout_place *to)
{
    double from_y = top_of(from->layer) + (from->is_node ? NODE_PIXELS : NODE_PIXELS / 2.0);
    double to_y = top_of(to->layer) + (to->is_node ? -5 : NODE_PIXELS / 2.0), middle = (from_y + to_y) / 2;
    double from_x = from->x + MARGIN_PIXELS, to_x = to->x + MARGIN_PIXELS;
    ph__html_markup(html, "<path class=\"edge\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>", from_x,
        from_y, from_x, middle, to_x, middle, to_x, to_y);
    if (to->is_node)
        ph__html_markup(html, "<path class=\"arrow\" d=\"M%.1f %.1fl-3.5 -6h7z\"/>", to_x, to_y + 5);
    ph__html_markup(html, "\n");
}

static void draw_text(struct ph__html *html, const char *class_name, double x, double y, const char *text)
{
    ph__html_markup(html, "<text%s text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">", class_name, x, y);
    ph__html_text(html, text);
    ph__html_markup(html, "</text>");
}

static void draw_node(
    struct ph__html *html, const struct ph__graph_node *node, const struct ph__layout_place *place)
{
    double x = place->x + MARGIN_PIXELS, y = top_of(place->layer);
    bool has_note = node->note[0] != '\0';
    ph__html_markup(html, "<g>");
    if (node->title != NULL)
        ph__html_element(html, "title", NULL, "%s", node->title);
    ph__html_markup(html,
        "<rect class=\"node s%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"5\"/>",
        node->color, x - place->width / 2, y, place->width, NODE_PIXELS);
    draw_text(html, "", x, y + (has_note ? 16 : 23), node->label);
    if (has_note)
        draw_text(html, " class=\"tick small\"", x, y + 30, node->note);
    ph__html_markup(html, "</g>\n");
}

static void draw(
    struct ph__html *html, const struct ph__graph_drawing *drawing, const struct ph__layout *layout)
{
    double width = layout->width + 2 * MARGIN_PIXELS;
    double height = top_of(layout->num_layers) - (LAYER_PIXELS - NODE_PIXELS) + MARGIN_PIXELS;
    ph__html_markup(html,
        "<figure class=\"scroll\"><svg id=\"%s\" class=\"whole\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" "
        "width=\"%.0f\" height=\"%.0f\" data-nodes=\"%zu\">\n",
        drawing->id, width, height, width, height, drawing->num_nodes);
    for (size_t p = 0; p < layout->num_places; p++)
        for (size_t k = 0; k < layout->places[p].num_below; k++)
            draw_curve(html, &layout->places[p], &layout->places[layout->places[p].below[k]]);
    for (size_t v = 0; v < drawing->num_nodes; v++)
        draw_node(html, &drawing->nodes[v], &layout->places[v]);
    ph__html_markup(html, "</svg></figure>\n");
}

void ph__html_graph(struct ph__html *html, const struct ph__graph_drawing *drawing)
{
    struct ph__arena arena = {0};
    struct ph__layout layout;
    double *widths = ph__arena_alloc_array(&arena, drawing->num_nodes, sizeof *widths);
    ph_status status = widths != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t v = 0; status == PH_OK && v < drawing->num_nodes; v++)
        widths[v] = node_width(&drawing->nodes[v]);
    if (status == PH_OK)
        status = ph__graph_layout(drawing, widths, &arena, &layout);
    if (status == PH_OK && drawing->num_nodes > 0)
        draw(html, drawing, &layout);
    if (status != PH_OK)
        ph__html_fail(html, status);
    ph__arena_fini(&arena);
}
