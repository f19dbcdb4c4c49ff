/* What the operators over histories share: B bags, one a sample, with I items. */
#ifndef PH_OP_BAGS_H
#define PH_OP_BAGS_H

#include "op/operator.h"

bool ph__type_is_bags(const struct ph_type *type); /* jagged, one bag a sample */
/* The bags whose items are the rows of values of this type: the first such value of the graph; 0: there is none. */
ph_value ph__bags_of(const struct ph_builder *builder, const struct ph_type *type);

/* Weights of items, (I,1) of these bags' items, or none. */
bool ph__are_item_weights(const struct ph_type *weights, const struct ph_type *bags);

/* Runs task over the samples in blocks of about PH_BLOCK_ELEMENTS, where an item has row_elements: task(argument, first,
 * last, worker) covers the bags [first, last). The blocks depend on the batch alone. */
void ph__for_bags(const struct ph_backend *backend, const struct ph_operand *bags, size_t row_elements,
    ph_range_task task, void *argument);

/* x (B,K), factors (I,1) or 0: (I,K), row i = factor_i * the row of item i's sample. */
ph_value ph__repeat_rows(struct ph_builder *builder, ph_value x, ph_value bags, ph_value factors);
/* items (I,K), x (B,K): (I,1), the dot product of each item's row with its sample's. */
ph_value ph__item_dots(struct ph_builder *builder, ph_value items, ph_value x, ph_value bags);

#endif
