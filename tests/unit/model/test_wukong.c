/* How the order of Wukong's interactions grows with its layers. */
#include <math.h>

#include "model/model_options.h"
#include "phloem/graph.h"
#include "phloem/model.h"
#include "support/test_support.h"

enum { MAX_POINTS = 8 };

/* The logits of a model with one dense feature, at `points`; inference with the parameters that training
 * would start with. */
static void run(
    const struct ph_model_settings *settings, const ph_real *points, size_t num_points, double *logits_out)
{
    const struct ph_model_features features = {.num_dense = 1, .num_tasks = 1};
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = 1};
    const struct ph_batch batch = {.num_samples = num_points, .num_dense = 1, .dense = points};
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    const ph_real *logits = NULL;
    struct ph_shape shape;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logit", ph_model_build(builder, settings, &features));
    assert_ok(ph_builder_finish(builder, &program));
    assert_ok(ph_store_create(test_seed(), &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(&options, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, num_points, 0, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    assert_ok(ph_workspace_output(workspace, "logit", &logits, &shape));
    for (size_t i = 0; i < num_points; i++)
        logits_out[i] = (double)logits[i];
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
    ph_builder_destroy(builder);
}

/* The feature t makes the one vector t w: along the line, Wukong is a function of t. Its finite difference of
 * an order, from t = -1 to 1, by the largest logit. */
static double difference(const char *layers, const char *layer_norm, size_t order)
{
    const char *const sets[] = {"model.kind=wukong", "model.embedding_dim=4",
        "model.hidden_units=", "model.activation=identity", "model.wukong.fm_units=", layers, layer_norm};
    static struct ph__model_section section;
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    struct ph__arena arena = {0};
    const size_t num_sections = ph__model_sections(&section, sections);
    assert_ok(ph__config_read(NULL, sets, sizeof sets / sizeof *sets, sections, num_sections, &arena));
    assert_ok(ph__model_section_finish(&section, NULL, &arena));
    ph_real points[MAX_POINTS];
    double values[MAX_POINTS], largest = 0;
    for (size_t i = 0; i <= order; i++)
        points[i] = (ph_real)(-1 + 2 * (double)i / (double)order);
    run(&section.settings, points, order + 1, values);
    ph__arena_fini(&arena);
    for (size_t i = 0; i <= order; i++)
        largest = fmax(largest, fabs(values[i]));
    for (size_t k = order; k > 0; k--)
        for (size_t i = 0; i < k; i++)
            values[i] = values[i + 1] - values[i];
    return fabs(values[0]) / largest;
}

static void without_layer_norm_the_degree_doubles_with_each_layer(void **state)
{
    (void)state;
    const char *const off = "model.wukong.layer_norm=false";
    assert_true(difference("model.wukong.layers=1", off, 2) > 1e-3);
    assert_near(difference("model.wukong.layers=1", off, 3), 0, 1e-5, 0);
    assert_true(difference("model.wukong.layers=2", off, 4) > 1e-3);
    assert_near(difference("model.wukong.layers=2", off, 5), 0, 1e-5, 0);
}

static void layer_norm_is_of_no_degree(void **state)
{
    (void)state;
    assert_true(difference("model.wukong.layers=1", "model.wukong.layer_norm=true", 3) > 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_layer_norm_the_degree_doubles_with_each_layer),
        cmocka_unit_test(layer_norm_is_of_no_degree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
