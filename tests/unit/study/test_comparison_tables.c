#include "study/comparison_tables.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static struct ph_config config = {.data = {.paths.test = "test.csv"}, .published = {.source = ""}};
static struct ph_config untested = {.published = {.source = ""}};
static const int64_t seeds[] = {1, 2};
static struct ph__compared_run runs[2][2];
static struct ph__compared rows[2];
static struct ph__comparison comparison = {.rows = rows, .num_rows = 2, .seeds = seeds, .num_seeds = 2};

static int begin(void **state)
{
    (void)state;
    memset(runs, 0, sizeof runs);
    for (size_t row = 0; row < 2; row++)
        rows[row] = (struct ph__compared){
            .name = row == 0 ? "a" : "b", .config = &config, .test_key = "same", .runs = runs[row]};
    return 0;
}

static int end(void **state)
{
    (void)state;
    ph__arena_fini(&comparison.arena);
    return 0;
}

static void finish(size_t row, size_t seed, const char *backend)
{
    runs[row][seed].state = PH_RUN_FINISHED;
    snprintf(runs[row][seed].backend, sizeof runs[row][seed].backend, "%s", backend);
}

static void every_backend_is_named_once(void **state)
{
    (void)state;
    struct ph__comparison_tables tables;
    finish(0, 0, "oneDNN 3.1");
    finish(0, 1, "oneDNN 3");
    finish(1, 0, "oneDNN 3.1");
    snprintf(runs[1][1].backend, sizeof runs[1][1].backend, "of a run that is not finished");
    assert_ok(ph__comparison_tables_init(&tables, &comparison));
    assert_non_null(strstr(tables.about, "Backend: oneDNN 3.1; oneDNN 3."));
    assert_null(strstr(tables.about, "of a run"));
    ph__comparison_tables_fini(&tables);
}

static void a_note_says_which_test_data_are_lacking(void **state)
{
    (void)state;
    static const struct {
        struct ph_config *base, *row;
        const char *reason;
    } cases[] = {
        {&config, &untested, "- b is not paired with a: it has no data.test\n"},
        {&untested, &config, "- b is not paired with a: the latter has no data.test\n"},
        {&config, &config, "- b is not paired with a: their test data differ\n"},
    };
    snprintf(rows[1].test_key, sizeof rows[1].test_key, "other");
    for (size_t i = 0; i < 3; i++) {
        struct ph__comparison_tables tables;
        rows[0].config = cases[i].base;
        rows[1].config = cases[i].row;
        assert_ok(ph__comparison_tables_init(&tables, &comparison));
        assert_string_equal(tables.notes, cases[i].reason);
        ph__comparison_tables_fini(&tables);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_backend_is_named_once, begin, end),
        cmocka_unit_test_setup_teardown(a_note_says_which_test_data_are_lacking, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
