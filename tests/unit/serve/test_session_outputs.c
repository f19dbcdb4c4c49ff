/* Outputs of sessions beside the probability: what models name, and that nothing else is computed. */
#include "unit/serve/run_folder.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "serve/session.h"

enum { NUM_COLUMNS = 7, DIM = 6, NUM_FEATURES = 6 };

/* Rows as the run folder's sessions want them: numbers and short lists. */
static void fill_rows(struct ph_cell *cells, size_t num_rows)
{
    static const int64_t list[] = {3, 7, 11};
    for (size_t row = 0; row < num_rows; row++)
        for (size_t c = 0; c < NUM_COLUMNS; c++)
            cells[row * NUM_COLUMNS + c] =
                c < 5 ? (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)(row * 7 + c) % 40}
                      : (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = list, .count = row % 4};
}

static struct ph_session *open_session(const char *folder)
{
    struct ph_session *session = NULL;
    const struct ph_session_options options = {.size = sizeof options, .max_batch = 16};
    assert_ok(ph_session_open(folder, &options, &session));
    return session;
}

static float *values_of(const struct ph_session *session, size_t output, size_t num_rows)
{
    float *values = calloc(num_rows * ph_session_output_width(session, output), sizeof *values);
    assert_non_null(values);
    return values;
}

/* Every output alone, all together, and row by row: the same bits. */
static void every_model_gives_each_output_it_names(void **state)
{
    (void)state;
    enum { ROWS = 37 };
    static struct ph_cell cells[ROWS * NUM_COLUMNS];
    fill_rows(cells, ROWS);
    for (int kind = 0; kind < (int)ph_model_count(); kind++) {
        struct ph_session *session = open_session(make_run_folder(ph_model_name(kind)));
        const size_t count = ph_session_num_outputs(session);
        size_t outputs[40];
        float *together[40], probabilities[ROWS];
        assert_true(count > 2 && count < 40);
        for (size_t i = 0; i < count; i++) {
            outputs[i] = i;
            together[i] = values_of(session, i, ROWS);
            assert_int_equal(ph_session_find_output(session, ph_session_output_name(session, i)), i);
        }
        assert_ok(ph_session_score_outputs(session, ROWS, cells, count, outputs, together));
        assert_ok(ph_session_score(session, ROWS, cells, probabilities));
        assert_memory_equal(together[0], probabilities, sizeof probabilities);
        for (size_t i = 0; i < count; i++) {
            const size_t width = ph_session_output_width(session, i);
            float *alone = values_of(session, i, ROWS), *single = values_of(session, i, ROWS);
            assert_ok(ph_session_score_outputs(session, ROWS, cells, 1, &i, &alone));
            if (memcmp(alone, together[i], ROWS * width * sizeof(float)) != 0)
                fail_msg("%s: %s differs alone", ph_model_name(kind), ph_session_output_name(session, i));
            for (size_t row = 0; row < ROWS; row++) {
                float *to = single + row * width;
                assert_ok(ph_session_score_outputs(session, 1, cells + row * NUM_COLUMNS, 1, &i, &to));
            }
            assert_memory_equal(single, alone, ROWS * width * sizeof(float));
            free(alone);
            free(single);
        }
        for (size_t i = 0; i < count; i++)
            free(together[i]);
        ph_session_close(session);
    }
}

static const float *parameter(const struct ph_session *session, const char *name)
{
    for (size_t i = 0; i < ph_store_num_tensors(session->model.store); i++) {
        const struct ph_tensor tensor = ph_store_tensor(session->model.store, i);
        if (strcmp(tensor.name, name) == 0)
            return tensor.data;
    }
    fail_msg("there is no parameter '%s'", name);
    return NULL;
}

static size_t feature_number(const struct ph_session *session, const char *name)
{
    size_t feature = 0;
    while (strcmp(ph_encoder_sparse(session->model.encoder, feature)->name, name) != 0)
        feature++;
    return feature;
}

