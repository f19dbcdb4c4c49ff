/* update_dense: one optimizer step on a dense parameter, in blocks of rows (row-wise Adagrad has one accumulator a row;
 * a vector is cut into elements, or is one row for it). The gradient has the parameter's shape, or is none. */
#include "op/update/op_update.h"

static ph_status update_dense_infer(struct ph_infer *infer)
{
    const struct ph_type *parameter = &infer->inputs[PH_UPDATE_PARAMETER];
    const struct ph_type *gradient = &infer->inputs[PH_UPDATE_GRADIENT];
    if (gradient->kind != PH_TOKEN && !ph__type_equal(parameter, gradient))
        return ph__infer_fail(infer, "a gradient of the parameter's shape or none");
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static void update_dense_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__update_cost(call, (double)call->inputs[PH_UPDATE_PARAMETER].parameter->elements, cost_out);
}

struct dense_job {
    const struct ph_kernels *kernels;
    struct ph_update_target target;
    const ph_real *gradient;
};

static void update_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct dense_job *job = argument;
    const ph_real *gradient = job->gradient != NULL ? job->gradient + first * job->target.columns : NULL;
    (void)worker;
    const struct ph_update_span span = {.row = first, .rows = last - first, .gradient = gradient};
    ph__update_rows(job->kernels, &job->target, &span, NULL);
}

static ph_status update_dense_run(struct ph_call *call)
{
    struct dense_job job = {
        call->backend->kernels, ph__update_target(call), call->inputs[PH_UPDATE_GRADIENT].data};
    if (job.target.step.kind != PH_ROWWISE_ADAGRAD) {
        job.target.rows *= job.target.columns;
        job.target.columns = job.target.table.dim = 1;
    }
    ph__for_blocks(call->backend, job.target.rows, ph__block_rows(job.target.columns), update_block, &job);
    call->inputs[PH_UPDATE_PARAMETER].parameter->version++;
    return PH_OK;
}

const struct ph_op ph__op_update_dense = {
    .name = "update_dense",
    .traits = PH_OP_HAS_EFFECT,
    .infer = update_dense_infer,
    .cost = update_dense_cost,
    .prepare = ph__update_prepare,
    .slot_bytes = ph__update_slot_bytes,
    .run = update_dense_run,
};
