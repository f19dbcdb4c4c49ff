/* Reverse-mode differentiation: one walk back over the graph. Each operator has its gradient rule; this pass
 * decides which gradients are needed and adds up those that reach one value on several paths. */
#include <stdlib.h>

#include "graph/graph.h"

/* State by value: true if it depends on a value to differentiate by, and its gradient so far (0: none
 * yet). */
struct differentiation {
    bool *is_wanted;
    ph_value *gradient;
    size_t num_nodes; /* nodes of the graph before the pass */
};

static void mark_wanted(const struct ph__graph *graph, struct differentiation *work)
{
    for (size_t i = 0; i < work->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        bool depends = false;
        if ((node->op->traits & PH_OP_STOPS_GRADIENT) != 0)
            continue;
        for (uint32_t k = 0; k < node->num_inputs; k++)
            depends = depends || work->is_wanted[node->inputs[k]];
        for (uint32_t k = 0; depends && k < node->num_outputs; k++)
            work->is_wanted[node->outputs[k]] = true;
    }
}

static void add_gradient(
    struct ph_builder *builder, struct differentiation *work, ph_value value, ph_value gradient)
{
    if (gradient == 0)
        return;
    ph_value *sum = &work->gradient[value];
    *sum = *sum == 0 ? gradient
                     : ph__emit1(builder, &ph__op_accumulate, NULL, NULL, 0, 2, (ph_value[]){*sum, gradient});
}

static bool has_gradient(const struct ph__node *node, const struct differentiation *work)
{
    for (uint32_t k = 0; k < node->num_outputs; k++)
        if (work->gradient[node->outputs[k]] != 0)
            return true;
    return false;
}

static bool wants_gradient(const struct ph__node *node, const struct differentiation *work)
{
    for (uint32_t k = 0; k < node->num_inputs; k++)
        if (node->inputs[k] != 0 && work->is_wanted[node->inputs[k]])
            return true;
    return false;
}

/* Takes a copy of the node: its rule appends nodes, which may move the graph's array. */
static void differentiate_node(struct ph_builder *builder, struct differentiation *work, struct ph__node node)
{
    ph_value output_gradients[PH_MAX_OPERANDS], input_gradients[PH_MAX_OPERANDS] = {0};
    bool is_wanted[PH_MAX_OPERANDS];
    for (uint32_t k = 0; k < node.num_outputs; k++)
        output_gradients[k] = work->gradient[node.outputs[k]];
    for (uint32_t k = 0; k < node.num_inputs; k++)
        is_wanted[k] = node.inputs[k] != 0 && work->is_wanted[node.inputs[k]];
    if (node.op->gradient == NULL) {
        ph_builder_fail(
            builder, PH_ERROR_CONFIG, "'%s': operator %s cannot be differentiated", node.name, node.op->name);
        return;
    }
    struct ph__gradient gradient = {.builder = builder,
        .node = &node,
        .output_gradients = output_gradients,
        .is_wanted = is_wanted,
        .input_gradients = input_gradients};
    node.op->gradient(&gradient);
    for (uint32_t k = 0; k < node.num_inputs; k++)
        if (is_wanted[k])
            add_gradient(builder, work, node.inputs[k], input_gradients[k]);
}

static void differentiate(struct ph_builder *builder, struct differentiation *work, ph_value loss)
{
    work->gradient[loss] = ph__emit1(builder, &ph__op_seed, NULL, NULL, 0, 0, NULL);
    for (size_t i = work->num_nodes; i-- > 0 && builder->status == PH_OK;) {
        const struct ph__node *node = &builder->graph.nodes[i];
        if (has_gradient(node, work) && wants_gradient(node, work))
            differentiate_node(builder, work, *node);
    }
}

void ph_backward(
    struct ph_builder *builder, ph_value loss, size_t num_wrt, const ph_value *wrt, ph_value *gradients_out)
{
    for (size_t i = 0; i < num_wrt; i++)
        gradients_out[i] = 0;
    if (builder->status != PH_OK || loss == 0)
        return;
    if (builder->mode == PH_INFERENCE) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "backward: an inference program has no gradients");
        return;
    }
    const struct ph__graph *graph = &builder->graph;
    if (graph->values[loss].type.kind != PH_SCALAR) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "backward: '%s' is not a scalar", graph->values[loss].name);
        return;
    }
    struct differentiation work = {.is_wanted = calloc(graph->num_values, sizeof *work.is_wanted),
        .gradient = calloc(graph->num_values, sizeof *work.gradient),
        .num_nodes = graph->num_nodes};
    if (work.is_wanted == NULL || work.gradient == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: the gradients");
    } else {
        for (size_t i = 0; i < num_wrt; i++)
            work.is_wanted[wrt[i]] = wrt[i] != 0;
        mark_wanted(graph, &work);
        differentiate(builder, &work, loss);
        for (size_t i = 0; i < num_wrt; i++)
            gradients_out[i] = work.gradient[wrt[i]];
    }
    free(work.is_wanted);
    free(work.gradient);
}
