/* The keys under "model" of a config. */
#include "model/model_options.h"

#include <string.h>

#include "base/option/option.h"
#include "model/model.h"
#include "model/towers.h"

#define FIELD(member) struct ph__model_section, member
#define MAX_UNITS 1048576

/* "lr|fm|…" in the order of the registry */
#define MODEL(name) "|" #name
static const char model_words[] =
#include "model/models.def"
    ;
#undef MODEL

static const struct ph__option options[] = {
    PH_CHOICE_KEY("kind", FIELD(settings.kind), "dlrm", model_words + 1,
        "Model; `phloem models` lists them. A model with keys of its own takes them under model.<kind>; "
        "`phloem models KIND` explains these.",
        .range_text = "those of `phloem models`"),
    PH_INTEGER_KEY("embedding_dim", FIELD(settings.embedding_dim), "16", 1, 65536,
        "Length of the embedding vector of an id."),
    PH_NUMBER_KEY("embedding_init_std", FIELD(settings.embedding_init_std), "1e-4", 0, 100,
        "Standard deviation of the normal distribution that initial embeddings are drawn from. Other weights "
        "start by Xavier's rule, biases at 0."),
    PH_INTEGERS_KEY("hidden_units", FIELD(hidden_units), "400,400,400", 1, MAX_UNITS,
        "Widths of the hidden layers of the perceptron, in models that have one."),
    PH_INTEGERS_KEY("bottom_units", FIELD(bottom_units), "", 1, MAX_UNITS,
        "Widths of the hidden layers of the bottom perceptron, which turns the dense features into one "
        "vector of embedding_dim, in models that have one."),
    PH_INTEGERS_KEY("top_units", FIELD(top_units), "", 1, MAX_UNITS,
        "dlrm: widths of the hidden layers over the interaction. Empty: hidden_units."),
    PH_BOOL_KEY("batch_norm", FIELD(settings.batch_norm), "false",
        "true: batch norm in each hidden layer: linear, batch norm, activation, dropout."),
    PH_BOOL_KEY("block_norm", FIELD(settings.block_norm), "false",
        "true: block norm in its place: x / sqrt(mean square + 1e-6) over blocks of 256 features, without "
        "parameters. Beside batch_norm it is an error."),
    PH_CHOICE_KEY("bias", FIELD(settings.bias), "all", "all|last",
        "Linear layers that have a bias. all: each. last: that of the logits alone."),
    PH_NUMBER_KEY("dropout", FIELD(settings.dropout), "0", 0, 0.99,
        "Share of the outputs of each hidden layer that training drops. 0: no dropout."),
    PH_CHOICE_KEY("activation", FIELD(settings.activation), "relu", "identity|relu|sigmoid|hard_swish",
        "Activation of hidden layers. identity: x. relu: max(x, 0). sigmoid: 1 / (1 + exp(-x)). hard_swish: "
        "x clamp(x + 3, 0, 6) / 6."),
    PH_CHOICE_KEY("pooling", FIELD(settings.pooling), "sum", "sum|mean",
        "Pooling of the vectors of several ids of a field. sum: their sum. mean: their mean."),
    PH_CHOICE_KEY("interaction", FIELD(settings.interaction), "dot", "dot|cat",
        "dlrm: interaction of the vectors. dot: all pairwise dot products. cat: the vectors side by side."),
    PH_TEXT_KEY("towers", FIELD(settings.towers), "",
        "Towers of features, as in \"user: C1, C2 | item: C3, C4\", for dnn, dlrm, dcn, dcn_v2 and wukong: "
        "layers of its own (tower_module) turn the embeddings of each tower into fewer vectors. "
        "auto: the towers of tower_file. Empty: none."),
    PH_PATH_KEY("tower_file", FIELD(tower_file), "",
        "File of the towers for towers: auto. Empty: towers.yaml beside the config.",
        .traits = PH_KEY_IS_PLACE),
    PH_CHOICE_KEY("tower_module", FIELD(settings.tower_module), "linear", "linear|cross|identity",
        "Layers of a tower of F features. linear: tower_outputs F vectors that are linear in all of its "
        "embeddings, beside tower_feature_outputs vectors for each feature, linear in its embedding. "
        "cross: a cross layer before these. identity: the embeddings as they are."),
    PH_INTEGER_KEY("tower_dim", FIELD(settings.tower_dim), "0", 0, 65536,
        "Length of a tower's vectors. 0: embedding_dim."),
    PH_INTEGER_KEY("tower_outputs", FIELD(settings.tower_outputs), "1", 0, 65536,
        "Number of a tower's vectors of all its features, for each feature; c in the literature."),
    PH_INTEGER_KEY("tower_feature_outputs", FIELD(settings.tower_feature_outputs), "0", 0, 65536,
        "Number of a tower's vectors of one feature, for each feature; p in the literature."),
};

