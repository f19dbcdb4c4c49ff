/* DeepFM (Guo et al., IJCAI 2017): a factorisation machine and a perceptron that share the embeddings. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value linear = ph__feature_linear_term(builder, settings, features);                /* (B,T) */
    ph_value vectors = ph__feature_field_vectors(builder, settings, features);             /* (B,F,D) */
    ph_value fm = ph__layer_copies(builder, ph_fm(builder, vectors), features->num_tasks); /* (B,T) */
    ph_value deep = ph__layer_deep(builder, ph__layer_flatten(builder, vectors), settings, features);
    return ph_add(builder, ph_add(builder, linear, fm), deep);
}

const struct ph__model ph__model_deepfm = {
    .description = "DeepFM: factorisation machine beside a multi-layer perceptron on the same embeddings",
    .build = build,
};
