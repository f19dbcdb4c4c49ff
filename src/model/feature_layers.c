/* Layers that read a sample's features: embeddings of its ids, its dense features. */
#include "model/feature_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/layers.h"
#include "model/towers.h"

const struct ph_table_slice *ph__feature_slices(const struct ph_model_features *features)
{
    return features->slices != NULL ? features->slices : features->sparse;
}

/* Ids of some features, the slices of their table, and its name. */
struct lookup {
    const char *table;
    ph_value ids;
    size_t num_features;
    const struct ph_table_slice *slices;
};

/* Looks up (B,F,dim) in a table of the current scope with a slice for each feature. */
static ph_value embedding_table(struct ph_builder *builder, const struct lookup *lookup, size_t dim,
    const struct ph_model_settings *settings, bool has_id_weights)
{
    struct ph_init init = {PH_INIT_NORMAL, settings->embedding_init_std};
    ph_value table = ph_table(builder, lookup->table, lookup->num_features, lookup->slices, dim, init);
    ph_value weights = has_id_weights ? ph_input_id_weights(builder) : 0;
    return ph_embedding_bag(builder, lookup->ids, table, settings->pooling, weights);
}

static struct lookup all_features(struct ph_builder *builder, const struct ph_model_features *features)
{
    return (struct lookup){"table", ph_input_ids(builder, features->num_sparse), features->num_sparse,
        ph__feature_slices(features)};
}

size_t ph__feature_find(
    struct ph_builder *builder, const struct ph_model_features *features, const char *name)
{
    for (size_t i = 0; i < features->num_sparse; i++)
        if (strcmp(features->sparse[i].name, name) == 0)
            return i;
    ph_builder_fail(
        builder, PH_ERROR_CONFIG, "the model needs an id feature '%s', which the data does not have", name);
    return 0;
}

/* Looks up embeddings of `count` named features in a table of their own, in the order of the features. */
static ph_value chosen_embeddings(struct ph_builder *builder, const char *table, size_t count,
    const char *const *names, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    bool *is_named = calloc(features->num_sparse + 1, sizeof *is_named);
    size_t *chosen = calloc(features->num_sparse + 1, sizeof *chosen), num_chosen = 0;
    struct ph_table_slice *slices = calloc(features->num_sparse + 1, sizeof *slices);
    ph_value x = 0;
    if (is_named == NULL || chosen == NULL || slices == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu features", features->num_sparse);
    } else {
        for (size_t i = 0; i < count; i++)
            is_named[ph__feature_find(builder, features, names[i])] = true;
        for (size_t i = 0; i < features->num_sparse; i++)
            if (is_named[i]) {
                slices[num_chosen] = ph__feature_slices(features)[i];
                chosen[num_chosen++] = i;
            }
        ph_value ids =
            ph_select_features(builder, ph_input_ids(builder, features->num_sparse), num_chosen, chosen);
        const struct lookup lookup = {table, ids, num_chosen, slices};
        x = embedding_table(
            builder, &lookup, (size_t)settings->embedding_dim, settings, features->has_id_weights);
    }
    free(is_named);
    free(chosen);
    free(slices);
    return x;
}

ph_value ph__feature_named_embeddings(struct ph_builder *builder, const struct ph__text_list *names,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    return chosen_embeddings(builder, "table", names->count, names->items, settings, features);
}

/* ---- towers ---- */

/* Returns the tower of a feature; NULL: it is in none. */
static const struct ph__tower *tower_of(const struct ph__tower_list *list, const char *feature)
{
    for (size_t t = 0; t < list->count; t++)
        for (size_t i = 0; i < list->towers[t].num_features; i++)
            if (strcmp(list->towers[t].features[i], feature) == 0)
                return &list->towers[t];
    return NULL;
}

