#include "plan/tower_similarity.h"

#include <math.h>
#include <string.h>

ph_status ph__tower_similarity_init(
    struct ph__tower_similarity *similarity, size_t num_features, size_t dim, struct ph__arena *arena)
{
    const size_t num_pairs = num_features * num_features;
    double *numbers = ph__arena_alloc_array(arena, 2 * num_pairs + num_features * (dim + 2), sizeof *numbers);
    if (numbers == NULL)
        return PH_ERROR_MEMORY;
    *similarity = (struct ph__tower_similarity){.num_features = num_features,
        .dim = dim,
        .sums = numbers,
        .counts = numbers + num_pairs,
        .lengths = numbers + 2 * num_pairs,
        .cosines = numbers + 2 * num_pairs + num_features,
        .units = numbers + 2 * num_pairs + 2 * num_features};
    return PH_OK;
}

/* Keeps a feature's direction, zeros where its vector is zero. */
static void set_direction(struct ph__tower_similarity *similarity, size_t feature, const float *vector)
{
    double squares = 0;
    for (size_t d = 0; d < similarity->dim; d++)
        squares += (double)vector[d] * (double)vector[d];
    const double length = sqrt(squares);
    for (size_t d = 0; d < similarity->dim; d++)
        similarity->units[d * similarity->num_features + feature] =
            length == 0 ? 0 : (double)vector[d] / length;
    similarity->lengths[feature] = length;
}

/* Adds |cos| of a feature and those before it. */
static void add_pairs(struct ph__tower_similarity *similarity, size_t feature)
{
    const size_t row = feature * similarity->num_features;
    memset(similarity->cosines, 0, feature * sizeof *similarity->cosines);
    for (size_t d = 0; d < similarity->dim; d++) {
        const double *units = similarity->units + d * similarity->num_features;
        for (size_t j = 0; j < feature; j++) /* inside, since compilers make vectors of it */
            similarity->cosines[j] += units[feature] * units[j];
    }
    for (size_t j = 0; j < feature; j++) {
        similarity->sums[row + j] += fabs(similarity->cosines[j]);
        similarity->counts[row + j] += similarity->lengths[feature] != 0 && similarity->lengths[j] != 0;
    }
}

void ph__tower_similarity_add(struct ph__tower_similarity *similarity, const float *vectors)
{
    for (size_t i = 0; i < similarity->num_features; i++) {
        set_direction(similarity, i, vectors + i * similarity->dim);
        add_pairs(similarity, i);
    }
}

void ph__tower_similarity_finish(const struct ph__tower_similarity *similarity, double *similarity_out)
{
    const size_t count = similarity->num_features;
    for (size_t i = 0; i < count; i++) {
        similarity_out[i * count + i] = 1;
        for (size_t j = 0; j < i; j++) {
            const size_t pair = i * count + j;
            const double mean =
                similarity->counts[pair] > 0 ? similarity->sums[pair] / similarity->counts[pair] : 0;
            similarity_out[pair] = similarity_out[j * count + i] = mean;
        }
    }
}

double ph__tower_mean_similarity(
    size_t num_features, const double *similarity, const uint32_t *tower_of, bool is_within)
{
    double sum = 0, num_pairs = 0;
    for (size_t i = 0; i < num_features; i++)
        for (size_t j = 0; j < i; j++)
            if ((tower_of[i] == tower_of[j]) == is_within) {
                sum += similarity[i * num_features + j];
                num_pairs++;
            }
    return num_pairs > 0 ? sum / num_pairs : (double)NAN;
}
