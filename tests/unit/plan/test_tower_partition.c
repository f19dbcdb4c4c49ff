/* The partitioner on planted groups and beside brute force; the similarity beside its formula. */
#include "plan/tower_partition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "plan/tower_similarity.h"
#include "support/test_support.h"

enum { MAX_FEATURES = 200 };

static double similarity[MAX_FEATURES * MAX_FEATURES];
static uint32_t tower_of[MAX_FEATURES];

/* Plants feature i in group i % num_groups: similarity `inside` a group, .2 between groups, and noise. */
static void plant(size_t count, size_t num_groups, double inside, double noise, uint64_t step)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed(), .step = step}};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            const double mean = i % num_groups == j % num_groups ? inside : 0.2;
            const double value = fmin(fmax(mean + noise * ph__rng_next_normal(&random), 0), 1);
            similarity[i * count + j] = similarity[j * count + i] = value;
        }
}

static double pairs(double count)
{
    return count * (count - 1) / 2;
}

/* The adjusted Rand index (Hubert and Arabie, 1985) of towers beside groups i % num_groups. */
static double rand_index(size_t count, size_t num_groups)
{
    double both = 0, of_towers = 0, of_groups = 0;
    for (size_t tower = 0; tower < num_groups; tower++) {
        double in_tower = 0;
        for (size_t group = 0; group < num_groups; group++) {
            double in_both = 0;
            for (size_t i = group; i < count; i += num_groups)
                in_both += tower_of[i] == tower;
            both += pairs(in_both);
            in_tower += in_both;
        }
        of_towers += pairs(in_tower);
        of_groups += pairs((double)((count - tower + num_groups - 1) / num_groups));
    }
    const double expected = of_towers * of_groups / pairs((double)count);
    return (both - expected) / ((of_towers + of_groups) / 2 - expected);
}

static void coherent_towers_are_the_planted_groups(void **state)
{
    (void)state;
    static const struct {
        size_t count, num_groups;
        double inside, noise;
    } cases[] = {{24, 4, 0.3, 0.03}, {24, 4, 0.3, 0.05}, {40, 8, 0.3, 0.04}, {26, 3, 0.3, 0.05}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t step = 0; step < 5; step++) {
            plant(cases[i].count, cases[i].num_groups, cases[i].inside, cases[i].noise, step);
            assert_ok(ph__tower_partition(
                cases[i].count, similarity, cases[i].num_groups, PH_TOWERS_COHERENT, tower_of));
            test_learned_at_least("tower_rand_index", rand_index(cases[i].count, cases[i].num_groups), 0.9);
        }
}

static void diverse_towers_split_the_planted_groups(void **state)
{
    (void)state;
    plant(24, 4, 0.4, 0.05, 0);
    assert_ok(ph__tower_partition(24, similarity, 4, PH_TOWERS_DIVERSE, tower_of));
    for (size_t i = 0; i < 24; i++) {
        size_t num_fellows = 0; /* features of the same group in the same tower */
        for (size_t j = i % 4; j < 24; j += 4)
            num_fellows += j != i && tower_of[j] == tower_of[i];
        assert_in_range(num_fellows, 0, 1);
    }
}

static void two_hundred_features_are_divided(void **state)
{
    (void)state;
    plant(200, 8, 0.3, 0.05, 0);
    assert_ok(ph__tower_partition(200, similarity, 8, PH_TOWERS_COHERENT, tower_of));
    test_learned_at_least("tower_rand_index", rand_index(200, 8), 0.9);
}

/* ---- brute force ---- */

static double sum_within(size_t count, const uint32_t *towers)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            sum += towers[i] == towers[j] ? similarity[i * count + j] : 0;
    return sum;
}

/* Extremes of the similarity within towers over all divisions of 8 features into towers of 3, 3 and 2. */
static void search(size_t next, uint32_t *towers, size_t *sizes, double *least, double *most)
{
    if (next == 8) {
        const double sum = sum_within(8, towers);
        const bool is_even = sizes[0] >= 2 && sizes[1] >= 2 && sizes[2] >= 2;
        *least = is_even ? fmin(*least, sum) : *least;
        *most = is_even ? fmax(*most, sum) : *most;
        return;
    }
    for (uint32_t tower = 0; tower < 3; tower++) {
        if (sizes[tower] == 3)
            continue;
        towers[next] = tower;
        sizes[tower]++;
        search(next + 1, towers, sizes, least, most);
        sizes[tower]--;
    }
}

static void no_division_of_few_features_is_better(void **state)
{
    (void)state;
    for (uint64_t step = 0; step < 20; step++) {
        uint32_t towers[8];
        size_t sizes[3] = {0};
        double least = INFINITY, most = 0;
        plant(8, 8, 0, 0.2, step);
        search(0, towers, sizes, &least, &most);
        assert_ok(ph__tower_partition(8, similarity, 3, PH_TOWERS_COHERENT, tower_of));
        assert_near(sum_within(8, tower_of), most, 1e-9, 0);
        assert_ok(ph__tower_partition(8, similarity, 3, PH_TOWERS_DIVERSE, tower_of));
        assert_near(sum_within(8, tower_of), least, 1e-9, 0);
    }
}

