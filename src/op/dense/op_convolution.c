/* 2-d convolution of stride 1, padded with zeros so that it keeps the extent: x (B,c,n,d), weight (k,c,r,s)
 * with odd r and s, bias (k) or absent, y (B,k,n,d),
 *   y[b,o,i,j] = bias_o + sum_{c,u,v} weight[o,c,u,v] x[b, c, i + u - (r-1)/2, j + v - (s-1)/2].
 * The weight, as (k, c*r*s), multiplies an expansion (op/dense/expansion.h) of windows: row (c,u,v) is
 * channel c moved by (u,v), padded with zeros. The gradients:
 *   dx: W^T dy, the windows' gradients, each moved back and added up (convolution_backward_data)
 *   dW = sum_b dy_b (windows of x_b)^T and db (convolution_backward_weight) */
#include "op/dense/expansion.h"

#include <string.h>

enum { X, WEIGHT, BIAS, NUM_INPUTS };
enum { CHUNK_REALS = 32768 }; /* of windows made at a time: they stay in the second cache */

static ph_status convolution_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *weight = &infer->inputs[WEIGHT],
                         *bias = &infer->inputs[BIAS];
    if (!ph__type_is_real_of_dims(x, 4) || !ph__has_fixed_dims(x, 1) ||
        !ph__type_is_real_of_dims(weight, 4) || !ph__has_fixed_dims(weight, 0) ||
        weight->dims[1].extent != x->dims[1].extent || weight->dims[2].extent % 2 == 0 ||
        weight->dims[3].extent % 2 == 0 || !ph__is_bias(bias, weight->dims[0]))
        return ph__infer_fail(infer, "x (B,c,n,d), weight (k,c,r,s) with odd r and s, bias (k) or none");
    infer->outputs[0] =
        ph__dense_type(4, (struct ph_dim[]){x->dims[0], weight->dims[0], x->dims[2], x->dims[3]});
    return PH_OK;
}

struct kernel_attributes {
    size_t height, width;
};

static void convolution_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0], weight = node.inputs[WEIGHT];
    const struct ph_type type = ph_value_type(builder, weight);
    const struct kernel_attributes kernel = {type.dims[2].extent, type.dims[3].extent};
    if (gradient->is_wanted[X])
        gradient->input_gradients[X] = ph__emit1(
            builder, &ph__op_convolution_backward_data, NULL, NULL, 0, 2, (const ph_value[]){dy, weight});
    ph__weight_gradients(gradient, WEIGHT, BIAS, &ph__op_convolution_backward_weight, &kernel, sizeof kernel,
        2, (const ph_value[]){dy, node.inputs[X]});
}

/* ---- windows ---- */

struct image {
    size_t channels, height, width; /* c, n, d */
    size_t kernel_height, kernel_width;
    const ph_real *x;
    ph_real *dx; /* backward data */
};

/* A row of the expansion as a window over its channel: its numbers [begin, end) are the channel's from begin
 * + offset on, except the columns [gap, gap + gap_width) of each line. Those, and all others, are zero. */
struct window {
    size_t channel, begin, end;
    ptrdiff_t offset;
    size_t gap, gap_width;
};

static size_t distance(ptrdiff_t shift)
{
    return (size_t)(shift < 0 ? -shift : shift);
}

static struct window window_of(const struct image *image, size_t row)
{
    const size_t area = image->kernel_height * image->kernel_width, within = row % area;
    const ptrdiff_t down = (ptrdiff_t)(within / image->kernel_width) - (ptrdiff_t)(image->kernel_height / 2);
    const ptrdiff_t right = (ptrdiff_t)(within % image->kernel_width) - (ptrdiff_t)(image->kernel_width / 2);
    const size_t height = image->height, width = image->width, numbers = height * width;
    struct window window = {.channel = row / area, .offset = down * (ptrdiff_t)width + right};
    if (distance(down) >= height || distance(right) >= width)
        return window;
    window.begin = down < 0 ? distance(down) * width : 0;
    window.end = down > 0 ? numbers - distance(down) * width : numbers;
    window.gap_width = distance(right);
    window.gap = right > 0 ? width - window.gap_width : 0;
    window.begin += right < 0 ? window.gap_width : 0; /* the first line begins and the last ends with a gap */
    window.end -= right > 0 ? window.gap_width : 0;
    return window;
}

/* Zeroes a window's gaps. */
static void clear_gaps(const struct image *image, const struct window *window, ph_real *numbers)
{
    for (size_t line = 0; line < image->height; line++)
        for (size_t j = 0; j < window->gap_width; j++)
            numbers[line * image->width + window->gap + j] = 0;
}

