/* Multi-layer perceptron over all embeddings and dense features side by side. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value x = ph__feature_all(builder, settings, features);
    return ph__layer_deep(builder, x, settings, features); /* (B,T) */
}

const struct ph__model ph__model_dnn = {
    .description = "multi-layer perceptron over all features side by side",
    .takes_towers = true,
    .build = build,
};
