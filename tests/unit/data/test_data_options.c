/* The data and synth sections as configs write them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/option/option.h"
#include "data/data_options.h"
#include "data/synth/synth_options.h"
#include "unit/data/data_fixture.h"

static ph_status read_config(const char *text, const char *const *sets, size_t num_sets,
    struct ph_data_settings *settings, struct ph__arena *arena)
{
    const struct ph__section sections[] = {{&ph__data_options, settings}};
    return ph__config_read(fixture_file("config.yaml", text), sets, num_sets, sections, 1, arena);
}

static void an_empty_section_gives_the_documented_defaults(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph_data_settings settings;
    assert_ok(read_config("data:\n  format: csv\n", NULL, 0, &settings, &arena));
    assert_null(settings.paths.train);
    assert_int_equal(settings.encoding, PH_ENCODING_VOCABULARY);
    assert_int_equal(settings.min_count, 1);
    assert_int_equal(settings.fields.count, 0);
    assert_true(settings.has_header && settings.reading.is_shuffled);
    assert_int_equal(settings.reading.shuffle_bytes, PH_DEFAULT_SHUFFLE_BYTES);
    assert_int_equal(settings.reading.shuffle_lanes, 1);
    assert_int_equal(settings.reading.num_prefetched, 2);
    assert_string_equal(settings.list_separator, "|");
    ph__arena_fini(&arena);
}

static void fields_are_read_with_what_they_leave_out(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph_data_settings settings;
    const char *const sets[] = {"data.fields[tags].max_length=5", "data.rows=77"};
    assert_ok(read_config("data:\n"
                          "  train: $PH_TEST_FOLDER/train.tsv.zst\n"
                          "  format: tsv\n"
                          "  fields:\n"
                          "    - {name: label, kind: label}\n"
                          "    - name: tags\n"
                          "      kind: id\n"
                          "      encoding: hash\n"
                          "      list: true\n"
                          "    - {name: \"I*\", kind: dense, transform: log1p, missing: -1.5}\n",
        sets, 2, &settings, &arena));
    assert_string_equal(settings.paths.train, "/somewhere/train.tsv.zst");
    assert_int_equal(settings.format, PH_DATA_TSV);
    assert_int_equal(settings.rows, 77);
    assert_int_equal(settings.fields.count, 3);
    const struct ph__field_settings *fields = settings.fields.items;
    assert_int_equal(fields[0].kind, PH_FIELD_LABEL);
    assert_int_equal(fields[0].encoding, PH_ENCODING_INHERIT);
    assert_string_equal(fields[1].name, "tags");
    assert_int_equal(fields[1].encoding, PH_ENCODING_HASH);
    assert_true(fields[1].is_list);
    assert_int_equal(fields[1].max_length, 5);
    assert_int_equal(fields[1].hash_seed, -1);
    assert_int_equal(fields[2].transform, PH_TRANSFORM_LOG1P);
    assert_true(fields[2].missing == -1.5);
    ph__arena_fini(&arena);
}

static void unknown_words_are_refused_with_key_and_line(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph_data_settings settings;
    assert_fails(read_config("data:\n  format: parquet\n", NULL, 0, &settings, &arena), PH_ERROR_CONFIG,
        "data.format");
    assert_fails(read_config("data:\n  fields:\n    - {name: a}\n", NULL, 0, &settings, &arena),
        PH_ERROR_CONFIG, "kind");
    assert_fails(
        read_config("data:\n  fields:\n    - {name: a, kind: id, row: 5}\n", NULL, 0, &settings, &arena),
        PH_ERROR_CONFIG, "rows");
    ph__arena_fini(&arena);
}

static void words_and_indices_belong_together(void **state)
{
    (void)state;
    char word[PH_DATA_WORD_BYTES];
    assert_int_equal(ph__data_word_index(PH_FIELD_KIND_WORDS, "label"), PH_FIELD_LABEL);
    assert_int_equal(ph__data_word_index(PH_FIELD_KIND_WORDS, "ignore"), PH_FIELD_IGNORE);
    assert_int_equal(ph__data_word_index(PH_FIELD_KIND_WORDS, "ign"), -1);
    assert_int_equal(ph__data_word_index(PH_FIELD_KIND_WORDS, ""), -1);
    assert_string_equal(ph__data_word(PH_ENCODING_WORDS, PH_ENCODING_VOCABULARY, word), "vocabulary");
    assert_string_equal(ph__data_word(PH_FIELD_KIND_WORDS, PH_FIELD_IGNORE, word), "ignore");
}

static void every_word_is_found_again(void **state)
{
    (void)state;
    static const char *const lists[] = {PH_DATA_FORMAT_WORDS, PH_FIELD_KIND_WORDS, PH_ENCODING_WORDS,
        PH_TRANSFORM_WORDS, PH_TIME_COMPONENT_WORDS};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        int count = 1;
        for (const char *at = lists[i]; (at = strchr(at, '|')) != NULL; at++)
            count++;
        for (int index = 0; index < count; index++) {
            char word[PH_DATA_WORD_BYTES];
            assert_int_equal(ph__data_word_index(lists[i], ph__data_word(lists[i], index, word)), index);
        }
    }
}

static void only_training_data_may_be_a_pipe(void **state)
{
    (void)state;
    struct ph_data_settings settings = {.paths.train = "-", .paths.valid = "valid.csv"};
    assert_ok(ph__data_settings_check_measured(&settings));
    settings.paths.test = "-";
    assert_fails(ph__data_settings_check_measured(&settings), PH_ERROR_CONFIG, "data.test: only data.train");
    settings.paths.valid = "-";
    assert_fails(ph__data_settings_check_measured(&settings), PH_ERROR_CONFIG, "data.valid: only data.train");
}

/* What synth writes as synth.yaml is a data section that reads its files. */
static void the_schema_that_synth_writes_reads_its_files(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph_synth_settings synth;
    const struct ph__section sections[] = {{&ph__synth_options, &synth}};
    const char *const sets[] = {"synth.train_rows=50", "synth.valid_rows=0", "synth.test_rows=20",
        "synth.bag_sizes=1,2,1", "synth.sparse=3", "synth.table_rows=9", "synth.planted=2",
        "synth.compression=zst"};
    assert_ok(ph__config_read(NULL, sets, sizeof sets / sizeof sets[0], sections, 1, &arena));
    char folder[300], path[320];
    snprintf(folder, sizeof folder, "%s/a \"b\"", test_folder());
    snprintf(path, sizeof path, "%s/synth.yaml", folder);
    assert_ok(ph_synth_write(&synth, folder, NULL));
    struct ph_data_settings settings;
    const struct ph__section data[] = {{&ph__data_options, &settings}};
    assert_ok(ph__config_read(path, NULL, 0, data, 1, &arena));
    assert_null(settings.paths.valid);
    struct ph_encoder *encoder;
    assert_ok(ph_encoder_create(&settings, &encoder));
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 100};
    struct ph_batches *batches = fixture_open(encoder, settings.paths.test, &options);
    const struct ph_batch *batch = fixture_next(batches);
    assert_int_equal(batch->num_samples, 20);
    assert_int_equal(batch->num_dense, 13);
    assert_int_equal(batch->num_ids, 20 * 4);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
    ph__arena_fini(&arena);
}

