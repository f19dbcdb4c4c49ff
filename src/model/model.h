/* Inside of the model room: what each architecture's file gives. */
#ifndef PH_MODEL_MODEL_H
#define PH_MODEL_MODEL_H

#include "phloem/model.h"

/* Adds the architecture to the builder and returns its logits (B,T). Features have been checked: at least one
 * dense or sparse feature and one task. */
typedef ph_value ph_model_function(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

#define MODEL(name, description) ph_model_function ph__model_##name;
#include "model/models.def"
#undef MODEL

#endif
