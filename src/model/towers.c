#include "model/towers.h"

#include <stdio.h>
#include <string.h>

#include "base/format/yaml.h"
#include "model/layers.h"

/* ---- the text ---- */

/* Copies [begin, end) without the spaces around it. NULL: out of memory. */
static const char *trimmed(struct ph__arena *arena, const char *begin, const char *end)
{
    while (begin < end && *begin == ' ')
        begin++;
    while (end > begin && end[-1] == ' ')
        end--;
    return ph__arena_printf(arena, "%.*s", (int)(end - begin), begin);
}

static size_t count_parts(const char *begin, const char *end, char separator)
{
    size_t count = 1;
    for (const char *at = begin; at < end; at++)
        count += *at == separator;
    return count;
}

static const char *part_end(const char *begin, const char *end, char separator)
{
    const char *found = memchr(begin, separator, (size_t)(end - begin));
    return found != NULL ? found : end;
}

static ph_status check_name(const struct ph__tower_list *list, const char *name)
{
    static const char known[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (name[0] == '\0' || name[strspn(name, known)] != '\0')
        return ph_fail(PH_ERROR_CONFIG,
            "model.towers: '%s' is not a name of a tower: use letters, digits, '_' and '-'", name);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->towers[i].name, name) == 0)
            return ph_fail(PH_ERROR_CONFIG, "model.towers: two towers have the name '%s'", name);
    return PH_OK;
}

static ph_status check_feature(
    const struct ph__tower_list *list, const struct ph__tower *tower, const char *feature)
{
    if (feature[0] == '\0')
        return ph_fail(PH_ERROR_CONFIG, "model.towers: tower '%s' has a feature without a name", tower->name);
    for (const struct ph__tower *other = list->towers; other <= tower; other++)
        for (size_t i = 0; i < other->num_features; i++)
            if (strcmp(other->features[i], feature) == 0)
                return ph_fail(PH_ERROR_CONFIG, "model.towers: feature '%s' is in towers '%s' and '%s'",
                    feature, other->name, tower->name);
    return PH_OK;
}

