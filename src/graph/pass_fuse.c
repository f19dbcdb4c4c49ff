/* Fusion of two neighbours into one operator, when nothing else reads what flows between them: a table's
 * gradient into its update, for example. When it is legal is decided here, how it is done by the reader's
 * fuse rule. */
#include <stdlib.h>

#include "graph/graph.h"

ph_status ph__pass_fuse(struct ph_builder *builder)
{
    struct ph_graph *graph = &builder->graph;
    uint32_t *readers = ph__graph_count_readers(graph);
    if (readers == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        struct ph_node *node = &graph->nodes[i];
        if (node->is_dead || node->op->fuse == NULL)
            continue;
        ph_value between = node->inputs[node->op->fusible_input];
        if (between == 0 || readers[between] != 1 || graph->values[between].is_output ||
            graph->values[between].producer == PH_NO_NODE)
            continue;
        struct ph_node *producer = &graph->nodes[graph->values[between].producer];
        if (producer->num_outputs == 1 && node->op->fuse(builder, node, producer))
            producer->is_dead = true;
    }
    free(readers);
    return builder->status;
}
