/* A row's logits have the same bits in every batch, at every place in it, with every number of threads. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/thread/parallel_team.h"
#include "graph/graph.h"
#include "serve/scorer.h"
#include "support/test_support.h"
#include "unit/data/data_fixture.h"
#include "unit/serve/run_folder.h"

/* ---- features ---- */

/* A history and the item in question: the table of a model has one slice for both. */
static void features_that_share_rows_have_one_slice_in_every_table(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_model_features features;
    struct ph_builder *builder = NULL;
    fixture_init(&fixture, fixture_file("features.csv", "label,user,history,item\n1,u,a|b,c\n0,v,c,b\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "user", PH_FIELD_ID);
    struct ph__field_settings *history = fixture_field(&fixture, "history", PH_FIELD_ID);
    history->is_list = true;
    history->shares = "item";
    fixture_field(&fixture, "item", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_ok(ph__features_init(encoder, &features));
    static const char *const names[] = {"user", "history", "item"};
    for (size_t f = 0; f < 3; f++)
        assert_string_equal(features.sparse[f].name, names[f]);
    const struct ph_model_settings settings = {.kind = ph_model_find("fm"), .embedding_dim = 4};
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    assert_int_not_equal(ph_model_build(builder, &settings, &features), 0);
    size_t num_tables = 0;
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++) {
        const struct ph__declaration *table =
            ph__builder_declaration(builder, ph_builder_parameter(builder, i));
        if (!table->is_table)
            continue;
        num_tables++;
        assert_int_equal(table->num_features, 3);
        assert_int_equal(table->num_slices, 2);
        assert_int_equal(table->shape.dims[0], 3 + 4);
        assert_non_null(strstr(table->slices[1].name, ".item"));
    }
    assert_int_equal(num_tables, 2);
    ph_builder_destroy(builder);
    ph__features_fini(&features);
    ph_encoder_destroy(encoder);
}

/* ---- scorers ---- */

/* How rows are scored; the rows themselves are always the same. */
struct manner {
    size_t batch_size, num_threads;
    bool is_shuffled, is_fast;
    double logit_shift;
};

/* Logits by the number of the row, which its group tells: the hash of its text. */
struct scores {
    size_t count;
    int64_t groups[NUM_ROWS];
    ph_real logits[NUM_ROWS];
};

static void collect(
    struct ph_scorer *scorer, struct ph_encoder *encoder, const struct manner *manner, struct scores *scores)
{
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    const ph_real *logits = NULL;
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = manner->batch_size,
        .reading.is_shuffled = manner->is_shuffled,
        .seed = test_seed()};
    char path[600];
    snprintf(path, sizeof path, "%s/rows.csv", test_folder());
    assert_ok(ph_batches_open(encoder, path, &options, &batches));
    for (scores->count = 0;;) {
        assert_ok(ph_batches_next(batches, &batch));
        if (batch == NULL)
            break;
        assert_ok(ph_scorer_score(scorer, batch, &logits));
        assert_true(scores->count + batch->num_samples <= NUM_ROWS);
        memcpy(scores->groups + scores->count, batch->groups, batch->num_samples * sizeof *batch->groups);
        memcpy(scores->logits + scores->count, logits, batch->num_samples * sizeof *logits);
        scores->count += batch->num_samples;
    }
    assert_int_equal(scores->count, NUM_ROWS);
    ph_batches_close(batches);
}

static void score(const char *folder, const struct manner *manner, struct scores *scores)
{
    struct ph__model_config config = {0};
    struct ph__model_folder model = {0};
    struct ph_backend *backend = NULL;
    struct ph_scorer *scorer = NULL;
    assert_ok(ph__model_config_read(&config, folder));
    assert_ok(ph__model_folder_open(
        &model, folder, &config.model.settings, config.data.reading.negative_rate, PH_ROWS_FP32, NULL));
    assert_ok(ph_backend_create(&(struct ph_backend_options){.size = sizeof(struct ph_backend_options),
                                    .num_threads = manner->num_threads,
                                    .is_fast = manner->is_fast,
                                    .team = manner->is_fast ? PH_TEAM_OPENMP : PH_TEAM_PTHREAD},
        &backend));
    struct ph_scorer_options options = {.size = sizeof options,
        .model = &config.model.settings,
        .encoder = model.encoder,
        .store = model.store,
        .state = model.state,
        .backend = backend,
        .batch_size = manner->batch_size,
        .logit_shift = manner->logit_shift};
    assert_ok(ph_scorer_create(&options, &scorer));
    collect(scorer, model.encoder, manner, scores);
    ph_scorer_destroy(scorer);
    ph_backend_destroy(backend);
    ph__model_folder_close(&model);
    ph__model_config_fini(&config);
}

static ph_real logit_of(const struct scores *scores, int64_t group)
{
    for (size_t i = 0; i < scores->count; i++)
        if (scores->groups[i] == group)
            return scores->logits[i];
    fail_msg("a row is missing");
    return 0;
}

static size_t num_distinct(const struct scores *scores)
{
    size_t count = 0;
    for (size_t i = 0; i < scores->count; i++) {
        size_t j = 0;
        while (scores->logits[j] != scores->logits[i])
            j++;
        count += j == i;
    }
    return count;
}

static void check_model(const char *kind)
{
    static const size_t batch_sizes[] = {1, 7, 64, 250};
    const char *folder = make_run_folder(kind);
    struct scores whole, again;
    score(folder, &(struct manner){.batch_size = NUM_ROWS, .num_threads = 1}, &whole);
    assert_true(num_distinct(&whole) > NUM_ROWS / 2); /* rows all alike would prove nothing */
    for (size_t i = 0; i < 8; i++) {
        const struct manner manner = {.batch_size = batch_sizes[i / 2],
            .num_threads = 1 + i % 3,
            .is_shuffled = i % 2 == 0,
            .is_fast = i % 4 == 0 && ph__team_openmp != NULL};
        score(folder, &manner, &again);
        for (size_t row = 0; row < NUM_ROWS; row++) {
            const ph_real wanted = logit_of(&whole, again.groups[row]);
            if (memcmp(&again.logits[row], &wanted, sizeof wanted) != 0)
                fail_msg("%s: a logit is %.9g in one batch, %.9g in batches of %zu", kind, (double)wanted,
                    (double)again.logits[row], manner.batch_size);
        }
    }
}

static void logits_do_not_depend_on_the_batch(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind++)
        check_model(ph_model_name((int)kind));
}