const struct ph__option_table ph__model_options = {
    .section = "model",
    .help = "Model and its sizes.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph__model_section),
    .traits = PH_KEY_OF_MODEL,
};

/* ---- sections ---- */

static struct ph__section own_section(struct ph__model_section *section, int kind)
{
    return (struct ph__section){ph__model(kind)->keys, section->own[kind].bytes};
}

size_t ph__model_sections(struct ph__model_section *section, struct ph__section *sections_out)
{
    size_t count = 0;
    sections_out[count++] = (struct ph__section){&ph__model_options, section};
    for (int kind = 0; kind < PH_NUM_MODELS; kind++)
        if (ph__model(kind)->keys != NULL)
            sections_out[count++] = own_section(section, kind);
    return count;
}

size_t ph__model_used_sections(struct ph__model_section *section, struct ph__section *sections_out)
{
    const int kind = section->settings.kind;
    sections_out[0] = (struct ph__section){&ph__model_options, section};
    if (ph__model(kind)->keys == NULL)
        return 1;
    sections_out[1] = own_section(section, kind);
    return 2;
}

/* Refuses keys of kinds other than the chosen one, which would have no effect. */
static ph_status refuse_others(struct ph__model_section *section, struct ph__arena *arena)
{
    const int chosen = section->settings.kind;
    for (int kind = 0; kind < PH_NUM_MODELS; kind++) {
        const char *changes = "";
        if (kind == chosen || ph__model(kind)->keys == NULL)
            continue;
        const struct ph__section own = own_section(section, kind);
        PH_TRY(ph__config_changes(&own, 1, (struct ph__key_filter){0}, arena, &changes));
        if (changes[0] != '\0')
            return ph_fail(PH_ERROR_CONFIG, "%.*s: a key of model '%s', but model.kind is '%s'",
                (int)strcspn(changes, "\n"), changes, ph_model_name(kind), ph_model_name(chosen));
    }
    return PH_OK;
}

/* Settles model.towers, so that no later reader of the settings needs the file that it may stand for. */
static ph_status resolve_towers(
    struct ph__model_section *section, const char *config_path, struct ph__arena *arena)
{
    const char *path = section->tower_file;
    section->tower_file = NULL;
    if (!ph__has_towers(&section->settings))
        return PH_OK;
    if (path == NULL && config_path != NULL) {
        const char *slash = strrchr(config_path, '/');
        path = ph__arena_printf(
            arena, "%.*stowers.yaml", slash != NULL ? (int)(slash + 1 - config_path) : 0, config_path);
        if (path == NULL)
            return PH_ERROR_MEMORY;
    }
    return ph__towers_resolve(path, arena, &section->settings.towers);
}

ph_status ph__model_section_finish(
    struct ph__model_section *section, const char *config_path, struct ph__arena *arena)
{
    struct ph_model_settings *settings = &section->settings;
    PH_TRY(resolve_towers(section, config_path, arena));
    settings->hidden_units = section->hidden_units.items;
    settings->num_hidden_units = section->hidden_units.count;
    settings->bottom_units = section->bottom_units.items;
    settings->num_bottom_units = section->bottom_units.count;
    settings->top_units = section->top_units.items;
    settings->num_top_units = section->top_units.count;
    settings->own = ph__model(settings->kind)->keys != NULL ? section->own[settings->kind].bytes : NULL;
    PH_TRY(ph__model_check_norms(settings));
    return refuse_others(section, arena);
}

/* ---- sections from settings ---- */

static ph_status copy_list(struct ph__integer_list *list, const int64_t *items, size_t count)
{
    if (count > PH_LIST_MAX)
        return ph_fail(PH_ERROR_CONFIG, "model: %zu layers are too many, at most %d", count, PH_LIST_MAX);
    list->count = count;
    if (count > 0)
        memcpy(list->items, items, count * sizeof *items);
    return PH_OK;
}

ph_status ph__model_section_take(
    struct ph__model_section *section, const struct ph_model_settings *settings, struct ph__arena *arena)
{
    const struct ph__option_table *keys = ph__model(settings->kind)->keys;
    void *own = (void *)(uintptr_t)settings->own;
    *section = (struct ph__model_section){.settings = *settings};
    PH_TRY(copy_list(&section->hidden_units, settings->hidden_units, settings->num_hidden_units));
    PH_TRY(copy_list(&section->bottom_units, settings->bottom_units, settings->num_bottom_units));
    PH_TRY(copy_list(&section->top_units, settings->top_units, settings->num_top_units));
    if (keys != NULL && own == NULL)
        PH_TRY(ph__config_defaults(keys, arena, &own));
    if (keys != NULL)
        memcpy(section->own[settings->kind].bytes, own, keys->settings_size);
    return PH_OK;
}
