/* Synthetic data as written: its truth against the files themselves, its shape, and that it can be read. */
#include "data/synth/synth_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "base/rng.h"
#include "data/synth/synth_teacher.h"
#include "unit/data/data_fixture.h"

static struct ph_synth_settings small_settings(void)
{
    return (struct ph_synth_settings){
        .train_rows = 4000,
        .valid_rows = 500,
        .test_rows = 1000,
        .num_dense = 3,
        .num_sparse = 5,
        .table_rows = {1, {40}},
        .bag_sizes = {1, {1}},
        .exponent = 1.05,
        .num_planted = 3,
        .num_planted_dense = 2,
        .order = 2,
        .latent_dim = 4,
        .scale = 2,
        .base_rate = 0.25,
        .seed = (int64_t)test_seed(),
    };
}

static char *read_text(const char *path, struct ph__arena *arena)
{
    char *text;
    size_t size;
    assert_ok(ph__file_read(arena, path, 1 << 26, &text, &size));
    return text;
}

static void the_same_seed_writes_the_same_files(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__arena arena = {0};
    assert_ok(ph_synth_write(&settings, test_path("one"), NULL));
    assert_ok(ph_synth_write(&settings, test_path("two"), NULL));
    settings.train_rows = 100;
    settings.seed++;
    assert_ok(ph_synth_write(&settings, test_path("three"), NULL));
    const char *first = read_text(test_path("one/test.tsv"), &arena);
    assert_string_equal(first, read_text(test_path("two/test.tsv"), &arena));
    assert_string_not_equal(first, read_text(test_path("three/test.tsv"), &arena));
    ph__arena_fini(&arena);
}

static void files_do_not_depend_on_how_many_rows_others_have(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__arena arena = {0};
    assert_ok(ph_synth_write(&settings, test_path("long"), NULL));
    settings.train_rows = 10;
    settings.valid_rows = 0;
    assert_ok(ph_synth_write(&settings, test_path("short"), NULL));
    assert_string_equal(
        read_text(test_path("long/test.tsv"), &arena), read_text(test_path("short/test.tsv"), &arena));
    assert_false(ph__file_exists(test_path("short/valid.tsv")));
    ph__arena_fini(&arena);
}

/* Written before there were staircases. */
static void the_files_of_a_seed_stay_as_they_are(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__arena arena = {0};
    settings.seed = 1;
    assert_ok(ph_synth_write(&settings, test_path("kept"), NULL));
    assert_int_equal(ph__hash_name(read_text(test_path("kept/train.tsv"), &arena)), 0x45505873a59fae4bu);
    assert_null(strstr(read_text(test_path("kept/truth.json"), &arena), "staircase"));
    ph__arena_fini(&arena);
}

static void what_is_there_is_not_written_over(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__arena arena = {0};
    assert_ok(ph_synth_write(&settings, test_path("once"), NULL));
    const char *before = read_text(test_path("once/train.tsv"), &arena);
    settings.seed += 1;
    assert_fails(
        ph_synth_write(&settings, test_path("once"), NULL), PH_ERROR_USAGE, "once: the folder is not empty");
    assert_string_equal(read_text(test_path("once/train.tsv"), &arena), before);
    ph__arena_fini(&arena);
}

/* Reads with the schema that synth.yaml states, written out by hand. */
static struct ph_encoder *encoder_of(const struct ph_synth_settings *settings, const char *train)
{
    struct fixture fixture;
    fixture_init(&fixture, train);
    fixture.settings.format = PH_DATA_TSV;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "I*", PH_FIELD_DENSE)->transform = PH_TRANSFORM_LOG1P;
    struct ph__field_settings *id = fixture_field(&fixture, "C*", PH_FIELD_ID);
    id->encoding = PH_ENCODING_RAW;
    id->rows = settings->table_rows.items[0];
    id->is_list = settings->bag_sizes.items[0] > 1;
    return fixture_encoder(&fixture);
}

