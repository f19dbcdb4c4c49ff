/* Towers: features whose embeddings pass through layers of their own before they interact with others.
 *
 * A tower of F features with embeddings of N numbers gives vectors of D = tower_dim numbers. Its module is
 *
 * - identity: the F embeddings as they are;
 * - linear: c F vectors that are linear in all F N numbers; beside them p vectors for each feature that are
 *   linear in its N numbers, by the same weights for all features;
 * - cross: a cross layer x (w . x) + b + x over all F N numbers, and c F vectors linear in its result;
 *   beside them p vectors for each feature as above.
 *
 * With N = 128, c = 1 and p = 0 a tower of D = 32 numbers gives a quarter of what it reads. A tower has
 * neither dropout nor batch norm: its result for a sample does not depend on the batch, so that a pass may
 * compute towers on other ranks than those of the samples (shard/tower).
 *
 * Source: the tower modules of Luo et al. 2024 (Disaggregated Multi-Tower, arXiv 2403.00877). */
#ifndef PH_MODEL_TOWERS_H
#define PH_MODEL_TOWERS_H

#include "base/memory/arena.h"
#include "phloem/model.h"
#include "phloem/op.h"

struct ph__tower {
    const char *name;
    size_t num_features;
    const char **features; /* their names, in the order of the text */
};

struct ph__tower_list { /* zero-initialised: no towers */
    size_t count;
    struct ph__tower *towers;
};

/* Parses model.towers, "user: C1, C2 | item: C3"; a tower without a name gets its number. All memory is the
 * arena's. PH_ERROR_CONFIG: an empty or repeated name, a tower without features, a feature in two towers. */
ph_status ph__towers_parse(const char *text, struct ph__arena *arena, struct ph__tower_list *list_out);

/* Replaces *text, the value of model.towers, by its shortest form. "auto" stands for the towers of a file, of
 * which `path` is the place:
 *
 *     version: 1
 *     towers:
 *       user: [C1, C2]
 *       item: [C3]
 *
 * PH_ERROR_CONFIG as above, and for a file that is not like this, with its line. */
ph_status ph__towers_resolve(const char *path, struct ph__arena *arena, const char **text);

static inline bool ph__has_towers(const struct ph_model_settings *settings)
{
    return settings->towers != NULL && settings->towers[0] != '\0';
}

/* Returns the length of the vectors that interact: tower_dim behind towers, otherwise embedding_dim. */
size_t ph__vector_width(const struct ph_model_settings *settings);

/* Applies the tower module to x (B,F,N), embeddings: (B, vectors, D). The result is named "tower.<name>"
 * (ph_name_value), and the parameters "tower.<name>.…". */
ph_value ph__tower_module(
    struct ph_builder *builder, const char *name, ph_value x, const struct ph_model_settings *settings);

#endif