static void outputs_are_what_their_names_say(void **state)
{
    (void)state;
    enum { ROWS = 9, UNITS = 20 };
    static struct ph_cell cells[ROWS * NUM_COLUMNS];
    fill_rows(cells, ROWS);
    struct ph_session *session = open_session(make_run_folder("dnn"));
    const char *const names[] = {"probability", "logit", "hidden", "embeddings"};
    size_t outputs[4];
    float *values[4];
    for (size_t i = 0; i < 4; i++) {
        outputs[i] = ph_session_find_output(session, names[i]);
        assert_true(outputs[i] != SIZE_MAX);
        values[i] = values_of(session, outputs[i], ROWS);
    }
    assert_int_equal(ph_session_output_width(session, outputs[2]), UNITS);
    assert_int_equal(ph_session_output_width(session, outputs[3]), NUM_FEATURES * DIM);
    assert_ok(ph_session_score_outputs(session, ROWS, cells, 4, outputs, values));
    const float *weight = parameter(session, "output.weight"), *bias = parameter(session, "output.bias");
    for (size_t row = 0; row < ROWS; row++) {
        double logit = (double)bias[0];
        for (size_t i = 0; i < UNITS; i++)
            logit += (double)weight[i] * (double)values[2][row * UNITS + i];
        assert_near((double)values[1][row], logit, 1e-5, 1e-5);
        assert_near((double)values[0][row], 1 / (1 + exp(-(double)values[1][row])), 1e-6, 0);
        float user[DIM];
        assert_ok(ph_session_embed(session, "user", 1, &cells[row * NUM_COLUMNS + 2], user));
        assert_memory_equal(
            values[3] + (row * NUM_FEATURES + feature_number(session, "user")) * DIM, user, sizeof user);
    }
    for (size_t i = 0; i < 4; i++)
        free(values[i]);
    ph_session_close(session);
}

static size_t count_nodes(const struct ph_session *session, const char *const *names, bool has_no_logits)
{
    struct ph_model_features features;
    struct ph_program *program = NULL;
    const struct ph_scorer_options options = {.model = &session->config.model.settings,
        .outputs = names,
        .num_outputs = 1,
        .has_no_logits = has_no_logits};
    assert_ok(ph__features_init(session->model.encoder, &features));
    assert_ok(ph__scoring_program_build(&options, &features, &program));
    ph__features_fini(&features);
    const size_t count = ph_program_num_nodes(program, NULL);
    ph_program_destroy(program);
    return count;
}

static void what_is_not_asked_for_is_not_computed(void **state)
{
    (void)state;
    struct ph_session *session = open_session(make_run_folder("dlrm"));
    const char *const embeddings[] = {"embeddings"}, *const hidden[] = {"hidden"};
    assert_int_equal(count_nodes(session, embeddings, true), 2); /* slots, and the bags */
    assert_true(count_nodes(session, hidden, true) < count_nodes(session, hidden, false));
    assert_true(count_nodes(session, embeddings, true) < count_nodes(session, hidden, true));
    ph_session_close(session);
}

static void outputs_that_are_not_there_are_refused(void **state)
{
    (void)state;
    struct ph_session *session = open_session(make_run_folder("lr"));
    const size_t output = ph_session_num_outputs(session);
    float value, *values = &value;
    struct ph_cell cells[NUM_COLUMNS];
    fill_rows(cells, 1);
    assert_true(ph_session_find_output(session, "hidden") == SIZE_MAX);
    assert_fails(
        ph_session_score_outputs(session, 1, cells, 1, &output, &values), PH_ERROR_USAGE, "output 3");
    ph_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_gives_each_output_it_names),
        cmocka_unit_test(outputs_are_what_their_names_say),
        cmocka_unit_test(what_is_not_asked_for_is_not_computed),
        cmocka_unit_test(outputs_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