/* ---- points in the plane ---- */

/* The paper is said to place features in the plane, at distances near 1 - similarity, by Adam, and to cluster
 * the points into towers of equal sizes: as here, with swaps for the clustering. */

struct point {
    double at[2], gradient[2], moment1[2], moment2[2];
};

static struct point points[MAX_FEATURES];

static double distance_of(const double *a, const double *b)
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]));
}

/* Adds the gradient of (|x_i - x_j| - D_ij)^2 for all pairs. */
static void pull(size_t count)
{
    for (size_t i = 0; i < count; i++)
        points[i].gradient[0] = points[i].gradient[1] = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            const double length = distance_of(points[i].at, points[j].at);
            const double factor = 2 * (length - 1 + similarity[i * count + j]) / (length + 1e-12);
            for (size_t k = 0; k < 2; k++) {
                const double part = factor * (points[i].at[k] - points[j].at[k]);
                points[i].gradient[k] += part;
                points[j].gradient[k] -= part;
            }
        }
}

static void place(size_t count, struct ph__rng_sequence *random)
{
    enum { STEPS = 1000 };
    for (size_t i = 0; i < count; i++)
        points[i] = (struct point){.at = {ph__rng_next_uniform(random), ph__rng_next_uniform(random)}};
    for (int step = 1; step <= STEPS; step++) {
        const double rate = 0.05 * (STEPS - step) / STEPS * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));
        pull(count);
        for (size_t i = 0; i < 2 * count; i++) {
            struct point *point = &points[i / 2];
            const double gradient = point->gradient[i % 2];
            point->moment1[i % 2] += 0.1 * (gradient - point->moment1[i % 2]);
            point->moment2[i % 2] += 0.001 * (gradient * gradient - point->moment2[i % 2]);
            point->at[i % 2] -= rate * point->moment1[i % 2] / (sqrt(point->moment2[i % 2]) + 1e-12);
        }
    }
}

/* Swaps two points where that brings them nearer to the centres of their towers. */
static bool swap(size_t i, size_t j, double centres[][2])
{
    const double *a = centres[tower_of[i]], *b = centres[tower_of[j]];
    const double now = pow(distance_of(points[i].at, a), 2) + pow(distance_of(points[j].at, b), 2);
    const double then = pow(distance_of(points[i].at, b), 2) + pow(distance_of(points[j].at, a), 2);
    const uint32_t tower = tower_of[i];
    if (then >= now - 1e-9)
        return false;
    tower_of[i] = tower_of[j];
    tower_of[j] = tower;
    return true;
}

/* Clusters the points from one start; returns the sum of squared distances to the centres. count is a
 * multiple of num_towers. */
static double cluster(size_t count, size_t num_towers, struct ph__rng_sequence *random)
{
    double centres[MAX_FEATURES][2], sum = 0;
    uint32_t order[MAX_FEATURES];
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    ph__rng_shuffle(random, order, count);
    for (size_t i = 0; i < count; i++) {
        tower_of[order[i]] = (uint32_t)(i % num_towers);
        memcpy(centres[i % num_towers], points[order[i]].at, sizeof centres[0]);
    }
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < i; j++)
                has_changed = swap(i, j, centres) || has_changed;
        memset(centres, 0, num_towers * sizeof centres[0]);
        for (size_t i = 0; i < 2 * count; i++)
            centres[tower_of[i / 2]][i % 2] += points[i / 2].at[i % 2] * (double)num_towers / (double)count;
    }
    for (size_t i = 0; i < count; i++)
        sum += pow(distance_of(points[i].at, centres[tower_of[i]]), 2);
    return sum;
}

/* Returns the adjusted Rand index of the best clusters of 32 starts. */
static double rand_index_of_plane(size_t count, size_t num_groups, struct ph__rng_sequence *random)
{
    double least = INFINITY, index = 0;
    place(count, random);
    for (int start = 0; start < 32; start++) {
        const double sum = cluster(count, num_groups, random);
        index = sum < least ? rand_index(count, num_groups) : index;
        least = fmin(sum, least);
    }
    return index;
}

