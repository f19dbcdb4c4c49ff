/* Fusion of two neighbours into one operator, when nothing else reads what flows between them: a table's
 * gradient into its update, a batch norm into the weights of the linear layer before it. When it is legal is
 * decided here, how it is done by the reader's fuse rule. */
#include <stdlib.h>

#include "base/memory/memory.h"
#include "graph/graph.h"

/* The node that makes the fusible input of node `index`, where that is dense or sparse_rows and read by nobody
 * else; PH_NO_NODE: there is none. */
static uint32_t sole_producer(const struct ph_graph *graph, size_t index, const uint32_t *readers)
{
    const struct ph_node *node = &graph->nodes[index];
    if (node->is_dead || node->op->fuse == NULL)
        return PH_NO_NODE;
    const ph_value between = node->inputs[node->op->fusible_input];
    if (between == 0 || readers[between] != 1 || graph->values[between].is_output)
        return PH_NO_NODE;
    const uint32_t producer = graph->values[between].producer;
    return producer != PH_NO_NODE && graph->nodes[producer].num_outputs == 1 ? producer : PH_NO_NODE;
}

/* Copies of both, because adding nodes moves them. */
static ph_status fuse_node(struct ph_builder *builder, size_t index, uint32_t producer, bool *is_fused_out)
{
    struct ph_graph *graph = &builder->graph;
    struct ph_node node = graph->nodes[index];
    const struct ph_node former = graph->nodes[producer];
    const size_t num_nodes = graph->num_nodes;
    builder->entry = node.entry;
    *is_fused_out = node.op->fuse(builder, &node, &former);
    if (*is_fused_out) {
        graph->nodes[index] = node;
        graph->nodes[producer].is_dead = true;
        PH_TRY(ph__graph_move_before(graph, index, num_nodes));
    }
    return builder->status;
}

ph_status ph__pass_fuse(struct ph_builder *builder)
{
    struct ph_graph *graph = &builder->graph;
    uint32_t *readers = ph__graph_count_readers(graph);
    ph_status status = readers != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t i = 0; status == PH_OK && i < graph->num_nodes; i++) {
        const uint32_t producer = sole_producer(graph, i, readers);
        const size_t num_nodes = graph->num_nodes;
        bool is_fused = false;
        if (producer == PH_NO_NODE)
            continue;
        status = fuse_node(builder, i, producer, &is_fused);
        i += graph->num_nodes - num_nodes;
        if (!is_fused || status != PH_OK)
            continue;
        free(readers);
        readers = ph__graph_count_readers(graph);
        status = readers != NULL ? PH_OK : PH_ERROR_MEMORY;
    }
    free(readers);
    return status;
}
