/* Gradients of micro-batches, which add up to their batch's ("gradient accumulation").
 *
 * Entries up to "backward" run for each micro-batch, and keep the parts of its gradients in values that stay
 * from run to run (PH_OP_KEEPS_OUTPUTS). Of a dense gradient the sum so far is kept. Of a lookup in a table
 * the positions and the gradient of the looked-up rows are kept; entry "combine", which runs once, merges the
 * slots of all micro-batches as if they had come as one, so that the update sees each slot once. */
#ifndef PH_OP_ACCUMULATION_H
#define PH_OP_ACCUMULATION_H

#include "op/table/op_table.h"

struct ph__accumulation {
    ph_value num_before;      /* scalar: micro-batches before the current one; 0 begins anew */
    size_t num_micro_batches; /* at most */
};

/* Ends the current entry, whose gradients (count) are a micro-batch's, with the nodes that keep them; begins
 * entry "combine", and replaces gradients by the batch's. 0 stays 0. Errors stick to the builder. */
void ph__accumulate_gradients(struct ph_builder *builder, const struct ph__accumulation *accumulation,
    size_t count, ph_value *gradients);

/* Returns a micro-batch's share of its batch's objective: objective * own / whole, 0 where whole is 0; all
 * are scalars. `loss` is a mean loss (operator.h); own, the weight of the labels that it is a mean over, is
 * output weight_out, and whole is the batch's. PH_ERROR_CONFIG: the program has a loss that is a mean over
 * other weights. */
ph_value ph__share_of_batch(
    struct ph_builder *builder, ph_value objective, ph_value loss, ph_value whole, ph_value *weight_out);

/* Returns a micro-batch's share of one mean loss of its batch: loss * own / whole, as above. */
ph_value ph__share_of_loss(struct ph_builder *builder, ph_value loss, ph_value whole);

/* Keep the positions of a lookup, and bring their slots, outputs_out[0], into the order of one batch: see the
 * operators. */
enum { PH_KEPT_SLOTS, PH_KEPT_ROWS, PH_KEPT_GRADIENT, PH_KEPT_COEFFICIENTS, PH_KEPT_OUTPUTS };
void ph__keep_lookup(struct ph_builder *builder, const struct ph__accumulation *accumulation,
    const struct ph__lookup_entries *lookup, ph_value gradient, ph_value outputs_out[PH_KEPT_OUTPUTS]);
void ph__group_positions(struct ph_builder *builder, const struct ph__accumulation *accumulation,
    ph_value kept, size_t num_features, ph_value outputs_out[2]);

#endif
