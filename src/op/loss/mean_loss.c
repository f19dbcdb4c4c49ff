#include "op/loss/mean_loss.h"

#define BLOCK_ELEMENTS 4096u

struct loss_call {
    ph__loss_sum sum;
    ph__loss_differentiate differentiate;
    ph__row_loss_sum row_sum; /* NULL, or in the place of sum, as is the next */
    ph__row_loss_differentiate row_differentiate;
    enum ph__mean mean;
    size_t num_tasks;
    size_t block; /* elements of a block: whole rows */
    const ph_real *predictions, *labels, *mask, *weights;
    ph_real *coefficients; /* (B,T): c, filled where there are a mask or weights */
    double *partials;      /* (blocks, 2): sum c l, total */
    ph_real scale;
    ph_real *gradient;
};

static bool are_operands_right(const struct ph_type *operands)
{
    const struct ph_type *predictions = &operands[PH_LOSS_PREDICTIONS], *mask = &operands[PH_LOSS_MASK],
                         *weights = &operands[PH_LOSS_WEIGHTS];
    return ph__type_is_real_of_dims(predictions, 2) &&
           ph__type_equal(predictions, &operands[PH_LOSS_LABELS]) &&
           (mask->kind == PH_TOKEN || ph__type_equal(mask, predictions)) &&
           (weights->kind == PH_TOKEN || (ph__type_is_real_of_dims(weights, 1) &&
                                             ph__dim_equal(weights->dims[0], predictions->dims[0])));
}

static const char wants[] = "predictions (B,T), labels (B,T), mask (B,T) or none, weights (B) or none";

ph_status ph__mean_loss_infer(struct ph__infer *infer)
{
    if (!are_operands_right(infer->inputs))
        return ph__infer_fail(infer, wants);
    infer->outputs[0] = ph__scalar_type();
    infer->outputs[1] = ph__scalar_type();
    return PH_OK;
}

void ph__mean_loss_gradient(struct ph__gradient *gradient, const struct ph__op *backward, const char *what)
{
    const struct ph__node node = *gradient->node;
    if (gradient->is_wanted[PH_LOSS_LABELS] || gradient->is_wanted[PH_LOSS_MASK] ||
        gradient->is_wanted[PH_LOSS_WEIGHTS]) {
        ph_builder_fail(gradient->builder, PH_ERROR_CONFIG,
            "%s: only the %s have a gradient; labels, mask and weights need ph_stop_gradient", node.name,
            what);
        return;
    }
    const ph_value inputs[] = {gradient->output_gradients[0], node.inputs[PH_LOSS_PREDICTIONS],
        node.inputs[PH_LOSS_LABELS], node.inputs[PH_LOSS_MASK], node.inputs[PH_LOSS_WEIGHTS],
        node.outputs[1]};
    gradient->input_gradients[PH_LOSS_PREDICTIONS] =
        ph__emit1(gradient->builder, backward, NULL, NULL, 0, 6, inputs);
}

/* Returns the elements of a block: BLOCK_ELEMENTS, rounded down to whole rows. */
static size_t block_of(size_t num_tasks)
{
    return num_tasks < BLOCK_ELEMENTS ? BLOCK_ELEMENTS / num_tasks * num_tasks : num_tasks;
}

static struct loss_call describe(const struct ph__call *call, const struct ph__operand *operands)
{
    const size_t num_tasks = operands[PH_LOSS_PREDICTIONS].shape.dims[1];
    return (struct loss_call){.num_tasks = num_tasks,
        .block = block_of(num_tasks),
        .predictions = operands[PH_LOSS_PREDICTIONS].data,
        .labels = operands[PH_LOSS_LABELS].data,
        .mask = operands[PH_LOSS_MASK].data,
        .weights = operands[PH_LOSS_WEIGHTS].data,
        .coefficients = call->scratch};
}

static size_t num_blocks(const struct ph__operand *predictions)
{
    return ph__divide_up(ph__elements(predictions), block_of(predictions->shape.dims[1]));
}

size_t ph__mean_loss_scratch_bytes(const struct ph__call *call)
{
    const struct ph__operand *predictions = &call->inputs[PH_LOSS_PREDICTIONS];
    return num_blocks(predictions) * 2 * sizeof(double) + ph__elements(predictions) * sizeof(ph_real);
}

/* Fills coefficients [first, last) and returns them, or NULL when all are 1. */
static const ph_real *make_coefficients(const struct loss_call *loss, size_t first, size_t last)
{
    if (loss->mask == NULL && loss->weights == NULL)
        return NULL;
    for (size_t i = first; i < last; i++)
        loss->coefficients[i] = (loss->mask != NULL ? loss->mask[i] : 1) *
                                (loss->weights != NULL ? loss->weights[i / loss->num_tasks] : 1);
    return loss->coefficients + first;
}

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct loss_call *loss = argument;
    const ph_real *coefficients = make_coefficients(loss, first, last);
    const bool is_weighed = coefficients != NULL && loss->mean == PH_MEAN_BY_WEIGHT;
    double *partial = loss->partials + first / loss->block * 2;
    double total = 0;
    for (size_t i = 0; i < last - first; i++)
        total += is_weighed ? (double)coefficients[i] : 1.0;
    const ph_real *predictions = loss->predictions + first, *labels = loss->labels + first;
    partial[0] = loss->row_sum != NULL ? loss->row_sum((last - first) / loss->num_tasks, loss->num_tasks,
                                             predictions, labels, coefficients)
                                       : loss->sum(last - first, predictions, labels, coefficients);
    partial[1] = total;
}

