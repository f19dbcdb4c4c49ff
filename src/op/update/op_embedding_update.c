/* embedding_update: the gradient of a lookup and the update of the rows it touches, in one sweep.
 *
 * Each distinct slot's gradient is summed into a row of scratch and stepped into the table at once, so the
 * gradient of the table never exists in memory. Same kernels, same order, same bits as embedding_gradient
 * followed by update_table. update_table's fuse rule makes it of those two; no builder function adds it. */
#include <string.h>

#include "base/memory/memory.h"
#include "op/update/op_update.h"

/* ---- the sweep ---- */

/* Inputs: as update_table's, with the lookup's in place of the gradient. */
#define LOOKUP PH_UPDATE_GRADIENT

void ph__embedding_update_inputs(const struct ph__node *update, const struct ph__node *producer,
    ph_value inputs_out[PH_EMBEDDING_UPDATE_INPUTS])
{
    memcpy(inputs_out, update->inputs, PH_UPDATE_GRADIENT * sizeof *inputs_out);
    memcpy(inputs_out + LOOKUP, producer->inputs, PH_LOOKUP_INPUTS * sizeof *inputs_out);
}

static ph_status embedding_update_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static void embedding_update_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__operand *lookup = &call->inputs[LOOKUP];
    const double dim = (double)ph__row_width(&lookup[PH_LOOKUP_GRADIENT]);
    const double unique = (double)ph__rows(&lookup[PH_LOOKUP_UNIQUE]);
    const double positions = (double)lookup[PH_LOOKUP_ORDER].shape.dims[1];
    ph__update_cost(call, unique * dim, cost_out);
    cost_out->flops += 2 * positions * dim;
    cost_out->updated_bytes = cost_out->bytes - unique * dim * sizeof(ph_real); /* without the gradient */
    cost_out->revisited_bytes = positions * dim * sizeof(ph_real);
    cost_out->bytes =
        cost_out->updated_bytes + cost_out->revisited_bytes + (2 * positions + 2 * unique) * sizeof(uint32_t);
}

/* Returns the bytes of a thread's two rows of scratch, on cache lines of their own. */
static size_t scratch_bytes_of(size_t dim)
{
    return ph__size_align(2 * dim * sizeof(ph_real));
}

static size_t workers_scratch_bytes(const struct ph__call *call)
{
    const size_t dim = ph__row_width(&call->inputs[LOOKUP + PH_LOOKUP_GRADIENT]);
    return ph__team_num_threads(call->backend->team) * scratch_bytes_of(dim);
}

static ph_real *worker_scratch(const struct ph__call *call, size_t dim, size_t worker)
{
    return (void *)((char *)call->scratch + worker * scratch_bytes_of(dim));
}

/* Returns the kernel's view of the inputs of embedding_update; source and target are borrowed. */
static struct ph__embedding_update_args kernel_args(const struct ph__call *call,
    const struct ph__embedding_gradient_source *source, const struct ph__update_target *target)
{
    const struct ph__operand *lookup = &call->inputs[LOOKUP];
    return (struct ph__embedding_update_args){
        .source = source,
        .step = &target->step,
        .unique = lookup[PH_LOOKUP_UNIQUE].data,
        .starts = lookup[PH_LOOKUP_ORDER].index,
        .num_unique = lookup[PH_LOOKUP_ORDER].shape.dims[0],
        .table = &target->table,
        .m = target->m,
        .s = target->s,
        .square_sums = call->inputs[PH_UPDATE_SQUARE_SUMS].data,
        .whole_dim = target->whole_columns,
    };
}

struct fused_job {
    const struct ph__call *call;
    struct ph__embedding_update_args args;
};

static void update_merged(void *argument, size_t first, size_t last, size_t worker)
{
    const struct fused_job *job = argument;
    job->call->backend->kernels->embedding_update(
        &job->args, first, last, worker_scratch(job->call, job->args.source->dim, worker));
}

