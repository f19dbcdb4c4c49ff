/* Binary cross entropy with logits, the mean over the known labels:
 *   loss = sum c l / sum c,  l = max(z,0) - z y + log(1 + exp(-|z|)),  c = mask * weight of the sample
 * and 0 when no label is known. logits z and labels y (B,T), y in [0,1]; mask (B,T) and weights (B) may be
 * absent. Blocks of elements give partial sums in double, added in block order. Outputs: the loss, and sum c
 * for the gradient dz = g / sum c * c (sigmoid(z) - y). */
#include "op/operator.h"

#define BLOCK_ELEMENTS 4096u

enum { LOGITS, LABELS, MASK, WEIGHTS, NUM_OPERANDS };

struct bce_call {
    const struct ph__kernels *kernels;
    size_t num_tasks;
    const ph_real *logits, *labels, *mask, *weights;
    ph_real *coefficients; /* (B,T): c, filled where there are a mask or weights */
    double *partials;      /* (blocks, 2): sum c l, sum c */
    ph_real scale;
    ph_real *dz;
};

static bool are_operands_right(const struct ph_type *operands)
{
    const struct ph_type *logits = &operands[LOGITS], *mask = &operands[MASK], *weights = &operands[WEIGHTS];
    return ph__type_is_real_of_dims(logits, 2) && ph__type_equal(logits, &operands[LABELS]) &&
           (mask->kind == PH_TOKEN || ph__type_equal(mask, logits)) &&
           (weights->kind == PH_TOKEN ||
               (ph__type_is_real_of_dims(weights, 1) && ph__dim_equal(weights->dims[0], logits->dims[0])));
}

static const char wants[] = "logits (B,T), labels (B,T), mask (B,T) or none, weights (B) or none";

static ph_status bce_infer(struct ph__infer *infer)
{
    if (!are_operands_right(infer->inputs))
        return ph__infer_fail(infer, wants);
    infer->outputs[0] = ph__scalar_type();
    infer->outputs[1] = ph__scalar_type();
    return PH_OK;
}

static void bce_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    if (gradient->is_wanted[LABELS] || gradient->is_wanted[MASK] || gradient->is_wanted[WEIGHTS]) {
        ph_builder_fail(gradient->builder, PH_ERROR_CONFIG,
            "%s: only the logits have a gradient; labels, mask and weights need ph_stop_gradient", node.name);
        return;
    }
    const ph_value inputs[] = {gradient->output_gradients[0], node.inputs[LOGITS], node.inputs[LABELS],
        node.inputs[MASK], node.inputs[WEIGHTS], node.outputs[1]};
    gradient->input_gradients[LOGITS] =
        ph__emit1(gradient->builder, &ph__op_bce_with_logits_backward, NULL, NULL, 0, 6, inputs);
}

static struct bce_call describe(const struct ph__call *call, const struct ph__operand *operands)
{
    return (struct bce_call){.kernels = call->backend->kernels,
        .num_tasks = operands[LOGITS].shape.dims[1],
        .logits = operands[LOGITS].data,
        .labels = operands[LABELS].data,
        .mask = operands[MASK].data,
        .weights = operands[WEIGHTS].data};
}

static size_t num_blocks(size_t elements)
{
    return (elements + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
}

/* Counts max, multiplications, additions, exp and log (each as one), and the weighing. */
static void bce_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops = 10.0 * (double)ph__elements(&call->inputs[LOGITS]);
}

static size_t bce_scratch_bytes(const struct ph__call *call)
{
    const size_t elements = ph__elements(&call->inputs[LOGITS]);
    return num_blocks(elements) * 2 * sizeof(double) + elements * sizeof(ph_real);
}

/* Fills coefficients [first, last) and returns them, or NULL when all are 1. */
static const ph_real *make_coefficients(const struct bce_call *bce, size_t first, size_t last)
{
    if (bce->mask == NULL && bce->weights == NULL)
        return NULL;
    for (size_t i = first; i < last; i++)
        bce->coefficients[i] = (bce->mask != NULL ? bce->mask[i] : 1) *
                               (bce->weights != NULL ? bce->weights[i / bce->num_tasks] : 1);
    return bce->coefficients + first;
}

