/* FinalMLP's head (2304.00902): x (B,K), y (B,M), weight (T,H,k,m) with H heads of k = K/H and m = M/H
 * numbers, z (B,T),
 *   z_t = sum_h x_h^T W_th y_h, x_h and y_h the h-th slices.
 * A few samples at a time, V_t = [x_h W_th for each h] (M) is made in the cache, and z_t = <V_t, y>. The
 * gradients:
 *   dy = sum_t dz_t V_t,  dx = sum_t dz_t [W_th y_h for each h] (bilinear_head_backward_data)
 *   dW_th = sum_b dz_t x_h y_h^T (bilinear_head_backward_weight)
 * dW is summed over parts of the batch that follow from its shape, then over the parts in order. Composed of
 * slices, a linear layer for each head, a product and a sum, each of these arrays would pass through memory,
 * and a weight of all heads would have to be cut into parameters. */
#include <string.h>

#include "base/sizes.h"
#include "op/operator.h"

/* ---- heads ---- */

/* Samples multiplied together: whole blocks of the product's rows; the products stay in the second cache. */
enum { BLOCK_SAMPLES = 24 };

struct head {
    const struct ph__kernels *kernels;
    size_t num_tasks, num_heads, x_dim, y_dim; /* T, H, k, m */
    const ph_real *x, *y, *weight, *dz;
    ph_real *z, *dx, *dy;
    ph_real *turned;  /* (T,H,m,k) */
    ph_real *workers; /* (workers, worker_reals): products or scaled vectors of a block */
    size_t worker_reals;
};

static size_t x_reals(const struct head *head) /* K */
{
    return head->num_heads * head->x_dim;
}

static size_t y_reals(const struct head *head) /* M */
{
    return head->num_heads * head->y_dim;
}

static size_t task_reals(const struct head *head) /* of a task's weight */
{
    return head->num_heads * head->x_dim * head->y_dim;
}

/* Inputs of both backward operators: dz (B,T), x, y, weight. */
enum { GRADIENT_DZ, GRADIENT_X, GRADIENT_Y, GRADIENT_WEIGHT };

static bool has_shape(
    const struct ph_type *vectors, struct ph_dim samples, struct ph_dim heads, struct ph_dim dim)
{
    return ph__type_is_real_of_dims(vectors, 2) && ph__dim_equal(vectors->dims[0], samples) &&
           ph__dim_equal(vectors->dims[1], ph__dim(heads.extent * dim.extent));
}

/* Checks that x (B,K), y (B,M) and weight (T,H,K/H,M/H) fit each other. */
static bool are_head_types(const struct ph_type *x, const struct ph_type *y, const struct ph_type *weight)
{
    const struct ph_dim *dims = weight->dims;
    return ph__type_is_real_of_dims(weight, 4) && ph__has_fixed_dims(weight, 0) &&
           has_shape(x, x->dims[0], dims[1], dims[2]) && has_shape(y, x->dims[0], dims[1], dims[3]);
}

static struct head describe(const struct ph__call *call, const struct ph__operand *x,
    const struct ph__operand *y, const struct ph__operand *weight)
{
    const size_t *dims = weight->shape.dims;
    struct head head = {.kernels = call->backend->kernels,
        .num_tasks = dims[0],
        .num_heads = dims[1],
        .x_dim = dims[2],
        .y_dim = dims[3],
        .x = x->data,
        .y = y->data,
        .weight = weight->data,
        .workers = call->scratch};
    head.worker_reals = BLOCK_SAMPLES * ph__max(x_reals(&head), y_reals(&head));
    return head;
}

/* Returns the bytes of the workers' parts of the scratch, which come first. */
static size_t workers_bytes(const struct ph__call *call, const struct head *head)
{
    return ph__team_num_threads(call->backend->team) * head->worker_reals * sizeof(ph_real);
}

/* Counts `products` multiplications and additions for each number of the weight and each sample. */
static void product_cost(
    const struct ph__call *call, const struct ph__operand *weight, double products, struct ph__cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops = 2 * products * (double)ph__rows(&call->inputs[0]) * (double)ph__elements(weight);
}

static ph_status check_gradient(const struct ph__infer *infer)
{
    const struct ph_type *inputs = infer->inputs;
    if (!ph__type_is_real_of_dims(&inputs[GRADIENT_DZ], 2) ||
        !are_head_types(&inputs[GRADIENT_X], &inputs[GRADIENT_Y], &inputs[GRADIENT_WEIGHT]))
        return ph__infer_fail(infer, "dz (B,T), x (B,K), y (B,M), weight (T,heads,K/heads,M/heads)");
    return PH_OK;
}

static struct head describe_gradient(const struct ph__call *call)
{
    struct head head =
        describe(call, &call->inputs[GRADIENT_X], &call->inputs[GRADIENT_Y], &call->inputs[GRADIENT_WEIGHT]);
    head.dz = call->inputs[GRADIENT_DZ].data;
    return head;
}

/* ---- forward, and the inputs' gradient ---- */

enum { X, Y, WEIGHT, NUM_INPUTS };

