/* Multi-layer perceptron over all embeddings and dense features side by side. */
#include "model/layers.h"
#include "model/model.h"

ph_value ph__model_dnn(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value x = ph__layer_flatten(builder, ph__layer_embeddings(builder, settings, features)); /* (B, F*D) */
    if (features->num_dense > 0)
        x = ph__layer_beside(builder, x, ph_input_dense(builder, features->num_dense));
    return ph__layer_deep(builder, x, settings, features); /* (B,T) */
}
