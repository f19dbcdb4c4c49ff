#include "base/format/graph_layout.h"

#include <math.h>
#include <stdint.h>

#define GAP_PIXELS 22
#define PASSAGE_PIXELS 10 /* as wide as an edge that passes through is taken to be */
#define ORDER_SWEEPS 12
#define POSITION_SWEEPS 24

/* ---- layers ----------------------------------------------------------------------------------------------- */

/* The longest way from a source; a source then moves down to just above the first that reads it. */
static void layer_nodes(const struct ph__graph_drawing *drawing, size_t *layers)
{
    for (size_t v = 0; v < drawing->num_nodes; v++)
        for (size_t e = 0; e < drawing->num_edges; e++) {
            const struct ph__graph_edge *edge = &drawing->edges[e];
            if (edge->from == v && layers[edge->to] < layers[v] + 1)
                layers[edge->to] = layers[v] + 1;
        }
    for (size_t v = 0; v < drawing->num_nodes; v++) {
        size_t least = SIZE_MAX;
        for (size_t e = 0; e < drawing->num_edges; e++)
            if (drawing->edges[e].from == v && layers[drawing->edges[e].to] < least)
                least = layers[drawing->edges[e].to];
        if (layers[v] == 0 && least != SIZE_MAX)
            layers[v] = least - 1;
    }
}

static bool is_repeated(const struct ph__graph_drawing *drawing, size_t index)
{
    const struct ph__graph_edge *edge = &drawing->edges[index];
    for (size_t e = 0; e < index; e++)
        if (drawing->edges[e].from == edge->from && drawing->edges[e].to == edge->to)
            return true;
    return false;
}

static size_t count_places(const struct ph__graph_drawing *drawing, const size_t *layers)
{
    size_t count = drawing->num_nodes;
    for (size_t e = 0; e < drawing->num_edges; e++)
        if (!is_repeated(drawing, e))
            count += layers[drawing->edges[e].to] - layers[drawing->edges[e].from] - 1;
    return count;
}

/* A link from a place to one of the next layer: at most as many as places and edges together. */
struct link {
    size_t from, to;
};

/* An edge as links from layer to layer, by places that are made for it. */
static void cut_edge(
    struct ph__layout *layout, const struct ph__graph_edge *edge, struct link *links, size_t *num_links)
{
    size_t at = edge->from;
    for (size_t layer = layout->places[edge->from].layer + 1; layer < layout->places[edge->to].layer;
         layer++) {
        size_t next = layout->num_places++;
        layout->places[next] = (struct ph__layout_place){.layer = layer, .width = PASSAGE_PIXELS};
        links[(*num_links)++] = (struct link){at, next};
        at = next;
    }
    links[(*num_links)++] = (struct link){at, edge->to};
}

static ph_status connect(
    struct ph__layout *layout, const struct link *links, size_t num_links, struct ph__arena *arena)
{
    for (size_t i = 0; i < num_links; i++) {
        layout->places[links[i].from].num_below++;
        layout->places[links[i].to].num_above++;
    }
    for (size_t p = 0; p < layout->num_places; p++) {
        struct ph__layout_place *place = &layout->places[p];
        place->above = ph__arena_alloc_array(arena, place->num_above, sizeof *place->above);
        place->below = ph__arena_alloc_array(arena, place->num_below, sizeof *place->below);
        if (place->above == NULL || place->below == NULL)
            return PH_ERROR_MEMORY;
        place->num_above = place->num_below = 0;
    }
    for (size_t i = 0; i < num_links; i++) {
        struct ph__layout_place *from = &layout->places[links[i].from], *to = &layout->places[links[i].to];
        from->below[from->num_below++] = links[i].to;
        to->above[to->num_above++] = links[i].from;
    }
    return PH_OK;
}

static ph_status fill_layers(struct ph__layout *layout, struct ph__arena *arena)
{
    for (size_t p = 0; p < layout->num_places; p++)
        if (layout->places[p].layer >= layout->num_layers)
            layout->num_layers = layout->places[p].layer + 1;
    layout->layers = ph__arena_alloc_array(arena, layout->num_layers, sizeof *layout->layers);
    layout->layer_sizes = ph__arena_alloc_array(arena, layout->num_layers, sizeof *layout->layer_sizes);
    if (layout->layers == NULL || layout->layer_sizes == NULL)
        return PH_ERROR_MEMORY;
    for (size_t p = 0; p < layout->num_places; p++)
        layout->layer_sizes[layout->places[p].layer]++;
    for (size_t l = 0; l < layout->num_layers; l++) {
        layout->layers[l] = ph__arena_alloc_array(arena, layout->layer_sizes[l], sizeof *layout->layers[l]);
        if (layout->layers[l] == NULL)
            return PH_ERROR_MEMORY;
        layout->layer_sizes[l] = 0;
    }
    for (size_t p = 0; p < layout->num_places; p++) {
        size_t layer = layout->places[p].layer;
        layout->layers[layer][layout->layer_sizes[layer]++] = p;
    }
    return PH_OK;
}

