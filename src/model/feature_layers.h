/* Layers that read a sample's features. Each puts its parameters into its own scope of the store. B samples,
 * F sparse features, D embedding dimension, T tasks. */
#ifndef PH_MODEL_FEATURE_LAYERS_H
#define PH_MODEL_FEATURE_LAYERS_H

#include "base/option/option.h"
#include "phloem/model.h"
#include "phloem/op.h"

/* Looks up one vector of D reals per sparse feature, the pooled rows of its bag: (B,F,D), 0 without sparse
 * features. All features' rows are slices of one table: "embedding.<feature>". With towers (towers.h) each
 * tower has a table and a lookup of its own, and the result is the towers' vectors: (B, vectors,
 * ph__vector_width). */
ph_value ph__feature_embeddings(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Returns the features' slices, for a table: features that share rows have one slice. */
const struct ph_table_slice *ph__feature_slices(const struct ph_model_features *features);

/* Finds the id feature of this name; without one the builder fails, and the result is 0. */
size_t ph__feature_find(
    struct ph_builder *builder, const struct ph_model_features *features, const char *name);

/* Looks up embeddings of the S features that a list names, in a table of their own in the current scope, in
 * the order of the features: (B,S,D). */
ph_value ph__feature_named_embeddings(struct ph_builder *builder, const struct ph__text_list *names,
    const struct ph_model_settings *settings, const struct ph_model_features *features);

/* Returns ph__feature_embeddings, followed by one learnt vector per dense feature times its value: (B, F +
 * num_dense, D). */
ph_value ph__feature_field_vectors(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Returns all embeddings and the dense features side by side: (B, F*D + num_dense). */
ph_value ph__feature_all(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Passes the dense features through bottom_units and one more layer to D: (B,D), 0 without dense features.
 * Parameters "bottom.…". */
ph_value ph__feature_bottom(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Returns the embeddings and, with dense features, the bottom's vector after them: (B, F or F + 1, D). */
ph_value ph__feature_vectors_and_bottom(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Logistic regression without its sigmoid: one weight per id and task, one per dense feature and task, and a
 * bias: (B,T). Parameters "linear.<feature>", "linear_part.weight", "linear_part.bias": separate scopes, so
 * that a feature may have any name. */
ph_value ph__feature_linear_term(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

#endif