static ph_status parse_tower(
    const char *begin, const char *end, struct ph__arena *arena, struct ph__tower_list *list)
{
    const char *colon = memchr(begin, ':', (size_t)(end - begin));
    struct ph__tower *tower = &list->towers[list->count];
    const char *at = colon != NULL ? colon + 1 : begin;
    *tower = (struct ph__tower){
        .name = colon != NULL ? trimmed(arena, begin, colon) : ph__arena_printf(arena, "%zu", list->count)};
    tower->features = ph__arena_alloc_array(arena, count_parts(at, end, ','), sizeof *tower->features);
    if (tower->name == NULL || tower->features == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(check_name(list, tower->name));
    for (const char *stop; at <= end; at = stop + 1) {
        stop = part_end(at, end, ',');
        const char *feature = trimmed(arena, at, stop);
        if (feature == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(check_feature(list, tower, feature));
        tower->features[tower->num_features++] = feature;
    }
    list->count++;
    return PH_OK;
}

ph_status ph__towers_parse(const char *text, struct ph__arena *arena, struct ph__tower_list *list_out)
{
    const char *end = text + strlen(text);
    struct ph__tower_list list = {
        .towers = ph__arena_alloc_array(arena, count_parts(text, end, '|'), sizeof *list.towers)};
    if (list.towers == NULL)
        return PH_ERROR_MEMORY;
    for (const char *at = text, *stop; at <= end; at = stop + 1) {
        stop = part_end(at, end, '|');
        PH_TRY(parse_tower(at, stop, arena, &list));
    }
    *list_out = list;
    return PH_OK;
}

/* Writes the list in its shortest form, which parses to the same list. NULL: out of memory. */
static const char *text_of(const struct ph__tower_list *list, struct ph__arena *arena)
{
    const char *text = "";
    for (size_t t = 0; t < list->count && text != NULL; t++) {
        text = ph__arena_printf(arena, "%s%s%s:", text, t > 0 ? "|" : "", list->towers[t].name);
        for (size_t i = 0; i < list->towers[t].num_features && text != NULL; i++)
            text = ph__arena_printf(arena, "%s%s%s", text, i > 0 ? "," : "", list->towers[t].features[i]);
    }
    return text;
}

/* ---- the file ---- */

static ph_status refuse_node(const char *path, const struct ph__yaml_node *node, const char *what)
{
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: %s", path, node->line, node->key, what);
}

/* Adds a line of the file to the text of its towers. */
static ph_status take_node(
    const char *path, const struct ph__yaml_node *node, struct ph__arena *arena, const char **text)
{
    static const char section[] = "towers.";
    const bool is_below = strncmp(node->key, section, strlen(section)) == 0;
    if (strcmp(node->key, "version") == 0 && node->kind == PH_YAML_SCALAR)
        return strcmp(node->text, "1") == 0 ? PH_OK : refuse_node(path, node, "must be 1");
    if (strcmp(node->key, "towers") == 0 && node->kind == PH_YAML_MAPPING)
        return PH_OK;
    if (is_below && node->kind == PH_YAML_SEQUENCE)
        *text = ph__arena_printf(
            arena, "%s%s%s:", *text, (*text)[0] != '\0' ? "|" : "", node->key + strlen(section));
    else if (!is_below || node->kind != PH_YAML_SCALAR || strchr(node->key, '[') == NULL)
        return refuse_node(path, node, "must be 'version' or a list of features below 'towers'");
    else if (strpbrk(node->text, ",|:") != NULL)
        return refuse_node(path, node, "the name of a feature must not have ',', '|' or ':'");
    else
        *text = ph__arena_printf(
            arena, "%s%s%s", *text, strcmp(strchr(node->key, '['), "[0]") == 0 ? "" : ",", node->text);
    return *text != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status read_file(const char *path, struct ph__arena *arena, const char **text_out)
{
    struct ph__yaml_node *nodes;
    size_t num_nodes;
    const char *text = "";
    PH_TRY(ph__yaml_read(arena, path, &nodes, &num_nodes));
    for (size_t i = 0; i < num_nodes; i++)
        PH_TRY(take_node(path, &nodes[i], arena, &text));
    *text_out = text;
    return text[0] != '\0' ? PH_OK : ph_fail(PH_ERROR_CONFIG, "%s:1: missing key 'towers'", path);
}

ph_status ph__towers_resolve(const char *path, struct ph__arena *arena, const char **text)
{
    struct ph__tower_list list;
    if (strcmp(*text, "auto") == 0 && path == NULL)
        return ph_fail(PH_ERROR_CONFIG, "model.towers: 'auto' needs model.tower_file");
    if (strcmp(*text, "auto") == 0)
        PH_TRY(read_file(path, arena, text));
    PH_TRY(ph__towers_parse(*text, arena, &list));
    *text = text_of(&list, arena);
    return *text != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- the module ---- */

size_t ph__vector_width(const struct ph_model_settings *settings)
{
    const bool has_own = ph__has_towers(settings) && settings->tower_dim > 0;
    return (size_t)(has_own ? settings->tower_dim : settings->embedding_dim);
}

/* Returns x (w . x) + b + x. x (B,K) */
static ph_value cross(struct ph_builder *builder, ph_value x)
{
    const size_t width = ph__layer_extent(builder, x, 1);
    ph_value weight = ph_parameter(builder, "cross.weight", 2, (size_t[]){1, width}, ph__layer_xavier);
    ph_value bias = ph_parameter(builder, "cross.bias", 1, &width, ph__layer_zeros);
    ph_value product = ph_scale_rows(builder, x, ph_linear(builder, x, weight, 0, PH_IDENTITY));
    return ph_add(builder, ph_add(builder, product, x), bias);
}

/* Returns `count` vectors that are linear in x (B,K): (B,count,D). */
static ph_value vectors_of(struct ph_builder *builder, ph_value x, size_t count, size_t dim,
    const struct ph_model_settings *settings)
{
    if (count == 0)
        return 0;
    x = ph__layer_affine(builder, "all", x, count * dim, PH_IDENTITY, settings);
    return ph_reshape(builder, x, 2, (size_t[]){count, dim});
}

/* Returns `count` vectors for each of the features of x (B,F,N): (B, count F, D). */
static ph_value vectors_of_each(struct ph_builder *builder, ph_value x, size_t count, size_t dim,
    const struct ph_model_settings *settings)
{
    const size_t num_features = ph__layer_extent(builder, x, 1);
    if (count == 0)
        return 0;
    x = ph__layer_affine(builder, "each", x, count * dim, PH_IDENTITY, settings); /* (B,F, count D) */
    return ph_reshape(builder, x, 2, (size_t[]){count * num_features, dim});
}

static ph_value compressed(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const size_t dim = ph__vector_width(settings), num_features = ph__layer_extent(builder, x, 1);
    const bool is_cross = settings->tower_module == PH_TOWER_CROSS;
    const ph_value all = ph__layer_flatten(builder, x); /* (B, F N) */
    ph_value y = vectors_of(builder, is_cross ? cross(builder, all) : all,
        (size_t)settings->tower_outputs * num_features, dim, settings);
    return ph__layer_beside(
        builder, y, vectors_of_each(builder, x, (size_t)settings->tower_feature_outputs, dim, settings));
}

ph_value ph__tower_module(
    struct ph_builder *builder, const char *name, ph_value x, const struct ph_model_settings *settings)
{
    char scope[128];
    snprintf(scope, sizeof scope, "tower.%s", name);
    if (settings->tower_module != PH_TOWER_IDENTITY) {
        ph_builder_push_scope(builder, scope);
        x = compressed(builder, x, settings);
        ph_builder_pop_scope(builder);
    }
    ph_name_value(builder, scope, x);
    return x;
}
