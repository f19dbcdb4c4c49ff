/* FinalMLP's head (2304.00902): x (B,K), y (B,M), weight (T,H,k,m) with H heads of k = K/H and m = M/H numbers, z (B,T),
 *   z_t = sum_h x_h^T W_th y_h, x_h and y_h the h-th slices.
 * A few samples at a time, V_t = [x_h W_th for each h] (M) is made in the cache, and z_t = <V_t, y>. The gradients:
 *   dy = sum_t dz_t V_t,  dx = sum_t dz_t [W_th y_h for each h] (bilinear_head_backward_data)
 *   dW_th = sum_b dz_t x_h y_h^T (bilinear_head_backward_weight), over parts of the batch that its shape gives, then over the
 * parts in order. Composed of slices, a linear layer for each head, a product and a sum, each of these arrays would pass
 * the memory, and a weight of all heads would have to be cut into parameters. */
#include "base/sizes.h"
#include "op/interaction/bilinear_head.h"

enum { X, Y, WEIGHT, NUM_INPUTS };

/* Samples of a task of the team: whole blocks. */
static size_t task_samples(const struct ph__bilinear_head *head)
{
    const size_t samples = ph__block_rows(ph__bilinear_x_reals(head) + ph__bilinear_y_reals(head));
    return ph__round_up(samples, PH_BILINEAR_BLOCK_SAMPLES);
}

/* Each head's vectors times its matrices (in, out): (count, heads * out) from (count, heads * in). */
static void multiply_heads(const struct ph__bilinear_head *head, size_t count, const ph_real *vectors,
    size_t in, const ph_real *matrices, size_t out, ph_real *products)
{
    head->kernels->small_product(&(struct ph_small_product_args){.count = head->num_heads,
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

/* ---- forward --------------------------------------------------------------------------------------------------- */

static ph_status head_infer(struct ph_infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *weight = &infer->inputs[WEIGHT];
    if (!ph__are_bilinear_types(x, &infer->inputs[Y], weight))
        return ph__infer_fail(infer, "x (B,K), y (B,M), weight (T,heads,K/heads,M/heads)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], weight->dims[0]});
    return PH_OK;
}

static void head_gradient(struct ph_gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph_node node = *gradient->node;
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

static void head_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__bilinear_cost(call, &call->inputs[WEIGHT], 1, cost_out);
}

static struct ph__bilinear_head describe_forward(const struct ph_call *call)
{
    return ph__describe_bilinear(call, &call->inputs[X], &call->inputs[Y], &call->inputs[WEIGHT]);
}

static size_t head_scratch_bytes(const struct ph_call *call)
{
    const struct ph__bilinear_head head = describe_forward(call);
    return ph__bilinear_workers_bytes(call, &head);
}

static void head_block(const struct ph__bilinear_head *head, size_t first, size_t count, ph_real *products)
{
    const size_t m = ph__bilinear_y_reals(head);
    for (size_t task = 0; task < head->num_tasks; task++) {
        multiply_heads(head, count, head->x + first * ph__bilinear_x_reals(head), head->x_dim,
            head->weight + task * ph__bilinear_task_reals(head), head->y_dim, products);
        for (size_t i = 0; i < count; i++)
            head->kernels->narrow_product(1, m, 1, products + i * m, head->y + (first + i) * m, NULL,
                &head->z[(first + i) * head->num_tasks + task]);
    }
}

static void head_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__bilinear_head *head = argument;
    for (size_t i = first; i < last; i += PH_BILINEAR_BLOCK_SAMPLES)
        head_block(head, i, ph__min(PH_BILINEAR_BLOCK_SAMPLES, last - i),
            head->workers + worker * head->worker_reals);
}

static ph_status head_run(struct ph_call *call)
{
    struct ph__bilinear_head head = describe_forward(call);
    head.z = call->outputs[0].data;
    ph__for_blocks(call->backend, ph__rows(&call->inputs[X]), task_samples(&head), head_samples, &head);
    return PH_OK;
}

const struct ph_op ph__op_bilinear_head = {
    .name = "bilinear_head",
    .infer = head_infer,
    .gradient = head_gradient,
    .cost = head_cost,
    .scratch_bytes = head_scratch_bytes,
    .run = head_run,
};

/* ---- dx and dy: inputs dz (B,T), x, y, weight --------------------------------------------------------------------- */

static ph_status backward_data_infer(struct ph_infer *infer)
{
    PH_TRY(ph__check_bilinear_gradient(infer));
    infer->outputs[0] = infer->inputs[PH_BILINEAR_GRADIENT_X];
    infer->outputs[1] = infer->inputs[PH_BILINEAR_GRADIENT_Y];
    return PH_OK;
}

static void backward_data_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__bilinear_cost(call, &call->inputs[PH_BILINEAR_GRADIENT_WEIGHT], 2, cost_out);
}

static size_t backward_data_scratch_bytes(const struct ph_call *call)
{
    const struct ph__bilinear_head head = ph__describe_bilinear_gradient(call);
    return ph__bilinear_workers_bytes(call, &head) +
           head.num_tasks * ph__bilinear_task_reals(&head) * sizeof(ph_real);
}

/* sums (count, n) (+)= dz_t times products (count, n) */
static void add_scaled(const struct ph__bilinear_head *head, size_t first, size_t count, size_t task,
    size_t n, ph_real *products, ph_real *sums)
{
    for (size_t i = 0; i < count; i++) {
        const ph_real dz = head->dz[(first + i) * head->num_tasks + task];
        ph_real *product = products + i * n, *sum = sums + i * n;
        head->kernels->scale(n, dz, product, task == 0 ? sum : product);
        if (task > 0)
            head->kernels->add(n, sum, product, sum);
    }
}

static void backward_data_block(
    const struct ph__bilinear_head *head, size_t first, size_t count, ph_real *products)
{
    const size_t k = ph__bilinear_x_reals(head), m = ph__bilinear_y_reals(head);
    for (size_t task = 0; task < head->num_tasks; task++) {
        const size_t from = task * ph__bilinear_task_reals(head);
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
    const struct ph__bilinear_head *head = argument;
    for (size_t i = first; i < last; i += PH_BILINEAR_BLOCK_SAMPLES)
        backward_data_block(head, i, ph__min(PH_BILINEAR_BLOCK_SAMPLES, last - i),
            head->workers + worker * head->worker_reals);
}

static ph_status backward_data_run(struct ph_call *call)
{
    struct ph__bilinear_head head = ph__describe_bilinear_gradient(call);
    head.dx = call->outputs[0].data;
    head.dy = call->outputs[1].data;
    head.turned = head.workers + ph__team_num_threads(call->backend->team) * head.worker_reals;
    head.kernels->transpose(
        head.num_tasks * head.num_heads, head.x_dim, head.y_dim, head.weight, head.turned);
    ph__for_blocks(call->backend, ph__rows(&call->inputs[PH_BILINEAR_GRADIENT_DZ]), task_samples(&head),
        backward_data_samples, &head);
    return PH_OK;
}

const struct ph_op ph__op_bilinear_head_backward_data = {
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
