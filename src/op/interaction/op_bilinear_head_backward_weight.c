/* The weight's gradient of FinalMLP's head (op_bilinear_head.c): dW_th = sum_b dz_t x_h y_h^T, over parts of the batch that its
 * shape gives, then over the parts in order. Inputs dz (B,T), x (B,K), y (B,M) and the weight, of which only the shape is
 * looked at. */
#include <string.h>

#include "base/sizes.h"
#include "op/interaction/bilinear_head.h"

enum { MOST_PARTS = 32 };

struct weight_job {
    struct ph__bilinear_head head;
    size_t num_samples, part_samples, num_parts;
    size_t numbers;    /* of the weight */
    ph_real *partials; /* (num_parts, numbers) */
    ph_real *dw;
};

static ph_status backward_weight_infer(struct ph_infer *infer)
{
    PH_TRY(ph__check_bilinear_gradient(infer));
    infer->outputs[0] = infer->inputs[PH_BILINEAR_GRADIENT_WEIGHT];
    return PH_OK;
}

static void backward_weight_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__bilinear_cost(call, &call->inputs[PH_BILINEAR_GRADIENT_WEIGHT], 1, cost_out);
}

static struct weight_job describe_weight(const struct ph_call *call)
{
    struct weight_job job = {.head = ph__describe_bilinear_gradient(call),
        .num_samples = ph__rows(&call->inputs[PH_BILINEAR_GRADIENT_DZ])};
    const size_t num_blocks = ph__divide_up(job.num_samples, PH_BILINEAR_BLOCK_SAMPLES);
    job.part_samples = ph__divide_up(num_blocks, MOST_PARTS) * PH_BILINEAR_BLOCK_SAMPLES;
    job.num_parts = num_blocks > 0 ? ph__divide_up(job.num_samples, job.part_samples) : 0;
    job.numbers = job.head.num_tasks * ph__bilinear_task_reals(&job.head);
    return job;
}

/* Fewer samples may be cut into more parts, if never into more than this. */
static size_t backward_weight_scratch_bytes(const struct ph_call *call)
{
    const struct weight_job job = describe_weight(call);
    const size_t parts = ph__min(MOST_PARTS, ph__divide_up(job.num_samples, PH_BILINEAR_BLOCK_SAMPLES));
    return ph__bilinear_workers_bytes(call, &job.head) + parts * job.numbers * sizeof(ph_real);
}

/* dW_th (+)= (dz_t x_h)^T y_h of a block of samples */
static void add_block(const struct weight_job *job, size_t first, size_t count, bool is_added,
    ph_real *scaled, ph_real *partial)
{
    const struct ph__bilinear_head *head = &job->head;
    const size_t k = ph__bilinear_x_reals(head), m = ph__bilinear_y_reals(head);
    for (size_t task = 0; task < head->num_tasks; task++) {
        for (size_t i = first; i < first + count; i++)
            head->kernels->scale(
                k, head->dz[i * head->num_tasks + task], head->x + i * k, scaled + (i - first) * k);
        head->kernels->small_product(&(struct ph_small_product_args){.count = head->num_heads,
            .rows = head->x_dim,
            .inner = count,
            .columns = head->y_dim,
            .a = scaled,
            .a_row_stride = 1,
            .a_inner_stride = k,
            .a_step = head->x_dim,
            .b = head->y + first * m,
            .b_stride = m,
            .b_step = head->y_dim,
            .c = partial + task * ph__bilinear_task_reals(head),
            .c_stride = head->y_dim,
            .c_step = head->x_dim * head->y_dim,
            .is_added = is_added});
    }
}

static void part_task(void *argument, size_t part, size_t worker)
{
    const struct weight_job *job = argument;
    const size_t first = part * job->part_samples,
                 last = ph__min(first + job->part_samples, job->num_samples);
    ph_real *scaled = job->head.workers + worker * job->head.worker_reals;
    for (size_t i = first; i < last; i += PH_BILINEAR_BLOCK_SAMPLES)
        add_block(job, i, ph__min(PH_BILINEAR_BLOCK_SAMPLES, last - i), i > first, scaled,
            job->partials + part * job->numbers);
}

static void add_parts(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct weight_job *job = argument;
    memcpy(job->dw + first, job->partials + first, (last - first) * sizeof *job->dw);
    for (size_t part = 1; part < job->num_parts; part++)
        job->head.kernels->add(
            last - first, job->dw + first, job->partials + part * job->numbers + first, job->dw + first);
}

static ph_status backward_weight_run(struct ph_call *call)
{
    struct weight_job job = describe_weight(call);
    job.dw = call->outputs[0].data;
    if (job.num_parts == 0) {
        memset(job.dw, 0, job.numbers * sizeof *job.dw);
        return PH_OK;
    }
    job.partials = job.head.workers + ph__team_num_threads(call->backend->team) * job.head.worker_reals;
    ph__parallel_for(call->backend->team, job.num_parts, part_task, &job);
    ph__for_blocks(call->backend, job.numbers, PH_BLOCK_ELEMENTS, add_parts, &job);
    return PH_OK;
}

const struct ph_op ph__op_bilinear_head_backward_weight = {
    .name = "bilinear_head_backward_weight",
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};
