/* squared_norm: adds the squares of one parameter's gradient, as its optimizer will see it, to a sum.
 *
 * parameter, gradient (dense, sparse_rows or none), sum so far (scalar or none) -> scalar:
 *   sum + sum_i (g_i + l2 w_i)^2
 * The sum is over all weights of a dense parameter, and over a table's touched rows, or all rows where
 * is_every_row. Nothing is materialised; blocks are fixed by shape, and their double sums added in order.
 *
 * block_squares gives these double sums of a dense parameter, (blocks) doubles, and adds nothing. */
#include "op/update/op_update.h"

#include "base/memory/memory.h"
#include "tensor/row_format.h"

static ph_status squared_norm_infer(struct ph__infer *infer)
{
    const struct ph_type *gradient = &infer->inputs[PH_NORM_GRADIENT], *sum = &infer->inputs[PH_NORM_SUM];
    const bool is_right = gradient->kind == PH_TOKEN || gradient->kind == PH_SPARSE_ROWS ||
                          ph__type_equal(gradient, &infer->inputs[PH_NORM_PARAMETER]);
    if (!is_right || (sum->kind != PH_TOKEN && sum->kind != PH_SCALAR))
        return ph__infer_fail(infer, "a parameter, its gradient or none, a scalar or none");
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

struct norm_job {
    const struct ph__kernels *kernels;
    const struct ph__operand *gradient;
    struct ph__table_rows weights;
    size_t rows, columns; /* rows to visit: of the parameter, or of sparse_rows */
    size_t block;         /* rows */
    ph_real l2;
    bool is_touched; /* set when the rows are those of the sparse_rows */
    double *sums;    /* by block */
    char *numbers;   /* after the sums: a block of weights per thread, for a table whose l2 reads them */
};

/* Describes the rows to sum. A dense parameter is seen as a matrix, a vector as rows of one number. */
static struct norm_job make_job(const struct ph__call *call)
{
    const struct ph__norm_attributes *attributes = call->attributes;
    const struct ph__operand *parameter = &call->inputs[PH_NORM_PARAMETER];
    const struct ph__operand *gradient = &call->inputs[PH_NORM_GRADIENT];
    struct norm_job job = {
        .kernels = call->backend->kernels, .gradient = gradient, .l2 = (ph_real)attributes->l2};
    if (attributes->is_table) {
        job.is_touched = !attributes->is_every_row;
        job.rows = job.is_touched ? ph__rows(gradient) : ph__rows(parameter);
        job.columns = parameter->shape.dims[1];
    } else {
        job.rows = parameter->shape.num_dims > 0 ? ph__rows(parameter) : 1;
        job.columns = parameter->shape.num_dims > 1 ? ph__row_elements(parameter) : 1;
    }
    job.block = ph__block_rows(job.columns);
    return job;
}

static size_t num_blocks(const struct norm_job *job)
{
    return (job->rows + job->block - 1) / job->block;
}

static size_t sums_bytes(const struct norm_job *job)
{
    return ph__size_align(num_blocks(job) * sizeof(double));
}

static size_t squared_norm_scratch_bytes(const struct ph__call *call)
{
    const struct ph__norm_attributes *attributes = call->attributes;
    const struct norm_job job = make_job(call);
    const bool reads_rows = attributes->is_table && job.l2 != 0;
    return sums_bytes(&job) + (reads_rows ? ph__table_scratch_bytes(call, job.columns) : 0);
}

static void squared_norm_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct norm_job job = make_job(call);
    const double weights = (double)job.rows * (double)job.columns;
    const enum ph_row_format format = call->inputs[PH_NORM_PARAMETER].parameter->row_format;
    cost_out->flops = (job.l2 != 0 ? 4 : 2) * weights;
    cost_out->bytes = (job.l2 != 0 ? weights * (double)ph__table_bytes(format, 1, 1) : 0) +
                      (double)ph__elements(job.gradient) * sizeof(ph_real);
}

struct row_sum {
    const struct norm_job *job;
    size_t worker;
    double sum;
};

