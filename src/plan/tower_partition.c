#include "plan/tower_partition.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/rng.h"

#define NUM_STARTS 64
#define TOLERANCE 1e-9 /* of sums of distances: less is no gain, only rounding */

/* Behind the features stand blanks, as many as make all towers equal. They are far from each other and at 0
 * from features: no tower keeps two, and an exchange with a blank moves a feature to a smaller tower. */
struct division {
    size_t count, num_towers; /* count: of features and blanks, N */
    double *distances;        /* (N,N), 0 on the diagonal */
    double *sums;             /* (N,T) distances from a feature to those of a tower */
    uint32_t *tower_of;       /* (N) */
    uint32_t *order;          /* (N) features, shuffled for each start */
};

static ph_status init(struct division *division, size_t count, size_t num_towers, struct ph__arena *arena)
{
    *division = (struct division){
        .count = count,
        .num_towers = num_towers,
        .distances = ph__arena_alloc_array(arena, count * count, sizeof *division->distances),
        .sums = ph__arena_alloc_array(arena, count * num_towers, sizeof *division->sums),
        .tower_of = ph__arena_alloc_array(arena, count, sizeof *division->tower_of),
        .order = ph__arena_alloc_array(arena, count, sizeof *division->order),
    };
    const bool has_all = division->distances != NULL && division->sums != NULL &&
                         division->tower_of != NULL && division->order != NULL;
    for (size_t i = 0; i < count && has_all; i++)
        division->order[i] = (uint32_t)i;
    return has_all ? PH_OK : PH_ERROR_MEMORY;
}

static void set_distances(
    const struct division *division, size_t num_features, const double *similarity, enum ph__tower_kind kind)
{
    const double far = (double)division->count;
    for (size_t i = 0; i < division->count; i++)
        for (size_t j = 0; j < i; j++) {
            double distance = j < num_features ? 0 : far;
            if (i < num_features)
                distance = similarity[i * num_features + j];
            if (i < num_features && kind == PH_TOWERS_COHERENT)
                distance = 1 - distance;
            division->distances[i * division->count + j] = distance;
            division->distances[j * division->count + i] = distance;
        }
}

/* Deals the features to the towers at random. */
static void deal(const struct division *division, struct ph__rng_sequence *random)
{
    const size_t count = division->count, num_towers = division->num_towers;
    ph__rng_shuffle(random, division->order, count);
    for (size_t i = 0; i < count; i++)
        division->tower_of[division->order[i]] = (uint32_t)(i % num_towers);
    memset(division->sums, 0, count * num_towers * sizeof *division->sums);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            division->sums[i * num_towers + division->tower_of[j]] += division->distances[i * count + j];
}

/* Exchanges two features where that lessens the distances within towers; returns whether it has. */
static bool exchange(const struct division *division, size_t i, size_t j)
{
    const size_t count = division->count, num_towers = division->num_towers;
    const uint32_t own = division->tower_of[i], other = division->tower_of[j];
    const double *distances = division->distances;
    double *sums = division->sums;
    const double now = sums[i * num_towers + own] + sums[j * num_towers + other];
    const double then =
        sums[i * num_towers + other] + sums[j * num_towers + own] - 2 * distances[i * count + j];
    if (own == other || then >= now - TOLERANCE)
        return false;
    division->tower_of[i] = other;
    division->tower_of[j] = own;
    for (size_t k = 0; k < count; k++) {
        const double change = distances[k * count + i] - distances[k * count + j];
        sums[k * num_towers + own] -= change;
        sums[k * num_towers + other] += change;
    }
    return true;
}

/* Divides the features from one random start; returns the sum of distances within towers. */
static double divide(const struct division *division, struct ph__rng_sequence *random)
{
    double sum = 0;
    deal(division, random);
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (size_t i = 0; i < division->count; i++)
            for (size_t j = 0; j < i; j++)
                has_changed = exchange(division, i, j) || has_changed;
    }
    for (size_t i = 0; i < division->count; i++)
        sum += division->sums[i * division->num_towers + division->tower_of[i]];
    return sum;
}

/* Numbers the towers by their first features. */
static void renumber(const struct division *division, size_t num_features, uint32_t *tower_of)
{
    uint32_t next = 0;
    for (size_t i = 0; i < num_features; i++) {
        size_t first = 0;
        while (division->tower_of[first] != division->tower_of[i])
            first++;
        tower_of[i] = first < i ? tower_of[first] : next++;
    }
}

ph_status ph__tower_partition(size_t num_features, const double *similarity, size_t num_towers,
    enum ph__tower_kind kind, uint32_t *tower_of_out)
{
    struct ph__rng_sequence random = {.key.stream = ph__hash_name("towers")};
    struct ph__arena arena = {0};
    struct division division;
    double least = INFINITY;
    const size_t largest = (num_features + num_towers - 1) / num_towers;
    const ph_status status = init(&division, largest * num_towers, num_towers, &arena);
    if (status == PH_OK)
        set_distances(&division, num_features, similarity, kind);
    for (int start = 0; start < NUM_STARTS && status == PH_OK; start++) {
        const double sum = divide(&division, &random);
        if (sum < least)
            renumber(&division, num_features, tower_of_out);
        least = fmin(sum, least);
    }
    ph__arena_fini(&arena);
    return status;
}
