/* A weight (out, in) in the matrix library's own layout, for products with it (forward) or with its transpose
 * (backward data), or in ours, for forward products whose rows do not depend on each other. An ordinary value of the
 * type of the weight, only its bytes are the library's; it is made anew when the weight has changed. In bf16 precision
 * the weight is rounded on the way. The gradient of the packed weight is the gradient of the weight, in plain layout. */
#include "op/operator.h"

struct pack_attributes {
    enum ph_packing packing;
};

static ph_status pack_infer(struct ph_infer *infer)
{
    if (!ph__type_is_real_of_rank(&infer->inputs[0], 2) || infer->inputs[0].dims[0].symbol != 0)
        return ph__infer_fail(infer, "a weight parameter (M,K)");
    const struct pack_attributes *attributes = infer->attributes;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dtype = ph__packed_dtype(attributes->packing);
    return PH_OK;
}

static void pack_gradient(struct ph_gradient *gradient)
{
    gradient->input_gradients[0] = gradient->output_gradients[0];
}

static struct ph_gemm_weight_shape weight_shape(const struct ph_call *call)
{
    const struct pack_attributes *attributes = call->attributes;
    return ph__weight_shape(&call->outputs[0], attributes->packing);
}

static ph_status pack_output_bytes(const struct ph_call *call, size_t output, size_t *bytes_out)
{
    (void)output;
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    return ph__gemm_packed_bytes(call->backend->gemm, &shape, bytes_out);
}

static ph_status pack_run(struct ph_call *call)
{
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    return ph__gemm_pack(call->backend->gemm, &shape, call->inputs[0].data, call->outputs[0].data);
}

const struct ph_op ph__op_pack = {
    .name = "pack",
    .traits = PH_OP_ONCE_PER_VERSION | PH_OP_CALLS_LIBRARY,
    .bf16_outputs = 1,
    .infer = pack_infer,
    .gradient = pack_gradient,
    .cost = ph__cost_copy,
    .output_bytes = pack_output_bytes,
    .run = pack_run,
};

enum ph_dtype ph__packed_dtype(enum ph_packing packing)
{
    return packing == PH_PACK_ROW_WISE_BF16 ? PH_BF16 : PH_REAL;
}

struct ph_gemm_weight_shape ph__weight_shape(const struct ph_operand *packed, enum ph_packing packing)
{
    return (struct ph_gemm_weight_shape){.out_features = packed->shape.dims[0],
        .in_features = packed->shape.dims[1],
        .is_transposed = packing == PH_PACK_TRANSPOSED,
        .is_row_wise = packing == PH_PACK_ROW_WISE || packing == PH_PACK_ROW_WISE_BF16,
        .is_bf16 = ph__is_bf16(packed)};
}

ph_value ph__pack(struct ph_builder *builder, ph_value weight, enum ph_packing packing)
{
    const struct pack_attributes attributes = {packing};
    if (ph__builder_declaration(builder, weight) == NULL)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "linear: the weight is no parameter");
    ph_value packed = ph__builder_find(builder, &ph__op_pack, &attributes, sizeof attributes, 1, &weight, 0);
    if (packed != 0)
        return packed;
    return ph__emit1(builder, &ph__op_pack, NULL, &attributes, sizeof attributes, 1, &weight);
}
