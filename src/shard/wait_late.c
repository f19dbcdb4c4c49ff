/* See wait_late.h. A wait begins nothing that another rank waits for, so ranks may come to theirs in different orders. */
#include "shard/wait_late.h"

#include <stdlib.h>
#include <string.h>

#include "shard/dense/gradient_reduce.h"

/* The nodes from the first wait on. */
struct tail {
    struct ph_builder *builder;
    size_t begin, count;
    bool *is_late;         /* (count) a wait, or reads what one gives */
    struct ph_node *nodes; /* (count) in the order that they get */
};

static struct ph_node *node_of(const struct tail *tail, size_t index)
{
    return &tail->builder->graph.nodes[tail->begin + index];
}

static bool reads_late(const struct tail *tail, const struct ph_node *node)
{
    const struct ph_graph *graph = &tail->builder->graph;
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const uint32_t producer = graph->values[node->inputs[k]].producer;
        if (node->inputs[k] != 0 && producer != PH_NO_NODE && producer >= tail->begin &&
            tail->is_late[producer - tail->begin])
            return true;
    }
    return false;
}

static bool gives_output(const struct tail *tail, const struct ph_node *node)
{
    for (uint32_t k = 0; k < node->num_outputs; k++)
        if (tail->builder->graph.values[node->outputs[k]].is_output)
            return true;
    return false;
}

/* Finds what is late. Returns whether all of it but the waits belongs to the current entry. */
static bool find_late(const struct tail *tail)
{
    for (size_t i = 0; i < tail->count; i++) {
        const struct ph_node *node = node_of(tail, i);
        const bool is_wait = ph__is_gradient_wait(node);
        tail->is_late[i] = is_wait || reads_late(tail, node);
        if (tail->is_late[i] &&
            (gives_output(tail, node) || (!is_wait && node->entry != tail->builder->entry)))
            return false;
    }
    return true;
}

static void move_late(const struct tail *tail)
{
    struct ph_graph *graph = &tail->builder->graph;
    size_t num_placed = 0;
    for (int is_late = 0; is_late <= 1; is_late++)
        for (size_t i = 0; i < tail->count; i++)
            if (tail->is_late[i] == is_late)
                tail->nodes[num_placed++] = *node_of(tail, i);
    memcpy(graph->nodes + tail->begin, tail->nodes, tail->count * sizeof *tail->nodes);
    for (size_t i = tail->begin; i < graph->num_nodes; i++)
        if (ph__is_gradient_wait(&graph->nodes[i]))
            graph->nodes[i].entry = tail->builder->entry;
    ph__graph_set_producers(graph, tail->begin);
}

void ph__wait_late(struct ph_builder *builder)
{
    const struct ph_graph *graph = &builder->graph;
    struct tail tail = {.builder = builder};
    if (ph_builder_status(builder) != PH_OK)
        return;
    while (tail.begin < graph->num_nodes && !ph__is_gradient_wait(&graph->nodes[tail.begin]))
        tail.begin++;
    tail.count = graph->num_nodes - tail.begin;
    tail.is_late = calloc(tail.count + 1, sizeof *tail.is_late);
    tail.nodes = calloc(tail.count + 1, sizeof *tail.nodes);
    if (tail.is_late == NULL || tail.nodes == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "no memory to order %zu nodes", tail.count);
    else if (find_late(&tail))
        move_late(&tail);
    free(tail.is_late);
    free(tail.nodes);
}
