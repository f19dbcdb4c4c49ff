/* Field-aware factorisation machine (Juan et al., RecSys 2016): logistic regression + the sum over all pairs
 * of fields of the dot product of each one's vector towards the other. An id has F vectors of D reals, one
 * for each field. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const size_t num_fields = features->num_sparse + features->num_dense;
    struct ph_model_settings wide = *settings;
    wide.embedding_dim = settings->embedding_dim * (int64_t)num_fields;
    ph_value linear = ph__feature_linear_term(builder, settings, features); /* (B,T) */
    ph_value vectors = ph__feature_field_vectors(builder, &wide, features); /* (B,F,F*D) */
    ph_value products = ph__layer_copies(builder, ph_field_aware(builder, vectors), features->num_tasks);
    return ph_add(builder, linear, products);
}

const struct ph__model ph__model_ffm = {
    .description = "field-aware factorisation machine: an id has one vector for each field",
    .build = build,
};
