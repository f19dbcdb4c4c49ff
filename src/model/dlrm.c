/* DLRM (Naumov et al., arXiv 1906.00091): a bottom perceptron turns the dense features into one more vector
 * of dimension D; the vectors interact, by all pairwise dot products ("dot") or side by side ("cat"); a top
 * perceptron computes the logits. Without dense features there is no bottom, and the vector of a single id
 * feature has nothing to interact with: it goes to the top as it is. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value bottom = ph__feature_bottom(builder, settings, features);      /* (B,D) */
    ph_value vectors = ph__feature_embeddings(builder, settings, features); /* (B,F,D) */
    bool has_pairs = vectors != 0 && (bottom != 0 || ph__layer_extent(builder, vectors, 1) > 1);
    bool has_dot = has_pairs && settings->interaction == PH_INTERACTION_DOT;
    ph_value x = has_dot ? ph_dot_interaction(builder, bottom, vectors) /* (B, D + pairs) */
                         : ph__layer_beside(builder, bottom, ph__layer_flatten(builder, vectors));
    bool has_top = settings->num_top_units > 0;
    x = ph__layer_perceptron(builder, "top", x, has_top ? settings->top_units : settings->hidden_units,
        has_top ? settings->num_top_units : settings->num_hidden_units, settings);
    return ph__layer_logits(builder, x, features->num_tasks); /* (B,T) */
}

const struct ph__model ph__model_dlrm = {
    .description =
        "DLRM: perceptron over the dense features, interaction with the embeddings, perceptron on top",
    .takes_towers = true,
    .build = build,
};