static void a_split_has_the_path_of_its_name(void **state)
{
    (void)state;
    const struct ph_data_settings settings = {
        .paths.train = "train", .paths.valid = "valid", .paths.test = "test"};
    for (size_t split = 0; split < PH_SPLIT_COUNT; split++)
        assert_string_equal(ph__split_path(&settings, split), ph__split_names[split]);
    assert_null(ph__split_path(&(struct ph_data_settings){.paths.train = "a"}, PH_SPLIT_TEST));
}

/* Their names are the same. */
static void synthetic_files_are_numbered_as_splits_are(void **state)
{
    (void)state;
    assert_int_equal(PH_SYNTH_TRAIN, PH_SPLIT_TRAIN);
    assert_int_equal(PH_SYNTH_VALID, PH_SPLIT_VALID);
    assert_int_equal(PH_SYNTH_TEST, PH_SPLIT_TEST);
    assert_int_equal(PH_SYNTH_FILE_COUNT, PH_SPLIT_COUNT);
}

int main(void)
{
    setenv("PH_TEST_FOLDER", "/somewhere", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_section_gives_the_documented_defaults),
        cmocka_unit_test(fields_are_read_with_what_they_leave_out),
        cmocka_unit_test(unknown_words_are_refused_with_key_and_line),
        cmocka_unit_test(words_and_indices_belong_together),
        cmocka_unit_test(every_word_is_found_again),
        cmocka_unit_test(only_training_data_may_be_a_pipe),
        cmocka_unit_test(the_schema_that_synth_writes_reads_its_files),
        cmocka_unit_test(a_split_has_the_path_of_its_name),
        cmocka_unit_test(synthetic_files_are_numbered_as_splits_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
