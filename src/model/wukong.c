/* Wukong (Zhang et al., arXiv 2403.02545): layers of a factorisation machine block and a linear compression
 * block over the fields' vectors, X (n,D) in, (n_F + n_L, D) out:
 *   X' = LN([FMB(X), LCB(X)] + R X),   FMB(X) = f(MLP(LN(X (X^T Y)))) as n_F vectors,   LCB(X) = W_L X,
 * with f the activation. Y (n,k) is learnt, so that the products cost O(n k D), or made of X itself
 * (attentive projection); R is the identity where the numbers of rows agree. The orders of interaction double
 * from layer to layer. Dense features are one more vector, behind a perceptron. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

struct wukong_keys {
    int64_t layers, fm_outputs, compressed_outputs, rank, attentive_inputs;
    bool layer_norm;
    struct ph__integer_list fm_units;
};

#define FIELD(member) struct wukong_keys, member

static const struct ph__option options[] = {
    PH_INTEGER_KEY("layers", FIELD(layers), "3", 1, 64,
        "Number of Wukong layers. hidden_units: the perceptron over the last one."),
    PH_INTEGER_KEY("fm_outputs", FIELD(fm_outputs), "8", 1, 65536,
        "Number of vectors that the factorisation machine block of a layer makes, n_F."),
    PH_INTEGER_KEY("compressed_outputs", FIELD(compressed_outputs), "8", 1, 65536,
        "Number of vectors that the linear compression block of a layer makes, n_L."),
    PH_INTEGER_KEY("rank", FIELD(rank), "8", 0, 65536,
        "Number of columns k of the projection Y in X (X^T Y). 0: all pairs of vectors, X X^T."),
    PH_INTEGER_KEY("attentive_inputs", FIELD(attentive_inputs), "0", 0, 65536,
        "Number of vectors that a layer's input is compressed to before Y is computed from it, by one hidden "
        "layer as wide as the first of fm_units. 0: Y is a learnt parameter."),
    PH_INTEGERS_KEY("fm_units", FIELD(fm_units), "32", 1, 1048576,
        "Widths of the hidden layers of the perceptron in a factorisation machine block."),
    PH_BOOL_KEY("layer_norm", FIELD(layer_norm), "true",
        "true: layer norm of a layer's products and of the vectors that it makes. Without it, with "
        "activation identity and no hidden layers, the logit is a polynomial of degree 2^layers in the "
        "embeddings."),
};

static const struct ph__option_table keys = {
    .section = "model.wukong",
    .help = "Keys of Wukong.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct wukong_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* Returns Y^T X with a Y made from the input: (B,k,D). */
static ph_value attentive_projection(
    struct ph_builder *builder, ph_value x, size_t rank, const struct ph_model_settings *settings)
{
    const struct wukong_keys *own = settings->own;
    const size_t n = ph__layer_extent(builder, x, 1);
    const size_t units = own->fm_units.count > 0 ? (size_t)own->fm_units.items[0] : rank;
    ph_value y = ph__layer_mix(builder, "attentive.weight", x, (size_t)own->attentive_inputs);
    y = ph__layer_affine(builder, "attentive.0", ph__layer_flatten(builder, y), units, PH_RELU, settings);
    y = ph__layer_affine(builder, "attentive.1", y, rank * n, PH_IDENTITY, settings);
    return ph_batch_product(builder, ph_reshape(builder, y, 2, (size_t[]){rank, n}), x, false, false);
}

/* Returns the products of all rows of x with those of the projection, side by side: (B, n * k). */
static ph_value products(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct wukong_keys *own = settings->own;
    const size_t rank = (size_t)own->rank;
    ph_value projection = x; /* (B,n,D) */
    if (rank > 0 && own->attentive_inputs > 0)
        projection = attentive_projection(builder, x, rank, settings);
    else if (rank > 0)
        projection = ph__layer_mix(builder, "projection", x, rank);
    return ph__layer_flatten(builder, ph_batch_product(builder, x, projection, false, true));
}

/* (B,n,D) -> (B,fm_outputs,D) */
static ph_value fm_block(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct wukong_keys *own = settings->own;
    const size_t dims[] = {(size_t)own->fm_outputs, ph__layer_extent(builder, x, 2)};
    ph_builder_push_scope(builder, "fm");
    struct ph_model_settings plain = *settings; /* the block has its own layer norm */
    plain.batch_norm = plain.block_norm = false;
    ph_value y = products(builder, x, settings);
    y = own->layer_norm ? ph__layer_norm(builder, "norm", y) : y;
    y = ph__layer_perceptron(builder, "hidden", y, own->fm_units.items, own->fm_units.count, &plain);
    y = ph__layer_affine(builder, "output", y, dims[0] * dims[1], settings->activation, settings);
    ph_builder_pop_scope(builder);
    return ph_reshape(builder, y, 2, dims);
}

static ph_value wukong_layer(
    struct ph_builder *builder, size_t layer, ph_value x, const struct ph_model_settings *settings)
{
    const struct wukong_keys *own = settings->own;
    ph__layer_push_index(builder, "layer", layer);
    ph_value y = ph__layer_beside(builder, fm_block(builder, x, settings),
        ph__layer_mix(builder, "compressed", x, (size_t)own->compressed_outputs));
    const size_t rows = ph__layer_extent(builder, y, 1);
    ph_value residual =
        ph__layer_extent(builder, x, 1) == rows ? x : ph__layer_mix(builder, "residual", x, rows);
    x = ph_add(builder, y, residual);
    x = own->layer_norm ? ph__layer_norm(builder, "norm", x) : x;
    ph_builder_pop_scope(builder);
    return x;
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct wukong_keys *own = settings->own;
    ph_value x = ph__feature_vectors_and_bottom(builder, settings, features); /* (B,n,D) */
    for (size_t layer = 0; layer < (size_t)own->layers; layer++)
        x = wukong_layer(builder, layer, x, settings);
    return ph__layer_deep(builder, ph__layer_flatten(builder, x), settings, features); /* (B,T) */
}

const struct ph__model ph__model_wukong = {
    .description =
        "Wukong: stacked factorisation machines with linear compression; each layer doubles the order",
    .keys = &keys,
    .takes_towers = true,
    .build = build,
};
