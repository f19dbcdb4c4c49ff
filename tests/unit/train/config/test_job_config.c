/* Configs by the public headers alone: all that a program with the installed library has. */
#include "phloem/phloem.h"

#include "support/test_support.h"
#include "train/config/job_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct ph_config *read_config(const char *path, size_t num_sets, const char *const *sets)
{
    struct ph_config *config = NULL;
    assert_ok(ph_config_read(path, sets, num_sets, &config));
    return config;
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void what_stands_in_a_config_comes_out_of_it(void **state)
{
    (void)state;
    static const char *const sets[] = {"train.batch_size=77", "threads=3", "prepare.block_rows=512"};
    const char *path = test_write_file("job.yaml",
        "seed: 9\ndata: {train: a.csv, test: b.csv, shuffle: false, max_bad_rows: 5, negative_rate: 0.5}\n"
        "model: {kind: fm, hidden_units: [8, 4]}\ntrain: {batch_size: 10}\n"
        "optimizer: {learning_rate: 0.25, groups: [{name: g, pattern: 'x*', l2: 1}]}\n");
    struct ph_config *config = read_config(path, COUNT(sets), sets);
    struct ph__train_job job = ph__config_job(config);
    assert_int_equal(job.run.seed, 9);
    assert_int_equal(job.run.num_threads, 3);
    assert_string_equal(job.paths.train, "a.csv");
    assert_null(job.paths.valid);
    assert_string_equal(job.paths.test, "b.csv");
    assert_false(job.reading.is_shuffled);
    assert_int_equal(job.reading.max_bad_rows, 5);
    assert_true(job.reading.negative_rate == 0.5);
    assert_ptr_equal(job.model, ph_config_model(config));
    assert_ptr_equal(job.train, ph_config_train(config));
    assert_ptr_equal(job.optimizer, ph_config_optimizer(config));
    assert_int_equal(job.model->kind, ph_model_find("fm"));
    assert_int_equal(job.model->num_hidden_units, 2);
    assert_int_equal(job.model->hidden_units[1], 4);
    assert_int_equal(job.train->batch_size, 77);
    assert_true(job.optimizer->learning_rate == 0.25);
    assert_int_equal(job.optimizer->num_groups, 1);
    assert_string_equal(job.optimizer->groups[0].pattern, "x*");
    struct ph_prepare_options options = {.size = sizeof options};
    assert_ok(ph_config_prepare_options(config, &options));
    assert_int_equal(options.num_threads, 3);
    assert_int_equal(options.settings.block_rows, 512);
    assert_int_equal(options.settings.part_bytes, 256 << 20);
    assert_false(options.may_resume);
    ph_config_destroy(config);
}

static void structs_without_their_size_are_refused(void **state)
{
    (void)state;
    struct ph_config *config = read_config(NULL, 0, NULL);
    struct ph_train_observer observer = {0};
    struct ph_train_options training = {0};
    struct ph_prepare_options options = {0};
    struct ph_prepare_summary preparation;
    const char *why = "set it to sizeof(struct ph_train_options)";
    assert_fails(ph_train_config(config, &training, NULL), PH_ERROR_USAGE, why);
    training = (struct ph_train_options){.size = sizeof training, .folder = "none", .observer = &observer};
    why = "set it to sizeof(struct ph_train_observer)";
    assert_fails(ph_train_config(config, &training, NULL), PH_ERROR_USAGE, why);
    why = "set it to sizeof(struct ph_prepare_options)";
    assert_fails(ph_config_prepare_options(config, &options), PH_ERROR_USAGE, why);
    assert_fails(ph_prepare(ph_config_data(config), "none", &options, &preparation), PH_ERROR_USAGE, why);
    ph_config_destroy(config);
}

static void no_file_is_the_defaults(void **state)
{
    (void)state;
    struct ph_config *config = read_config(NULL, 0, NULL);
    struct ph__train_job job = ph__config_job(config);
    assert_int_equal(job.run.seed, 1);
    assert_int_equal(job.train->epochs, 1);
    assert_null(job.paths.train);
    assert_null(job.options.folder);
    assert_null(job.encoder);
    ph_config_destroy(config);
    ph_config_destroy(NULL);
}

static void what_is_written_reads_back_the_same(void **state)
{
    (void)state;
    static const char *const sets[] = {"model.kind=lr", "data.train=$$x y.csv", "synth.train_rows=5"};
    char first[600], second[600];
    snprintf(first, sizeof first, "%s/first.yaml", test_folder());
    snprintf(second, sizeof second, "%s/second.yaml", test_folder());
    struct ph_config *config = read_config(NULL, COUNT(sets), sets);
    assert_ok(ph_config_write(config, first));
    ph_config_destroy(config);
    config = read_config(first, 0, NULL);
    assert_int_equal(ph_config_model(config)->kind, ph_model_find("lr"));
    struct ph__train_job job = ph__config_job(config);
    assert_string_equal(job.paths.train, "$x y.csv");
    assert_ok(ph_config_write(config, second));
    char *text = read_text(first), *again = read_text(second);
    assert_string_equal(text, again);
    assert_null(strstr(text, "synth"));
    free(text);
    free(again);
    assert_fails(ph_config_write(config, "/nonexistent/config.yaml"), PH_ERROR_DISK, "/nonexistent");
    ph_config_destroy(config);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    static const char *const unknown[] = {"train.epoch=3"}, *const gone[] = {"data.prepared=/nonexistent"};
    struct ph_config *config = NULL;
    const char *path = test_write_file("wrong.yaml", "seed: 1\ntrain:\n  batch_size: many\n");
    assert_fails(ph_config_read(path, NULL, 0, &config), PH_ERROR_CONFIG, "wrong.yaml:3: train.batch_size");
    assert_fails(ph_config_read(NULL, unknown, 1, &config), PH_ERROR_CONFIG,
        "--set train.epoch=3: unknown key 'train.epoch'; did you mean 'train.epochs'?");
    assert_fails(ph_config_read("/nonexistent.yaml", NULL, 0, &config), PH_ERROR_CONFIG, "/nonexistent.yaml");
    assert_fails(ph_config_read(NULL, gone, 1, &config), PH_ERROR_DATA, "/nonexistent");
    assert_null(config);
}

static void a_text_is_read_like_a_file(void **state)
{
    (void)state;
    static const char *const sets[] = {"threads=3"};
    struct ph_config *config = NULL;
    assert_ok(ph_config_from_text("{\"seed\": 9, \"model\": {\"kind\": \"fm\", \"hidden_units\": [8, 4]}}",
        "a dict", sets, COUNT(sets), &config));
    const struct ph__train_job job = ph__config_job(config);
    assert_int_equal(job.run.seed, 9);
    assert_int_equal(job.run.num_threads, 3);
    assert_int_equal(job.model->hidden_units[1], 4);
    ph_config_destroy(config);
    assert_fails(ph_config_from_text("seed: 1\ntrain: {epoch: 2}", "a dict", NULL, 0, &config),
        PH_ERROR_CONFIG, "a dict:2: unknown key 'train.epoch'; did you mean 'train.epochs'?");
    assert_fails(ph_config_from_text("seed: [", "a dict", NULL, 0, &config), PH_ERROR_CONFIG,
        "a dict:2: not valid YAML");
}

/* Each key of a config that is written is in the schema. */
static void the_schema_has_every_key(void **state)
{
    (void)state;
    char *text = NULL;
    struct ph__json *schema = NULL;
    assert_ok(ph_config_schema(&text));
    assert_ok(ph__json_parse(text, strlen(text), "schema", PH_ERROR_BUG, &schema));
    size_t num_found = 0;
    for (size_t s = 0; s < ph__json_size(schema); s++) {
        const struct ph__json *section = ph__json_at(schema, s), *keys = ph__json_get(section, "keys");
        for (size_t k = 0; k < ph__json_size(keys); k++) {
            const struct ph__json *key = ph__json_at(keys, k);
            const char *name = ph__json_as_text(ph__json_get(key, "key"), "");
            assert_true(strlen(ph__json_as_text(ph__json_get(key, "help"), "")) > 0);
            if (strcmp(name, "epochs") == 0 || strcmp(name, "fields") == 0)
                num_found++;
            if (strcmp(name, "epochs") == 0) {
                assert_string_equal(ph__json_as_text(ph__json_get(section, "section"), ""), "train");
                assert_string_equal(ph__json_as_text(ph__json_get(key, "type"), ""), "integer");
                assert_true(ph__json_as_bool(ph__json_get(key, "may_change_on_resume"), false));
            }
            if (strcmp(name, "fields") == 0)
                assert_true(ph__json_size(ph__json_get(ph__json_get(key, "records"), "keys")) > 10);
        }
    }
    assert_int_equal(num_found, 2);
    ph__json_destroy(schema);
    ph_text_free(text);
}

static float score_blank_row(const char *folder)
{
    static const struct ph_cell blank[5];
    struct ph_session *session = NULL;
    float probability = -1;
    assert_ok(ph_session_open(folder, NULL, &session));
    assert_int_equal(ph_session_num_columns(session), COUNT(blank));
    assert_ok(ph_session_score(session, 1, blank, &probability));
    ph_session_close(session);
    return probability;
}

/* The config of the data that these settings synthesise. */
static struct ph_config *synthesise(void)
{
    static const char *const sets[] = {"synth.train_rows=900", "synth.valid_rows=0", "synth.test_rows=300",
        "synth.dense=2", "synth.sparse=3", "synth.table_rows=20", "synth.planted=2", "synth.planted_dense=1"};
    static const char *const job_sets[] = {"model.kind=fm", "model.embedding_dim=4", "train.batch_size=100"};
    char folder[600], path[620];
    struct ph_config *config = read_config(NULL, COUNT(sets), sets);
    snprintf(folder, sizeof folder, "%s/data", test_folder());
    assert_ok(ph_synth_write(ph_config_synth(config), folder, NULL));
    ph_config_destroy(config);
    snprintf(path, sizeof path, "%s/synth.yaml", folder);
    return read_config(path, COUNT(job_sets), job_sets);
}

static void a_config_is_all_that_preparing_training_and_scoring_want(void **state)
{
    (void)state;
    char folder[600], prepared[600];
    snprintf(folder, sizeof folder, "%s/run", test_folder());
    snprintf(prepared, sizeof prepared, "%s/prepared", test_folder());
    struct ph_config *config = synthesise();
    struct ph_prepare_options options = {.size = sizeof options};
    assert_ok(ph_config_prepare_options(config, &options));
    struct ph_prepare_summary preparation;
    assert_ok(ph_prepare(ph_config_data(config), prepared, &options, &preparation));
    assert_int_equal(preparation.num_rows, 1200);
    struct ph_train_summary summary;
    char *json = NULL;
    const struct ph_train_options training = {
        .size = sizeof training, .folder = folder, .summary_json = &json};
    assert_ok(ph_train_config(config, &training, &summary));
    assert_int_equal(summary.steps, 9);
    assert_true(summary.has_test);
    assert_non_null(strstr(json, summary.checkpoint_sha256));
    ph_text_free(json);
    const float probability = score_blank_row(folder);
    assert_true(probability > 0 && probability < 1);
    snprintf(folder, sizeof folder, "%s/run/config.yaml", test_folder());
    assert_int_equal(unlink(folder), 0);
    snprintf(folder, sizeof folder, "%s/run", test_folder());
    assert_true(score_blank_row(folder) == probability); /* by what the weights say of themselves */
    assert_fails(ph_train_config(config, &training, NULL), PH_ERROR_USAGE, "run");
    ph_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_in_a_config_comes_out_of_it),
        cmocka_unit_test(structs_without_their_size_are_refused),
        cmocka_unit_test(no_file_is_the_defaults),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(a_text_is_read_like_a_file),
        cmocka_unit_test(the_schema_has_every_key),
        cmocka_unit_test(a_config_is_all_that_preparing_training_and_scoring_want),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
