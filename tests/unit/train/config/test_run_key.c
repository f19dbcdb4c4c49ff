#include "train/config/run_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static const char *train_path, *other_path;
static const struct ph_data_settings csv; /* names no file beside the rows */

static int write_data(void **state)
{
    (void)state;
    train_path = test_write_file("train.csv", "label,a\n1,2\n");
    other_path = test_write_file("other.csv", "label,a\n1,2\n0,3\n");
    return 0;
}

/* The key of the config `text` with one set over it, in one of two places in turn. */
static const char *key_of(const char *set, const char *program)
{
    static char keys[2][PH_RUN_KEY_BYTES];
    static size_t turn;
    char *key = keys[turn++ % 2], paths[2][600];
    snprintf(paths[0], sizeof paths[0], "data.train=%s", train_path);
    snprintf(paths[1], sizeof paths[1], "data.test=%s", train_path);
    const char *const sets[] = {paths[0], paths[1], set};
    struct ph_config config;
    assert_ok(ph__job_config_read(&config, NULL, sets, 3));
    assert_ok(ph__run_key(&config, program, key));
    ph__job_config_fini(&config);
    return key;
}

/* Every key that has a say: another value, another run. */
static void what_is_learnt_hangs_on_the_key(void **state)
{
    (void)state;
    static const char *const sets[] = {"model.kind=fm", "model.hidden_units=8,4", "model.dropout=0.25",
        "train.batch_size=7", "train.epochs=9", "train.max_steps=5", "train.patience=7",
        "data.max_bad_rows=1", "optimizer.learning_rate=0.5", "data.negative_rate=0.5",
        "train.precision=bf16", "data.shuffle=false"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        assert_string_not_equal(key_of("seed=1", "p"), key_of(sets[i], "p"));
    assert_string_not_equal(key_of("seed=1", "p"), key_of("seed=1", "another program"));
}

/* Its content counts, not its place. */
static void the_recipes_are_in_the_key(void **state)
{
    (void)state;
    static const char *const names[] = {"one.json", "same.json", "other.json"};
    char sets[3][600];
    for (size_t i = 0; i < 3; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"sites\": [{\"weight\": \"*\", \"forward\": \"%s\"}]}",
            i == 2 ? "bf16" : "int8");
        snprintf(sets[i], sizeof sets[i], "train.recipes=%s", test_write_file(names[i], text));
    }
    assert_string_not_equal(key_of("seed=1", "p"), key_of(sets[0], "p"));
    assert_string_equal(key_of(sets[0], "p"), key_of(sets[1], "p"));
    assert_string_not_equal(key_of(sets[0], "p"), key_of(sets[2], "p"));
}

