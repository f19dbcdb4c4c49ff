/* Dead code and order: what finishing a graph does besides fusion. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

void ph__graph_fini(struct ph_graph *graph)
{
    free(graph->nodes);
    free(graph->values);
    free(graph->declarations);
    free(graph->declaration_values);
    free(graph->states);
    free(graph->outputs);
    free(graph->scalar_inputs);
    free(graph->losses);
    ph__arena_fini(&graph->arena);
    *graph = (struct ph_graph){0};
}

ph_value ph__graph_root(const struct ph_graph *graph, ph_value value)
{
    ph_value source = graph->values[value].alias_of;
    return source != 0 ? source : value;
}

uint32_t *ph__graph_count_readers(const struct ph_graph *graph)
{
    uint32_t *readers = calloc(graph->num_values, sizeof *readers);
    if (readers == NULL) {
        ph_fail(PH_ERROR_MEMORY, "no memory for a pass over the graph");
        return NULL;
    }
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph_node *node = &graph->nodes[i];
        for (uint32_t k = 0; !node->is_dead && k < node->num_inputs; k++) {
            ph_value input = node->inputs[k];
            readers[input]++;
            if (graph->values[input].alias_of != 0)
                readers[graph->values[input].alias_of]++;
        }
    }
    return readers;
}

void ph__graph_set_producers(struct ph_graph *graph, size_t begin)
{
    for (size_t i = begin; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_outputs; k++)
            graph->values[graph->nodes[i].outputs[k]].producer = (uint32_t)i;
}

ph_status ph__graph_move_before(struct ph_graph *graph, size_t index, size_t begin)
{
    const size_t count = graph->num_nodes - begin;
    if (count == 0)
        return PH_OK;
    struct ph_node *moved = malloc(count * sizeof *moved);
    if (moved == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a pass over the graph");
    memcpy(moved, graph->nodes + begin, count * sizeof *moved);
    memmove(graph->nodes + index + count, graph->nodes + index, (begin - index) * sizeof *moved);
    memcpy(graph->nodes + index, moved, count * sizeof *moved);
    free(moved);
    ph__graph_set_producers(graph, index);
    return PH_OK;
}

static bool is_needed(const struct ph_graph *graph, const struct ph_node *node, const bool *is_read)
{
    if ((node->op->traits & PH_OP_HAS_EFFECT) != 0)
        return true;
    for (uint32_t k = 0; k < node->num_outputs; k++)
        if (is_read[node->outputs[k]] || graph->values[node->outputs[k]].is_output)
            return true;
    return false;
}

ph_status ph__pass_prune(struct ph_graph *graph)
{
    bool *is_read = calloc(graph->num_values, sizeof *is_read);
    if (is_read == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a pass over the graph");
    for (size_t i = graph->num_nodes; i-- > 0;) {
        struct ph_node *node = &graph->nodes[i];
        if (node->is_dead || !is_needed(graph, node, is_read)) {
            node->is_dead = true;
            continue;
        }
        for (uint32_t k = 0; k < node->num_inputs; k++)
            is_read[node->inputs[k]] = true;
    }
    free(is_read);
    return PH_OK;
}

ph_status ph__pass_compact(struct ph_graph *graph, uint32_t entry_begin[PH_MAX_ENTRIES + 1])
{
    struct ph_node *live = malloc((graph->num_nodes + 1) * sizeof *live);
    if (live == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a pass over the graph");
    uint32_t count = 0;
    for (uint32_t entry = 0; entry < PH_MAX_ENTRIES; entry++) {
        entry_begin[entry] = count;
        for (size_t i = 0; i < graph->num_nodes; i++) {
            const struct ph_node *node = &graph->nodes[i];
            if (node->is_dead || node->entry != entry)
                continue;
            for (uint32_t k = 0; k < node->num_outputs; k++)
                graph->values[node->outputs[k]].producer = count;
            live[count++] = *node;
        }
    }
    entry_begin[PH_MAX_ENTRIES] = count;
    free(graph->nodes);
    graph->nodes = live;
    graph->nodes_capacity = graph->num_nodes + 1;
    graph->num_nodes = count;
    return PH_OK;
}
