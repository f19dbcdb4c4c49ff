/* Helpers shared by the operator files: checks of operand types, costs, and loops that cut work by shape
 * alone.
 *
 * Conventions of an operator file: attributes are a small zeroed struct; a gradient rule copies its node
 * first, because adding nodes may move it; the output gradient is input 0 of a backward operator, so that the
 * result may take over its memory. */
#ifndef PH_OP_OPERATOR_H
#define PH_OP_OPERATOR_H

#include "base/sizes.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "op/registry.h"
#include "phloem/op.h"

/* ---- types ---- */

bool ph__type_is_real(const struct ph_type *type); /* dense, of ph_real */
bool ph__type_is_real_of_dims(const struct ph_type *type, uint32_t num_dims);
/* Returns true when the dimensions from `first` on are known when the model is built, and none is 0. */
bool ph__has_fixed_dims(const struct ph_type *type, uint32_t first);
/* Returns true when a bias is absent or has a number for each output. */
bool ph__is_bias(const struct ph_type *bias, struct ph_dim outputs);
struct ph_dim ph__last_dim(const struct ph_type *type); /* of a type of 1 dim or more */
/* Fails with "<node>: wants <wants>; got <types of all inputs>". */
ph_status ph__infer_fail(const struct ph__infer *infer, const char *wants);
/* Checks that all inputs are reals of one type, and gives output 0 that type. */
ph_status ph__infer_elementwise(struct ph__infer *infer);

/* ---- shapes at run time ---- */

bool ph__is_absent(const struct ph__operand *operand);
size_t ph__elements(const struct ph__operand *operand);
size_t ph__rows(const struct ph__operand *operand);         /* dims[0] */
size_t ph__row_elements(const struct ph__operand *operand); /* product of the other dimensions */
size_t ph__vectors(const struct ph__operand *operand);      /* product of all dimensions but the last */
size_t ph__row_width(const struct ph__operand *operand);    /* the last dimension */

/* ---- costs ---- */

/* Counts bytes of every operand once, and flops_per_element for each element of output 0. */
void ph__cost_elementwise(const struct ph__call *call, double flops_per_element, struct ph__cost *cost_out);
void ph__cost_copy(const struct ph__call *call, struct ph__cost *cost_out); /* the same without arithmetic */

/* ---- loops ---- */

typedef void (*ph__unary_kernel)(size_t n, const ph_real *x, ph_real *y);
typedef void (*ph__binary_kernel)(size_t n, const ph_real *a, const ph_real *b, ph_real *y);
ph_status ph__run_unary(struct ph__call *call, ph__unary_kernel kernel); /* output 0 = kernel(input 0) */
/* output 0 = kernel(input a, input b) */
ph_status ph__run_binary(struct ph__call *call, ph__binary_kernel kernel, size_t a, size_t b);
/* Copies `rows` rows of `columns` reals between arrays with the given strides in reals, in parallel. */
void ph__copy_columns(const struct ph_backend *backend, size_t rows, size_t columns, const ph_real *source,
    size_t source_stride, ph_real *target, size_t target_stride);

/* ---- nodes that several operators add ---- */

/* The product that a weight is packed for. */
enum ph__packing {
    PH_PACK_FORWARD,
    PH_PACK_TRANSPOSED,    /* backward data */
    PH_PACK_ROW_WISE,      /* forward; rows of the result do not depend on each other */
    PH_PACK_ROW_WISE_BF16, /* the same, the weight rounded to bf16 */
    PH_PACK_BF16,          /* forward, of inputs and weights in bf16 */
    PH_PACK_BF16_TRANSPOSED,
    PH_PACK_INT8, /* forward, of bytes; rows do not depend on each other either */
    PH_PACK_INT8_TRANSPOSED,
};
/* Returns the packed layout of a weight (out, in), packed once per version and shared by all readers. */
enum ph_dtype ph__packed_dtype(enum ph__packing packing); /* unless the precision pass makes it bf16 */
struct ph__gemm_weight_shape ph__weight_shape(const struct ph__operand *packed, enum ph__packing packing);
/* Sums dy (...,K) over all but the last dimension: (K). */
ph_value ph__sum_rows(struct ph_builder *builder, ph_value dy);
/* Adds a layer's gradients by its weight and its bias, where either is wanted: outputs 0 and, with a bias, 1
 * of the operator `backward`. weight, bias: the layer's inputs. */
void ph__weight_gradients(struct ph__gradient *gradient, size_t weight, size_t bias,
    const struct ph__op *backward, const void *attributes, size_t attributes_size, size_t num_inputs,
    const ph_value *inputs);
/* Tells whether the operator is a mean over labels: ph_bce_with_logits, ph_squared_error. Its outputs are the
 * mean, and the total weight or number of labels that it is a mean over. */
bool ph__is_mean_loss(const struct ph__op *op);
/* Returns true when all such losses are means over the same labels, weighed alike. */
bool ph__losses_weigh_alike(const struct ph_builder *builder);
/* Returns the gradient by an activation's input: dy for the identity. by: the activation's output, of hard
 * swish its input. */
ph_value ph__activation_backward(
    struct ph_builder *builder, enum ph_activation activation, ph_value dy, ph_value by);

/* ---- one axis ---- */

/* An array seen along one axis, for joining and cutting: `rows` runs of `extent * inner` reals. */

struct ph__axis_view {
    size_t rows;  /* product of the dimensions before the axis */
    size_t inner; /* product of the dimensions after it */
};

struct ph__axis_view ph__axis_view(const struct ph_shape *shape, size_t axis);
/* Returns true when x can be joined or cut along the axis: not the batch, and of fixed extent. */
bool ph__axis_is_valid(const struct ph_type *x, size_t axis);

#endif