static ph_status build_layers(const struct ph__graph_drawing *drawing, const double *widths,
    struct ph__arena *arena, struct ph__layout *layout)
{
    size_t *layers = ph__arena_alloc_array(arena, drawing->num_nodes, sizeof *layers);
    if (layers == NULL)
        return PH_ERROR_MEMORY;
    layer_nodes(drawing, layers);
    size_t max_places = count_places(drawing, layers), num_links = 0;
    struct link *links = ph__arena_alloc_array(arena, max_places + drawing->num_edges, sizeof *links);
    layout->places = ph__arena_alloc_array(arena, max_places, sizeof *layout->places);
    if (layout->places == NULL || links == NULL)
        return PH_ERROR_MEMORY;
    for (size_t v = 0; v < drawing->num_nodes; v++)
        layout->places[v] =
            (struct ph__layout_place){.layer = layers[v], .width = widths[v], .is_node = true};
    layout->num_places = drawing->num_nodes;
    for (size_t e = 0; e < drawing->num_edges; e++)
        if (!is_repeated(drawing, e))
            cut_edge(layout, &drawing->edges[e], links, &num_links);
    PH_TRY(connect(layout, links, num_links, arena));
    return fill_layers(layout, arena);
}

/* ---- order ------------------------------------------------------------------------------------------------ */

static double mean_x(const struct ph__layout *layout, const size_t *places, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += layout->places[places[i]].x;
    return sum / (double)count;
}

/* By where the neighbours above, or below, stand; who has none stays. An insertion sort, since that keeps the order of
 * equals. During ordering x is the number in the layer. */
static void order_layer(struct ph__layout *layout, size_t layer, bool by_above)
{
    size_t *places = layout->layers[layer], size = layout->layer_sizes[layer];
    for (size_t i = 0; i < size; i++) {
        struct ph__layout_place *place = &layout->places[places[i]];
        size_t count = by_above ? place->num_above : place->num_below;
        if (count > 0)
            place->x = mean_x(layout, by_above ? place->above : place->below, count);
    }
    for (size_t i = 1; i < size; i++) {
        size_t moved = places[i], k = i;
        for (; k > 0 && layout->places[places[k - 1]].x > layout->places[moved].x; k--)
            places[k] = places[k - 1];
        places[k] = moved;
    }
    for (size_t i = 0; i < size; i++)
        layout->places[places[i]].x = (double)i - 0.5 * (double)size;
}

static void order_layers(struct ph__layout *layout)
{
    for (size_t l = 0; l < layout->num_layers; l++)
        order_layer(layout, l, true);
    for (int sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
        for (size_t l = layout->num_layers; l-- > 0;)
            order_layer(layout, l, false);
        for (size_t l = 0; l < layout->num_layers; l++)
            order_layer(layout, l, true);
    }
}

/* ---- positions -------------------------------------------------------------------------------------------- */

static double distance(const struct ph__layout *layout, size_t left, size_t right)
{
    return (layout->places[left].width + layout->places[right].width) / 2 + GAP_PIXELS;
}

/* Each towards the mean of its neighbours, as far as those beside it allow: pushed from the left, pushed from the right,
 * and the mean of both, which keeps the distances since both do. wanted: room for as many numbers as places in a layer. */
static void move_layer(struct ph__layout *layout, size_t layer, bool by_above, double *wanted)
{
    const size_t *places = layout->layers[layer], size = layout->layer_sizes[layer];
    double at = -(double)INFINITY;
    for (size_t i = 0; i < size; i++) {
        const struct ph__layout_place *place = &layout->places[places[i]];
        size_t count = by_above ? place->num_above : place->num_below;
        wanted[i] = count > 0 ? mean_x(layout, by_above ? place->above : place->below, count) : place->x;
    }
    for (size_t i = 0; i < size; i++) {
        at = fmax(wanted[i], i > 0 ? at + distance(layout, places[i - 1], places[i]) : at);
        layout->places[places[i]].x = at;
    }
    at = (double)INFINITY;
    for (size_t i = size; i-- > 0;) {
        at = fmin(wanted[i], i + 1 < size ? at - distance(layout, places[i], places[i + 1]) : at);
        layout->places[places[i]].x = (layout->places[places[i]].x + at) / 2;
    }
}

static ph_status place_layers(struct ph__layout *layout, struct ph__arena *arena)
{
    double *wanted = ph__arena_alloc_array(arena, layout->num_places, sizeof *wanted);
    if (wanted == NULL)
        return PH_ERROR_MEMORY;
    for (int sweep = 0; sweep < POSITION_SWEEPS; sweep++) {
        for (size_t l = 0; l < layout->num_layers; l++)
            move_layer(layout, l, true, wanted);
        for (size_t l = layout->num_layers; l-- > 0;)
            move_layer(layout, l, false, wanted);
    }
    return PH_OK;
}

/* From 0 on to the right. */
static void shift(struct ph__layout *layout)
{
    double left = (double)INFINITY, right = -(double)INFINITY;
    for (size_t p = 0; p < layout->num_places; p++) {
        left = fmin(left, layout->places[p].x - layout->places[p].width / 2);
        right = fmax(right, layout->places[p].x + layout->places[p].width / 2);
    }
    for (size_t p = 0; p < layout->num_places; p++)
        layout->places[p].x -= left;
    layout->width = layout->num_places > 0 ? right - left : 0;
}

ph_status ph__graph_layout(const struct ph__graph_drawing *drawing, const double *widths,
    struct ph__arena *arena, struct ph__layout *layout_out)
{
    struct ph__layout layout = {0};
    PH_TRY(build_layers(drawing, widths, arena, &layout));
    order_layers(&layout);
    PH_TRY(place_layers(&layout, arena));
    shift(&layout);
    *layout_out = layout;
    return PH_OK;
}
