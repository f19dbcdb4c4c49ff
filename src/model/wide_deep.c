/* Wide & Deep (Cheng et al., DLRS 2016), the wide part without hand-made crosses: logistic regression +
 * perceptron. */
#include "model/feature_layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value wide = ph__feature_linear_term(builder, settings, features); /* (B,T) */
    ph_value deep = ph__model_dnn.build(builder, settings, features);     /* (B,T) */
    return ph_add(builder, wide, deep);
}

const struct ph__model ph__model_wide_deep = {
    .description = "Wide & Deep: logistic regression beside a multi-layer perceptron",
    .build = build,
};
