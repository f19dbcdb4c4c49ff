/* embedding_gradient: the gradient of a lookup by its table, as merged rows.
 *
 * The lookup's inputs (op_table.h) -> sparse_rows (U,D): row u = sum over the positions of slot u, in order,
 * of w_p / length of its bag * gradient of its bag. Where a touched-rows update is the only reader, this
 * operator is fused into embedding_update. */
#include <string.h>

#include "base/memory/absent.h"
#include "op/table/op_table.h"

static ph_status embedding_gradient_infer(struct ph__infer *infer)
{
    const struct ph_type *unique = &infer->inputs[PH_LOOKUP_UNIQUE], *dy = &infer->inputs[PH_LOOKUP_GRADIENT];
    if (!ph__type_is_real(dy) || dy->num_dims < 2)
        return ph__infer_fail(infer, "merged slots and the gradient (B,F,D) or (N,D) of their lookup");
    infer->outputs[0] = (struct ph_type){
        .kind = PH_SPARSE_ROWS, .dtype = PH_REAL, .num_dims = 2, .dims = {unique->dims[0], ph__last_dim(dy)}};
    return PH_OK;
}

static void embedding_gradient_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__operand *rows = &call->outputs[0];
    const double positions = (double)call->inputs[PH_LOOKUP_ORDER].shape.dims[1];
    const double dim = (double)rows->shape.dims[1];
    cost_out->flops = 2 * positions * dim;
    cost_out->revisited_bytes = positions * dim * sizeof(ph_real);
    cost_out->bytes = cost_out->revisited_bytes + (double)ph__elements(rows) * sizeof(ph_real) +
                      (2 * positions + 3 * (double)ph__rows(rows)) * sizeof(uint32_t);
}

struct gradient_job {
    const struct ph__call *call;
    struct ph__embedding_gradient_source source;
};

static void gradient_rows(void *argument, size_t first, size_t last, size_t worker)
{
    const struct gradient_job *job = argument;
    const struct ph__operand *rows = &job->call->outputs[0];
    const uint32_t *unique = job->call->inputs[PH_LOOKUP_UNIQUE].data;
    const uint32_t *starts = job->call->inputs[PH_LOOKUP_ORDER].index;
    const size_t dim = job->source.dim;
    (void)worker;
    memcpy(rows->index + first, unique + first, (last - first) * sizeof *unique);
    for (size_t u = first; u < last && !ph__memory_is_absent(rows->data); u++)
        job->call->backend->kernels->embedding_gradient_row(
            &job->source, starts[u], starts[u + 1], (ph_real *)rows->data + u * dim);
}

static ph_status embedding_gradient_run(struct ph__call *call)
{
    struct gradient_job job = {call, ph__gradient_source(call->inputs)};
    ph__for_merged(call->backend, &call->inputs[PH_LOOKUP_ORDER], gradient_rows, &job);
    return PH_OK;
}

const struct ph__op ph__op_embedding_gradient = {
    .name = "embedding_gradient",
    .traits = PH_OP_OF_IDS,
    .infer = embedding_gradient_infer,
    .cost = embedding_gradient_cost,
    .run = embedding_gradient_run,
};

void ph__embedding_gradient(struct ph__gradient *gradient, enum ph__lookup_shape shape)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value slots = node.inputs[PH_EMBEDDING_SLOTS];
    if (gradient->is_wanted[PH_EMBEDDING_WEIGHTS])
        ph_builder_fail(builder, PH_ERROR_CONFIG, "'%s': the weights of ids have no gradient", node.name);
    if (!gradient->is_wanted[PH_EMBEDDING_TABLE])
        return;
    ph_value lookup[PH_LOOKUP_INPUTS] = {[PH_LOOKUP_GRADIENT] = gradient->output_gradients[0]};
    ph__merge(builder, slots, &lookup[PH_LOOKUP_UNIQUE], &lookup[PH_LOOKUP_ORDER]);
    ph__entries(builder, slots, lookup[PH_LOOKUP_ORDER], node.inputs[PH_EMBEDDING_WEIGHTS], shape,
        &lookup[PH_LOOKUP_ROWS], &lookup[PH_LOOKUP_COEFFICIENTS]);
    gradient->input_gradients[PH_EMBEDDING_TABLE] =
        ph__emit1(builder, &ph__op_embedding_gradient, NULL, NULL, 0, PH_LOOKUP_INPUTS, lookup);
}
