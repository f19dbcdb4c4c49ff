/* Logistic regression: logit = b + sum of one weight an id + w . dense. */
#include "model/layers.h"
#include "model/model.h"

ph_value ph__model_lr(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    return ph__layer_linear_part(builder, settings, features);
}
