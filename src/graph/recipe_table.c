#include "graph/recipe_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/json.h"
#include "base/rng.h"

#define MOST_BYTES ((uint64_t)16 << 20)

/* Reads a recipe by its name; a site without one has fp32. */
static ph_status read_recipe(
    const char *path, const struct ph__json *site, const char *key, enum ph_recipe *recipe_out)
{
    const char *name = ph__json_as_text(ph__json_get(site, key), "fp32");
    for (enum ph_recipe recipe = 0; recipe < PH_RECIPE_COUNT; recipe++)
        if (strcmp(ph_recipe_name(recipe), name) == 0) {
            *recipe_out = recipe;
            return PH_OK;
        }
    return ph_fail(PH_ERROR_CHECKPOINT,
        "%s: '%s' is '%.40s', which is not a recipe; write fp32, bf16 or int8", path, key, name);
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

ph_status ph__recipe_table_text(const char *path, struct ph__arena *arena, const char **text_out)
{
    struct ph__recipe_table table = {.count = 0};
    uint64_t sum = 0;
    if (path != NULL && path[0] != '\0')
        PH_TRY(ph__recipe_table_read(path, arena, &table));
    for (size_t i = 0; i < table.count; i++) {
        const struct ph_site_recipe *site = &table.recipes[i];
        const char *line = ph__arena_printf(
            arena, "%s %s %s", site->weight, ph_recipe_name(site->forward), ph_recipe_name(site->backward));
        if (line == NULL)
            return PH_ERROR_MEMORY;
        sum += ph__hash_name(line); /* in any order */
    }
    *text_out = table.count == 0 ? "none" : ph__arena_printf(arena, "%016" PRIx64, sum);
    return *text_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}
