/* ph_update, and helpers shared by the update operators.
 *
 * The clip factor scales the whole gradient as the optimizer sees it, (gradient + l2 w), as if the penalty
 * were part of the loss. The kernel's formula scales only the first term, so l2 is scaled here. */
#include "op/update/op_update.h"

#include <math.h>
#include <string.h>

#include "store/init.h"
#include "tensor/row_format.h"

static bool has_momentum(enum ph_optimizer_kind kind)
{
    return kind == PH_MOMENTUM || kind == PH_ADAM || kind == PH_ADAMW;
}

static bool has_sum(enum ph_optimizer_kind kind)
{
    return kind == PH_ADAGRAD || kind == PH_ROWWISE_ADAGRAD || kind == PH_ADAM || kind == PH_ADAMW;
}

/* Returns true when rows without a gradient change too: in whole-table mode, unless the optimizer leaves such
 * rows alone. */
static bool visits_every_row(const struct ph_optimizer *optimizer)
{
    return optimizer->is_whole_table && (optimizer->l2 != 0 || has_momentum(optimizer->rule.kind));
}

ph_status ph__update_prepare(
    const struct ph__node *node, struct ph_store *store, struct ph_parameter *const *parameters)
{
    const struct ph_optimizer *optimizer = node->attributes;
    struct ph_parameter *parameter = parameters[PH_UPDATE_PARAMETER];
    struct ph__slot *slot;
    if (parameter->is_for_scoring)
        return ph_fail(PH_ERROR_USAGE, "table '%s' is held as %s, for scoring: it cannot be trained",
            parameter->name, ph_row_format_name(parameter->row_format));
    if (has_momentum(optimizer->rule.kind))
        PH_TRY(ph__store_add_slot(store, parameter, "m", false, &slot));
    if (has_sum(optimizer->rule.kind))
        PH_TRY(ph__store_add_slot(store, parameter, "s", optimizer->rule.kind == PH_ROWWISE_ADAGRAD, &slot));
    return PH_OK;
}

uint64_t ph__update_slot_bytes(const struct ph__node *node, const struct ph__declaration *parameter)
{
    const struct ph_optimizer *optimizer = node->attributes;
    size_t rows, columns;
    ph__init_matrix(&parameter->shape, &rows, &columns);
    const uint64_t weights = (uint64_t)rows * columns;
    const uint64_t momentum = has_momentum(optimizer->rule.kind) ? weights : 0;
    const uint64_t sum = optimizer->rule.kind == PH_ROWWISE_ADAGRAD ? rows
                         : has_sum(optimizer->rule.kind)            ? weights
                                                                    : 0;
    return (momentum + sum) * sizeof(ph_real);
}

static ph_real *slot_data(const struct ph_parameter *parameter, const char *name)
{
    for (size_t i = 0; i < parameter->num_slots; i++)
        if (strcmp(parameter->slots[i].name, name) == 0)
            return parameter->slots[i].data;
    return NULL;
}

static struct ph__optimizer_step make_step(const struct ph__call *call)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const double *clip = call->inputs[PH_UPDATE_CLIP].scalar;
    const double scale = clip != NULL ? *clip : 1;
    const double step = *call->inputs[PH_UPDATE_STEP].scalar;
    const double learning_rate = *call->inputs[PH_UPDATE_LEARNING_RATE].scalar;
    struct ph__optimizer_step made = ph__optimizer_step(&optimizer->rule, step);
    made.learning_rate = (ph_real)(learning_rate * optimizer->learning_rate_factor);
    made.gradient_scale = (ph_real)scale;
    made.l2 = (ph_real)(optimizer->l2 * scale);
    return made;
}

struct ph__update_target ph__update_target(const struct ph__call *call)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const struct ph_parameter *parameter = call->inputs[PH_UPDATE_PARAMETER].parameter;
    struct ph__update_target target = {.step = make_step(call), .table = ph__table_rows(call, parameter)};
    ph__init_matrix(&parameter->shape, &target.rows, &target.columns);
    target.whole_columns = parameter->num_slices > 0 ? parameter->shards[0].whole_columns : target.columns;
    target.m = has_momentum(optimizer->rule.kind) ? slot_data(parameter, "m") : NULL;
    target.s = has_sum(optimizer->rule.kind) ? slot_data(parameter, "s") : NULL;
    return target;
}

/* Rows that take one step. */
struct span {
    size_t row, rows;           /* from `row` on */
    const ph_real *gradient;    /* (rows, columns); NULL: zeros */
    const ph_real *square_sums; /* (rows), see PH_UPDATE_SQUARE_SUMS; NULL: none */
};

/* Steps row i of the span; weight: (columns). */
static void step_row(const struct ph__kernels *kernels, const struct ph__update_target *target,
    const struct span *span, size_t i, ph_real *weight)
{
    const size_t columns = target->columns;
    const ph_real *gradient = span->gradient != NULL ? span->gradient + i * columns : NULL;
    ph_real *s = target->s + span->row + i;
    if (span->square_sums != NULL)
        kernels->rowwise_adagrad_step(&target->step, span->square_sums[i] / (ph_real)target->whole_columns,
            columns, gradient, weight, s);
    else
        kernels->rowwise_adagrad_update(&target->step, columns, gradient, weight, s);
}

