/* gradient_sum: the sum of a dense gradient over the micro-batches so far.
 *
 * gradient, number of micro-batches before (scalar) -> the same type; stays from run to run:
 *   sum = gradient of the first, sum + gradient of each other, in their order */
#include <string.h>

#include "op/update/accumulation.h"

enum { GRADIENT, NUM_BEFORE, NUM_INPUTS };

static ph_status gradient_sum_infer(struct ph__infer *infer)
{
    if (!ph__type_is_real(&infer->inputs[GRADIENT]) || infer->inputs[NUM_BEFORE].kind != PH_SCALAR)
        return ph__infer_fail(infer, "a real array and a scalar");
    infer->outputs[0] = infer->inputs[GRADIENT];
    return PH_OK;
}

static void gradient_sum_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double elements = (double)ph__elements(&call->outputs[0]);
    *cost_out = (struct ph__cost){.flops = elements, .bytes = 3 * elements * sizeof(ph_real)};
}

struct sum_job {
    const struct ph__kernels *kernels;
    const ph_real *gradient;
    ph_real *sum;
    bool is_first;
};

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct sum_job *job = argument;
    ph_real *sum = job->sum + first;
    (void)worker;
    if (job->is_first)
        memcpy(sum, job->gradient + first, (last - first) * sizeof *sum);
    else
        job->kernels->add(last - first, sum, job->gradient + first, sum);
}

static ph_status gradient_sum_run(struct ph__call *call)
{
    struct sum_job job = {call->backend->kernels, call->inputs[GRADIENT].data, call->outputs[0].data,
        *call->inputs[NUM_BEFORE].scalar == 0};
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), PH_BLOCK_ELEMENTS, sum_block, &job);
    return PH_OK;
}

const struct ph__op ph__op_gradient_sum = {
    .name = "gradient_sum",
    .traits = PH_OP_KEEPS_OUTPUTS,
    .infer = gradient_sum_infer,
    .cost = gradient_sum_cost,
    .run = gradient_sum_run,
};