static void the_reader_takes_what_was_written(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    settings.bag_sizes.items[0] = 3;
    settings.compression = PH_SYNTH_ZST;
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    assert_ok(ph_synth_write(&settings, test_path("read"), truth));
    struct ph_encoder *encoder = encoder_of(&settings, test_path("read/train.tsv.zst"));
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 100000};
    struct ph_batches *batches = fixture_open(encoder, test_path("read/train.tsv.zst"), &options);
    const struct ph_batch *batch = fixture_next(batches);
    assert_int_equal(batch->num_samples, 4000);
    assert_int_equal(batch->num_dense, 3);
    assert_int_equal(batch->num_ids, 4000 * 5 * 3);
    double positives = 0;
    for (size_t b = 0; b < batch->num_samples; b++)
        positives += (double)batch->labels[b];
    assert_near(positives / 4000, truth[PH_SYNTH_TRAIN].base_rate, 1e-12, 0);
    assert_near(positives / 4000, 0.25, 0.04, 0);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void the_truth_is_written_beside_the_files(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    assert_ok(ph_synth_write(&settings, test_path("truth"), truth));
    struct ph__arena arena = {0};
    struct ph__json *json;
    const char *text = read_text(test_path("truth/truth.json"), &arena);
    assert_ok(ph__json_parse(text, strlen(text), "truth.json", PH_ERROR_DATA, &json));
    const struct ph__json *test = ph__json_get(json, "test");
    assert_int_equal(ph__json_as_integer(ph__json_get(test, "rows"), 0), 1000);
    assert_near(ph__json_as_number(ph__json_get(test, "auc"), 0), truth[PH_SYNTH_TEST].auc, 0, 1e-15);
    assert_near(
        ph__json_as_number(ph__json_get(test, "expected_ne"), 0), truth[PH_SYNTH_TEST].expected_ne, 0, 1e-15);
    ph__json_destroy(json);
    ph__arena_fini(&arena);
}

static struct ph__synth_step staircase[] = {{1, 1}, {2, 1}, {4, 1}, {8, 1}};

static struct ph_synth_settings staircase_settings(void)
{
    struct ph_synth_settings settings = small_settings();
    settings.num_dense = 0;
    settings.num_planted_dense = 0;
    settings.num_sparse = 17;
    settings.num_planted = 16;
    settings.table_rows.items[0] = 16;
    settings.staircase = (struct ph__record_list){4, staircase};
    settings.num_rounds = 1;
    settings.base_rate = 0.5;
    settings.scale = 3;
    return settings;
}

/* One order after another makes the model better; the last is the true one. */
static void a_staircase_tells_what_each_order_is_worth(void **state)
{
    (void)state;
    struct ph_synth_settings settings = staircase_settings();
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    settings.train_rows = 20000;
    assert_ok(ph_synth_write(&settings, test_path("staircase"), truth));
    const struct ph_synth_truth *train = &truth[PH_SYNTH_TRAIN];
    assert_int_equal(train->num_orders, 4);
    for (size_t i = 0; i < 4; i++) {
        double before = i > 0 ? train->orders[i - 1].expected_logloss : log(2);
        assert_int_equal(train->orders[i].order, 1 << i);
        assert_true(train->orders[i].expected_logloss + 0.01 < before);
        assert_near(train->orders[i].logloss, train->orders[i].expected_logloss, 0.03, 0);
    }
    assert_near(train->orders[3].expected_logloss, train->expected_logloss, 0, 1e-12);
    assert_near(train->orders[3].logloss, train->logloss, 0, 1e-9);
    assert_near(train->orders[3].ne, train->ne, 0, 1e-9);
}

static void the_orders_of_a_staircase_are_written_beside_the_files(void **state)
{
    (void)state;
    struct ph_synth_settings settings = staircase_settings();
    settings.staircase = (struct ph__record_list){2, staircase + 2};
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    assert_ok(ph_synth_write(&settings, test_path("orders"), truth));
    struct ph__arena arena = {0};
    struct ph__json *json;
    const char *text = read_text(test_path("orders/truth.json"), &arena);
    assert_ok(ph__json_parse(text, strlen(text), "truth.json", PH_ERROR_DATA, &json));
    const struct ph__json *orders = ph__json_get(ph__json_get(json, "test"), "orders");
    assert_int_equal(ph__json_size(orders), 2);
    const struct ph__json *last = ph__json_at(orders, 1);
    assert_int_equal(ph__json_as_integer(ph__json_get(ph__json_at(orders, 0), "order"), 0), 4);
    assert_int_equal(ph__json_as_integer(ph__json_get(last, "order"), 0), 8);
    assert_near(ph__json_as_number(ph__json_get(last, "ne"), 0), truth[PH_SYNTH_TEST].orders[1].ne, 0, 1e-15);
    ph__json_destroy(json);
    ph__arena_fini(&arena);
}

