/* The registry of models, and the checks that all of them share. */
#include "model/model.h"

#include <string.h>

#include "graph/op.h"

struct model {
    const char *name;
    const char *description;
    ph_model_function *build;
};

static const struct model models[] = {
#define MODEL(name, description) {#name, description, ph__model_##name},
#include "model/models.def"
#undef MODEL
};

#define NUM_MODELS (sizeof models / sizeof *models)

size_t ph_model_count(void)
{
    return NUM_MODELS;
}

const char *ph_model_name(int kind)
{
    return kind >= 0 && (size_t)kind < NUM_MODELS ? models[kind].name : NULL;
}

const char *ph_model_description(int kind)
{
    return kind >= 0 && (size_t)kind < NUM_MODELS ? models[kind].description : NULL;
}

int ph_model_find(const char *name)
{
    for (size_t i = 0; i < NUM_MODELS; i++)
        if (strcmp(models[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool are_positive(const int64_t *units, size_t num_units)
{
    for (size_t i = 0; i < num_units; i++)
        if (units[i] <= 0)
            return false;
    return true;
}

ph_value ph_model_build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (ph_model_name(settings->kind) == NULL)
        return ph__builder_fail(builder, PH_ERROR_CONFIG, "model.kind: there is no model %d", settings->kind);
    if (features->num_tasks == 0)
        return ph__builder_fail(builder, PH_ERROR_CONFIG, "a model needs at least one label");
    if (features->num_sparse + features->num_dense == 0)
        return ph__builder_fail(builder, PH_ERROR_CONFIG, "a model needs at least one id or dense feature");
    if (settings->embedding_dim <= 0)
        return ph__builder_fail(builder, PH_ERROR_CONFIG, "model.embedding_dim must be at least 1");
    if (!are_positive(settings->hidden_units, settings->num_hidden_units) ||
        !are_positive(settings->bottom_units, settings->num_bottom_units) ||
        !are_positive(settings->top_units, settings->num_top_units))
        return ph__builder_fail(builder, PH_ERROR_CONFIG, "a hidden layer needs at least one unit");
    return models[settings->kind].build(builder, settings, features);
}
