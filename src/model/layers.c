/* Pieces that several models share. Sizes of parameters follow from the values they meet. */
#include "model/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The extent of the last dimension. */
static size_t width_of(struct ph_builder *builder, ph_value x)
{
    return x != 0 ? ph__layer_extent(builder, x, ph_value_type(builder, x).rank - 1) : 1;
}

static ph_value affine(struct ph_builder *builder, ph_value x, size_t units, enum ph_activation activation)
{
    ph_value weight =
        ph_parameter(builder, "weight", 2, (size_t[]){units, width_of(builder, x)}, ph__layer_xavier);
    ph_value bias = ph_parameter(builder, "bias", 1, (size_t[]){units}, ph__layer_zeros);
    return ph_linear(builder, x, weight, bias, activation);
}

ph_value ph__layer_affine(
    struct ph_builder *builder, const char *name, ph_value x, size_t units, enum ph_activation activation)
{
    ph_builder_push_scope(builder, name);
    ph_value y = affine(builder, x, units, activation);
    ph_builder_pop_scope(builder);
    return y;
}

ph_value ph__layer_rectify(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    switch ((enum ph_activation)settings->activation) {
    case PH_RELU:
        return ph_relu(builder, x);
    case PH_SIGMOID:
        return ph_sigmoid(builder, x);
    default:
        return x;
    }
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
    if (settings->batch_norm) {
        const size_t units = ph__layer_extent(builder, x, 1);
        ph_value gamma = ph_parameter(builder, "norm.gamma", 1, &units, ph__layer_ones);
        ph_value beta = ph_parameter(builder, "norm.beta", 1, &units, ph__layer_zeros);
        struct ph_batch_norm_options options = {.epsilon = 1e-5, .momentum = 0.1};
        x = ph_batch_norm(builder, x, gamma, beta, "norm", options);
    }
    return ph__layer_drop(builder, ph__layer_rectify(builder, x, settings), settings);
}

static ph_value hidden_layer(
    struct ph_builder *builder, ph_value x, size_t units, const struct ph_model_settings *settings)
{
    if (settings->batch_norm)
        return ph__layer_activate(builder, affine(builder, x, units, PH_IDENTITY), settings);
    x = affine(builder, x, units, (enum ph_activation)settings->activation);
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

ph_value ph__layer_deep(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    x = ph__layer_hidden(builder, x, settings);
    return ph__layer_affine(builder, "output", x, features->num_tasks, PH_IDENTITY);
}

const struct ph_table_slice *ph__layer_slices(const struct ph_model_features *features)
{
    return features->slices != NULL ? features->slices : features->sparse;
}

/* Some features' ids, and the slices of a table of theirs. */
struct lookup {
    ph_value ids;
    size_t num_features;
    const struct ph_table_slice *slices;
};

/* (B,F,dim) from a table of the current scope with a slice a feature. */
static ph_value embedding_table(struct ph_builder *builder, const struct lookup *lookup, size_t dim,
    const struct ph_model_settings *settings, bool has_id_weights)
{
    struct ph_init init = {PH_INIT_NORMAL, settings->embedding_init_std};
    ph_value table = ph_table(builder, "table", lookup->num_features, lookup->slices, dim, init);
    ph_value weights = has_id_weights ? ph_input_id_weights(builder) : 0;
    return ph_embedding_bag(builder, lookup->ids, table, (enum ph_pooling)settings->pooling, weights);
}

static struct lookup all_features(struct ph_builder *builder, const struct ph_model_features *features)
{
    return (struct lookup){
        ph_input_ids(builder, features->num_sparse), features->num_sparse, ph__layer_slices(features)};
}

ph_value ph__layer_embeddings(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (features->num_sparse == 0)
        return 0;
    ph_builder_push_scope(builder, "embedding");
    const struct lookup lookup = all_features(builder, features);
    ph_value x = embedding_table(
        builder, &lookup, (size_t)settings->embedding_dim, settings, features->has_id_weights);
    ph_builder_pop_scope(builder);
    return x;
}

size_t ph__layer_find_feature(
    struct ph_builder *builder, const struct ph_model_features *features, const char *name)
{
    for (size_t i = 0; i < features->num_sparse; i++)
        if (strcmp(features->sparse[i].name, name) == 0)
            return i;
    ph_builder_fail(builder, PH_ERROR_CONFIG, "the model wants an id feature '%s', and there is none", name);
    return 0;
}

ph_value ph__layer_named_embeddings(struct ph_builder *builder, const struct ph_text_list *names,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    bool *is_named = calloc(features->num_sparse + 1, sizeof *is_named);
    size_t *chosen = calloc(features->num_sparse + 1, sizeof *chosen), count = 0;
    struct ph_table_slice *slices = calloc(features->num_sparse + 1, sizeof *slices);
    ph_value x = 0;
    if (is_named == NULL || chosen == NULL || slices == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "no memory for %zu features", features->num_sparse);
    } else {
        for (size_t i = 0; i < names->count; i++)
            is_named[ph__layer_find_feature(builder, features, names->items[i])] = true;
        for (size_t i = 0; i < features->num_sparse; i++)
            if (is_named[i]) {
                slices[count] = ph__layer_slices(features)[i];
                chosen[count++] = i;
            }
        ph_value ids =
            ph_select_features(builder, ph_input_ids(builder, features->num_sparse), count, chosen);
        const struct lookup lookup = {ids, count, slices};
        x = embedding_table(
            builder, &lookup, (size_t)settings->embedding_dim, settings, features->has_id_weights);
    }
    free(is_named);
    free(chosen);
    free(slices);
    return x;
}