static void shift_moves_every_logit(void **state)
{
    (void)state;
    const char *folder = make_run_folder("lr");
    struct scores plain, shifted;
    score(folder, &(struct manner){.batch_size = 100, .num_threads = 1}, &plain);
    score(folder, &(struct manner){.batch_size = 100, .num_threads = 1, .logit_shift = -1.5}, &shifted);
    for (size_t row = 0; row < NUM_ROWS; row++)
        assert_true(shifted.logits[row] == plain.logits[row] - (ph_real)1.5);
}

/* ---- probabilities ---- */

static double corrected(double p, double rate)
{
    return ph__sigmoid(log(p / (1 - p)) + ph__negative_rate_shift(rate));
}

static void correction_is_that_of_the_paper(void **state)
{
    (void)state;
    static const double rates[] = {1, 0.5, 0.1, 0.025, 1e-4};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (double p = 0.01; p < 1; p += 0.07)
            assert_near(corrected(p, rates[i]), p / (p + (1 - p) / rates[i]), 1e-12, 1e-12);
}

static void all_negatives_need_no_correction(void **state)
{
    (void)state;
    assert_true(ph__negative_rate_shift(1) == 0);
    assert_true(ph__negative_rate_shift(0) == 0);
}

/* Clicks drawn with probability q, of whose misses a tenth is kept: what remains clicks with some p, and p
 * corrected is q again. */
static void correction_undoes_what_sampling_does_to_a_base_rate(void **state)
{
    (void)state;
    enum { ROWS = 400000 };
    const double rate = 0.1;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (double q = 0.02; q < 0.6; q *= 3) {
        double positives = 0, kept = 0;
        for (int i = 0; i < ROWS; i++) {
            int label = ph__rng_next_uniform(&random) < q;
            if (!label && ph__rng_next_uniform(&random) >= rate)
                continue;
            positives += label;
            kept++;
        }
        double relative_error = sqrt(1 / positives + 1 / (kept - positives));
        assert_near(corrected(positives / kept, rate), q, 5 * relative_error * q, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_that_share_rows_have_one_slice_in_every_table),
        cmocka_unit_test(logits_do_not_depend_on_the_batch),
        cmocka_unit_test(shift_moves_every_logit),
        cmocka_unit_test(correction_is_that_of_the_paper),
        cmocka_unit_test(all_negatives_need_no_correction),
        cmocka_unit_test(correction_undoes_what_sampling_does_to_a_base_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
