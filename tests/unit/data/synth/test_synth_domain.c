#include "data/synth/synth_domain.h"
#include "data/synth/synth_teacher.h"

#include <math.h>

#include "support/test_support.h"

enum { NUM_ROWS = 40000 };

static struct ph__arena arena;
static struct ph_synth_settings settings;

static void read_settings(const char *domains, const char *turnover)
{
    const char *const sets[] = {"synth.dense=2", "synth.sparse=4", "synth.table_rows=30", "synth.planted=4",
        "synth.scale=1.5", "synth.exponent=0", "synth.base_rate=0.3", domains, turnover};
    struct ph__section section = {&ph__synth_options, &settings};
    assert_ok(ph__config_read(NULL, sets, sizeof sets / sizeof *sets, &section, 1, &arena));
}

/* Sums over rows of a domain. */
struct sums {
    double count, probability;
};

static void draw(struct sums sums[2])
{
    struct ph__synth_teacher teacher;
    struct ph__synth_row row;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    assert_ok(ph__synth_row_init(&row, &teacher));
    for (uint64_t i = 0; i < NUM_ROWS; i++) {
        ph__synth_row_draw(&teacher, 1, i, (double)i / NUM_ROWS, &row);
        sums[row.domain].count++;
        sums[row.domain].probability += row.probability;
    }
    ph__synth_row_fini(&row);
    ph__synth_teacher_fini(&teacher);
}

static void domains_have_their_traffic_and_odds(void **state)
{
    (void)state;
    struct sums sums[2] = {{0}};
    read_settings("synth.domains=[{traffic: 3, odds: 1, own: 0.4}, {traffic: 1, odds: 4, own: 0.4}]",
        "synth.turnover=0");
    draw(sums);
    assert_near(sums[0].count / NUM_ROWS, .75, .02, 0);
    assert_near((sums[0].probability + sums[1].probability) / NUM_ROWS, .3, .02, 0);
    assert_true(sums[1].probability / sums[1].count > sums[0].probability / sums[0].count + .15);
}

/* Each id lives for half the file, whatever its age at the beginning. */
static void ids_turn_over(void **state)
{
    (void)state;
    const struct ph__rng_key key = {.seed = test_seed()};
    const uint64_t table_rows = 30;
    const size_t bag_size = 1;
    const struct ph__synth_fields fields = {1, &key, &table_rows, &bag_size};
    read_settings("synth.base_rate=0.3", "synth.turnover=2");
    for (uint64_t id = 0; id < table_rows; id++) {
        uint64_t last = UINT64_MAX;
        size_t num_changes = 0;
        for (int step = 0; step < 1000; step++) {
            uint64_t now = id;
            ph__turn_ids_over(&settings, &fields, step / 1000., &now);
            assert_int_equal(now % table_rows, id);
            assert_true(now < ph__turnover_rows(&settings, table_rows));
            num_changes += step > 0 && now != last;
            last = now;
        }
        assert_true(num_changes == 2 || num_changes == 1);
    }
}

static int drop_settings(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_have_their_traffic_and_odds),
        cmocka_unit_test(ids_turn_over),
    };
    return cmocka_run_group_tests(tests, NULL, drop_settings);
}
