/* bf16 precision. Operators state which inputs they can read as bf16, which outputs they can make as such,
 * and which inputs must be so: the operands of products. A value becomes bf16 where its operator can make it
 * so and all its readers can read it so; then nothing is ever converted back. Learnt values, inputs from the
 * batch and outputs stay real.
 *
 * In a training in fp32 a product has the recipe bf16 where its weight is packed so: the other operand is
 * converted for it, and no value becomes bf16 for others. */
#include <stdlib.h>

#include "base/memory/memory.h"
#include "graph/graph.h"

/* ---- convert ---- */

/* Operator convert: reals to bf16, to the nearest. Only the precision pass adds it, behind the backward pass;
 * so it has no gradient. */

enum { BLOCK = 16384 };

static ph_status convert_infer(struct ph__infer *infer)
{
    char text[96];
    if (infer->inputs[0].kind != PH_DENSE || infer->inputs[0].dtype != PH_REAL)
        return ph_fail(
            PH_ERROR_BUG, "%s: needs reals; got %s", infer->name, ph__type_text(&infer->inputs[0], text));
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dtype = PH_BF16;
    return PH_OK;
}

static void convert_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double elements = (double)ph_shape_elements(&call->outputs[0].shape);
    *cost_out = (struct ph__cost){.bytes = elements * (sizeof(ph_real) + sizeof(uint16_t))};
}

static void convert_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    (void)worker;
    call->backend->kernels->bf16_narrow(last - first, (const ph_real *)call->inputs[0].data + first,
        (uint16_t *)call->outputs[0].data + first);
}

static ph_status convert_run(struct ph__call *call)
{
    ph__for_blocks(call->backend, ph_shape_elements(&call->outputs[0].shape), BLOCK, convert_block, call);
    return PH_OK;
}

static const struct ph__op convert = {
    .name = "convert", .infer = convert_infer, .cost = convert_cost, .run = convert_run};

/* ---- the pass ---- */

static bool has_bit(uint64_t mask, uint32_t bit)
{
    return (mask >> bit & 1) != 0;
}

/* Finds the values that can be bf16. For values that share their memory, the root's answer counts. An alias
 * reads nothing. */
static void find_bf16(const struct ph__graph *graph, bool *is_bf16)
{
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        for (uint32_t k = 0; !node->is_dead && k < node->num_outputs; k++) {
            const struct ph__value_info *info = &graph->values[node->outputs[k]];
            is_bf16[node->outputs[k]] = has_bit(node->op->bf16_outputs, k) && !info->is_output;
        }
    }
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        const bool is_reader = !node->is_dead && (node->op->traits & PH_OP_ALIAS) == 0;
        for (uint32_t k = 0; is_reader && k < node->num_inputs; k++)
            if (!has_bit(node->op->bf16_inputs, k))
                is_bf16[ph__graph_root(graph, node->inputs[k])] = false;
    }
}

static void set_types(struct ph__graph *graph, const bool *is_bf16)
{
    for (ph_value value = 1; value < graph->num_values; value++)
        if (is_bf16[ph__graph_root(graph, value)])
            graph->values[value].type.dtype = PH_BF16;
}

/* Gives node `index` its input k as bf16. The conversion goes before the node unless an earlier node has
 * asked for the same. */
static ph_status convert_input(struct ph_builder *builder, size_t index, uint32_t k)
{
    struct ph__graph *graph = &builder->graph;
    const ph_value input = graph->nodes[index].inputs[k];
    const size_t num_nodes = graph->num_nodes;
    ph_value converted = ph__builder_find(builder, &convert, NULL, 0, 1, &input, 0);
    if (converted == 0) {
        builder->entry = graph->nodes[index].entry;
        converted = ph__emit1(builder, &convert, NULL, NULL, 0, 1, &input);
        PH_TRY(builder->status);
    }
    graph->nodes[index].inputs[k] = converted;
    return ph__graph_move_before(graph, index, num_nodes);
}

/* Returns true when an operand of the node's product is bf16. */
static bool is_product_in_bf16(const struct ph__graph *graph, const struct ph__node *node)
{
    for (uint32_t k = 0; k < node->num_inputs; k++)
        if (has_bit(node->op->bf16_operands, k) && graph->values[node->inputs[k]].type.dtype == PH_BF16)
            return true;
    return false;
}

static ph_status convert_operands(struct ph_builder *builder)
{
    struct ph__graph *graph = &builder->graph;
    const bool is_whole = builder->precision == PH_PRECISION_BF16;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const bool is_wanted =
            !graph->nodes[i].is_dead && (is_whole || is_product_in_bf16(graph, &graph->nodes[i]));
        for (uint32_t k = 0; is_wanted && k < graph->nodes[i].num_inputs; k++) {
            const struct ph__node *node = &graph->nodes[i];
            const size_t num_nodes = graph->num_nodes;
            if (has_bit(node->op->bf16_operands, k) && graph->values[node->inputs[k]].type.dtype != PH_BF16)
                PH_TRY(convert_input(builder, i, k));
            i += graph->num_nodes - num_nodes;
        }
    }
    return PH_OK;
}

ph_status ph__pass_precision(struct ph_builder *builder)
{
    struct ph__graph *graph = &builder->graph;
    if (builder->precision == PH_PRECISION_FP32)
        return convert_operands(builder);
    bool *is_bf16 = calloc(graph->num_values, sizeof *is_bf16);
    if (is_bf16 == NULL)
        return ph__out_of_memory("a pass over the graph");
    find_bf16(graph, is_bf16);
    set_types(graph, is_bf16);
    free(is_bf16);
    return convert_operands(builder);
}
