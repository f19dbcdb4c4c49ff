#include "graph/recipe_table.h"

#include <string.h>

#include "base/format/json.h"

#define MOST_BYTES ((uint64_t)16 << 20)

/* Reads a recipe by its name; a site without one has fp32. */
static ph_status read_recipe(
    const char *path, const struct ph__json *site, const char *key, enum ph_recipe *recipe_out)
{
    static const enum ph_recipe recipes[] = {
#define X(name, text) PH_RECIPE_##name,
        PH_RECIPES(X)
#undef X
    };
    const char *name = ph__json_as_text(ph__json_get(site, key), "fp32");
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strcmp(ph_recipe_name(recipes[i]), name) == 0) {
            *recipe_out = recipes[i];
            return PH_OK;
        }
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' is '%.40s', which is not a recipe; write fp32 or int8",
        path, key, name);
}

static ph_status read_site(
    const char *path, const struct ph__json *site, struct ph__arena *arena, struct ph_site_recipe *recipe_out)
{
    const char *weight = ph__json_as_text(ph__json_get(site, "weight"), NULL);
    if (weight == NULL)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: a site has no 'weight', the name of its parameter", path);
    recipe_out->weight = ph__arena_strdup(arena, weight);
    if (recipe_out->weight == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(read_recipe(path, site, "forward", &recipe_out->forward));
    return read_recipe(path, site, "backward", &recipe_out->backward);
}

static ph_status read_sites(
    const char *path, const struct ph__json *json, struct ph__arena *arena, struct ph__recipe_table *table)
{
    const struct ph__json *sites = ph__json_get(json, "sites");
    if (!ph__json_is_array(sites))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: there is no list 'sites'; phloem precision writes one", path);
    table->count = ph__json_size(sites);
    table->recipes = ph__arena_alloc_array(arena, table->count, sizeof *table->recipes);
    if (table->recipes == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < table->count; i++)
        PH_TRY(read_site(path, ph__json_at(sites, i), arena, &table->recipes[i]));
    return PH_OK;
}

ph_status ph__recipe_table_read(const char *path, struct ph__arena *arena, struct ph__recipe_table *table_out)
{
    struct ph__recipe_table table = {.count = 0};
    struct ph__json *json = NULL;
    PH_TRY(ph__json_read(path, PH_ERROR_CHECKPOINT, MOST_BYTES, &json));
    const ph_status status = read_sites(path, json, arena, &table);
    ph__json_destroy(json);
    if (status == PH_OK)
        *table_out = table;
    return status;
}