static void bce_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct bce_call *bce = argument;
    const ph_real *coefficients = make_coefficients(bce, first, last);
    double *partial = bce->partials + first / BLOCK_ELEMENTS * 2;
    double total = 0;
    for (size_t i = 0; i < last - first; i++)
        total += coefficients != NULL ? (double)coefficients[i] : 1.0;
    partial[0] = bce->kernels->bce(last - first, bce->logits + first, bce->labels + first, coefficients);
    partial[1] = total;
}

static ph_status bce_run(struct ph__call *call)
{
    const size_t elements = ph__elements(&call->inputs[LOGITS]);
    struct bce_call bce = describe(call, call->inputs);
    bce.partials = call->scratch;
    bce.coefficients = (ph_real *)(bce.partials + 2 * num_blocks(elements));
    ph__for_blocks(call->backend, elements, BLOCK_ELEMENTS, bce_block, &bce);
    double sum = 0, total = 0;
    for (size_t block = 0; block < num_blocks(elements); block++) {
        sum += bce.partials[2 * block];
        total += bce.partials[2 * block + 1];
    }
    *call->outputs[0].scalar = total > 0 ? sum / total : 0;
    *call->outputs[1].scalar = total;
    return PH_OK;
}

const struct ph__op ph__op_bce_with_logits = {
    .name = "bce_with_logits",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = bce_infer,
    .gradient = bce_gradient,
    .cost = bce_cost,
    .scratch_bytes = bce_scratch_bytes,
    .run = bce_run,
};

/* inputs: g scalar, then the loss's own inputs, then sum c; output dz (B,T) */
enum { GRADIENT, OPERANDS, TOTAL = OPERANDS + NUM_OPERANDS };

static ph_status bce_backward_infer(struct ph__infer *infer)
{
    if (!are_operands_right(infer->inputs + OPERANDS))
        return ph__infer_fail(infer, wants);
    infer->outputs[0] = infer->inputs[OPERANDS + LOGITS];
    return PH_OK;
}

static void bce_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 7, cost_out);
}

static size_t bce_backward_scratch_bytes(const struct ph__call *call)
{
    return ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

static void bce_backward_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct bce_call *bce = argument;
    bce->kernels->bce_backward(last - first, bce->logits + first, bce->labels + first,
        make_coefficients(bce, first, last), bce->scale, bce->dz + first);
}

static ph_status bce_backward_run(struct ph__call *call)
{
    const double total = *call->inputs[TOTAL].scalar;
    struct bce_call bce = describe(call, call->inputs + OPERANDS);
    bce.scale = (ph_real)(total > 0 ? *call->inputs[GRADIENT].scalar / total : 0);
    bce.coefficients = call->scratch;
    bce.dz = call->outputs[0].data;
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), BLOCK_ELEMENTS, bce_backward_block, &bce);
    return PH_OK;
}

const struct ph__op ph__op_bce_with_logits_backward = {
    .name = "bce_with_logits_backward",
    .infer = bce_backward_infer,
    .cost = bce_backward_cost,
    .scratch_bytes = bce_backward_scratch_bytes,
    .run = bce_backward_run,
};

ph_value ph_bce_with_logits(
    struct ph_builder *builder, ph_value logits, ph_value labels, ph_value mask, ph_value weights)
{
    const ph_value inputs[NUM_OPERANDS] = {logits, labels, mask, weights};
    ph_value outputs[2] = {0, 0};
    ph__emit(builder, &ph__op_bce_with_logits, NULL, NULL, 0, NUM_OPERANDS, inputs, 2, outputs);
    return outputs[0];
}

bool ph__losses_weigh_alike(const struct ph_builder *builder)
{
    const struct ph__node *first = NULL;
    for (size_t i = 0; i < builder->graph.num_nodes; i++) {
        const struct ph__node *node = &builder->graph.nodes[i];
        if (node->op != &ph__op_bce_with_logits)
            continue;
        first = first == NULL ? node : first;
        const struct ph_type labels = ph_value_type(builder, node->inputs[LABELS]);
        const struct ph_type first_labels = ph_value_type(builder, first->inputs[LABELS]);
        if (node->inputs[MASK] != first->inputs[MASK] || node->inputs[WEIGHTS] != first->inputs[WEIGHTS] ||
            !ph__type_equal(&labels, &first_labels))
            return false;
    }
    return true;
}
