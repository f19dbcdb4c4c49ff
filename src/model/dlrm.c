/* DLRM (Naumov et al., arXiv 1906.00091): a bottom perceptron takes the dense features to one more vector of dimension
 * D; the vectors interact, by all pairwise dot products ("dot") or side by side ("cat"); a top perceptron gives the
 * logits. Without dense features there is no bottom. */
#include "model/layers.h"
#include "model/model.h"

/* (B,D), 0 without dense features */
static ph_value bottom_part(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (features->num_dense == 0)
        return 0;
    ph_value x = ph_input_dense(builder, features->num_dense);
    x = ph__layer_perceptron(
        builder, "bottom", x, settings->bottom_units, settings->num_bottom_units, settings);
    return ph__layer_affine(builder, "bottom.output", x, (size_t)settings->embedding_dim,
        (enum ph_activation)settings->activation);
}

ph_value ph__model_dlrm(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value bottom = bottom_part(builder, settings, features);           /* (B,D) */
    ph_value vectors = ph__layer_embeddings(builder, settings, features); /* (B,F,D) */
    bool has_dot = vectors != 0 && settings->interaction == PH_INTERACTION_DOT;
    ph_value x = has_dot ? ph_dot_interaction(builder, bottom, vectors) /* (B, D + pairs) */
                         : ph__layer_beside(builder, bottom, ph__layer_flatten(builder, vectors));
    bool has_top = settings->num_top_units > 0;
    x = ph__layer_perceptron(builder, "top", x, has_top ? settings->top_units : settings->hidden_units,
        has_top ? settings->num_top_units : settings->num_hidden_units, settings);
    return ph__layer_affine(builder, "output", x, features->num_tasks, PH_IDENTITY); /* (B,T) */
}
