/* What operators are told besides their inputs, for passes that carry a program over into another form. */
#ifndef PH_OP_ATTRIBUTES_H
#define PH_OP_ATTRIBUTES_H

#include "op/operator.h"

struct ph_linear_attributes {
    enum ph_activation activation;
    enum ph_packing packing;
};

struct ph_concat_attributes {
    size_t axis;
};

struct ph_slice_attributes {
    size_t axis, begin, size;
    size_t full; /* extent of x along the axis */
};

struct ph_embedding_bag_attributes {
    enum ph_pooling pooling;
};

/* Row bases of a slots node, F + 1: feature f has rows [bases[f], bases[f + 1]) of the table. The program's. */
const uint64_t *ph__slots_bases(const struct ph_node *node);

#endif