/* The logit is made of the components that the row keeps. */
static void a_staircases_logit_is_the_weighted_sum_of_its_parts(void **state)
{
    (void)state;
    struct ph_synth_settings settings = staircase_settings();
    struct ph__synth_teacher teacher;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    for (uint64_t i = 0; i < 50; i++) {
        struct ph__synth_row row;
        assert_ok(ph__synth_row_init(&row, &teacher));
        ph__synth_row_draw(&teacher, 1, i, 0, &row);
        double logit = teacher.bias;
        for (size_t step = 0; step < 4; step++)
            logit += 1.5 * row.components[step]; /* the scale by the square root of four components */
        assert_near(row.probability, 1 / (1 + exp(-logit)), 0, 1e-9);
        ph__synth_row_fini(&row);
    }
    ph__synth_teacher_fini(&teacher);
}

static void measured_figures_scatter_around_the_stated_ones(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    settings.train_rows = 10000;
    settings.valid_rows = 10000;
    settings.test_rows = 10000;
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    assert_ok(ph_synth_write(&settings, test_path("scatter"), truth));
    for (size_t file = 0; file < PH_SYNTH_FILE_COUNT; file++) {
        assert_near(truth[file].auc, truth[file].expected_auc, 0.02, 0);
        assert_near(truth[file].logloss, truth[file].expected_logloss, 0.02, 0);
        assert_near(truth[file].base_rate, 0.25, 0.03, 0);
        assert_in_range((uint64_t)(truth[file].expected_auc * 1000), 600, 950);
    }
}

static void labels_are_drawn_with_the_stated_probability(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__synth_teacher teacher;
    struct ph__synth_row row;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    assert_ok(ph__synth_row_init(&row, &teacher));
    enum { BINS = 10, ROWS = 40000 };
    double expected[BINS] = {0}, positives[BINS] = {0};
    for (uint64_t i = 0; i < ROWS; i++) {
        ph__synth_row_draw(&teacher, 1, i, 0, &row);
        size_t bin = (size_t)(row.probability * BINS * 0.999999);
        expected[bin] += row.probability;
        positives[bin] += row.label;
    }
    for (size_t bin = 0; bin < BINS; bin++)
        assert_near(positives[bin], expected[bin], 5 * sqrt(expected[bin] + 1), 0);
    ph__synth_row_fini(&row);
}

/* Draws logits of many teachers; checks that their mean is 0 and their variance scale^2. */
static void check_scale(struct ph_synth_settings settings)
{
    enum { TEACHERS = 24, ROWS = 200, COUNT = TEACHERS * ROWS };
    double squares = 0, sum = 0;
    for (int trial = 0; trial < TEACHERS; trial++) {
        struct ph__synth_teacher teacher;
        struct ph__synth_row row;
        settings.seed++;
        assert_ok(ph__synth_teacher_init(&teacher, &settings));
        assert_ok(ph__synth_row_init(&row, &teacher));
        for (uint64_t i = 0; i < ROWS; i++) {
            ph__synth_row_draw(&teacher, 1, i, 0, &row);
            double logit = log(row.probability / (1 - row.probability)) - teacher.bias;
            sum += logit;
            squares += logit * logit;
        }
        ph__synth_row_fini(&row);
    }
    assert_near(sum / COUNT, 0, 0.5, 0);
    assert_near(sqrt(squares / COUNT), settings.scale, 0.4, 0);
}

static void parts_of_all_orders_have_the_stated_scale(void **state)
{
    (void)state;
    if (test_is_brief())
        skip(); /* thousands of draws, of which a sanitizer has seen enough */
    struct ph_synth_settings settings = small_settings();
    settings.exponent = 0;
    for (settings.order = 1; settings.order <= 3; settings.order++)
        check_scale(settings);
    settings.order = 2;
    settings.num_planted = 4;
    settings.num_groups = 2;
    check_scale(settings);
    settings.has_no_linear_part = true;
    check_scale(settings);
}

/* Four fields of two ids each: the true logit of all 16 rows that there are. */
static void collect_logits(const struct ph_synth_settings *settings, double logits[16])
{
    struct ph__synth_teacher teacher;
    struct ph__synth_row row;
    assert_ok(ph__synth_teacher_init(&teacher, settings));
    assert_ok(ph__synth_row_init(&row, &teacher));
    for (uint64_t i = 0; i < 1000; i++) {
        ph__synth_row_draw(&teacher, 1, i, 0, &row);
        const uint64_t place = row.ids[0] + 2 * row.ids[1] + 4 * row.ids[2] + 8 * row.ids[3];
        logits[place] = log(row.probability / (1 - row.probability));
    }
    ph__synth_row_fini(&row);
}

