/* Layers over values. Parameters take their sizes from the values. */
#include "model/layers.h"

#include <stdio.h>

const struct ph_init ph__layer_xavier = {PH_INIT_XAVIER_NORMAL, 1.0};
const struct ph_init ph__layer_zeros = {PH_INIT_CONSTANT, 0.0};
const struct ph_init ph__layer_ones = {PH_INIT_CONSTANT, 1.0};

size_t ph__layer_extent(struct ph_builder *builder, ph_value x, size_t axis)
{
    return x != 0 ? ph_value_type(builder, x).dims[axis].extent : 1;
}

void ph__layer_push_index(struct ph_builder *builder, const char *name, size_t index)
{
    char scope[64];
    snprintf(scope, sizeof scope, "%s.%zu", name, index);
    ph_builder_push_scope(builder, scope);
}

static size_t width_of(struct ph_builder *builder, ph_value x)
{
    return x != 0 ? ph__layer_extent(builder, x, ph_value_type(builder, x).num_dims - 1) : 1;
}

ph_value ph__layer_bias(struct ph_builder *builder, size_t units, const struct ph_model_settings *settings)
{
    const bool has_bias = settings == NULL || settings->bias == PH_BIAS_ALL;
    return has_bias ? ph_parameter(builder, "bias", 1, &units, ph__layer_zeros) : 0;
}

static ph_value weight_of(struct ph_builder *builder, ph_value x, size_t units)
{
    return ph_parameter(builder, "weight", 2, (size_t[]){units, width_of(builder, x)}, ph__layer_xavier);
}

static ph_value affine(struct ph_builder *builder, ph_value x, size_t units, enum ph_activation activation,
    const struct ph_model_settings *settings)
{
    ph_value weight = weight_of(builder, x, units);
    return ph_linear(builder, x, weight, ph__layer_bias(builder, units, settings), activation);
}

ph_value ph__layer_affine(struct ph_builder *builder, const char *name, ph_value x, size_t units,
    enum ph_activation activation, const struct ph_model_settings *settings)
{
    ph_builder_push_scope(builder, name);
    ph_value y = affine(builder, x, units, activation, settings);
    ph_builder_pop_scope(builder);
    return y;
}

ph_value ph__layer_drop(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    return settings->dropout > 0 ? ph_dropout(builder, x, settings->dropout) : x;
}

ph_value ph__layer_norm(struct ph_builder *builder, const char *name, ph_value x)
{
    const size_t width = width_of(builder, x);
    ph_builder_push_scope(builder, name);
    ph_value gamma = ph_parameter(builder, "gamma", 1, &width, ph__layer_ones);
    ph_value beta = ph_parameter(builder, "beta", 1, &width, ph__layer_zeros);
    x = ph_layer_norm(builder, x, gamma, beta, 1e-5);
    ph_builder_pop_scope(builder);
    return x;
}

ph_value ph__layer_activate(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    if (settings->block_norm)
        return ph__layer_drop(builder, ph_block_norm(builder, x, settings->activation), settings);
    if (settings->batch_norm) {
        const size_t units = ph__layer_extent(builder, x, 1);
        ph_value gamma = ph_parameter(builder, "norm.gamma", 1, &units, ph__layer_ones);
        ph_value beta = ph_parameter(builder, "norm.beta", 1, &units, ph__layer_zeros);
        struct ph_batch_norm_options options = {.size = sizeof options, .epsilon = 1e-5, .momentum = 0.1};
        x = ph_batch_norm(builder, x, gamma, beta, "norm", &options);
    }
    return ph__layer_drop(builder, ph_activate(builder, x, settings->activation), settings);
}

static ph_value hidden_layer(
    struct ph_builder *builder, ph_value x, size_t units, const struct ph_model_settings *settings)
{
    if (settings->batch_norm)
        return ph__layer_activate(builder, affine(builder, x, units, PH_IDENTITY, settings), settings);
    if (settings->block_norm) {
        ph_value weight = weight_of(builder, x, units), bias = ph__layer_bias(builder, units, settings);
        x = ph_linear_block_norm(builder, x, weight, bias, settings->activation);
    } else {
        x = affine(builder, x, units, settings->activation, settings);
    }
    return ph__layer_drop(builder, x, settings);
}

ph_value ph__layer_perceptron(struct ph_builder *builder, const char *name, ph_value x, const int64_t *units,
    size_t num_units, const struct ph_model_settings *settings)
{
    for (size_t i = 0; i < num_units; i++) {
        ph__layer_push_index(builder, name, i);
        x = hidden_layer(builder, x, (size_t)units[i], settings);
        ph_builder_pop_scope(builder);
    }
    return x;
}

ph_value ph__layer_hidden(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    return ph__layer_perceptron(
        builder, "deep", x, settings->hidden_units, settings->num_hidden_units, settings);
}

ph_value ph__layer_logits(struct ph_builder *builder, ph_value x, size_t num_tasks)
{
    ph_name_value(builder, "hidden", x);
    return ph__layer_affine(builder, "output", x, num_tasks, PH_IDENTITY, NULL);
}

ph_value ph__layer_deep(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    x = ph__layer_hidden(builder, x, settings);
    return ph__layer_logits(builder, x, features->num_tasks);
}

ph_value ph__layer_mix(struct ph_builder *builder, const char *name, ph_value x, size_t rows)
{
    const size_t dims[] = {rows, ph__layer_extent(builder, x, 1)};
    return ph_mix_fields(builder, x, ph_parameter(builder, name, 2, dims, ph__layer_xavier), 0);
}

ph_value ph__layer_copies(struct ph_builder *builder, ph_value y, size_t num_tasks)
{
    ph_value copies = y;
    for (size_t task = 1; task < num_tasks; task++)
        copies = ph_concat(builder, 2, (ph_value[]){copies, y}, 1);
    return copies;
}

ph_value ph__layer_flatten(struct ph_builder *builder, ph_value x)
{
    if (x == 0)
        return 0;
    return ph_reshape(
        builder, x, 1, (size_t[]){ph__layer_extent(builder, x, 1) * ph__layer_extent(builder, x, 2)});
}

ph_value ph__layer_beside(struct ph_builder *builder, ph_value a, ph_value b)
{
    if (a == 0 || b == 0)
        return a != 0 ? a : b;
    return ph_concat(builder, 2, (ph_value[]){a, b}, 1);
}