static void what_does_not_change_the_outcome_is_not_in_the_key(void **state)
{
    (void)state;
    static const char *const sets[] = {"seed=2", "threads=1", "data.prefetch=0", "train.report_seconds=9",
        "train.checkpoint_seconds=1", "train.checkpoint_steps=1", "train.checkpoints_kept=5",
        "published.auc=0.5", "published.source=x", "published.logloss=0.1", "published.bar_auc=0.9",
        "prepare.block_rows=64", "synth.train_rows=5", "train.epochs=1"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        assert_string_equal(key_of("seed=1", "p"), key_of(sets[i], "p"));
    assert_int_equal(strlen(key_of("seed=1", "p")), 12);
}

/* Another value than the default of an option that may change on resume, as a set; NULL where there is none
 * by rule. */
static const char *another_value(const struct ph__option_table *table, const struct ph__option *option)
{
    static char set[256];
    const double number = strtod(option->default_text, NULL);
    if (((table->traits | option->traits) & PH_KEY_MAY_CHANGE) == 0)
        return NULL;
    if (option->type == PH_OPTION_BOOL)
        snprintf(set, sizeof set, "%s.%s=%s", table->section, option->key,
            strcmp(option->default_text, "true") == 0 ? "false" : "true");
    else if (option->type == PH_OPTION_INTEGER || option->type == PH_OPTION_NUMBER)
        snprintf(set, sizeof set, "%s.%s=%.0f", table->section, option->key,
            number + 1 <= option->max ? number + 1 : number - 1);
    else
        return NULL;
    return set;
}

static bool shapes_the_outcome(const char *key)
{
    static const char *const keys[] = {"epochs", "max_steps", "patience", "max_bad_rows"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* A key that is added to the tables as one that may change is left out of the key, unless it stands above. */
static void what_may_change_on_resume_is_left_out(void **state)
{
    (void)state;
    static const struct ph__option_table *const tables[] = {
        &ph__train_options, &ph__data_options, &ph__optimizer_options, &ph__published_options};
    size_t num_tried = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (size_t i = 0; i < tables[t]->num_options; i++) {
            const struct ph__option *option = &tables[t]->options[i];
            const char *set = another_value(tables[t], option);
            if (set == NULL)
                continue;
            const bool is_same = strcmp(key_of("seed=1", "p"), key_of(set, "p")) == 0;
            if (is_same == shapes_the_outcome(option->key))
                fail_msg("%s %s the key", set, is_same ? "is not in" : "is in");
            num_tried++;
        }
    }
    assert_true(num_tried >= 12);
}

static void data_that_changed_has_another_key(void **state)
{
    (void)state;
    char before[PH_RUN_KEY_BYTES], after[PH_RUN_KEY_BYTES], command[1200];
    assert_ok(ph__data_key(&csv, train_path, before));
    assert_ok(ph__data_key(&csv, train_path, after));
    assert_string_equal(before, after);
    assert_ok(ph__data_key(&csv, other_path, after));
    assert_string_not_equal(before, after);

    snprintf(command, sizeof command, "mv '%s' '%s.moved'", train_path, train_path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s.moved", train_path);
    assert_ok(ph__data_key(&csv, command, after));
    assert_string_equal(before, after);
    snprintf(command, sizeof command, "mv '%s.moved' '%s' && touch -d 2020-01-01 '%s'", train_path,
        train_path, train_path);
    assert_int_equal(system(command), 0);
    assert_ok(ph__data_key(&csv, train_path, after));
    assert_string_not_equal(before, after);
}

static void a_pattern_is_its_files(void **state)
{
    (void)state;
    char one[PH_RUN_KEY_BYTES], two[PH_RUN_KEY_BYTES], none[PH_RUN_KEY_BYTES];
    test_write_file("day_1.csv", "a\n");
    assert_ok(ph__data_key(&csv, test_path("day_*.csv"), one));
    test_write_file("day_2.csv", "b\n");
    assert_ok(ph__data_key(&csv, test_path("day_*.csv"), two));
    assert_string_not_equal(one, two);
    assert_ok(ph__data_key(&csv, test_path("no_such_*.csv"), none));
    assert_ok(ph__data_key(&csv, test_path("no_such.csv"), one));
    assert_string_equal(one, none);
    assert_ok(ph__data_key(&csv, NULL, one));
    assert_string_equal(one, none);
    assert_fails(ph__data_key(&csv, "-", one), PH_ERROR_CONFIG, "read only once");
}

static void files_beside_a_graph_s_nodes_count(void **state)
{
    (void)state;
    const struct ph_data_settings graph = {
        .format = PH_DATA_GRAPH, .graph = {.edges = "edges.csv", .words = ""}};
    char few[PH_RUN_KEY_BYTES], many[PH_RUN_KEY_BYTES], plain[PH_RUN_KEY_BYTES];
    char nodes[600];
    snprintf(nodes, sizeof nodes, "%s#train", test_write_file("nodes.csv", "id\n0\n1\n"));
    test_write_file("edges.csv", "0,1\n");
    assert_ok(ph__data_key(&graph, nodes, few));
    test_write_file("edges.csv", "0,1\n1,0\n");
    assert_ok(ph__data_key(&graph, nodes, many));
    assert_ok(ph__data_key(&csv, nodes, plain));
    assert_string_not_equal(few, many);
    assert_string_not_equal(many, plain);
}

static void the_program_is_known_by_its_bytes(void **state)
{
    (void)state;
    char hex[65];
    assert_ok(ph__program_digest(hex));
    assert_int_equal(strlen(hex), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_learnt_hangs_on_the_key),
        cmocka_unit_test(the_recipes_are_in_the_key),
        cmocka_unit_test(what_does_not_change_the_outcome_is_not_in_the_key),
        cmocka_unit_test(what_may_change_on_resume_is_left_out),
        cmocka_unit_test(data_that_changed_has_another_key),
        cmocka_unit_test(a_pattern_is_its_files),
        cmocka_unit_test(files_beside_a_graph_s_nodes_count),
        cmocka_unit_test(the_program_is_known_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, write_data, NULL);
}
