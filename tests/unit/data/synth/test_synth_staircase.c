/* The staircase against its definition, and what it promises by going through every row that there can be. */
#include "data/synth/synth_staircase.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { FIELDS = 8, IDS = 4, ROWS = 65536, STEPS = 4 }; /* ROWS = IDS^FIELDS: all of them */

static struct ph__synth_step steps[] = {{1, 1}, {2, 1}, {4, 1}, {8, 1}};

static struct ph_synth_settings whole_settings(void)
{
    return (struct ph_synth_settings){
        .num_sparse = FIELDS,
        .num_planted = FIELDS,
        .latent_dim = 2,
        .exponent = 0.7,
        .staircase = {STEPS, steps},
        .num_rounds = 1,
        .scale = 3,
        .base_rate = 0.5,
        .seed = (int64_t)test_seed(),
    };
}

static const uint64_t table_rows[PH_SYNTH_MAX_FIELDS] = {
    IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS, IDS};
static const uint64_t scatter[PH_SYNTH_MAX_FIELDS] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
static const size_t single[PH_SYNTH_MAX_FIELDS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* How often an id appears, from the power law of its popularity: id = item * 3 % 4. */
static double share_of(uint64_t id, double exponent)
{
    double total = 0, share = 0;
    for (int item = 1; item <= IDS; item++) {
        total += pow(item, -exponent);
        if ((uint64_t)item * 3 % IDS == id)
            share = pow(item, -exponent);
    }
    return share / total;
}

/* Every row, how likely it is, and its components. */
struct world {
    struct ph__staircase staircase;
    double probability[ROWS];
    double components[ROWS][STEPS];
};

static uint64_t id_of(size_t row, size_t field)
{
    return row >> (2 * field) & (IDS - 1);
}

static struct world *world_of(const struct ph_synth_settings *settings)
{
    static struct world world;
    assert_ok(ph__staircase_init(&world.staircase, settings, table_rows, scatter));
    for (size_t row = 0; row < ROWS; row++) {
        uint64_t ids[FIELDS];
        world.probability[row] = 1;
        for (size_t f = 0; f < FIELDS; f++) {
            ids[f] = id_of(row, f);
            world.probability[row] *= share_of(ids[f], settings->exponent);
        }
        ph__staircase_components(&world.staircase, ids, single, world.components[row]);
    }
    return &world;
}

static void parts_have_mean_0_variance_1_and_no_correlation(void **state)
{
    (void)state;
    struct ph_synth_settings settings = whole_settings();
    struct world *world = world_of(&settings);
    for (size_t i = 0; i < STEPS; i++) {
        double mean = 0;
        for (size_t row = 0; row < ROWS; row++)
            mean += world->probability[row] * world->components[row][i];
        assert_near(mean, 0, 1e-10, 0);
        for (size_t j = 0; j <= i; j++) {
            double product = 0;
            for (size_t row = 0; row < ROWS; row++)
                product += world->probability[row] * world->components[row][i] * world->components[row][j];
            assert_near(product, i == j, 1e-10, 0);
        }
    }
    ph__staircase_fini(&world->staircase);
}

/* The bits of a row's number that the fields of a set have. */
static size_t bits_of(size_t fields)
{
    size_t bits = 0;
    for (size_t f = 0; f < FIELDS; f++)
        if (fields >> f & 1)
            bits |= (size_t)(IDS - 1) << (2 * f);
    return bits;
}

static size_t size_of_set(size_t fields)
{
    size_t size = 0;
    for (; fields != 0; fields &= fields - 1)
        size++;
    return size;
}

/* The mean of a component given the ids of the fields of a set is 0 whatever they are. */
static void assert_nothing_is_seen(const struct world *world, size_t step, size_t fields)
{
    static double sums[ROWS];
    size_t bits = bits_of(fields);
    memset(sums, 0, sizeof sums);
    for (size_t row = 0; row < ROWS; row++)
        sums[row & bits] += world->probability[row] * world->components[row][step];
    for (size_t row = 0; row < ROWS; row++)
        assert_near(sums[row], 0, 1e-12, 0);
}

static void fewer_fields_than_its_order_tell_nothing_of_a_part(void **state)
{
    (void)state;
    struct ph_synth_settings settings = whole_settings();
    struct world *world = world_of(&settings);
    for (size_t step = 0; step < STEPS; step++)
        for (size_t fields = 0; fields < (size_t)1 << FIELDS; fields++)
            if (size_of_set(fields) + 1 == (size_t)1 << step)
                assert_nothing_is_seen(world, step, fields);
    ph__staircase_fini(&world->staircase);
}

/* With exponents and without, ids carry orthonormal numbers. */
static void an_ids_numbers_are_orthonormal_over_the_rows(void **state)
{
    (void)state;
    struct ph_synth_settings settings = whole_settings();
    for (int trial = 0; trial < 2; trial++) {
        settings.exponent = trial * 1.3;
        struct ph__staircase staircase;
        assert_ok(ph__staircase_init(&staircase, &settings, table_rows, scatter));
        for (size_t i = 0; i < 3; i++) {
            double mean = 0, products[3] = {0};
            for (uint64_t id = 0; id < IDS; id++) {
                const double *numbers = staircase.numbers[5] + 3 * id;
                double share = share_of(id, settings.exponent);
                mean += share * numbers[i];
                for (size_t j = 0; j < 3; j++)
                    products[j] += share * numbers[i] * numbers[j];
            }
            assert_near(mean, 0, 1e-12, 0);
            for (size_t j = 0; j < 3; j++)
                assert_near(products[j], i == j, 1e-12, 0);
        }
        ph__staircase_fini(&staircase);
    }
}

/* ---- the definition ---- */

enum { WIDE = 16, BAG = 3 };

/* Number j of the bag of a field. */
static double bag_number(const struct ph__staircase *staircase, const uint64_t *ids, size_t field, size_t j)
{
    double sum = 0;
    for (size_t i = 0; i < BAG; i++)
        sum += staircase->numbers[field][ids[field * BAG + i] * 3 + j];
    return sum / sqrt(BAG);
}

/* The term of the `size` fields from place `first` of a round on. */
static double term(
    const struct ph__staircase *staircase, const uint64_t *ids, size_t round, size_t first, size_t size)
{
    if (size > 2)
        return term(staircase, ids, round, first, size / 2) *
               term(staircase, ids, round, first + size / 2, size / 2);
    double sum = 0;
    for (size_t j = 1; j <= 2; j++)
        sum += bag_number(staircase, ids, staircase->rounds[round][first], j) *
               bag_number(staircase, ids, staircase->rounds[round][first + 1], j);
    return sum / sqrt(2);
}

static double part_of(const struct ph__staircase *staircase, const uint64_t *ids, size_t order)
{
    double sum = 0;
    size_t count = 0;
    if (order == 1) {
        for (size_t f = 0; f < WIDE; f++)
            sum += bag_number(staircase, ids, f, 0);
        return sum / sqrt(WIDE);
    }
    for (size_t round = 0; round < staircase->num_rounds; round++)
        for (size_t first = 0; first < WIDE; first += order, count++)
            sum += term(staircase, ids, round, first, order);
    return sum / sqrt((double)count);
}

static struct ph_synth_settings wide_settings(void)
{
    struct ph_synth_settings settings = whole_settings();
    settings.num_sparse = WIDE;
    settings.num_planted = WIDE;
    settings.num_rounds = 3;
    return settings;
}

static void parts_are_sums_of_products_over_neighbours(void **state)
{
    (void)state;
    struct ph_synth_settings settings = wide_settings();
    struct ph__staircase staircase;
    size_t bag_sizes[WIDE];
    for (size_t f = 0; f < WIDE; f++)
        bag_sizes[f] = BAG;
    assert_ok(ph__staircase_init(&staircase, &settings, table_rows, scatter));
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (int trial = 0; trial < 50; trial++) {
        uint64_t ids[WIDE * BAG];
        double components[STEPS];
        for (size_t i = 0; i < WIDE * BAG; i++)
            ids[i] = ph__rng_below(&random, IDS);
        ph__staircase_components(&staircase, ids, bag_sizes, components);
        for (size_t step = 0; step < STEPS; step++)
            assert_near(components[step], part_of(&staircase, ids, (size_t)1 << step), 1e-12, 1e-12);
    }
    ph__staircase_fini(&staircase);
}

static uint64_t fields_of(const uint32_t *round, size_t first, size_t size)
{
    uint64_t fields = 0;
    for (size_t i = 0; i < size; i++)
        fields |= (uint64_t)1 << round[first + i];
    return fields;
}

static void rounds_arrange_all_fields_and_share_no_term(void **state)
{
    (void)state;
    struct ph_synth_settings settings = wide_settings();
    struct ph__staircase staircase;
    assert_ok(ph__staircase_init(&staircase, &settings, table_rows, scatter));
    for (size_t one = 0; one < 3; one++) {
        assert_int_equal(fields_of(staircase.rounds[one], 0, WIDE), 0xffff);
        for (size_t other = 0; other < one; other++)
            for (size_t size = 2; size <= 8; size *= 2)
                for (size_t i = 0; i < WIDE; i += size)
                    for (size_t j = 0; j < WIDE; j += size)
                        assert_int_not_equal(fields_of(staircase.rounds[one], i, size),
                            fields_of(staircase.rounds[other], j, size));
    }
    ph__staircase_fini(&staircase);
}

static void weights_share_the_scale(void **state)
{
    (void)state;
    struct ph__synth_step some[] = {{8, 1}, {1, 2}};
    struct ph_synth_settings settings = whole_settings();
    settings.staircase = (struct ph__record_list){2, some};
    struct ph__staircase staircase;
    assert_ok(ph__staircase_init(&staircase, &settings, table_rows, scatter));
    assert_int_equal(staircase.num_steps, 4);
    assert_near(staircase.weights[0], 3 * 2 / sqrt(5), 0, 1e-15);
    assert_true(staircase.weights[1] == 0 && staircase.weights[2] == 0);
    assert_near(staircase.weights[3], 3 / sqrt(5), 0, 1e-15);
    ph__staircase_fini(&staircase);
}

static void the_seed_decides(void **state)
{
    (void)state;
    struct ph_synth_settings settings = wide_settings();
    struct ph__staircase one, same, other;
    assert_ok(ph__staircase_init(&one, &settings, table_rows, scatter));
    assert_ok(ph__staircase_init(&same, &settings, table_rows, scatter));
    settings.seed++;
    assert_ok(ph__staircase_init(&other, &settings, table_rows, scatter));
    assert_memory_equal(one.rounds, same.rounds, sizeof one.rounds);
    assert_memory_equal(one.numbers[3], same.numbers[3], IDS * 3 * sizeof(double));
    assert_memory_not_equal(one.rounds, other.rounds, sizeof one.rounds);
    assert_memory_not_equal(one.numbers[3], other.numbers[3], IDS * 3 * sizeof(double));
    ph__staircase_fini(&one);
    ph__staircase_fini(&same);
    ph__staircase_fini(&other);
}

static void assert_refused(const struct ph_synth_settings *settings, const char *part)
{
    struct ph__staircase staircase;
    assert_fails(ph__staircase_init(&staircase, settings, table_rows, scatter), PH_ERROR_CONFIG, part);
}

static void settings_that_make_no_staircase_are_refused(void **state)
{
    (void)state;
    struct ph__synth_step odd[] = {{1, 1}, {3, 1}}, twice[] = {{2, 1}, {2, 3}};
    struct ph_synth_settings settings = whole_settings();
    settings.staircase = (struct ph__record_list){2, odd};
    assert_refused(&settings, "order 3 must be 1, 2, 4 or 8");
    settings.staircase = (struct ph__record_list){2, twice};
    assert_refused(&settings, "order 2 is given twice");
    settings = whole_settings();
    settings.num_planted = 4;
    assert_refused(&settings, "synth.planted: 4 must be a positive multiple of the highest order, 8");
    settings.num_planted = 0;
    assert_refused(&settings, "synth.planted");
    settings = whole_settings();
    settings.num_planted_dense = 1;
    assert_refused(&settings, "synth.planted_dense");
    settings = whole_settings();
    settings.drift = 1;
    assert_refused(&settings, "synth.drift");
    settings = whole_settings();
    settings.num_groups = 2;
    assert_refused(&settings, "synth.groups");
    settings = whole_settings();
    settings.has_no_linear_part = true;
    assert_refused(&settings, "synth.interactions_only");
    settings = whole_settings();
    settings.latent_dim = IDS - 1;
    assert_refused(&settings, "4 ids of feature 1 are too few");
    settings = whole_settings();
    settings.num_rounds = 2; /* eight fields make one term of order 8 */
    assert_refused(&settings, "cannot find 2 arrangements of 8 planted features");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_mean_0_variance_1_and_no_correlation),
        cmocka_unit_test(fewer_fields_than_its_order_tell_nothing_of_a_part),
        cmocka_unit_test(an_ids_numbers_are_orthonormal_over_the_rows),
        cmocka_unit_test(parts_are_sums_of_products_over_neighbours),
        cmocka_unit_test(rounds_arrange_all_fields_and_share_no_term),
        cmocka_unit_test(weights_share_the_scale),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(settings_that_make_no_staircase_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