/* Steps the span; weight: (rows, columns). */
static void step_numbers(const struct ph__kernels *kernels, const struct ph__update_target *target,
    const struct span *span, ph_real *weight)
{
    const size_t columns = target->columns, first = span->row * columns;
    if (target->step.kind != PH_ROWWISE_ADAGRAD) {
        kernels->optimizer_update(&target->step, span->rows * columns, span->gradient, weight,
            target->m != NULL ? target->m + first : NULL, target->s != NULL ? target->s + first : NULL);
        return;
    }
    for (size_t i = 0; i < span->rows; i++)
        step_row(kernels, target, span, i, weight + i * columns);
}

/* Steps the rows. numbers: room for the rows' numbers where they are not stored as reals. */
static void step_rows(const struct ph__kernels *kernels, const struct ph__update_target *target,
    const struct span *span, ph_real *numbers)
{
    ph_real *in_place = ph__table_numbers(&target->table, span->row);
    if (in_place != NULL) {
        step_numbers(kernels, target, span, in_place);
        return;
    }
    kernels->table_rows_load(&target->table, span->row, span->rows, numbers);
    step_numbers(kernels, target, span, numbers);
    kernels->table_rows_store(&target->table, span->row, span->rows, numbers);
}

/* Counts the gradient as read, weight and slots as read and written. Row-wise Adagrad has one sum per row, of
 * its gradient's squares. */
void ph__update_cost(const struct ph__call *call, double weights, struct ph__cost *cost_out)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const bool is_rowwise = optimizer->rule.kind == PH_ROWWISE_ADAGRAD;
    const double slots = has_momentum(optimizer->rule.kind) + has_sum(optimizer->rule.kind);
    const struct ph_parameter *parameter = call->inputs[PH_UPDATE_PARAMETER].parameter;
    const double weight_bytes = (double)ph__table_bytes(parameter->row_format, 1, 1);
    size_t rows, columns;
    ph__init_matrix(&parameter->shape, &rows, &columns);
    const double slot_numbers = is_rowwise ? weights / (double)columns : slots * weights;
    cost_out->flops = (is_rowwise ? 5 : 3) * weights + 5 * slot_numbers;
    cost_out->bytes = (weights + 2 * slot_numbers) * sizeof(ph_real) + 2 * weights * weight_bytes;
}

static bool are_scalars(const struct ph_builder *builder, const ph_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ph_value_type(builder, values[i]).kind != PH_SCALAR)
            return false;
    return true;
}

ph_value ph_update(struct ph_builder *builder, ph_value parameter, ph_value gradient,
    const struct ph_optimizer *optimizer, ph_value learning_rate, ph_value step, ph_value clip_factor)
{
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct ph__declaration *declaration = ph__builder_declaration(builder, parameter);
    const char *name = ph_value_name(builder, parameter);
    if (declaration == NULL)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "update: '%s' is not a parameter", name);
    const ph_value inputs[] = {[PH_UPDATE_PARAMETER] = parameter,
        [PH_UPDATE_LEARNING_RATE] = learning_rate,
        [PH_UPDATE_STEP] = step,
        [PH_UPDATE_CLIP] = clip_factor,
        [PH_UPDATE_GRADIENT] = gradient};
    if (!are_scalars(builder, inputs + 1, 2) || (clip_factor != 0 && !are_scalars(builder, inputs + 3, 1)))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "update of '%s': learning rate, step and clip factor must be scalars", name);
    struct ph_optimizer attributes = *optimizer;
    attributes.is_whole_table = visits_every_row(optimizer);
    if (declaration->is_table && gradient == 0 && !attributes.is_whole_table)
        return 0;
    const struct ph__op *op = declaration->is_table ? &ph__op_update_table : &ph__op_update_dense;
    return ph__emit1(
        builder, op, NULL, &attributes, sizeof attributes, sizeof inputs / sizeof *inputs, inputs);
}

/* ---- update_dense ---- */

/* update_dense: one optimizer step on a dense parameter, in blocks of rows. (Row-wise Adagrad has one
 * accumulator per row; a vector is cut into elements, or is one row for it.) The gradient has the parameter's
 * shape, or is absent. */

static ph_status update_dense_infer(struct ph__infer *infer)
{
    const struct ph_type *parameter = &infer->inputs[PH_UPDATE_PARAMETER];
    const struct ph_type *gradient = &infer->inputs[PH_UPDATE_GRADIENT];
    if (gradient->kind != PH_TOKEN && !ph__type_equal(parameter, gradient))
        return ph__infer_fail(infer, "a gradient of the parameter's shape or none");
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static void update_dense_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__update_cost(call, (double)call->inputs[PH_UPDATE_PARAMETER].parameter->elements, cost_out);
}

