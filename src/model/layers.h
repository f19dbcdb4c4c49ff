/* Pieces that several models share: what follows a value. What reads a sample is in feature_layers.h. Each
 * puts its parameters into its own scope of the store. B samples, F features, D embedding dimension, T tasks.
 */
#ifndef PH_MODEL_LAYERS_H
#define PH_MODEL_LAYERS_H

#include "phloem/model.h"
#include "phloem/op.h"

extern const struct ph_init ph__layer_xavier, ph__layer_zeros, ph__layer_ones; /* weights, biases, scales */

/* The extent of dimension `axis` of x, not the batch's; 1 for no value, when after an error nothing is built
 * any more. */
size_t ph__layer_extent(struct ph_builder *builder, ph_value x, size_t axis);

/* Begins the scope "<name>.<index>", for ph_builder_pop_scope to end. */
void ph__layer_push_index(struct ph_builder *builder, const char *name, size_t index);

/* activation(x W^T + b) with x (B,K) or (B,...,K): (B,units), (B,...,units). Parameters "<name>.weight"
 * (units,K),
 * "<name>.bias" (units). */
ph_value ph__layer_affine(
    struct ph_builder *builder, const char *name, ph_value x, size_t units, enum ph_activation activation);

/* The settings' activation of x, and their dropout: shapes stay. */
ph_value ph__layer_rectify(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);
ph_value ph__layer_drop(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

/* What follows a linear layer: batch norm as the settings say, activation, dropout. x (B,K). Parameters
 * "norm.…" of the current scope. */
ph_value ph__layer_activate(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

/* Layer norm over the last dimension, with parameters "<name>.gamma", "<name>.beta". */
ph_value ph__layer_norm(struct ph_builder *builder, const char *name, ph_value x);

/* Hidden layers, each linear -> batch norm -> activation -> dropout as the settings say: (B, units of the
 * last). Layer i's parameters are "<name>.<i>.…". */
ph_value ph__layer_perceptron(struct ph_builder *builder, const char *name, ph_value x, const int64_t *units,
    size_t num_units, const struct ph_model_settings *settings);

/* The hidden layers of settings, "deep.<i>": (B, units of the last). */
ph_value ph__layer_hidden(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

/* The hidden layers of settings, then a linear layer to the logits: (B,T). */
ph_value ph__layer_deep(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* W x, vector by vector: x (B,n,D), W the parameter `name` (rows,n); (B,rows,D). */
ph_value ph__layer_mix(struct ph_builder *builder, const char *name, ph_value x, size_t rows);

/* y (B,1), the same for each task: (B,T). */
ph_value ph__layer_copies(struct ph_builder *builder, ph_value y, size_t num_tasks);

/* (B,F,D) -> (B, F*D). */
ph_value ph__layer_flatten(struct ph_builder *builder, ph_value x);

/* Side by side along dimension 1, where either may be 0: (B, K of a + K of b), (B, F of a + F of b, D). */
ph_value ph__layer_beside(struct ph_builder *builder, ph_value a, ph_value b);

#endif