/* Returns the weights of some rows, one block at most. */
static const ph_real *weights_of(const struct row_sum *sum, size_t row, size_t num_rows)
{
    const struct norm_job *job = sum->job;
    const ph_real *in_place = ph__table_numbers(&job->weights, row);
    if (in_place != NULL)
        return in_place;
    ph_real *numbers = (void *)(job->numbers + sum->worker * ph__table_block_bytes(job->columns));
    job->kernels->table_rows_load(&job->weights, row, num_rows, numbers);
    return numbers;
}

/* sum += sum_i (g_i + l2 w_i)^2 over some rows */
static void add_rows(void *argument, size_t row, size_t num_rows, const ph_real *gradient)
{
    struct row_sum *sum = argument;
    const struct norm_job *job = sum->job;
    const ph_real *weight = job->l2 != 0 ? weights_of(sum, row, num_rows) : NULL;
    sum->sum += job->kernels->sum_of_squares(num_rows * job->columns, gradient, weight, job->l2);
}

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct norm_job *job = argument;
    const ph_real *gradient = job->gradient->data;
    struct row_sum sum = {.job = job, .worker = worker};
    const bool is_sparse = job->gradient->type->kind == PH_SPARSE_ROWS;
    if (!is_sparse || (job->is_touched && job->l2 == 0)) {
        add_rows(&sum, first, last - first, gradient != NULL ? gradient + first * job->columns : NULL);
    } else if (!job->is_touched) {
        ph__visit_rows(job->gradient, first, last, add_rows, &sum);
    } else {
        for (size_t i = first; i < last; i++)
            add_rows(&sum, job->gradient->index[i], 1, gradient + i * job->columns);
    }
    job->sums[first / job->block] = sum.sum;
}

/* Fills sums, (blocks). */
static void sum_blocks(const struct ph__call *call, struct norm_job *job, double *sums)
{
    job->weights = ph__table_rows(call, call->inputs[PH_NORM_PARAMETER].parameter);
    job->weights.dim = job->columns;
    job->sums = sums;
    job->numbers = (char *)call->scratch + sums_bytes(job);
    ph__for_blocks(call->backend, job->rows, job->block, sum_block, job);
}

static ph_status squared_norm_run(struct ph__call *call)
{
    struct norm_job job = make_job(call);
    double sum = call->inputs[PH_NORM_SUM].scalar != NULL ? *call->inputs[PH_NORM_SUM].scalar : 0;
    sum_blocks(call, &job, call->scratch);
    for (size_t i = 0; i < num_blocks(&job); i++)
        sum += job.sums[i];
    *call->outputs[0].scalar = sum;
    return PH_OK;
}

const struct ph__op ph__op_squared_norm = {
    .name = "squared_norm",
    .traits = PH_OP_READS_ROW_FORMATS,
    .infer = squared_norm_infer,
    .cost = squared_norm_cost,
    .scratch_bytes = squared_norm_scratch_bytes,
    .run = squared_norm_run,
};

/* ---- block_squares ---- */

static ph_status block_squares_infer(struct ph__infer *infer)
{
    const struct ph_type *parameter = &infer->inputs[PH_NORM_PARAMETER];
    const size_t rows = parameter->dims[0].extent, columns = ph__type_elements_from(parameter, 1);
    const size_t doubles = ph__divide_up(rows, ph__block_rows(columns));
    PH_TRY(squared_norm_infer(infer));
    infer->outputs[0] =
        ph__dense_type(1, &(struct ph_dim){.extent = doubles * (sizeof(double) / sizeof(ph_real))});
    return PH_OK;
}

static ph_status block_squares_run(struct ph__call *call)
{
    struct norm_job job = make_job(call);
    sum_blocks(call, &job, call->outputs[0].data);
    return PH_OK;
}

const struct ph__op ph__op_block_squares = {
    .name = "block_squares",
    .infer = block_squares_infer,
    .cost = squared_norm_cost,
    .run = block_squares_run,
};
