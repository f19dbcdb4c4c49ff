/* xDeepFM (Lian et al., KDD 2018, arXiv 1803.05170): logistic regression, a compressed interaction network
 * over the fields' vectors and a perceptron. Each CIN layer mixes the products of its input's vectors with
 * the first layer's, dimension by dimension; its output is summed over the dimensions, and one linear layer
 * over all layers' sums computes the CIN's logits. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

struct xdeepfm_keys {
    struct ph__integer_list cin_units;
};

static const struct ph__option options[] = {
    PH_INTEGERS_KEY("cin_units", struct xdeepfm_keys, cin_units, "16,16,16", 1, 65536,
        "Number of vectors that each layer of the compressed interaction network makes. hidden_units: the "
        "perceptron; none: no perceptron."),
};

static const struct ph__option_table keys = {
    .section = "model.xdeepfm",
    .help = "Keys of xDeepFM.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct xdeepfm_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* x (B,H,D), first (B,F,D) -> (B,units,D) */
static ph_value cin_layer(struct ph_builder *builder, size_t layer, ph_value x, ph_value first, size_t units)
{
    ph__layer_push_index(builder, "cin", layer);
    const size_t pairs = ph__layer_extent(builder, x, 1) * ph__layer_extent(builder, first, 1);
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){units, pairs}, ph__layer_xavier);
    ph_value bias = ph_parameter(builder, "bias", 1, &units, ph__layer_zeros);
    x = ph_cin(builder, x, first, weight, bias);
    ph_builder_pop_scope(builder);
    return x;
}

/* (B,F,D) -> (B,T) */
static ph_value cin(
    struct ph_builder *builder, const struct ph__integer_list *units, ph_value first, size_t num_tasks)
{
    ph_value x = first, sums = 0;
    for (size_t i = 0; i < units->count; i++) {
        x = cin_layer(builder, i, x, first, (size_t)units->items[i]);
        sums = ph__layer_beside(builder, sums, ph_sum_last(builder, x));
    }
    ph_name_value(builder, "cin", sums);
    return ph__layer_affine(builder, "cin.output", sums, num_tasks, PH_IDENTITY, NULL);
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct xdeepfm_keys *own = settings->own;
    ph_value logits = ph__feature_linear_term(builder, settings, features);    /* (B,T) */
    ph_value vectors = ph__feature_field_vectors(builder, settings, features); /* (B,F,D) */
    if (own->cin_units.count > 0)
        logits = ph_add(builder, logits, cin(builder, &own->cin_units, vectors, features->num_tasks));
    if (settings->num_hidden_units > 0)
        logits = ph_add(builder, logits,
            ph__layer_deep(builder, ph__layer_flatten(builder, vectors), settings, features));
    return logits;
}

const struct ph__model ph__model_xdeepfm = {
    .description = "xDeepFM: logistic regression, compressed interaction network and perceptron over the "
                   "same embeddings",
    .keys = &keys,
    .build = build,
};
