/* AutoInt (Song et al., CIKM 2019, arXiv 1810.11921): layers of multi-head self-attention over the fields'
 * vectors,
 *   x_{l+1} = relu(LN(attention(x_l W_q, x_l W_k, x_l W_v) + x_l W_r)),
 * and one linear layer over all vectors of the last. With hidden_units a perceptron runs beside them:
 * AutoInt+. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

struct autoint_keys {
    int64_t layers, attention_dim, heads;
    bool has_scale, has_residual, has_norm, has_linear_term;
};

#define FIELD(member) struct autoint_keys, member

static const struct ph__option options[] = {
    PH_INTEGER_KEY("layers", FIELD(layers), "2", 1, 64,
        "Number of attention layers. hidden_units: the perceptron beside them; none: attention alone."),
    PH_INTEGER_KEY("attention_dim", FIELD(attention_dim), "32", 1, 65536,
        "Width of a field's vector after each attention layer, all heads together."),
    PH_INTEGER_KEY("heads", FIELD(heads), "2", 1, 1024,
        "Number of attention heads; attention_dim must be a multiple of it."),
    PH_BOOL_KEY("scale", FIELD(has_scale), "true",
        "true: products of queries and keys are divided by the square root of a head's width."),
    PH_BOOL_KEY("residual", FIELD(has_residual), "true",
        "true: the input of each layer is added to its output, through a matrix where their widths differ."),
    PH_BOOL_KEY("layer_norm", FIELD(has_norm), "true", "true: layer norm after each layer, before its ReLU."),
    PH_BOOL_KEY(
        "linear_part", FIELD(has_linear_term), "false", "true: adds logistic regression to the logit."),
};

static const struct ph__option_table keys = {
    .section = "model.autoint",
    .help = "Keys of AutoInt.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct autoint_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* Returns x (B,F,K) W^T: (B,F,width). */
static ph_value projected(struct ph_builder *builder, const char *name, ph_value x, size_t width)
{
    const size_t dims[] = {width, ph__layer_extent(builder, x, 2)};
    return ph_linear(builder, x, ph_parameter(builder, name, 2, dims, ph__layer_xavier), 0, PH_IDENTITY);
}

/* (B,F,K) -> (B,F,attention_dim) */
static ph_value attention_layer(
    struct ph_builder *builder, size_t layer, ph_value x, const struct ph_model_settings *settings)
{
    const struct autoint_keys *own = settings->own;
    const size_t width = (size_t)own->attention_dim;
    ph__layer_push_index(builder, "attention", layer);
    const struct ph_attention_options options_of = {
        .size = sizeof options_of, .num_heads = (size_t)own->heads, .scale = own->has_scale ? 0 : 1};
    ph_value y = ph_attention(builder, projected(builder, "query", x, width),
        projected(builder, "key", x, width), projected(builder, "value", x, width), 0, &options_of);
    y = ph__layer_drop(builder, y, settings);
    if (own->has_residual)
        y = ph_add(builder, y,
            ph__layer_extent(builder, x, 2) == width ? x : projected(builder, "residual", x, width));
    if (own->has_norm)
        y = ph__layer_norm(builder, "norm", y);
    y = ph_relu(builder, y);
    ph_builder_pop_scope(builder);
    return y;
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct autoint_keys *own = settings->own;
    if (own->attention_dim % own->heads != 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.autoint: attention_dim %lld is not a multiple of %lld heads",
            (long long)own->attention_dim, (long long)own->heads);
    ph_value vectors = ph__feature_field_vectors(builder, settings, features); /* (B,F,D) */
    ph_value x = vectors;
    for (size_t layer = 0; layer < (size_t)own->layers; layer++)
        x = attention_layer(builder, layer, x, settings);
    x = ph__layer_flatten(builder, x);
    ph_name_value(builder, "attention", x);
    ph_value logits =
        ph__layer_affine(builder, "attention.output", x, features->num_tasks, PH_IDENTITY, NULL); /* (B,T) */
    if (settings->num_hidden_units > 0)
        logits = ph_add(builder, logits,
            ph__layer_deep(builder, ph__layer_flatten(builder, vectors), settings, features));
    if (own->has_linear_term)
        logits = ph_add(builder, logits, ph__feature_linear_term(builder, settings, features));
    return logits;
}

const struct ph__model ph__model_autoint = {
    .description = "AutoInt: multi-head self-attention over fields; with hidden_units also a perceptron "
                   "beside it (AutoInt+)",
    .keys = &keys,
    .build = build,
};
