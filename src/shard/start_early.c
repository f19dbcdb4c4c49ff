/* See start_early.h. Nodes that have effects keep their order among each other, so that all ranks come to what they do together
 * in the same order, though one without shards has fewer nodes. */
#include "shard/start_early.h"

#include <stdlib.h>
#include <string.h>

#include "shard/lookup/vector_exchange.h"

/* The nodes [begin, begin + count) of the graph, in the order that they get. */
struct order {
    const struct ph_graph *graph;
    size_t begin, count;
    struct ph_node *nodes; /* (count) */
    size_t num_placed;
    bool *is_placed, *is_needed; /* (count) */
};

static void need(struct order *order, ph_value value)
{
    const uint32_t producer = order->graph->values[value].producer;
    if (value != 0 && producer != PH_NO_NODE && producer >= order->begin)
        order->is_needed[producer - order->begin] = true;
}

static bool has_effect(const struct ph_node *node)
{
    return (node->op->traits & PH_OP_HAS_EFFECT) != 0;
}

static void place(struct order *order, size_t index)
{
    order->is_placed[index] = true;
    order->nodes[order->num_placed++] = order->graph->nodes[order->begin + index];
}

/* A start, behind what it needs of what has no place yet. */
static void place_start(struct order *order, size_t start)
{
    memset(order->is_needed, 0, order->count * sizeof *order->is_needed);
    order->is_needed[start] = true;
    for (size_t i = start + 1; i-- > 0;) {
        const struct ph_node *node = &order->graph->nodes[order->begin + i];
        order->is_needed[i] = order->is_needed[i] || has_effect(node);
        for (uint32_t k = 0; order->is_needed[i] && k < node->num_inputs; k++)
            need(order, node->inputs[k]);
    }
    for (size_t i = 0; i <= start; i++)
        if (order->is_needed[i] && !order->is_placed[i])
            place(order, i);
}

static void place_all(struct order *order)
{
    for (size_t i = 0; i < order->count; i++)
        if (order->graph->nodes[order->begin + i].op == &ph__op_exchange_gradients_start)
            place_start(order, i);
    for (size_t i = 0; i < order->count; i++)
        if (!order->is_placed[i])
            place(order, i);
}

static void adopt(struct ph_graph *graph, const struct order *order)
{
    memcpy(graph->nodes + order->begin, order->nodes, order->count * sizeof *order->nodes);
    ph__graph_set_producers(graph, order->begin);
}

void ph__start_early(struct ph_builder *builder)
{
    struct ph_graph *graph = &builder->graph;
    struct order order = {.graph = graph, .begin = graph->num_nodes};
    if (ph_builder_status(builder) != PH_OK)
        return;
    while (order.begin > 0 && graph->nodes[order.begin - 1].entry == builder->entry)
        order.begin--;
    order.count = graph->num_nodes - order.begin;
    order.nodes = calloc(order.count + 1, sizeof *order.nodes);
    order.is_placed = calloc(order.count + 1, sizeof *order.is_placed);
    order.is_needed = calloc(order.count + 1, sizeof *order.is_needed);
    if (order.nodes == NULL || order.is_placed == NULL || order.is_needed == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "no memory to order %zu nodes", order.count);
    } else {
        place_all(&order);
        adopt(graph, &order);
    }
    free(order.nodes);
    free(order.is_placed);
    free(order.is_needed);
}