/* Returns the samples of a task: whole blocks. */
static size_t task_samples(const struct head *head)
{
    const size_t samples = ph__block_rows(x_reals(head) + y_reals(head));
    return ph__round_up(samples, BLOCK_SAMPLES);
}

/* Multiplies each head's vectors (count, heads * in) with its matrices (in, out): (count, heads * out). */
static void multiply_heads(const struct head *head, size_t count, const ph_real *vectors, size_t in,
    const ph_real *matrices, size_t out, ph_real *products)
{
    head->kernels->small_product(&(struct ph__small_product_args){.count = head->num_heads,
        .rows = count,
        .inner = in,
        .columns = out,
        .a = vectors,
        .a_row_stride = head->num_heads * in,
        .a_inner_stride = 1,
        .a_step = in,
        .b = matrices,
        .b_stride = out,
        .b_step = in * out,
        .c = products,
        .c_stride = head->num_heads * out,
        .c_step = out});
}

/* ---- forward ---- */

static ph_status head_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *weight = &infer->inputs[WEIGHT];
    if (!are_head_types(x, &infer->inputs[Y], weight))
        return ph__infer_fail(infer, "x (B,K), y (B,M), weight (T,heads,K/heads,M/heads)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], weight->dims[0]});
    return PH_OK;
}

static void head_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {
        gradient->output_gradients[0], node.inputs[X], node.inputs[Y], node.inputs[WEIGHT]};
    if (gradient->is_wanted[X] || gradient->is_wanted[Y]) {
        ph_value outputs[2] = {0, 0};
        ph__emit(
            builder, &ph__op_bilinear_head_backward_data, NULL, NULL, 0, NUM_INPUTS + 1, inputs, 2, outputs);
        gradient->input_gradients[X] = outputs[0];
        gradient->input_gradients[Y] = outputs[1];
    }
    if (gradient->is_wanted[WEIGHT])
        gradient->input_gradients[WEIGHT] =
            ph__emit1(builder, &ph__op_bilinear_head_backward_weight, NULL, NULL, 0, NUM_INPUTS + 1, inputs);
}

static void head_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    product_cost(call, &call->inputs[WEIGHT], 1, cost_out);
}

static struct head describe_forward(const struct ph__call *call)
{
    return describe(call, &call->inputs[X], &call->inputs[Y], &call->inputs[WEIGHT]);
}

static size_t head_scratch_bytes(const struct ph__call *call)
{
    const struct head head = describe_forward(call);
    return workers_bytes(call, &head);
}

static void head_block(const struct head *head, size_t first, size_t count, ph_real *products)
{
    const size_t m = y_reals(head);
    for (size_t task = 0; task < head->num_tasks; task++) {
        multiply_heads(head, count, head->x + first * x_reals(head), head->x_dim,
            head->weight + task * task_reals(head), head->y_dim, products);
        for (size_t i = 0; i < count; i++)
            head->kernels->narrow_product(1, m, 1, products + i * m, head->y + (first + i) * m, NULL,
                &head->z[(first + i) * head->num_tasks + task]);
    }
}

static void head_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct head *head = argument;
    for (size_t i = first; i < last; i += BLOCK_SAMPLES)
        head_block(head, i, ph__min(BLOCK_SAMPLES, last - i), head->workers + worker * head->worker_reals);
}

static ph_status head_run(struct ph__call *call)
{
    struct head head = describe_forward(call);
    head.z = call->outputs[0].data;
    ph__for_blocks(call->backend, ph__rows(&call->inputs[X]), task_samples(&head), head_samples, &head);
    return PH_OK;
}

const struct ph__op ph__op_bilinear_head = {
    .name = "bilinear_head",
    .infer = head_infer,
    .gradient = head_gradient,
    .cost = head_cost,
    .scratch_bytes = head_scratch_bytes,
    .run = head_run,
};

/* ---- dx and dy: inputs dz (B,T), x, y, weight ---- */

static ph_status backward_data_infer(struct ph__infer *infer)
{
    PH_TRY(check_gradient(infer));
    infer->outputs[0] = infer->inputs[GRADIENT_X];
    infer->outputs[1] = infer->inputs[GRADIENT_Y];
    return PH_OK;
}

static void backward_data_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    product_cost(call, &call->inputs[GRADIENT_WEIGHT], 2, cost_out);
}

static size_t backward_data_scratch_bytes(const struct ph__call *call)
{
    const struct head head = describe_gradient(call);
    return workers_bytes(call, &head) + head.num_tasks * task_reals(&head) * sizeof(ph_real);
}

/* sums (count, n) (+)= dz_t times products (count, n) */
static void add_scaled(const struct head *head, size_t first, size_t count, size_t task, size_t n,
    ph_real *products, ph_real *sums)
{
    for (size_t i = 0; i < count; i++) {
        const ph_real dz = head->dz[(first + i) * head->num_tasks + task];
        ph_real *product = products + i * n, *sum = sums + i * n;
        head->kernels->scale(n, dz, product, task == 0 ? sum : product);
        if (task > 0)
            head->kernels->add(n, sum, product, sum);
    }
}