static ph_status run(struct ph__call *call, struct loss_call *loss)
{
    const struct ph__operand *predictions = &call->inputs[PH_LOSS_PREDICTIONS];
    const size_t count = num_blocks(predictions);
    loss->partials = call->scratch;
    loss->coefficients = (ph_real *)(loss->partials + 2 * count);
    ph__for_blocks(call->backend, ph__elements(predictions), loss->block, sum_block, loss);
    double sum = 0, total = 0;
    for (size_t block = 0; block < count; block++) {
        sum += loss->partials[2 * block];
        total += loss->partials[2 * block + 1];
    }
    *call->outputs[0].scalar = total > 0 ? sum / total : 0;
    *call->outputs[1].scalar = total;
    return PH_OK;
}

ph_status ph__mean_loss_run(struct ph__call *call, ph__loss_sum sum, enum ph__mean mean)
{
    struct loss_call loss = describe(call, call->inputs);
    loss.sum = sum;
    loss.mean = mean;
    return run(call, &loss);
}

ph_status ph__mean_row_loss_run(struct ph__call *call, ph__row_loss_sum sum)
{
    struct loss_call loss = describe(call, call->inputs);
    loss.row_sum = sum;
    return run(call, &loss);
}

/* ---- backward: g scalar, then the loss's own inputs, then the total -> dy (B,T) ---- */

enum { GRADIENT, OPERANDS, TOTAL = OPERANDS + PH_LOSS_OPERANDS };

ph_status ph__mean_loss_backward_infer(struct ph__infer *infer)
{
    if (!are_operands_right(infer->inputs + OPERANDS))
        return ph__infer_fail(infer, wants);
    infer->outputs[0] = infer->inputs[OPERANDS + PH_LOSS_PREDICTIONS];
    return PH_OK;
}

size_t ph__mean_loss_backward_scratch_bytes(const struct ph__call *call)
{
    return ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

static void differentiate_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct loss_call *loss = argument;
    const ph_real *predictions = loss->predictions + first, *labels = loss->labels + first;
    const ph_real *coefficients = make_coefficients(loss, first, last);
    if (loss->row_differentiate != NULL)
        loss->row_differentiate((last - first) / loss->num_tasks, loss->num_tasks, predictions, labels,
            coefficients, loss->scale, loss->gradient + first);
    else
        loss->differentiate(
            last - first, predictions, labels, coefficients, loss->scale, loss->gradient + first);
}

static ph_status run_backward(struct ph__call *call, struct loss_call *loss)
{
    const double total = *call->inputs[TOTAL].scalar;
    loss->scale = (ph_real)(total > 0 ? *call->inputs[GRADIENT].scalar / total : 0);
    loss->gradient = call->outputs[0].data;
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), loss->block, differentiate_block, loss);
    return PH_OK;
}

ph_status ph__mean_loss_backward_run(struct ph__call *call, ph__loss_differentiate differentiate)
{
    struct loss_call loss = describe(call, call->inputs + OPERANDS);
    loss.differentiate = differentiate;
    return run_backward(call, &loss);
}

ph_status ph__mean_row_loss_backward_run(struct ph__call *call, ph__row_loss_differentiate differentiate)
{
    struct loss_call loss = describe(call, call->inputs + OPERANDS);
    loss.row_differentiate = differentiate;
    return run_backward(call, &loss);
}

/* ---- in graphs ---- */

ph_value ph__mean_loss(struct ph_builder *builder, const struct ph__op *op, ph_value predictions,
    ph_value labels, ph_value mask, ph_value weights)
{
    const ph_value inputs[PH_LOSS_OPERANDS] = {predictions, labels, mask, weights};
    ph_value outputs[2] = {0, 0};
    ph__emit(builder, op, NULL, NULL, 0, PH_LOSS_OPERANDS, inputs, 2, outputs);
    return outputs[0];
}

bool ph__is_mean_loss(const struct ph__op *op)
{
    return op == &ph__op_bce_with_logits || op == &ph__op_squared_error ||
           op == &ph__op_softmax_cross_entropy;
}

/* Tells whether two losses have the same total on any part of a batch. */
static bool weigh_alike(const struct ph_builder *builder, const struct ph__node *a, const struct ph__node *b)
{
    const struct ph_type labels_a = ph_value_type(builder, a->inputs[PH_LOSS_LABELS]);
    const struct ph_type labels_b = ph_value_type(builder, b->inputs[PH_LOSS_LABELS]);
    return a->inputs[PH_LOSS_MASK] == b->inputs[PH_LOSS_MASK] &&
           a->inputs[PH_LOSS_WEIGHTS] == b->inputs[PH_LOSS_WEIGHTS] && ph__type_equal(&labels_a, &labels_b) &&
           (a->op == b->op || a->inputs[PH_LOSS_WEIGHTS] == 0);
}

bool ph__losses_weigh_alike(const struct ph_builder *builder)
{
    const struct ph__node *first = NULL;
    for (size_t i = 0; i < builder->graph.num_nodes; i++) {
        const struct ph__node *node = &builder->graph.nodes[i];
        if (!ph__is_mean_loss(node->op))
            continue;
        first = first == NULL ? node : first;
        if (!weigh_alike(builder, first, node))
            return false;
    }
    return true;
}
