/* DHEN (Zhang et al., arXiv 2203.11014): layers that are ensembles of interaction modules. Each module makes
 * l vectors u (l,D) of X (n,D):
 *   dot          u = W [x_i . x_j for i > j]     all pairs of vectors; of one, its square
 *   attention    u = W T(X)                      T a transformer encoder layer over the vectors
 *   convolution  u = W [K_1 * X, ..., K_c * X]   X as an image of one channel
 *   linear       u = W X
 *   cross        u = W (X^T X) + b               X^T X (D,D): the dimensions' second moments
 * and the layer Y = LN(ensemble(u_1, ..., u_k) + S X). The ensemble stacks the modules (concat) or takes
 * their sum or a weighted sum; S is the identity where the numbers of vectors agree. Dense features are one
 * more vector, behind a perceptron. */
#include <string.h>

#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

enum ensemble { CONCAT, SUM, WEIGHTED };

struct dhen_keys {
    int64_t layers, outputs, heads, channels, kernel;
    struct ph__text_list modules;
    int ensemble;
    bool layer_norm;
};

#define FIELD(member) struct dhen_keys, member

static const struct ph__option options[] = {
    PH_INTEGER_KEY("layers", FIELD(layers), "2", 1, 64,
        "Number of DHEN layers. hidden_units: the perceptron over the last one."),
    PH_TEXTS_KEY("modules", FIELD(modules), "dot,attention,convolution,linear,cross",
        "Interaction modules of each layer, separated by commas: dot, attention, convolution, linear, cross; "
        "a module may occur more than once."),
    PH_CHOICE_KEY("ensemble", FIELD(ensemble), "concat", "concat|sum|weighted",
        "Combination of the modules' vectors into the layer's. concat: one below the other. sum: their sum. "
        "weighted: their sum with learnt weights."),
    PH_INTEGER_KEY("outputs", FIELD(outputs), "4", 1, 65536, "Number of vectors that each module makes."),
    PH_INTEGER_KEY("heads", FIELD(heads), "1", 1, 1024,
        "attention: number of heads; embedding_dim must be a multiple of it."),
    PH_INTEGER_KEY("channels", FIELD(channels), "4", 1, 1024, "convolution: number of kernels."),
    PH_INTEGER_KEY("kernel", FIELD(kernel), "3", 1, 63,
        "convolution: extent of a kernel, in vectors and in dimensions; an odd number."),
    PH_BOOL_KEY("layer_norm", FIELD(layer_norm), "true",
        "true: layer norm of the vectors that a layer makes. They then do not depend on the size of "
        "embeddings, so that embedding_l2 loses its effect."),
};

static const struct ph__option_table keys = {
    .section = "model.dhen",
    .help = "Keys of DHEN.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct dhen_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* ---- modules: (B,n,D) -> (B,outputs,D) ---- */

typedef ph_value module_function(
    struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings);

static ph_value dot_module(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    const size_t dims[] = {(size_t)own->outputs, ph__layer_extent(builder, x, 2)};
    ph_value pairs = ph__layer_extent(builder, x, 1) > 1
                         ? ph_dot_interaction(builder, 0, x)
                         : ph_row_dots(builder, ph__layer_flatten(builder, x), ph__layer_flatten(builder, x));
    ph_value u = ph__layer_affine(builder, "mix", pairs, dims[0] * dims[1], PH_IDENTITY, settings);
    return ph_reshape(builder, u, 2, dims);
}

/* Normalises x + attention(x), then that + feed-forward. */
static ph_value attention_module(
    struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    const size_t width = ph__layer_extent(builder, x, 2);
    if (width % (size_t)own->heads != 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.dhen: embedding_dim %zu is not a multiple of %lld heads", width, (long long)own->heads);
    ph_value y = ph_attention(builder, ph__layer_affine(builder, "query", x, width, PH_IDENTITY, settings),
        ph__layer_affine(builder, "key", x, width, PH_IDENTITY, settings),
        ph__layer_affine(builder, "value", x, width, PH_IDENTITY, settings), 0,
        &(struct ph_attention_options){
            .size = sizeof(struct ph_attention_options), .num_heads = (size_t)own->heads});
    y = ph__layer_drop(
        builder, ph__layer_affine(builder, "output", y, width, PH_IDENTITY, settings), settings);
    y = ph__layer_norm(builder, "norm.0", ph_add(builder, y, x));
    ph_value z = ph__layer_affine(builder, "feed.0", y, 2 * width, PH_RELU, settings);
    z = ph__layer_drop(
        builder, ph__layer_affine(builder, "feed.1", z, width, PH_IDENTITY, settings), settings);
    y = ph__layer_norm(builder, "norm.1", ph_add(builder, z, y));
    return ph__layer_mix(builder, "mix", y, (size_t)own->outputs);
}

static ph_value convolution_module(
    struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    const size_t n = ph__layer_extent(builder, x, 1), width = ph__layer_extent(builder, x, 2);
    const size_t channels = (size_t)own->channels, extent = (size_t)own->kernel;
    ph_value weight =
        ph_parameter(builder, "kernel", 4, (size_t[]){channels, 1, extent, extent}, ph__layer_xavier);
    ph_value bias = ph_parameter(builder, "bias", 1, &channels, ph__layer_zeros);
    ph_value image = ph_reshape(builder, x, 3, (size_t[]){1, n, width});
    ph_value y = ph_convolution(builder, image, weight, bias);
    y = ph_reshape(builder, y, 2, (size_t[]){channels * n, width});
    return ph__layer_mix(builder, "mix", y, (size_t)own->outputs);
}

static ph_value linear_module(
    struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    return ph__layer_mix(builder, "mix", x, (size_t)own->outputs);
}

static ph_value cross_module(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    const size_t width = ph__layer_extent(builder, x, 2), outputs = (size_t)own->outputs;
    ph_value moments = ph_batch_product(builder, x, x, true, false); /* (B,D,D) */
    ph_value weight = ph_parameter(builder, "mix", 2, (size_t[]){outputs, width}, ph__layer_xavier);
    ph_value bias = ph_parameter(builder, "bias", 1, &outputs, ph__layer_zeros);
    return ph_mix_fields(builder, moments, weight, bias);
}

static const struct {
    const char *name;
    module_function *build;
} modules[] = {
    {"dot", dot_module},
    {"attention", attention_module},
    {"convolution", convolution_module},
    {"linear", linear_module},
    {"cross", cross_module},
};

static module_function *find_module(const char *name)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strcmp(modules[i].name, name) == 0)
            return modules[i].build;
    return NULL;
}

