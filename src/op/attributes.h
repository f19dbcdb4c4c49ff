/* Attributes and inputs of operators, for passes that rewrite a program into another form. */
#ifndef PH_OP_ATTRIBUTES_H
#define PH_OP_ATTRIBUTES_H

#include "op/operator.h"

struct ph__linear_attributes {
    enum ph_activation activation;
    int is_block_normed;                        /* between the product and the activation */
    enum ph__packing packing, backward_packing; /* of the product, of that with its input's gradient */
};
enum { PH_LINEAR_X, PH_LINEAR_PACKED, PH_LINEAR_BIAS, PH_LINEAR_NUM_INPUTS };
/* Inputs of the gradient of a linear layer's input. */
enum {
    PH_LINEAR_BACKWARD_DY,
    PH_LINEAR_BACKWARD_PACKED,
    PH_LINEAR_BACKWARD_ACTIVATED,
    PH_LINEAR_BACKWARD_NUM_INPUTS
};
/* Returns true for a linear layer of this entry that has no norm and no activation yet. */
bool ph__is_plain_linear(const struct ph__node *node, uint32_t entry);
/* Turns the node into the linear layer `linear` with these inputs and attributes. For fuse rules. */
void ph__become_linear(struct ph_builder *builder, struct ph__node *node, const struct ph__node *linear,
    const ph_value inputs[PH_LINEAR_NUM_INPUTS], const struct ph__linear_attributes *attributes);
/* Fuses an activation's node into the linear layer before it, if the layer has no activation. A fuse rule. */
bool ph__fuse_activation(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer,
    enum ph_activation activation);

/* Inputs of an activation's backward operator: the gradient, and the activation's output, of hard swish and
 * block norm the input. */
enum { PH_ACTIVATION_BACKWARD_DY, PH_ACTIVATION_BACKWARD_BY };
/* Fuses the backward node of an activation, or of a block norm with one, into the linear layer's input
 * gradient before it. A fuse rule. */
bool ph__fuse_activation_backward(struct ph_builder *builder, struct ph__node *node,
    const struct ph__node *producer, enum ph_activation activation, bool is_block_normed);
/* Returns the gradient by a block norm's input x, where y is the result of the activation behind it. */
ph_value ph__block_norm_gradient(
    struct ph_builder *builder, enum ph_activation activation, ph_value dy, ph_value x, ph_value y);

/* Inputs of attention; bags may be absent. */
enum { PH_ATTENTION_Q, PH_ATTENTION_K, PH_ATTENTION_V, PH_ATTENTION_BAGS, PH_ATTENTION_NUM_INPUTS };

struct ph__layer_norm_attributes {
    double epsilon;
};

struct ph__block_norm_attributes {
    int is_swished; /* hard swish follows */
};

struct ph__concat_attributes {
    size_t axis;
};

struct ph__slice_attributes {
    size_t axis, begin, size;
    size_t full; /* extent of x along the axis */
};

struct ph__batch_product_attributes {
    int is_a_transposed, is_b_transposed;
};

struct ph__embedding_bag_attributes {
    enum ph_pooling pooling;
    int reads_all; /* split rows: 1: reads whole numbers (scoring); 0: reads their high words (training) */
};

/* Rows of a table that a feature's ids name. */
struct ph__slot_range {
    uint64_t first_row, num_rows;
};
/* Returns a slots node's ranges, by feature; the program owns them. */
const struct ph__slot_range *ph__slots_ranges(const struct ph__node *node);
/* Returns the batch's feature for each feature that a feature_bags node selects; the program owns them. */
const size_t *ph__selected_features(const struct ph__node *node);

struct ph__scale_attributes {
    double factor;
};

#endif
