/* Pairs of a field-aware factorisation machine (Juan et al., RecSys 2016): x (B,F,F*D), row i of a sample
 * holds for each field j the vector v_ij (D) of field i's feature towards field j; y (B,1),
 *   y = sum_{i<j} <v_ij, v_ji>,  dv_ij = dy v_ji, and zero for v_ii, which is in no pair.
 * Both passes swap i and j of each sample's vectors and zero v_ii: all products then sum up to 2 y. */
#include "op/operator.h"

#include <string.h>

struct field_aware_call {
    const struct ph__kernels *kernels;
    size_t num_fields, dim, numbers; /* F, D, F F D */
    const ph_real *x, *dy;
    ph_real *y, *dx;
    ph_real *changed; /* (workers, numbers) */
};

static bool are_vectors_of_pairs(const struct ph_type *x)
{
    return ph__type_is_real_of_dims(x, 3) && x->dims[1].symbol == 0 && x->dims[2].symbol == 0 &&
           x->dims[1].extent > 0 && x->dims[2].extent % x->dims[1].extent == 0;
}

static ph_status field_aware_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0];
    if (!are_vectors_of_pairs(x))
        return ph__infer_fail(infer, "x (B,F,F*D)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], ph__dim(1)});
    return PH_OK;
}

static void field_aware_gradient(struct ph__gradient *gradient)
{
    const ph_value inputs[] = {gradient->output_gradients[0], gradient->node->inputs[0]};
    gradient->input_gradients[0] =
        ph__emit1(gradient->builder, &ph__op_field_aware_backward, NULL, NULL, 0, 2, inputs);
}

static struct field_aware_call describe(const struct ph__call *call, const struct ph__operand *x)
{
    const size_t num_fields = x->shape.dims[1];
    return (struct field_aware_call){.kernels = call->backend->kernels,
        .num_fields = num_fields,
        .dim = x->shape.dims[2] / num_fields,
        .numbers = ph__row_elements(x),
        .x = x->data};
}

/* Counts a multiplication and an addition for each of B F (F-1)/2 D. */
static void field_aware_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct field_aware_call field_aware = describe(call, &call->inputs[0]);
    const size_t f = field_aware.num_fields;
    ph__cost_elementwise(call, (double)(f * (f - 1) * field_aware.dim), cost_out);
}

static size_t field_aware_scratch_bytes(const struct ph__call *call)
{
    return ph__team_num_threads(call->backend->team) * ph__row_elements(&call->inputs[0]) * sizeof(ph_real);
}

/* Swaps a sample's vectors: [i,j] becomes v_ji, [i,i] zero. */
static void change_fields(const struct field_aware_call *call, const ph_real *sample, ph_real *changed_out)
{
    const size_t num_fields = call->num_fields, dim = call->dim;
    call->kernels->interchange(num_fields, num_fields, dim, sample, changed_out);
    for (size_t i = 0; i < num_fields; i++)
        memset(changed_out + i * (num_fields + 1) * dim, 0, dim * sizeof *changed_out);
}

static void field_aware_rows(void *argument, size_t first, size_t last, size_t worker)
{
    const struct field_aware_call *call = argument;
    ph_real *changed = call->changed + worker * call->numbers;
    for (size_t b = first; b < last; b++) {
        const ph_real *sample = call->x + b * call->numbers;
        ph_real twice = 0;
        change_fields(call, sample, changed);
        call->kernels->narrow_product(1, call->numbers, 1, sample, changed, NULL, &twice);
        call->y[b] = twice / 2;
    }
}

static ph_status field_aware_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[0];
    struct field_aware_call field_aware = describe(call, x);
    field_aware.y = call->outputs[0].data;
    field_aware.changed = call->scratch;
    ph__for_blocks(
        call->backend, ph__rows(x), ph__block_rows(field_aware.numbers), field_aware_rows, &field_aware);
    return PH_OK;
}

const struct ph__op ph__op_field_aware = {
    .name = "field_aware",
    .infer = field_aware_infer,
    .gradient = field_aware_gradient,
    .cost = field_aware_cost,
    .scratch_bytes = field_aware_scratch_bytes,
    .run = field_aware_run,
};

/* inputs: dy (B,1), x (B,F,F*D) */
static ph_status backward_infer(struct ph__infer *infer)
{
    if (!ph__type_is_real_of_dims(&infer->inputs[0], 2) || !are_vectors_of_pairs(&infer->inputs[1]))
        return ph__infer_fail(infer, "dy (B,1), x (B,F,F*D)");
    infer->outputs[0] = infer->inputs[1];
    return PH_OK;
}

static void backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

static void backward_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct field_aware_call *call = argument;
    for (size_t b = first; b < last; b++) {
        ph_real *dx = call->dx + b * call->numbers;
        change_fields(call, call->x + b * call->numbers, dx);
        call->kernels->scale(call->numbers, call->dy[b], dx, dx);
    }
}

static ph_status backward_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[1];
    struct field_aware_call field_aware = describe(call, x);
    field_aware.dy = call->inputs[0].data;
    field_aware.dx = call->outputs[0].data;
    ph__for_blocks(
        call->backend, ph__rows(x), ph__block_rows(field_aware.numbers), backward_rows, &field_aware);
    return PH_OK;
}

const struct ph__op ph__op_field_aware_backward = {
    .name = "field_aware_backward",
    .infer = backward_infer,
    .cost = backward_cost,
    .run = backward_run,
};

ph_value ph_field_aware(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_field_aware, NULL, NULL, 0, 1, &x);
}