static void make_window(
    const struct image *image, const struct window *window, const ph_real *channel, ph_real *numbers)
{
    const size_t all = image->height * image->width;
    memset(numbers, 0, window->begin * sizeof *numbers);
    if (window->end > window->begin)
        memcpy(numbers + window->begin, channel + (ptrdiff_t)window->begin + window->offset,
            (window->end - window->begin) * sizeof *numbers);
    memset(numbers + window->end, 0, (all - window->end) * sizeof *numbers);
    clear_gaps(image, window, numbers);
}

static const ph_real *make_windows(
    const struct ph__expansion *expansion, const struct ph__sample_block *block, size_t row, size_t num_rows)
{
    const struct image *image = expansion->source;
    const size_t numbers = expansion->width;
    for (size_t r = 0; r < num_rows; r++) {
        const struct window window = window_of(image, row + r);
        const ph_real *channel = image->x + (block->first * image->channels + window.channel) * numbers;
        for (size_t sample = 0; sample < block->count; sample++, channel += image->channels * numbers)
            make_window(image, &window, channel, block->room + (r * block->count + sample) * numbers);
    }
    return block->room;
}

static void begin_gradient(const struct ph__expansion *expansion, const struct ph__sample_block *block)
{
    const struct image *image = expansion->source;
    const size_t numbers = image->channels * expansion->width;
    memset(image->dx + block->first * numbers, 0, block->count * numbers * sizeof *image->dx);
}

static void take_windows(const struct ph__expansion *expansion, const struct ph__sample_block *block,
    size_t row, size_t num_rows, ph_real *gradient)
{
    const struct image *image = expansion->source;
    const size_t numbers = expansion->width;
    for (size_t r = 0; r < num_rows; r++) {
        const struct window window = window_of(image, row + r);
        if (window.end <= window.begin)
            continue;
        ph_real *channel = image->dx + (block->first * image->channels + window.channel) * numbers;
        for (size_t sample = 0; sample < block->count; sample++, channel += image->channels * numbers) {
            ph_real *from = gradient + (r * block->count + sample) * numbers;
            ph_real *to = channel + (ptrdiff_t)window.begin + window.offset;
            clear_gaps(image, &window, from);
            expansion->kernels->add(window.end - window.begin, to, from + window.begin, to);
        }
    }
}

static struct image describe_image(const struct ph__operand *x, size_t kernel_height, size_t kernel_width)
{
    const size_t *dims = x->shape.dims;
    return (struct image){.channels = dims[1],
        .height = dims[2],
        .width = dims[3],
        .kernel_height = kernel_height,
        .kernel_width = kernel_width,
        .x = x->data};
}

static struct ph__expansion expand_image(const struct ph__call *call, const struct image *image)
{
    const size_t numbers = image->height * image->width, samples = ph__expansion_samples(numbers);
    const size_t rows = image->channels * image->kernel_height * image->kernel_width;
    const size_t most_rows = CHUNK_REALS / (samples * numbers) + 1;
    return (struct ph__expansion){.kernels = call->backend->kernels,
        .source = image,
        .rows = rows,
        .width = numbers,
        .chunk_rows = rows < most_rows ? rows : most_rows,
        .samples = samples,
        .make = make_windows};
}

/* ---- forward ---- */

static struct ph__expanded_product describe_convolution(
    const struct ph__call *call, const struct image *image)
{
    const struct ph__expansion expansion = expand_image(call, image);
    return (struct ph__expanded_product){.expansion = expansion,
        .num_samples = ph__rows(&call->outputs[0]),
        .outputs = call->inputs[WEIGHT].shape.dims[0],
        .weight = call->inputs[WEIGHT].data,
        .output_stride = expansion.rows,
        .row_stride = 1,
        .bias = call->num_inputs == NUM_INPUTS ? call->inputs[BIAS].data : NULL,
        .scratch = call->scratch};
}

static struct image image_of(const struct ph__call *call)
{
    const size_t *weight = call->inputs[WEIGHT].shape.dims;
    return describe_image(&call->inputs[X], weight[2], weight[3]);
}

/* Counts a multiplication and an addition for each of B k n d c r s. */
static void convolution_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const size_t *weight = call->inputs[WEIGHT].shape.dims;
    ph__cost_elementwise(call, 2.0 * (double)(weight[1] * weight[2] * weight[3]), cost_out);
}

static size_t convolution_scratch_bytes(const struct ph__call *call)
{
    const struct image image = image_of(call);
    const struct ph__expanded_product product = describe_convolution(call, &image);
    return ph__expanded_scratch_bytes(call->backend, &product);
}

