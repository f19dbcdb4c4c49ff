/* Products of two matrices of each sample: C_b = op(A_b) op(B_b), op transposing where an attribute says so.
 * A (B,p,r) or (B,r,p), B (B,r,q) or (B,q,r), C (B,p,q). The gradients are such products again:
 *   d op(A) = dC op(B)^T,  d op(B) = op(A)^T dC
 * The kernel takes A either way; a transposed B is transposed back first, in the cache, a few samples at a
 * time. */
#include "op/attributes.h"

enum { A, B, NUM_INPUTS };
enum { TURNED_REALS = 4096 }; /* of B that a worker transposes at a time, unless a sample has more */

struct product_call {
    const struct ph__kernels *kernels;
    struct ph__small_product_args args; /* of the whole batch, B as stored */
    bool is_b_transposed;
    ph_real *turned; /* (workers, turned_samples, r, q) */
    size_t turned_samples;
};

/* ---- the rules ---- */

static ph_status product_infer(struct ph__infer *infer)
{
    const struct ph__batch_product_attributes *attributes = infer->attributes;
    const struct ph_type *a = &infer->inputs[A], *b = &infer->inputs[B];
    const char *wants = "a (B,p,r) and b (B,r,q), or either transposed";
    if (!ph__type_is_real_of_dims(a, 3) || !ph__type_is_real_of_dims(b, 3))
        return ph__infer_fail(infer, wants);
    const struct ph_dim rows = a->dims[attributes->is_a_transposed ? 2 : 1],
                        inner = a->dims[attributes->is_a_transposed ? 1 : 2],
                        same = b->dims[attributes->is_b_transposed ? 2 : 1],
                        columns = b->dims[attributes->is_b_transposed ? 1 : 2];
    if (!ph__dim_equal(a->dims[0], b->dims[0]) || !ph__dim_equal(inner, same) || rows.symbol != 0 ||
        inner.symbol != 0 || columns.symbol != 0)
        return ph__infer_fail(infer, wants);
    infer->outputs[0] = ph__dense_type(3, (struct ph_dim[]){a->dims[0], rows, columns});
    return PH_OK;
}

static void product_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const struct ph__batch_product_attributes *attributes = node.attributes;
    const bool is_a_turned = attributes->is_a_transposed, is_b_turned = attributes->is_b_transposed;
    const ph_value a = node.inputs[A], b = node.inputs[B], dc = gradient->output_gradients[0];
    if (gradient->is_wanted[A])
        gradient->input_gradients[A] = is_a_turned ? ph_batch_product(builder, b, dc, is_b_turned, true)
                                                   : ph_batch_product(builder, dc, b, false, !is_b_turned);
    if (gradient->is_wanted[B])
        gradient->input_gradients[B] = is_b_turned ? ph_batch_product(builder, dc, a, true, is_a_turned)
                                                   : ph_batch_product(builder, a, dc, !is_a_turned, false);
}

static struct product_call describe(const struct ph__call *call)
{
    const struct ph__batch_product_attributes *attributes = call->attributes;
    const size_t *a = call->inputs[A].shape.dims, *c = call->outputs[0].shape.dims;
    const bool is_a_transposed = attributes->is_a_transposed, is_b_transposed = attributes->is_b_transposed;
    const size_t inner = a[is_a_transposed ? 1 : 2], b_reals = inner * c[2];
    return (struct product_call){.kernels = call->backend->kernels,
        .is_b_transposed = is_b_transposed,
        .turned_samples = b_reals < TURNED_REALS && b_reals > 0 ? TURNED_REALS / b_reals : 1,
        .turned = call->scratch,
        .args = {.rows = c[1],
            .inner = inner,
            .columns = c[2],
            .a = call->inputs[A].data,
            .a_row_stride = is_a_transposed ? 1 : inner,
            .a_inner_stride = is_a_transposed ? c[1] : 1,
            .a_step = c[1] * inner,
            .b = call->inputs[B].data,
            .b_stride = c[2],
            .b_step = b_reals,
            .c = call->outputs[0].data,
            .c_stride = c[2],
            .c_step = c[1] * c[2]}};
}

/* Counts a multiplication and an addition for each of B p q r. */
static void product_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)describe(call).args.inner, cost_out);
}

static size_t product_scratch_bytes(const struct ph__call *call)
{
    const struct product_call product = describe(call);
    if (!product.is_b_transposed)
        return 0;
    return ph__team_num_threads(call->backend->team) * product.turned_samples * product.args.b_step *
           sizeof(ph_real);
}

/* ---- the run ---- */

/* Multiplies samples [first, first + count), B from `b` on. */
static void multiply(const struct product_call *product, size_t first, size_t count, const ph_real *b)
{
    struct ph__small_product_args args = product->args;
    args.count = count;
    args.a += first * args.a_step;
    args.b = b;
    args.c += first * args.c_step;
    product->kernels->small_product(&args);
}

static void product_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct product_call *product = argument;
    const struct ph__small_product_args *args = &product->args;
    if (!product->is_b_transposed) {
        multiply(product, first, last - first, args->b + first * args->b_step);
        return;
    }
    ph_real *turned = product->turned + worker * product->turned_samples * args->b_step;
    for (size_t i = first; i < last; i += product->turned_samples) {
        const size_t count = last - i < product->turned_samples ? last - i : product->turned_samples;
        product->kernels->transpose(count, args->columns, args->inner, args->b + i * args->b_step, turned);
        multiply(product, i, count, turned);
    }
}

static ph_status product_run(struct ph__call *call)
{
    struct product_call product = describe(call);
    const size_t sample_reals = product.args.a_step + product.args.b_step + product.args.c_step;
    ph__for_blocks(
        call->backend, ph__rows(&call->inputs[A]), ph__block_rows(sample_reals), product_samples, &product);
    return PH_OK;
}

const struct ph__op ph__op_batch_product = {
    .name = "batch_product",
    .infer = product_infer,
    .gradient = product_gradient,
    .cost = product_cost,
    .scratch_bytes = product_scratch_bytes,
    .run = product_run,
};

ph_value ph_batch_product(
    struct ph_builder *builder, ph_value a, ph_value b, bool is_a_transposed, bool is_b_transposed)
{
    const struct ph__batch_product_attributes attributes = {is_a_transposed, is_b_transposed};
    const ph_value inputs[NUM_INPUTS] = {a, b};
    return ph__emit1(
        builder, &ph__op_batch_product, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs);
}