/* ---- layers ---- */

/* Stacks the modules' vectors: (B, modules * outputs, D). */
static ph_value all_modules(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    ph_value all = 0;
    for (size_t i = 0; i < own->modules.count; i++) {
        module_function *module = find_module(own->modules.items[i]);
        if (module == NULL)
            return ph_builder_fail(builder, PH_ERROR_CONFIG,
                "model.dhen.modules: unknown module '%s'; use dot, attention, convolution, linear or cross",
                own->modules.items[i]);
        ph__layer_push_index(builder, "module", i);
        all = ph__layer_beside(builder, all, module(builder, x, settings));
        ph_builder_pop_scope(builder);
    }
    return all;
}

/* Sums the modules, plainly or with learnt weights that begin at 1: (B,count*outputs,D) -> (B,outputs,D). */
static ph_value summed(struct ph_builder *builder, const struct dhen_keys *own, ph_value all)
{
    const size_t count = own->modules.count;
    const size_t outputs = (size_t)own->outputs, width = ph__layer_extent(builder, all, 2);
    if (own->ensemble == SUM) {
        ph_value sum = ph_slice(builder, all, 1, 0, outputs);
        for (size_t i = 1; i < count; i++)
            sum = ph_add(builder, sum, ph_slice(builder, all, 1, i * outputs, outputs));
        return sum;
    }
    ph_value rows = ph_reshape(builder, all, 2, (size_t[]){count, outputs * width});
    ph_value weights = ph_parameter(builder, "ensemble", 2, (size_t[]){1, count}, ph__layer_ones);
    return ph_reshape(builder, ph_mix_fields(builder, rows, weights, 0), 2, (size_t[]){outputs, width});
}

static ph_value dhen_layer(
    struct ph_builder *builder, size_t layer, ph_value x, const struct ph_model_settings *settings)
{
    const struct dhen_keys *own = settings->own;
    ph__layer_push_index(builder, "layer", layer);
    ph_value y = all_modules(builder, x, settings);
    if (own->ensemble != CONCAT)
        y = summed(builder, own, y);
    const size_t rows = ph__layer_extent(builder, y, 1);
    ph_value shortcut =
        ph__layer_extent(builder, x, 1) == rows ? x : ph__layer_mix(builder, "shortcut", x, rows);
    x = ph_add(builder, y, shortcut);
    x = own->layer_norm ? ph__layer_norm(builder, "norm", x) : x;
    ph_builder_pop_scope(builder);
    return x;
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct dhen_keys *own = settings->own;
    if (own->kernel % 2 == 0)
        return ph_builder_fail(
            builder, PH_ERROR_CONFIG, "model.dhen.kernel: %lld must be odd", (long long)own->kernel);
    if (own->modules.count == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "model.dhen.modules: must name at least one module");
    ph_value x = ph__feature_vectors_and_bottom(builder, settings, features); /* (B,n,D) */
    for (size_t layer = 0; layer < (size_t)own->layers; layer++)
        x = dhen_layer(builder, layer, x, settings);
    return ph__layer_deep(builder, ph__layer_flatten(builder, x), settings, features); /* (B,T) */
}

const struct ph__model ph__model_dhen = {
    .description =
        "DHEN: stacked ensembles of interaction modules (dot, attention, convolution, linear, cross)",
    .keys = &keys,
    .build = build,
};
