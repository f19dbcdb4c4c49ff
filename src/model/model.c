/* The registry of models, and the checks that all of them share. */
#include "model/model.h"

#include <string.h>

#include "graph/op.h"
#include "model/towers.h"

static const struct ph__model *const models[PH_NUM_MODELS] = {
#define MODEL(name) &ph__model_##name,
#include "model/models.def"
#undef MODEL
};

static const char *const names[PH_NUM_MODELS] = {
#define MODEL(name) #name,
#include "model/models.def"
#undef MODEL
};

size_t ph_model_count(void)
{
    return PH_NUM_MODELS;
}

const struct ph__model *ph__model(int kind)
{
    return models[kind];
}

const char *ph_model_name(int kind)
{
    return kind >= 0 && kind < PH_NUM_MODELS ? names[kind] : NULL;
}

const char *ph_model_description(int kind)
{
    return kind >= 0 && kind < PH_NUM_MODELS ? models[kind]->description : NULL;
}

int ph_model_find(const char *name)
{
    for (int kind = 0; kind < PH_NUM_MODELS; kind++)
        if (strcmp(names[kind], name) == 0)
            return kind;
    return -1;
}

static bool are_positive(const int64_t *units, size_t num_units)
{
    for (size_t i = 0; i < num_units; i++)
        if (units[i] <= 0)
            return false;
    return true;
}

ph_status ph__model_check_norms(const struct ph_model_settings *settings)
{
    if (settings->batch_norm && settings->block_norm)
        return ph_fail(
            PH_ERROR_CONFIG, "model.batch_norm and model.block_norm are both true; choose one of them");
    return PH_OK;
}

/* Builds with the defaults of the kind's own keys, for settings that were not read from a config. */
static ph_value build_with_defaults(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct ph__model *model = models[settings->kind];
    struct ph_model_settings whole = *settings;
    struct ph__arena arena = {0};
    void *own = NULL;
    ph_status status = ph__config_defaults(model->keys, &arena, &own);
    whole.own = own;
    ph_value logits = status == PH_OK ? model->build(builder, &whole, features)
                                      : ph_builder_fail(builder, status, "%s", ph_error_text());
    ph__arena_fini(&arena);
    return logits;
}

/* Checks the keys of towers; false: the builder has failed. */
static bool check_towers(struct ph_builder *builder, const struct ph_model_settings *settings)
{
    const bool is_identity = settings->tower_module == PH_TOWER_IDENTITY;
    if (!models[settings->kind]->takes_towers)
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.towers: model '%s' has no towers; models that have: "
            "dnn, dlrm, dcn, dcn_v2, wukong",
            names[settings->kind]);
    else if (is_identity && settings->tower_dim != 0 && settings->tower_dim != settings->embedding_dim)
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.tower_dim: tower_module 'identity' keeps the embeddings: remove this key");
    else if (!is_identity && settings->tower_outputs + settings->tower_feature_outputs <= 0)
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.tower_outputs and model.tower_feature_outputs are both 0: a tower gives at least one "
            "vector for each feature");
    return ph_builder_status(builder) == PH_OK;
}

ph_value ph_model_build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (ph_model_name(settings->kind) == NULL)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "model.kind: unknown model %d", settings->kind);
    if (features->num_tasks == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "a model needs at least one label");
    if (features->num_sparse + features->num_dense == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "a model needs at least one id or dense feature");
    if (settings->embedding_dim <= 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "model.embedding_dim must be at least 1");
    if (!are_positive(settings->hidden_units, settings->num_hidden_units) ||
        !are_positive(settings->bottom_units, settings->num_bottom_units) ||
        !are_positive(settings->top_units, settings->num_top_units))
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "a hidden layer needs at least one unit");
    if (ph__model_check_norms(settings) != PH_OK)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "%s", ph_error_text());
    if (ph__has_towers(settings) && !check_towers(builder, settings))
        return 0;
    if (models[settings->kind]->keys != NULL && settings->own == NULL)
        return build_with_defaults(builder, settings, features);
    return models[settings->kind]->build(builder, settings, features);
}
