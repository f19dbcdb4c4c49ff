/* Turns a graph under construction into a program: the passes, in order. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "graph/graph.h"

/* ---- dead code and order ---- */

static bool is_needed(const struct ph__graph *graph, const struct ph__node *node, const bool *is_read)
{
    if ((node->op->traits & PH_OP_HAS_EFFECT) != 0)
        return true;
    for (uint32_t k = 0; k < node->num_outputs; k++)
        if (is_read[node->outputs[k]] || graph->values[node->outputs[k]].is_output)
            return true;
    return false;
}

/* Marks nodes dead whose results no output, effect or live node needs. */
static ph_status prune_graph(struct ph__graph *graph)
{
    bool *is_read = calloc(graph->num_values, sizeof *is_read);
    if (is_read == NULL)
        return ph__out_of_memory("a pass over the graph");
    for (size_t i = graph->num_nodes; i-- > 0;) {
        struct ph__node *node = &graph->nodes[i];
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

/* Drops dead nodes and groups the others by entry, in order; entry e is [begin[e], begin[e + 1]). */
static ph_status compact_graph(struct ph__graph *graph, uint32_t entry_begin[PH_MAX_ENTRIES + 1])
{
    struct ph__node *live = malloc((graph->num_nodes + 1) * sizeof *live);
    if (live == NULL)
        return ph__out_of_memory("a pass over the graph");
    uint32_t count = 0;
    for (uint32_t entry = 0; entry < PH_MAX_ENTRIES; entry++) {
        entry_begin[entry] = count;
        for (size_t i = 0; i < graph->num_nodes; i++) {
            const struct ph__node *node = &graph->nodes[i];
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

/* ---- fusion ---- */

/* Fusion merges two neighbours into one operator, when nothing else reads the value between them: a table's
 * gradient into its update, a batch norm into the weights of the linear layer before it. This file decides
 * which neighbours may be fused, the reader's fuse rule does it. */

/* Returns the node that makes the fusible input of node `index`, if that node has no other output and the
 * input no other reader; PH_NO_NODE: none. */
static uint32_t sole_producer(const struct ph__graph *graph, size_t index, const uint32_t *readers)
{
    const struct ph__node *node = &graph->nodes[index];
    if (node->is_dead || node->op->fuse == NULL)
        return PH_NO_NODE;
    const ph_value between = node->inputs[node->op->fusible_input];
    if (between == 0 || readers[between] != 1 || graph->values[between].is_output)
        return PH_NO_NODE;
    const uint32_t producer = graph->values[between].producer;
    return producer != PH_NO_NODE && graph->nodes[producer].num_outputs == 1 ? producer : PH_NO_NODE;
}

/* Fuses copies of both nodes, because adding nodes moves the originals. */
static ph_status fuse_node(struct ph_builder *builder, size_t index, uint32_t producer, bool *is_fused_out)
{
    struct ph__graph *graph = &builder->graph;
    struct ph__node node = graph->nodes[index];
    const struct ph__node former = graph->nodes[producer];
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

/* Asks the fuse rule of each live node whose fusible input has no other reader; the producer dies. Later
 * nodes see a fused node as its new operator. */
static ph_status fuse_graph(struct ph_builder *builder)
{
    struct ph__graph *graph = &builder->graph;
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

/* ---- the passes, in order ---- */

static ph_status run_passes(struct ph_builder *builder, bool is_fused, struct ph_program *program)
{
    PH_TRY(prune_graph(&builder->graph));
    if (is_fused) {
        PH_TRY(fuse_graph(builder));
        PH_TRY(prune_graph(&builder->graph));
    }
    if (builder->mode == PH_TRAINING)
        PH_TRY(ph__pass_precision(builder));
    return compact_graph(&builder->graph, program->entry_begin);
}

static bool has_site(const struct ph__graph *graph, const char *weight)
{
    size_t i = 0;
    while (i < graph->num_sites && strcmp(graph->sites[i].weight, weight) != 0)
        i++;
    return i < graph->num_sites;
}

static ph_status finish(struct ph_builder *builder, bool is_fused, struct ph_program **program_out)
{
    if (builder->status == PH_OK && builder->num_scopes != 0)
        ph_builder_fail(builder, PH_ERROR_USAGE, "scope '%s' was pushed and never popped", builder->scope);
    for (size_t i = 0; i < builder->num_recipes; i++)
        if (strcmp(builder->recipes[i].weight, PH_ALL_SITES) != 0 &&
            !has_site(&builder->graph, builder->recipes[i].weight))
            ph_builder_fail(builder, PH_ERROR_CONFIG, "recipe of '%s': the program has no product with it",
                builder->recipes[i].weight);
    if (builder->status != PH_OK)
        return ph_fail(builder->status, "%s", builder->error);
    struct ph_program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return ph__out_of_memory("a program");
    ph_status status = run_passes(builder, is_fused, program);
    if (status != PH_OK) {
        free(program);
        return status;
    }
    program->graph = builder->graph;
    builder->graph = (struct ph__graph){0};
    builder->status = ph_fail(PH_ERROR_USAGE, "the builder is finished");
    *program_out = program;
    return PH_OK;
}

ph_status ph_builder_finish(struct ph_builder *builder, struct ph_program **program_out)
{
    return finish(builder, true, program_out);
}

ph_status ph__builder_finish_unfused(struct ph_builder *builder, struct ph_program **program_out)
{
    return finish(builder, false, program_out);
}
