/* Factorisation machine (Rendle, ICDM 2010): logistic regression + the sum over all pairs of fields of their
 * vectors' dot product. A dense feature's vector is its value times a learnt one. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value linear = ph__feature_linear_term(builder, settings, features);    /* (B,T) */
    ph_value vectors = ph__feature_field_vectors(builder, settings, features); /* (B,F,D) */
    return ph_add(
        builder, linear, ph__layer_copies(builder, ph_fm(builder, vectors), features->num_tasks)); /* (B,T) */
}

const struct ph__model ph__model_fm = {
    .description = "factorisation machine: logistic regression and second-order products of embeddings",
    .build = build,
};