struct dense_job {
    const struct ph__kernels *kernels;
    struct ph__update_target target;
    const ph_real *gradient;
};

static void update_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct dense_job *job = argument;
    const ph_real *gradient = job->gradient != NULL ? job->gradient + first * job->target.columns : NULL;
    (void)worker;
    const struct span span = {.row = first, .rows = last - first, .gradient = gradient};
    step_rows(job->kernels, &job->target, &span, NULL);
}

static ph_status update_dense_run(struct ph__call *call)
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

const struct ph__op ph__op_update_dense = {
    .name = "update_dense",
    .traits = PH_OP_HAS_EFFECT,
    .infer = update_dense_infer,
    .cost = update_dense_cost,
    .prepare = ph__update_prepare,
    .slot_bytes = ph__update_slot_bytes,
    .run = update_dense_run,
};

/* ---- update_table ---- */

/* update_table: one optimizer step on a table from a sparse_rows gradient.
 *
 * Touched rows: each distinct slot's row once. Whole table: every row every step, as with a dense gradient,
 * so that moments decay and l2 acts on rows that the batch does not touch (the BARS protocol). Where the
 * update is the gradient's only reader and updates only touched rows, lookup gradient and update become one
 * sweep, embedding_update. Square sums go with touched rows. */

enum { PREFETCH_ROWS = 16 /* ahead */, LINE_BYTES = 64 };

static ph_status update_table_infer(struct ph__infer *infer)
{
    const struct ph_type *table = &infer->inputs[PH_UPDATE_PARAMETER];
    const struct ph_type *gradient = &infer->inputs[PH_UPDATE_GRADIENT];
    const struct ph_type *sums = &infer->inputs[PH_UPDATE_SQUARE_SUMS];
    if (gradient->kind != PH_TOKEN &&
        (gradient->kind != PH_SPARSE_ROWS || !ph__dim_equal(gradient->dims[1], table->dims[1])))
        return ph__infer_fail(infer, "a sparse_rows gradient of the table's width or none");
    if (sums->kind != PH_TOKEN &&
        (!ph__type_is_real_of_dims(sums, 1) || !ph__dim_equal(sums->dims[0], gradient->dims[0])))
        return ph__infer_fail(infer, "a sum of squares for each row of the gradient or none");
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static void update_table_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const struct ph__operand *gradient = &call->inputs[PH_UPDATE_GRADIENT];
    const size_t weights = optimizer->is_whole_table ? call->inputs[PH_UPDATE_PARAMETER].parameter->elements
                                                     : ph__elements(gradient);
    ph__update_cost(call, (double)weights, cost_out);
    if (!optimizer->is_whole_table)
        cost_out->updated_bytes =
            cost_out->bytes - (double)weights * sizeof(ph_real); /* without the gradient */
}

static size_t update_table_scratch_bytes(const struct ph__call *call)
{
    return ph__table_scratch_bytes(call, call->inputs[PH_UPDATE_PARAMETER].shape.dims[1]);
}

struct table_job {
    const struct ph__call *call;
    struct ph__update_target target;
    const struct ph__operand *gradient;
};

static ph_real *numbers_of(const struct table_job *job, size_t worker)
{
    return (void *)((char *)job->call->scratch + worker * ph__table_block_bytes(job->target.columns));
}

static void prefetch_row(const struct ph__update_target *target, size_t row)
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
        const struct span span = {.row = slots[i],
            .rows = 1,
            .gradient = rows + i * job->target.columns,
            .square_sums = sums != NULL ? sums + i : NULL};
        step_rows(job->call->backend->kernels, &job->target, &span, numbers);
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
    const struct span span = {.row = row, .rows = num_rows, .gradient = gradient};
    step_rows(job->call->backend->kernels, &job->target, &span, visit->numbers);
}

static void update_every(void *argument, size_t first, size_t last, size_t worker)
{
    const struct table_job *job = argument;
    struct visit visit = {job, numbers_of(job, worker)};
    ph__visit_rows(job->gradient, first, last, update_visited, &visit);
}

static ph_status update_table_run(struct ph__call *call)
{
    const struct ph_optimizer *optimizer = call->attributes;
    const struct ph__operand *gradient = &call->inputs[PH_UPDATE_GRADIENT];
    struct table_job job = {call, ph__update_target(call), gradient};
    const size_t block = ph__block_rows(job.target.columns);
    if (optimizer->is_whole_table)
        ph__for_blocks(call->backend, job.target.rows, block, update_every, &job);
    else
        ph__for_blocks(call->backend, ph__rows(gradient), block, update_touched, &job);
    call->inputs[PH_UPDATE_PARAMETER].parameter->version++;
    return PH_OK;
}

/* Fuses gradient <- embedding_gradient(lookup) into embedding_update(.., lookup). */
static bool update_table_fuse(
    struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
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

const struct ph__op ph__op_update_table = {
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