static ph_status embedding_update_run(struct ph__call *call)
{
    const struct ph__operand *lookup = &call->inputs[LOOKUP];
    const struct ph__embedding_gradient_source source = ph__gradient_source(lookup);
    const struct ph__update_target target = ph__update_target(call);
    struct fused_job job = {call, kernel_args(call, &source, &target)};
    ph__for_merged(call->backend, &lookup[PH_LOOKUP_ORDER], update_merged, &job);
    call->inputs[PH_UPDATE_PARAMETER].parameter->version++;
    return PH_OK;
}

const struct ph__op ph__op_embedding_update = {
    .name = "embedding_update",
    .traits = PH_OP_HAS_EFFECT | PH_OP_READS_ROW_FORMATS,
    .infer = embedding_update_infer,
    .cost = embedding_update_cost,
    .scratch_bytes = workers_scratch_bytes,
    .prepare = ph__update_prepare,
    .slot_bytes = ph__update_slot_bytes,
    .run = embedding_update_run,
};

/* ---- squares of rows ---- */

/* row_squares and embedding_squares: the squares that row-wise Adagrad sums of each row, for a table that
 * holds some of the columns.
 *
 * update_table's inputs, or embedding_update's -> (U, ph__square_blocks(D)): block sums of each distinct
 * row's gradient, as the step sees it, clipped and with l2. The block sums of all the row's columns, one
 * after the other, make the sum that comes back to the update. embedding_squares sums the gradient of a
 * lookup without leaving it in memory. */

/* ---- squares of a gradient in memory ---- */

static struct ph_type blocks_type(struct ph_dim rows, struct ph_dim columns)
{
    return ph__dense_type(2, (struct ph_dim[]){rows, ph__dim(ph__square_blocks(columns.extent))});
}

static ph_status row_squares_infer(struct ph__infer *infer)
{
    const struct ph_type *gradient = &infer->inputs[PH_UPDATE_GRADIENT];
    if (gradient->kind != PH_SPARSE_ROWS)
        return ph__infer_fail(infer, "a sparse_rows gradient");
    infer->outputs[0] = blocks_type(gradient->dims[0], gradient->dims[1]);
    return PH_OK;
}

/* Counts a multiplication and an addition for each number read. */
static void row_squares_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double numbers = (double)ph__elements(&call->inputs[PH_UPDATE_GRADIENT]);
    cost_out->flops = 2 * numbers;
    cost_out->bytes = (numbers + (double)ph__elements(&call->outputs[0])) * sizeof(ph_real);
}

static size_t row_squares_scratch_bytes(const struct ph__call *call)
{
    return ph__table_scratch_bytes(call, call->inputs[PH_UPDATE_PARAMETER].shape.dims[1]);
}

struct row_job {
    const struct ph__call *call;
    struct ph__update_target target;
};

/* Returns the row's weights, which l2 reads; NULL without l2. */
static const ph_real *weights_of(const struct row_job *job, size_t slot, size_t worker)
{
    const size_t columns = job->target.columns;
    if (job->target.step.l2 == 0)
        return NULL;
    const ph_real *in_place = ph__table_numbers(&job->target.table, slot);
    if (in_place != NULL)
        return in_place;
    ph_real *numbers = (void *)((char *)job->call->scratch + worker * ph__table_block_bytes(columns));
    job->call->backend->kernels->table_rows_load(&job->target.table, slot, 1, numbers);
    return numbers;
}

static void square_rows(void *argument, size_t first, size_t last, size_t worker)
{
    const struct row_job *job = argument;
    const struct ph__operand *gradient = &job->call->inputs[PH_UPDATE_GRADIENT];
    const size_t columns = job->target.columns, num_blocks = ph__square_blocks(columns);
    const ph_real *rows = gradient->data;
    ph_real *blocks = job->call->outputs[0].data;
    for (size_t i = first; i < last; i++)
        job->call->backend->kernels->row_squares(&job->target.step, columns, rows + i * columns,
            weights_of(job, gradient->index[i], worker), blocks + i * num_blocks);
}