static ph_status convolution_run(struct ph__call *call)
{
    const struct image image = image_of(call);
    struct ph__expanded_product product = describe_convolution(call, &image);
    product.y = call->outputs[0].data;
    ph__expanded_forward(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_convolution = {
    .name = "convolution",
    .infer = convolution_infer,
    .gradient = convolution_gradient,
    .cost = convolution_cost,
    .scratch_bytes = convolution_scratch_bytes,
    .run = convolution_run,
};

/* ---- dx: inputs dy (B,k,n,d), weight (k,c,r,s) ---- */

enum { DY };

static ph_status backward_data_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[DY], *weight = &infer->inputs[WEIGHT];
    if (!ph__type_is_real_of_dims(dy, 4) || !ph__type_is_real_of_dims(weight, 4) ||
        !ph__dim_equal(dy->dims[1], weight->dims[0]))
        return ph__infer_fail(infer, "dy (B,k,n,d), weight (k,c,r,s)");
    infer->outputs[0] =
        ph__dense_type(4, (struct ph_dim[]){dy->dims[0], weight->dims[1], dy->dims[2], dy->dims[3]});
    return PH_OK;
}

static struct image gradient_image_of(const struct ph__call *call)
{
    const size_t *weight = call->inputs[WEIGHT].shape.dims;
    struct image image = describe_image(&call->outputs[0], weight[2], weight[3]);
    image.dx = call->outputs[0].data;
    return image;
}

static void backward_data_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const size_t *weight = call->inputs[WEIGHT].shape.dims;
    ph__cost_elementwise(call, 2.0 * (double)(weight[0] * weight[2] * weight[3]), cost_out);
}

static size_t backward_data_scratch_bytes(const struct ph__call *call)
{
    const struct image image = gradient_image_of(call);
    const struct ph__expanded_product product = describe_convolution(call, &image);
    return ph__expanded_scratch_bytes(call->backend, &product);
}

static ph_status backward_data_run(struct ph__call *call)
{
    const struct image image = gradient_image_of(call);
    struct ph__expanded_product product = describe_convolution(call, &image);
    product.dy = call->inputs[DY].data;
    product.expansion.begin = begin_gradient;
    product.expansion.take = take_windows;
    ph__expanded_backward_data(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_convolution_backward_data = {
    .name = "convolution_backward_data",
    .infer = backward_data_infer,
    .cost = backward_data_cost,
    .scratch_bytes = backward_data_scratch_bytes,
    .run = backward_data_run,
};

/* ---- dW and db: inputs dy (B,k,n,d), x (B,c,n,d); attributes: r and s ---- */

enum { DATA_X = 1 };

static ph_status backward_weight_infer(struct ph__infer *infer)
{
    const struct kernel_attributes *kernel = infer->attributes;
    const struct ph_type *dy = &infer->inputs[DY], *x = &infer->inputs[DATA_X];
    if (!ph__type_is_real_of_dims(dy, 4) || !ph__type_is_real_of_dims(x, 4) ||
        !ph__dim_equal(dy->dims[2], x->dims[2]) || !ph__dim_equal(dy->dims[3], x->dims[3]))
        return ph__infer_fail(infer, "dy (B,k,n,d), x (B,c,n,d)");
    infer->outputs[0] = ph__dense_type(
        4, (struct ph_dim[]){dy->dims[1], x->dims[1], ph__dim(kernel->height), ph__dim(kernel->width)});
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &dy->dims[1]);
    return PH_OK;
}

static struct image weight_image_of(const struct ph__call *call)
{
    const struct kernel_attributes *kernel = call->attributes;
    return describe_image(&call->inputs[DATA_X], kernel->height, kernel->width);
}

static struct ph__expanded_product describe_backward_weight(
    const struct ph__call *call, const struct image *image)
{
    return (struct ph__expanded_product){.expansion = expand_image(call, image),
        .num_samples = ph__rows(&call->inputs[DY]),
        .outputs = call->inputs[DY].shape.dims[1],
        .dy = call->inputs[DY].data,
        .dw = call->outputs[0].data,
        .db = call->num_outputs > 1 ? call->outputs[1].data : NULL,
        .scratch = call->scratch};
}

static void backward_weight_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const size_t *dy = call->inputs[DY].shape.dims;
    ph__cost_elementwise(call, 2.0 * (double)dy[0] * (double)(dy[2] * dy[3]), cost_out);
}

static size_t backward_weight_scratch_bytes(const struct ph__call *call)
{
    const struct image image = weight_image_of(call);
    const struct ph__expanded_product product = describe_backward_weight(call, &image);
    return ph__expanded_weight_scratch_bytes(call->backend, &product);
}

static ph_status backward_weight_run(struct ph__call *call)
{
    const struct image image = weight_image_of(call);
    const struct ph__expanded_product product = describe_backward_weight(call, &image);
    ph__expanded_backward_weight(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_convolution_backward_weight = {
    .name = "convolution_backward_weight",
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};

ph_value ph_convolution(struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias)
{
    const ph_value inputs[NUM_INPUTS] = {x, weight, bias};
    return ph__emit1(builder, &ph__op_convolution, NULL, NULL, 0, NUM_INPUTS, inputs);
}
