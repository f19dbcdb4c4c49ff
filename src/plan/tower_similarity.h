/* Similarity of features by their vectors: I_ij is the mean of |cos| between the vectors of features i and j
 * of a sample, over the samples in which neither is zero (a bag without ids has no direction). */
#ifndef PH_PLAN_TOWER_SIMILARITY_H
#define PH_PLAN_TOWER_SIMILARITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

struct ph__tower_similarity {
    size_t num_features, dim;
    double *sums, *counts; /* (F,F), below the diagonal */
    double *units;         /* (dim,F) directions of the sample being added */
    double *lengths;       /* (F) of that sample's vectors */
    double *cosines;       /* (F) */
};

/* Makes sums of zeros, in the arena. PH_ERROR_MEMORY. */
ph_status ph__tower_similarity_init(
    struct ph__tower_similarity *similarity, size_t num_features, size_t dim, struct ph__arena *arena);

/* Adds a sample: vectors (F,dim). */
void ph__tower_similarity_add(struct ph__tower_similarity *similarity, const float *vectors);

/* Writes I (F,F): 1 on the diagonal, 0 for features that no sample has both, NaN where a vector was not
 * finite. */
void ph__tower_similarity_finish(const struct ph__tower_similarity *similarity, double *similarity_out);

/* Returns the mean similarity of pairs of features within towers, or of pairs between them; NaN without such
 * pairs. */
double ph__tower_mean_similarity(
    size_t num_features, const double *similarity, const uint32_t *tower_of, bool is_within);

#endif
