/* Layers that several models share, over values; those that read a sample are in feature_layers.h. Each puts
 * its parameters into its own scope of the store. B samples, F features, D embedding dimension, T tasks. */
#ifndef PH_MODEL_LAYERS_H
#define PH_MODEL_LAYERS_H

#include "phloem/model.h"
#include "phloem/op.h"

extern const struct ph_init ph__layer_xavier, ph__layer_zeros, ph__layer_ones; /* weights, biases, scales */

/* Returns the extent of dimension `axis` of x, not the batch's; 1 for no value, after an error. */
size_t ph__layer_extent(struct ph_builder *builder, ph_value x, size_t axis);

/* Begins the scope "<name>.<index>"; ph_builder_pop_scope ends it. */
void ph__layer_push_index(struct ph_builder *builder, const char *name, size_t index);

/* Returns activation(x W^T + b) of x (B,K) or (B,...,K): (B,units), (B,...,units). Parameters "<name>.weight"
 * (units,K), "<name>.bias" (units) where ph__layer_bias has one. */
ph_value ph__layer_affine(struct ph_builder *builder, const char *name, ph_value x, size_t units,
    enum ph_activation activation, const struct ph_model_settings *settings);
/* Returns the parameter "bias" (units) of a linear layer, or 0 where the settings give hidden layers none;
 * settings NULL: a layer of logits, which always has one. */
ph_value ph__layer_bias(struct ph_builder *builder, size_t units, const struct ph_model_settings *settings);

/* Applies the settings' dropout to x. */
ph_value ph__layer_drop(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

/* Ends a hidden layer behind its linear part: batch or block norm, activation, dropout as the settings say. x
 * (B,K). Parameters "norm.…" of the current scope. */
ph_value ph__layer_activate(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

/* Layer norm over the last dimension, with parameters "<name>.gamma", "<name>.beta". */
ph_value ph__layer_norm(struct ph_builder *builder, const char *name, ph_value x);

/* Builds hidden layers, each linear -> batch or block norm -> activation -> dropout as the settings say: (B,
 * units of the last). Layer i's parameters are "<name>.<i>.…". */
ph_value ph__layer_perceptron(struct ph_builder *builder, const char *name, ph_value x, const int64_t *units,
    size_t num_units, const struct ph_model_settings *settings);

/* Builds the hidden layers of settings, "deep.<i>": (B, units of the last). */
ph_value ph__layer_hidden(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

/* Returns the logits of a linear layer "output" over x (B,K), which it names "hidden": (B,T). */
ph_value ph__layer_logits(struct ph_builder *builder, ph_value x, size_t num_tasks);

/* Builds the hidden layers of settings, then ph__layer_logits: (B,T). */
ph_value ph__layer_deep(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Returns W x over vectors: x (B,n,D), W the parameter `name` (rows,n); (B,rows,D). */
ph_value ph__layer_mix(struct ph_builder *builder, const char *name, ph_value x, size_t rows);

/* Repeats y (B,1) for each task: (B,T). */
ph_value ph__layer_copies(struct ph_builder *builder, ph_value y, size_t num_tasks);

/* (B,F,D) -> (B, F*D). */
ph_value ph__layer_flatten(struct ph_builder *builder, ph_value x);

/* Joins a and b along dimension 1, where either may be 0: (B, K of a + K of b), (B, F of a + F of b, D). */
ph_value ph__layer_beside(struct ph_builder *builder, ph_value a, ph_value b);

#endif