/* Two fields interact when what one id changes depends on the other field's id. */
static void features_interact_inside_their_group_alone(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    double logits[16] = {0};
    settings.num_sparse = settings.num_planted = 4;
    settings.num_groups = 2;
    settings.num_planted_dense = 0;
    settings.table_rows.items[0] = 2;
    settings.exponent = 0;
    collect_logits(&settings, logits);
    for (size_t f = 0; f < 4; f++)
        for (size_t other = 0; other < f; other++) {
            const size_t a = (size_t)1 << f, b = (size_t)1 << other;
            const double mixed = logits[a + b] - logits[a] - logits[b] + logits[0];
            assert_int_equal(fabs(mixed) > 1e-6, f % 2 == other % 2);
        }
}

static void interactions_alone_leave_features_without_weights(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__synth_teacher teacher;
    settings.num_planted_dense = 0;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    assert_true(teacher.component_scales[1] > 0);
    settings.has_no_linear_part = true;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    assert_near(teacher.component_scales[1], 0, 0, 0);
    assert_near(teacher.component_scales[2], settings.scale / sqrt(3.0 * 4), 0, 1e-12); /* 3 pairs, K = 4 */
    settings.order = 1;
    assert_fails(ph__synth_teacher_init(&teacher, &settings), PH_ERROR_CONFIG,
        "synth.interactions_only: requires synth.order: 2 or more");
}

static double logit_at(struct ph__synth_teacher *teacher, uint64_t index, double time)
{
    struct ph__synth_row row;
    assert_ok(ph__synth_row_init(&row, teacher));
    ph__synth_row_draw(teacher, 1, index, time, &row);
    double logit = log(row.probability / (1 - row.probability)) - teacher->bias;
    ph__synth_row_fini(&row);
    return logit;
}

/* A model of order 1 is linear in its weights, so that it turns as they do. */
static void a_drifting_model_turns_from_one_to_another(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__synth_teacher teacher;
    settings.order = 1;
    settings.drift = 1;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    for (uint64_t i = 0; i < 20; i++) {
        double start = logit_at(&teacher, i, 0), end = logit_at(&teacher, i, 1);
        assert_near(logit_at(&teacher, i, 0.5), (start + end) / sqrt(2), 1e-9, 1e-9);
        assert_near(logit_at(&teacher, i, 1.0 / 3), start * sqrt(3) / 2 + end / 2, 1e-9, 1e-9);
    }
    settings.drift = 2; /* half a turn */
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    for (uint64_t i = 0; i < 20; i++)
        assert_near(logit_at(&teacher, i, 1), -logit_at(&teacher, i, 0), 1e-9, 1e-9);
}

/* Mean products over many teachers: the scale stays, and nothing is left after a quarter turn. */
static void a_drifting_model_keeps_its_scale_and_forgets(void **state)
{
    (void)state;
    if (test_is_brief())
        skip(); /* thousands of draws, of which a sanitizer has seen enough */
    enum { TEACHERS = 48, ROWS = 60, COUNT = TEACHERS * ROWS };
    double at_start = 0, halfway = 0, between = 0;
    for (int trial = 0; trial < TEACHERS; trial++) {
        struct ph_synth_settings settings = small_settings();
        struct ph__synth_teacher teacher;
        settings.exponent = 0;
        settings.drift = 1;
        settings.seed += trial;
        assert_ok(ph__synth_teacher_init(&teacher, &settings));
        for (uint64_t i = 0; i < ROWS; i++) {
            double start = logit_at(&teacher, i, 0), middle = logit_at(&teacher, i, 0.5);
            at_start += start * start / COUNT;
            halfway += middle * middle / COUNT;
            between += start * logit_at(&teacher, i, 1) / COUNT;
        }
    }
    assert_near(at_start, 4, 1.5, 0);
    assert_near(halfway, 4, 1.5, 0);
    assert_near(between, 0, 1.5, 0);
}

static void files_drift_along_training_and_end_where_it_ends(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    struct ph__synth_teacher teacher;
    struct ph__synth_row row;
    settings.drift = 1;
    assert_ok(ph_synth_write(&settings, test_path("drift"), truth));
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    assert_ok(ph__synth_row_init(&row, &teacher));
    double train = 0, test = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        ph__synth_row_draw(&teacher, ph__hash_name("synth.train"), i, (double)i / 4000, &row);
        train += row.probability / 4000;
    }
    for (uint64_t i = 0; i < 1000; i++) {
        ph__synth_row_draw(&teacher, ph__hash_name("synth.test"), i, 1, &row);
        test += row.probability / 1000;
    }
    ph__synth_row_fini(&row);
    assert_near(truth[PH_SYNTH_TRAIN].expected_base_rate, train, 1e-12, 0);
    assert_near(truth[PH_SYNTH_TEST].expected_base_rate, test, 1e-12, 0);
    assert_near(train, settings.base_rate, 0.03, 0);
}