static void exchanges_find_more_than_points_in_the_plane(void **state)
{
    (void)state;
    static const size_t counts[] = {24, 40, 100}, groups[] = {4, 8, 10};
    for (size_t i = 0; i < 3; i++) {
        double of_plane = 0, of_exchanges = 0;
        for (uint64_t step = 0; step < 5; step++) {
            struct ph__rng_sequence random = {.key = {.seed = test_seed(), .step = step}};
            plant(counts[i], groups[i], 0.3, 0.05, step);
            of_plane += rand_index_of_plane(counts[i], groups[i], &random) / 5;
            assert_ok(ph__tower_partition(counts[i], similarity, groups[i], PH_TOWERS_COHERENT, tower_of));
            of_exchanges += rand_index(counts[i], groups[i]) / 5;
        }
        printf("%zu features in %zu groups: points in the plane %.2f, exchanges %.2f\n", counts[i], groups[i],
            of_plane, of_exchanges);
        test_learned_at_least("tower_rand_index_over_plane", of_exchanges - of_plane, 0);
    }
}

/* ---- shapes ---- */

static void sizes_differ_by_at_most_one_and_first_features_number_the_towers(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 30; count += 4)
        for (size_t num_towers = 1; num_towers <= count; num_towers++) {
            size_t sizes[30] = {0};
            uint32_t next = 0;
            plant(count, 3, 0.4, 0.1, count);
            assert_ok(ph__tower_partition(count, similarity, num_towers, PH_TOWERS_COHERENT, tower_of));
            for (size_t i = 0; i < count; i++) {
                assert_in_range(tower_of[i], 0, next);
                next += tower_of[i] == next;
                sizes[tower_of[i]]++;
            }
            for (size_t tower = 0; tower < num_towers; tower++)
                assert_in_range(sizes[tower], count / num_towers, (count + num_towers - 1) / num_towers);
        }
}

static void the_same_similarity_gives_the_same_towers(void **state)
{
    (void)state;
    uint32_t again[50];
    plant(50, 50, 0, 0.1, 0); /* nothing but noise */
    assert_ok(ph__tower_partition(50, similarity, 7, PH_TOWERS_COHERENT, tower_of));
    assert_ok(ph__tower_partition(50, similarity, 7, PH_TOWERS_COHERENT, again));
    assert_memory_equal(tower_of, again, sizeof again);
    memset(similarity, 0, sizeof similarity); /* no feature is like another */
    assert_ok(ph__tower_partition(50, similarity, 7, PH_TOWERS_COHERENT, tower_of));
    assert_ok(ph__tower_partition(50, similarity, 7, PH_TOWERS_COHERENT, again));
    assert_memory_equal(tower_of, again, sizeof again);
}

/* ---- similarity ---- */

static void similarity_is_the_mean_of_absolute_cosines(void **state)
{
    (void)state;
    /* (2 samples, 3 features, 2 numbers); feature 2 is empty in the second */
    static const float samples[2][6] = {{3, 4, -6, -8, 1, 0}, {0, 2, 5, 0, 0, 0}};
    struct ph__arena arena = {0};
    struct ph__tower_similarity sums;
    double found[9];
    assert_ok(ph__tower_similarity_init(&sums, 3, 2, &arena));
    for (size_t i = 0; i < 2; i++)
        ph__tower_similarity_add(&sums, samples[i]);
    ph__tower_similarity_finish(&sums, found);
    const double wanted[9] = {1, 0.5, 0.6, 0.5, 1, 0.6, 0.6, 0.6, 1};
    for (size_t i = 0; i < 9; i++)
        assert_near(found[i], wanted[i], 0, 1e-12);
    const uint32_t towers[] = {0, 0, 1}, alone[] = {0, 1, 2};
    assert_near(ph__tower_mean_similarity(3, found, towers, true), 0.5, 0, 1e-12);
    assert_near(ph__tower_mean_similarity(3, found, towers, false), 0.6, 0, 1e-12);
    assert_true(isnan(ph__tower_mean_similarity(3, found, alone, true)));
    ph__arena_fini(&arena);
}

static void features_that_never_meet_have_nothing_in_common(void **state)
{
    (void)state;
    static const float samples[2][2] = {{1, 0}, {0, 1}};
    struct ph__arena arena = {0};
    struct ph__tower_similarity sums;
    double found[4];
    assert_ok(ph__tower_similarity_init(&sums, 2, 1, &arena));
    for (size_t i = 0; i < 2; i++)
        ph__tower_similarity_add(&sums, samples[i]);
    ph__tower_similarity_finish(&sums, found);
    assert_near(found[1], 0, 0, 0);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coherent_towers_are_the_planted_groups),
        cmocka_unit_test(diverse_towers_split_the_planted_groups),
        cmocka_unit_test(two_hundred_features_are_divided),
        cmocka_unit_test(no_division_of_few_features_is_better),
        cmocka_unit_test(exchanges_find_more_than_points_in_the_plane),
        cmocka_unit_test(sizes_differ_by_at_most_one_and_first_features_number_the_towers),
        cmocka_unit_test(the_same_similarity_gives_the_same_towers),
        cmocka_unit_test(similarity_is_the_mean_of_absolute_cosines),
        cmocka_unit_test(features_that_never_meet_have_nothing_in_common),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