static ph_status row_squares_run(struct ph__call *call)
{
    struct row_job job = {call, ph__update_target(call)};
    ph__for_blocks(call->backend, ph__rows(&call->inputs[PH_UPDATE_GRADIENT]),
        ph__block_rows(job.target.columns), square_rows, &job);
    return PH_OK;
}

const struct ph__op ph__op_row_squares = {
    .name = "row_squares",
    .traits = PH_OP_READS_ROW_FORMATS,
    .infer = row_squares_infer,
    .cost = row_squares_cost,
    .scratch_bytes = row_squares_scratch_bytes,
    .run = row_squares_run,
};

/* ---- squares of a lookup's gradient ---- */

static ph_status embedding_squares_infer(struct ph__infer *infer)
{
    const struct ph_type *lookup = &infer->inputs[LOOKUP];
    infer->outputs[0] =
        blocks_type(lookup[PH_LOOKUP_UNIQUE].dims[0], ph__last_dim(&lookup[PH_LOOKUP_GRADIENT]));
    return PH_OK;
}

static void embedding_squares_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__operand *lookup = &call->inputs[LOOKUP];
    const double dim = (double)ph__row_width(&lookup[PH_LOOKUP_GRADIENT]);
    const double unique = (double)ph__rows(&lookup[PH_LOOKUP_UNIQUE]);
    const double positions = (double)lookup[PH_LOOKUP_ORDER].shape.dims[1];
    cost_out->flops = 2 * (positions + unique) * dim;
    cost_out->revisited_bytes = positions * dim * sizeof(ph_real);
    cost_out->bytes = cost_out->revisited_bytes + (double)ph__elements(&call->outputs[0]) * sizeof(ph_real) +
                      (2 * positions + 2 * unique) * sizeof(uint32_t);
}

struct lookup_job {
    const struct ph__call *call;
    struct ph__embedding_update_args args;
};

static void square_merged(void *argument, size_t first, size_t last, size_t worker)
{
    const struct lookup_job *job = argument;
    ph_real *rows = worker_scratch(job->call, job->args.source->dim, worker);
    job->call->backend->kernels->embedding_squares(&job->args, first, last, rows, job->call->outputs[0].data);
}

static ph_status embedding_squares_run(struct ph__call *call)
{
    const struct ph__operand *lookup = &call->inputs[LOOKUP];
    const struct ph__embedding_gradient_source source = ph__gradient_source(lookup);
    const struct ph__update_target target = ph__update_target(call);
    struct lookup_job job = {call, kernel_args(call, &source, &target)};
    ph__for_merged(call->backend, &lookup[PH_LOOKUP_ORDER], square_merged, &job);
    return PH_OK;
}

const struct ph__op ph__op_embedding_squares = {
    .name = "embedding_squares",
    .traits = PH_OP_READS_ROW_FORMATS,
    .infer = embedding_squares_infer,
    .cost = embedding_squares_cost,
    .scratch_bytes = workers_scratch_bytes,
    .run = embedding_squares_run,
};

ph_value ph__row_squares(
    struct ph_builder *builder, ph_value update, bool is_only_reader, ph_value *slots_out)
{
    const struct ph__node *node = ph__builder_producer(builder, update);
    const ph_value gradient = node->inputs[PH_UPDATE_GRADIENT];
    const struct ph__node *producer = ph__builder_producer(builder, gradient);
    if (!is_only_reader || producer == NULL || producer->op != &ph__op_embedding_gradient) {
        *slots_out = gradient;
        return ph__emit1(builder, &ph__op_row_squares, NULL, node->attributes, node->attributes_size,
            PH_UPDATE_GRADIENT + 1, node->inputs);
    }
    ph_value inputs[PH_EMBEDDING_UPDATE_INPUTS];
    ph__embedding_update_inputs(node, producer, inputs);
    *slots_out = inputs[LOOKUP + PH_LOOKUP_UNIQUE];
    return ph__emit1(builder, &ph__op_embedding_squares, NULL, node->attributes, node->attributes_size,
        PH_EMBEDDING_UPDATE_INPUTS, inputs);
}