static void ids_cover_their_table_by_the_power_law(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    struct ph__synth_teacher teacher;
    struct ph__synth_row row;
    assert_ok(ph__synth_teacher_init(&teacher, &settings));
    assert_ok(ph__synth_row_init(&row, &teacher));
    enum { ROWS = 40000, IDS = 40 };
    double counts[IDS] = {0};
    for (uint64_t i = 0; i < ROWS; i++) {
        ph__synth_row_draw(&teacher, 1, i, 0, &row);
        assert_in_range(row.ids[4], 0, IDS - 1);
        counts[row.ids[4]]++;
    }
    double total = 0;
    for (int k = 1; k <= IDS; k++)
        total += pow(k, -1.05);
    for (uint64_t k = 1; k <= IDS; k++) { /* the id of item k */
        double expected = ROWS * pow((double)k, -1.05) / total;
        assert_near(counts[k * teacher.scatter[4] % IDS], expected, 5 * sqrt(expected), 0);
    }
    ph__synth_row_fini(&row);
}

static void criteo_files_have_criteos_columns(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    settings.num_dense = 13;
    settings.num_sparse = 26;
    settings.format = PH_SYNTH_CRITEO;
    settings.compression = PH_SYNTH_GZ;
    assert_ok(ph_synth_write(&settings, test_path("criteo"), NULL));
    struct fixture fixture;
    fixture_init(&fixture, test_path("criteo/train.tsv.gz"));
    fixture.settings.format = PH_DATA_CRITEO;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_training_rows(encoder), 4000);
    for (size_t f = 0; f < 26; f++)
        assert_int_equal(ph_encoder_sparse(encoder, f)->num_rows, 41); /* all 40 ids, and row 0 */
    ph_encoder_destroy(encoder);
}

static void settings_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    struct ph_synth_settings settings = small_settings();
    settings.table_rows.count = 3;
    assert_fails(
        ph_synth_write(&settings, test_path("bad"), NULL), PH_ERROR_CONFIG, "synth.table_rows: 3 numbers");
    settings = small_settings();
    settings.order = 4;
    assert_fails(ph_synth_write(&settings, test_path("bad"), NULL), PH_ERROR_CONFIG, "synth.order");
    settings = small_settings();
    settings.num_planted = 6;
    assert_fails(ph_synth_write(&settings, test_path("bad"), NULL), PH_ERROR_CONFIG, "synth.planted:");
    settings = small_settings();
    settings.num_groups = 2;
    assert_fails(ph_synth_write(&settings, test_path("bad"), NULL), PH_ERROR_CONFIG,
        "synth.groups: 2 groups cannot have equal shares of 3 planted features");
    settings.num_groups = 3;
    assert_fails(ph_synth_write(&settings, test_path("bad"), NULL), PH_ERROR_CONFIG,
        "synth.order: must be at most 1, the number of planted features in a group");
    settings = small_settings();
    settings.format = PH_SYNTH_CRITEO;
    assert_fails(ph_synth_write(&settings, test_path("bad"), NULL), PH_ERROR_CONFIG, "criteo needs 13 dense");
    assert_false(ph__file_exists(test_path("bad")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_writes_the_same_files),
        cmocka_unit_test(files_do_not_depend_on_how_many_rows_others_have),
        cmocka_unit_test(the_files_of_a_seed_stay_as_they_are),
        cmocka_unit_test(what_is_there_is_not_written_over),
        cmocka_unit_test(the_reader_takes_what_was_written),
        cmocka_unit_test(the_truth_is_written_beside_the_files),
        cmocka_unit_test(a_staircase_tells_what_each_order_is_worth),
        cmocka_unit_test(the_orders_of_a_staircase_are_written_beside_the_files),
        cmocka_unit_test(a_staircases_logit_is_the_weighted_sum_of_its_parts),
        cmocka_unit_test(measured_figures_scatter_around_the_stated_ones),
        cmocka_unit_test(labels_are_drawn_with_the_stated_probability),
        cmocka_unit_test(parts_of_all_orders_have_the_stated_scale),
        cmocka_unit_test(features_interact_inside_their_group_alone),
        cmocka_unit_test(interactions_alone_leave_features_without_weights),
        cmocka_unit_test(a_drifting_model_turns_from_one_to_another),
        cmocka_unit_test(a_drifting_model_keeps_its_scale_and_forgets),
        cmocka_unit_test(files_drift_along_training_and_end_where_it_ends),
        cmocka_unit_test(ids_cover_their_table_by_the_power_law),
        cmocka_unit_test(criteo_files_have_criteos_columns),
        cmocka_unit_test(settings_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
