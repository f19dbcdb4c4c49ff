/* Recipes of a model's products as a file beside the model, which phloem precision writes and scorers and
 * trainings read. JSON: {"sites": [{"weight": "over.0.weight", "forward": "int8", "backward": "fp32"}, ...]};
 * other members tell people why. */
#ifndef PH_GRAPH_RECIPE_TABLE_H
#define PH_GRAPH_RECIPE_TABLE_H

#include "base/memory/arena.h"
#include "phloem/graph.h"

#define PH_RECIPE_TABLE_FILE "recipes.json"

struct ph__recipe_table { /* zero-initialised: all products are fp32 */
    struct ph_site_recipe *recipes;
    size_t count;
};

/* Reads a table into the arena. PH_ERROR_CHECKPOINT naming the file, and the site. */
ph_status ph__recipe_table_read(
    const char *path, struct ph__arena *arena, struct ph__recipe_table *table_out);
/* Gives a line of text that tells tables with other recipes apart. "": no file, so "none". */
ph_status ph__recipe_table_text(const char *path, struct ph__arena *arena, const char **text_out);

#endif