/* Checks that each feature has a tower, and that features of different towers share no rows. */
static void check_towers(
    struct ph_builder *builder, const struct ph__tower_list *list, const struct ph_model_features *features)
{
    const struct ph_table_slice *slices = ph__feature_slices(features);
    for (size_t i = 0; i < features->num_sparse; i++) {
        const struct ph__tower *tower = tower_of(list, features->sparse[i].name);
        if (tower == NULL)
            ph_builder_fail(builder, PH_ERROR_CONFIG, "model.towers: feature '%s' is in no tower",
                features->sparse[i].name);
        for (size_t j = 0; tower != NULL && slices != features->sparse && j < i; j++)
            if (strcmp(slices[i].name, slices[j].name) == 0 &&
                tower_of(list, features->sparse[j].name) != tower)
                ph_builder_fail(builder, PH_ERROR_CONFIG,
                    "model.towers: features '%s' and '%s' share rows, so they must be in one tower",
                    features->sparse[j].name, features->sparse[i].name);
    }
}

/* Looks up a tower's features and applies its module: (B, vectors, tower_dim). */
static ph_value tower_vectors(struct ph_builder *builder, const struct ph__tower *tower,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    char table[128];
    snprintf(table, sizeof table, "tower.%s", tower->name);
    ph_builder_push_scope(builder, "embedding");
    ph_value x = chosen_embeddings(builder, table, tower->num_features, tower->features, settings, features);
    ph_builder_pop_scope(builder);
    return ph__tower_module(builder, tower->name, x, settings);
}

/* Returns the vectors of all towers, one tower behind the other. */
static ph_value tower_embeddings(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    struct ph__arena arena = {0};
    struct ph__tower_list list = {0};
    ph_value x = 0;
    const ph_status status = ph__towers_parse(settings->towers, &arena, &list);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
    check_towers(builder, &list, features);
    for (size_t t = 0; t < list.count && ph_builder_status(builder) == PH_OK; t++)
        x = ph__layer_beside(builder, x, tower_vectors(builder, &list.towers[t], settings, features));
    ph__arena_fini(&arena);
    return x;
}

static ph_value plain_embeddings(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_builder_push_scope(builder, "embedding");
    const struct lookup lookup = all_features(builder, features);
    ph_value x = embedding_table(
        builder, &lookup, (size_t)settings->embedding_dim, settings, features->has_id_weights);
    ph_builder_pop_scope(builder);
    return x;
}

ph_value ph__feature_embeddings(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (features->num_sparse == 0)
        return 0;
    ph_value x =
        (ph__has_towers(settings) ? tower_embeddings : plain_embeddings)(builder, settings, features);
    ph_name_value(builder, "embeddings", x);
    return x;
}

ph_value ph__feature_field_vectors(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value sparse = ph__feature_embeddings(builder, settings, features);
    if (features->num_dense == 0)
        return sparse;
    size_t dims[] = {features->num_dense, (size_t)settings->embedding_dim};
    struct ph_init init = {PH_INIT_NORMAL, settings->embedding_init_std};
    ph_value vectors = ph_parameter(builder, "dense_embedding", 2, dims, init);
    ph_value dense = ph_dense_embedding(builder, ph_input_dense(builder, features->num_dense), vectors);
    return sparse == 0 ? dense : ph_concat(builder, 2, (ph_value[]){sparse, dense}, 1);
}

ph_value ph__feature_all(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value x =
        ph__layer_flatten(builder, ph__feature_embeddings(builder, settings, features)); /* (B, F*D) */
    if (features->num_dense > 0)
        x = ph__layer_beside(builder, x, ph_input_dense(builder, features->num_dense));
    return x;
}

ph_value ph__feature_bottom(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (features->num_dense == 0)
        return 0;
    ph_value x = ph_input_dense(builder, features->num_dense);
    x = ph__layer_perceptron(
        builder, "bottom", x, settings->bottom_units, settings->num_bottom_units, settings);
    return ph__layer_affine(
        builder, "bottom.output", x, ph__vector_width(settings), settings->activation, settings);
}

ph_value ph__feature_vectors_and_bottom(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    ph_value vectors = ph__feature_embeddings(builder, settings, features);
    if (features->num_dense == 0)
        return vectors;
    ph_value bottom = ph__feature_bottom(builder, settings, features);
    bottom = ph_reshape(builder, bottom, 2, (size_t[]){1, ph__vector_width(settings)});
    return ph__layer_beside(builder, vectors, bottom);
}

ph_value ph__feature_linear_term(struct ph_builder *builder, const struct ph_model_settings *settings,
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
    y = ph_add(builder, ph_sum_features(builder, weights), y);
    ph_name_value(builder, "linear", y);
    return y;
}