static void backward_data_block(const struct head *head, size_t first, size_t count, ph_real *products)
{
    const size_t k = x_reals(head), m = y_reals(head);
    for (size_t task = 0; task < head->num_tasks; task++) {
        const size_t from = task * task_reals(head);
        multiply_heads(
            head, count, head->x + first * k, head->x_dim, head->weight + from, head->y_dim, products);
        add_scaled(head, first, count, task, m, products, head->dy + first * m);
        multiply_heads(
            head, count, head->y + first * m, head->y_dim, head->turned + from, head->x_dim, products);
        add_scaled(head, first, count, task, k, products, head->dx + first * k);
    }
}

static void backward_data_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct head *head = argument;
    for (size_t i = first; i < last; i += BLOCK_SAMPLES)
        backward_data_block(
            head, i, ph__min(BLOCK_SAMPLES, last - i), head->workers + worker * head->worker_reals);
}

static ph_status backward_data_run(struct ph__call *call)
{
    struct head head = describe_gradient(call);
    head.dx = call->outputs[0].data;
    head.dy = call->outputs[1].data;
    head.turned = head.workers + ph__team_num_threads(call->backend->team) * head.worker_reals;
    head.kernels->transpose(
        head.num_tasks * head.num_heads, head.x_dim, head.y_dim, head.weight, head.turned);
    ph__for_blocks(call->backend, ph__rows(&call->inputs[GRADIENT_DZ]), task_samples(&head),
        backward_data_samples, &head);
    return PH_OK;
}

const struct ph__op ph__op_bilinear_head_backward_data = {
    .name = "bilinear_head_backward_data",
    .infer = backward_data_infer,
    .cost = backward_data_cost,
    .scratch_bytes = backward_data_scratch_bytes,
    .run = backward_data_run,
};

ph_value ph_bilinear_head(struct ph_builder *builder, ph_value x, ph_value y, ph_value weight)
{
    const ph_value inputs[NUM_INPUTS] = {x, y, weight};
    return ph__emit1(builder, &ph__op_bilinear_head, NULL, NULL, 0, NUM_INPUTS, inputs);
}

/* ---- the weight's gradient ---- */

/* dW_th = sum_b dz_t x_h y_h^T, over parts of the batch that follow from its shape, then over the parts in
 * order. Inputs dz (B,T), x (B,K), y (B,M) and the weight, of which only the shape is read. */

enum { MOST_PARTS = 32 };

struct weight_job {
    struct head head;
    size_t num_samples, part_samples, num_parts;
    size_t numbers;    /* of the weight */
    ph_real *partials; /* (num_parts, numbers) */
    ph_real *dw;
};

static ph_status backward_weight_infer(struct ph__infer *infer)
{
    PH_TRY(check_gradient(infer));
    infer->outputs[0] = infer->inputs[GRADIENT_WEIGHT];
    return PH_OK;
}

static void backward_weight_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    product_cost(call, &call->inputs[GRADIENT_WEIGHT], 1, cost_out);
}

static struct weight_job describe_weight(const struct ph__call *call)
{
    struct weight_job job = {
        .head = describe_gradient(call), .num_samples = ph__rows(&call->inputs[GRADIENT_DZ])};
    const size_t num_blocks = ph__divide_up(job.num_samples, BLOCK_SAMPLES);
    job.part_samples = ph__divide_up(num_blocks, MOST_PARTS) * BLOCK_SAMPLES;
    job.num_parts = num_blocks > 0 ? ph__divide_up(job.num_samples, job.part_samples) : 0;
    job.numbers = job.head.num_tasks * task_reals(&job.head);
    return job;
}

/* Counts the most parts that any number of samples up to this one has: fewer samples may have more parts. */
static size_t backward_weight_scratch_bytes(const struct ph__call *call)
{
    const struct weight_job job = describe_weight(call);
    const size_t parts = ph__min(MOST_PARTS, ph__divide_up(job.num_samples, BLOCK_SAMPLES));
    return workers_bytes(call, &job.head) + parts * job.numbers * sizeof(ph_real);
}

/* dW_th (+)= (dz_t x_h)^T y_h of a block of samples */
static void add_block(const struct weight_job *job, size_t first, size_t count, bool is_added,
    ph_real *scaled, ph_real *partial)
{
    const struct head *head = &job->head;
    const size_t k = x_reals(head), m = y_reals(head);
    for (size_t task = 0; task < head->num_tasks; task++) {
        for (size_t i = first; i < first + count; i++)
            head->kernels->scale(
                k, head->dz[i * head->num_tasks + task], head->x + i * k, scaled + (i - first) * k);
        head->kernels->small_product(&(struct ph__small_product_args){.count = head->num_heads,
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
            .c = partial + task * task_reals(head),
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
    for (size_t i = first; i < last; i += BLOCK_SAMPLES)
        add_block(
            job, i, ph__min(BLOCK_SAMPLES, last - i), i > first, scaled, job->partials + part * job->numbers);
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

static ph_status backward_weight_run(struct ph__call *call)
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

const struct ph__op ph__op_bilinear_head_backward_weight = {
    .name = "bilinear_head_backward_weight",
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};
