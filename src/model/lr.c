/* Logistic regression: logit = b + sum of one weight an id + w . dense. */
#include "model/feature_layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    return ph__feature_linear_term(builder, settings, features);
}

const struct ph__model ph__model_lr = {
    .description = "logistic regression: one weight for each id",
    .build = build,
};
