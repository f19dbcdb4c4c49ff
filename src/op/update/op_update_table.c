/* update_table: one optimizer step on a table from a sparse_rows gradient.
 *
 * Touched rows: each distinct slot's row once. Whole table: every row every step, as a dense gradient would, so that
 * moments decay and l2 acts on rows that the batch does not touch (the BARS protocol). Where nobody else reads the
 * gradient and only touched rows are updated, lookup gradient and update become one sweep, embedding_update. Square sums go
 * with touched rows. */
#include "op/update/op_update.h"
#include "tensor/row_format.h"

enum { PREFETCH_ROWS = 16 /* ahead */, LINE_BYTES = 64 };

static ph_status update_table_infer(struct ph_infer *infer)
{
    const struct ph_type *table = &infer->inputs[PH_UPDATE_PARAMETER];
    const struct ph_type *gradient = &infer->inputs[PH_UPDATE_GRADIENT];
    const struct ph_type *sums = &infer->inputs[PH_UPDATE_SQUARE_SUMS];
    if (gradient->kind != PH_TOKEN &&
        (gradient->kind != PH_SPARSE_ROWS || !ph__dim_equal(gradient->dims[1], table->dims[1])))
        return ph__infer_fail(infer, "a sparse_rows gradient of the table's width or none");
    if (sums->kind != PH_TOKEN &&
        (!ph__type_is_real_of_rank(sums, 1) || !ph__dim_equal(sums->dims[0], gradient->dims[0])))
        return ph__infer_fail(infer, "a sum of squares for each row of the gradient or none");
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static void update_table_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const struct ph_operand *gradient = &call->inputs[PH_UPDATE_GRADIENT];
    const size_t weights = optimizer->is_whole_table ? call->inputs[PH_UPDATE_PARAMETER].parameter->elements
                                                     : ph__elements(gradient);
    ph__update_cost(call, (double)weights, cost_out);
    if (!optimizer->is_whole_table)
        cost_out->updated_bytes =
            cost_out->bytes - (double)weights * sizeof(ph_real); /* but for the gradient */
}

static size_t update_table_scratch_bytes(const struct ph_call *call)
{
    return ph__table_scratch_bytes(call, call->inputs[PH_UPDATE_PARAMETER].shape.dims[1]);
}

struct table_job {
    const struct ph_call *call;
    struct ph_update_target target;
    const struct ph_operand *gradient;
};

static ph_real *numbers_of(const struct table_job *job, size_t worker)
{
    return (void *)((char *)job->call->scratch + worker * ph__table_block_bytes(job->target.columns));
}

static void prefetch_row(const struct ph_update_target *target, size_t row)
{
    const size_t bytes = ph__row_bytes(target->table.format, target->columns);
    const char *weights = (const char *)target->table.memory + row * bytes;
    for (size_t byte = 0; byte < bytes; byte += LINE_BYTES)
        __builtin_prefetch(weights + byte, 1);
}

static void update_touched(void *argument, size_t first, size_t last, size_t worker)
{
    const struct table_job *job = argument;
    const uint32_t *slots = job->gradient->index;
    const ph_real *rows = job->gradient->data;
    const ph_real *sums = job->call->inputs[PH_UPDATE_SQUARE_SUMS].data;
    ph_real *numbers = numbers_of(job, worker);
    for (size_t i = first; i < last; i++) {
        if (i + PREFETCH_ROWS < last)
            prefetch_row(&job->target, slots[i + PREFETCH_ROWS]);
        const struct ph_update_span span = {.row = slots[i],
            .rows = 1,
            .gradient = rows + i * job->target.columns,
            .square_sums = sums != NULL ? sums + i : NULL};
        ph__update_rows(job->call->backend->kernels, &job->target, &span, numbers);
    }
}

struct visit {
    const struct table_job *job;
    ph_real *numbers;
};

static void update_visited(void *argument, size_t row, size_t num_rows, const ph_real *gradient)
{
    const struct visit *visit = argument;
    const struct table_job *job = visit->job;
    const struct ph_update_span span = {.row = row, .rows = num_rows, .gradient = gradient};
    ph__update_rows(job->call->backend->kernels, &job->target, &span, visit->numbers);
}

static void update_every(void *argument, size_t first, size_t last, size_t worker)
{
    const struct table_job *job = argument;
    struct visit visit = {job, numbers_of(job, worker)};
    ph__visit_rows(job->gradient, first, last, update_visited, &visit);
}

static ph_status update_table_run(struct ph_call *call)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const struct ph_operand *gradient = &call->inputs[PH_UPDATE_GRADIENT];
    struct table_job job = {call, ph__update_target(call), gradient};
    const size_t block = ph__block_rows(job.target.columns);
    if (optimizer->is_whole_table)
        ph__for_blocks(call->backend, job.target.rows, block, update_every, &job);
    else
        ph__for_blocks(call->backend, ph__rows(gradient), block, update_touched, &job);
    call->inputs[PH_UPDATE_PARAMETER].parameter->version++;
    return PH_OK;
}

/* gradient <- embedding_gradient(lookup) becomes embedding_update(.., lookup). */
static bool update_table_fuse(
    struct ph_builder *builder, struct ph_node *node, const struct ph_node *producer)
{
    const struct ph_optimizer *optimizer = node->attributes;
    if (optimizer->is_whole_table || producer->op != &ph__op_embedding_gradient)
        return false;
    ph_value inputs[PH_EMBEDDING_UPDATE_INPUTS];
    ph__embedding_update_inputs(node, producer, inputs);
    ph_value *copy = ph__builder_copy(builder, inputs, sizeof inputs);
    if (copy == NULL)
        return false;
    node->op = &ph__op_embedding_update;
    node->inputs = copy;
    node->num_inputs = PH_EMBEDDING_UPDATE_INPUTS;
    return true;
}

const struct ph_op ph__op_update_table = {
    .name = "update_table",
    .traits = PH_OP_HAS_EFFECT | PH_OP_READS_ROW_FORMATS,
    .infer = update_table_infer,
    .cost = update_table_cost,
    .scratch_bytes = update_table_scratch_bytes,
    .prepare = ph__update_prepare,
    .slot_bytes = ph__update_slot_bytes,
    .run = update_table_run,
    .fuse = update_table_fuse,
    .fusible_input = PH_UPDATE_GRADIENT,
};