ph_value ph__layer_field_vectors(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value sparse = ph__layer_embeddings(builder, settings, features);
    if (features->num_dense == 0)
        return sparse;
    size_t dims[] = {features->num_dense, (size_t)settings->embedding_dim};
    struct ph_init init = {PH_INIT_NORMAL, settings->embedding_init_std};
    ph_value vectors = ph_parameter(builder, "dense_embedding", 2, dims, init);
    ph_value dense = ph_dense_embedding(builder, ph_input_dense(builder, features->num_dense), vectors);
    return sparse == 0 ? dense : ph_concat(builder, 2, (ph_value[]){sparse, dense}, 1);
}

ph_value ph__layer_all_features(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value x = ph__layer_flatten(builder, ph__layer_embeddings(builder, settings, features)); /* (B, F*D) */
    if (features->num_dense > 0)
        x = ph__layer_beside(builder, x, ph_input_dense(builder, features->num_dense));
    return x;
}

ph_value ph__layer_bottom(struct ph_builder *builder, const struct ph_model_settings *settings,
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

ph_value ph__layer_vectors_and_bottom(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value vectors = ph__layer_embeddings(builder, settings, features);
    if (features->num_dense == 0)
        return vectors;
    ph_value bottom = ph__layer_bottom(builder, settings, features);
    bottom = ph_reshape(builder, bottom, 2, (size_t[]){1, (size_t)settings->embedding_dim});
    return ph__layer_beside(builder, vectors, bottom);
}

ph_value ph__layer_linear_part(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    size_t num_tasks = features->num_tasks;
    ph_builder_push_scope(builder, "linear_part");
    ph_value y = ph_parameter(builder, "bias", 1, &num_tasks, ph__layer_zeros);
    if (features->num_dense > 0) {
        size_t dims[] = {num_tasks, features->num_dense};
        ph_value weight = ph_parameter(builder, "weight", 2, dims, ph__layer_xavier);
        y = ph_linear(builder, ph_input_dense(builder, features->num_dense), weight, y, PH_IDENTITY);
    }
    ph_builder_pop_scope(builder);
    if (features->num_sparse == 0)
        return y;
    ph_builder_push_scope(builder, "linear");
    const struct lookup lookup = all_features(builder, features);
    ph_value weights =
        embedding_table(builder, &lookup, num_tasks, settings, features->has_id_weights); /* (B,F,T) */
    ph_builder_pop_scope(builder);
    return ph_add(builder, ph_sum_features(builder, weights), y);
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
