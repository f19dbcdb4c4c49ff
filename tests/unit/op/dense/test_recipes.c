/* Recipes of products, beside levels and exact sums written out here: forward bits are the same in training
 * and inference, and on every ISA. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "phloem/graph.h"
#include "phloem/op.h"
#include "phloem/store.h"
#include "support/test_support.h"
#include "tensor/float16.h"

enum { ROWS = 70, IN = 37, HIDDEN = 45, OUT = 6 };
static const char *const result_names[] = {"hidden", "y", "dy", "dhidden"};
enum { RESULT_HIDDEN, RESULT_Y, RESULT_DY, RESULT_DHIDDEN, NUM_RESULTS };

struct trial {
    enum ph_mode mode;
    const struct ph_site_recipe *recipes;
    size_t num_recipes, num_threads;
    ph_real results[NUM_RESULTS][ROWS * HIDDEN];
};

static const struct ph_site_recipe forward_alone[] = {{"a", PH_RECIPE_INT8, PH_RECIPE_FP32},
    {"b", PH_RECIPE_INT8, PH_RECIPE_FP32}},
                                   both_ways[] = {{"b", PH_RECIPE_INT8, PH_RECIPE_INT8}};

static ph_real samples[ROWS * IN], labels[ROWS * OUT];

static int make_batch(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * IN; i++)
        samples[i] = (ph_real)(ph__rng_next_normal(&random) * (double)(1 + i % IN));
    for (size_t i = 0; i < ROWS * OUT; i++)
        labels[i] = (ph_real)ph__rng_below(&random, 2);
    return 0;
}

/* ---- the program: two layers ---- */

static void add_layers(struct ph_builder *builder, enum ph_mode mode)
{
    const struct ph_init normal = {PH_INIT_NORMAL, .2};
    const ph_value a = ph_parameter(builder, "a", 2, (size_t[]){HIDDEN, IN}, normal),
                   b = ph_parameter(builder, "b", 2, (size_t[]){OUT, HIDDEN}, normal),
                   bias = ph_parameter(builder, "bias", 1, (size_t[]){HIDDEN}, normal);
    const ph_value hidden = ph_linear(builder, ph_input_dense(builder, IN), a, bias, PH_RELU);
    const ph_value y = ph_linear(builder, hidden, b, 0, PH_IDENTITY);
    ph_output(builder, result_names[RESULT_HIDDEN], hidden);
    ph_output(builder, result_names[RESULT_Y], y);
    if (mode != PH_TRAINING)
        return;
    const ph_value loss = ph_bce_with_logits(builder, y, ph_input_labels(builder, OUT), 0, 0);
    ph_value gradients[2];
    ph_backward(builder, loss, 2, (const ph_value[]){y, hidden}, gradients);
    ph_output(builder, result_names[RESULT_DY], gradients[0]);
    ph_output(builder, result_names[RESULT_DHIDDEN], gradients[1]);
}

static ph_status build(const struct trial *trial, enum ph_precision precision, struct ph_program **program)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(trial->mode, &builder));
    ph_builder_set_precision(builder, precision);
    ph_builder_set_recipes(builder, trial->recipes, trial->num_recipes);
    add_layers(builder, trial->mode);
    const ph_status status = ph_builder_finish(builder, program);
    ph_builder_destroy(builder);
    return status;
}

/* The two weights, and their bias, as the store has made them. */
static ph_real weight_a[HIDDEN * IN], weight_b[OUT * HIDDEN], bias_a[HIDDEN];

static void keep_parameters(struct ph_store *store)
{
    static const struct {
        const char *name;
        ph_real *to;
        size_t bytes;
    } kept[] = {
        {"a", weight_a, sizeof weight_a}, {"b", weight_b, sizeof weight_b}, {"bias", bias_a, sizeof bias_a}};
    for (size_t i = 0; i < 3; i++) {
        struct ph_tensor tensor;
        assert_ok(ph_store_find(store, kept[i].name, &tensor));
        memcpy(kept[i].to, tensor.data, kept[i].bytes);
    }
}

static void run(struct trial *trial)
{
    const struct ph_batch batch = {
        .num_samples = ROWS, .num_dense = IN, .num_tasks = OUT, .dense = samples, .labels = labels};
    struct ph_program *program = NULL;
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    assert_ok(build(trial, PH_PRECISION_FP32, &program));
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(&(struct ph_backend_options){.size = sizeof(struct ph_backend_options),
                                    .num_threads = trial->num_threads},
        &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, ROWS, 0, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    keep_parameters(store);
    for (size_t i = 0; i < (trial->mode == PH_TRAINING ? NUM_RESULTS : RESULT_DY); i++) {
        const ph_real *data;
        struct ph_shape shape;
        assert_ok(ph_workspace_output(workspace, result_names[i], &data, &shape));
        memcpy(trial->results[i], data, ph_shape_elements(&shape) * sizeof *data);
    }
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
}

/* ---- the oracle ---- */

static float scale_of(size_t count, const ph_real *numbers, size_t stride)
{
    ph_real largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(numbers[i * stride]));
    return largest / 127;
}

static long level_of(ph_real number, float scale)
{
    return scale > 0 ? lrintf(number / scale) : 0;
}

/* y (ROWS,N) = x (ROWS,K) w^T + bias by levels; weight k of output n is w[n * n_stride + k * k_stride]. */
static void multiply_levels(size_t inner, size_t outputs, const ph_real *x, const ph_real *w, size_t n_stride,
    size_t k_stride, const ph_real *bias, ph_real *y)
{
    for (size_t r = 0; r < ROWS; r++)
        for (size_t n = 0; n < outputs; n++) {
            const float x_scale = scale_of(inner, x + r * inner, 1),
                        w_scale = scale_of(inner, w + n * n_stride, k_stride);
            long sum = 0;
            for (size_t k = 0; k < inner; k++)
                sum +=
                    level_of(x[r * inner + k], x_scale) * level_of(w[n * n_stride + k * k_stride], w_scale);
            y[r * outputs + n] = fmaf(x_scale * w_scale, (float)sum, bias != NULL ? bias[n] : 0);
        }
}

static void assert_same(const ph_real *actual, const ph_real *expected, size_t count)
{
    assert_memory_equal(actual, expected, count * sizeof *actual);
}

/* ---- tests ---- */

static void forward_products_have_the_bits_of_levels(void **state)
{
    (void)state;
    static ph_real hidden[ROWS * HIDDEN], y[ROWS * OUT];
    static struct trial trial;
    for (int i = 0; i < 4; i++) {
        trial = (struct trial){.mode = i % 2 == 0 ? PH_TRAINING : PH_INFERENCE,
            .recipes = forward_alone,
            .num_recipes = 2,
            .num_threads = 1 + (size_t)i / 2};
        run(&trial);
        multiply_levels(IN, HIDDEN, samples, weight_a, IN, 1, bias_a, hidden);
        for (size_t k = 0; k < ROWS * HIDDEN; k++)
            hidden[k] = hidden[k] > 0 ? hidden[k] : 0;
        multiply_levels(HIDDEN, OUT, hidden, weight_b, HIDDEN, 1, NULL, y);
        assert_same(trial.results[RESULT_HIDDEN], hidden, ROWS * HIDDEN);
        assert_same(trial.results[RESULT_Y], y, ROWS * OUT);
    }
}

static void the_gradient_of_an_input_has_a_recipe_of_its_own(void **state)
{
    (void)state;
    static ph_real dhidden[ROWS * HIDDEN];
    static struct trial trial, exact;
    trial = (struct trial){.mode = PH_TRAINING, .recipes = both_ways, .num_recipes = 1, .num_threads = 2};
    run(&trial);
    multiply_levels(OUT, HIDDEN, trial.results[RESULT_DY], weight_b, 1, HIDDEN, NULL, dhidden);
    assert_same(trial.results[RESULT_DHIDDEN], dhidden, ROWS * HIDDEN);
    exact =
        (struct trial){.mode = PH_TRAINING, .recipes = forward_alone + 1, .num_recipes = 1, .num_threads = 2};
    run(&exact);
    assert_same(exact.results[RESULT_Y], trial.results[RESULT_Y], ROWS * OUT);
    double difference = 0, size = 0;
    for (size_t i = 0; i < ROWS * HIDDEN; i++) {
        difference += fabs((double)(exact.results[RESULT_DHIDDEN][i] - dhidden[i]));
        size += fabs((double)dhidden[i]);
    }
    assert_true(difference > 0 && difference < .02 * size);
}

static void assert_refused_recipe(
    const struct ph_site_recipe *recipe, enum ph_precision precision, const char *text)
{
    struct ph_program *program = NULL;
    const struct trial trial = {.mode = PH_TRAINING, .recipes = recipe, .num_recipes = 1};
    assert_fails(build(&trial, precision, &program), PH_ERROR_CONFIG, text);
}

static double bf16(ph_real number)
{
    return (double)ph__float_from_bfloat(ph__bfloat_from_float((float)number));
}

static double exact(ph_real number)
{
    return (double)number;
}

/* Compares y (ROWS,N) with x (ROWS,K) w^T + bias of the rounded operands; weights as in multiply_levels. */
static void check_rounded(size_t inner, size_t outputs, const ph_real *x, double (*round_x)(ph_real),
    const ph_real *w, size_t n_stride, size_t k_stride, const ph_real *bias, bool is_rectified,
    const ph_real *y)
{
    for (size_t r = 0; r < ROWS; r++)
        for (size_t n = 0; n < outputs; n++) {
            double sum = bias != NULL ? (double)bias[n] : 0, size = fabs(sum);
            for (size_t k = 0; k < inner; k++) {
                const double term = round_x(x[r * inner + k]) * bf16(w[n * n_stride + k * k_stride]);
                sum += term;
                size += fabs(term);
            }
            assert_near((double)y[r * outputs + n], is_rectified && sum < 0 ? 0 : sum, 1e-6 * size, 0);
        }
}

static void products_of_bf16_have_rounded_operands(void **state)
{
    (void)state;
    static const struct ph_site_recipe recipes[] = {
        {"a", PH_RECIPE_BF16, PH_RECIPE_FP32}, {"b", PH_RECIPE_BF16, PH_RECIPE_BF16}};
    static struct trial trial, alone;
    for (enum ph_mode mode = PH_TRAINING; mode <= PH_INFERENCE; mode++) {
        double (*round_x)(ph_real) = mode == PH_TRAINING ? bf16 : exact;
        trial = (struct trial){.mode = mode, .recipes = recipes, .num_recipes = 2, .num_threads = 2};
        run(&trial);
        check_rounded(
            IN, HIDDEN, samples, round_x, weight_a, IN, 1, bias_a, true, trial.results[RESULT_HIDDEN]);
        check_rounded(HIDDEN, OUT, trial.results[RESULT_HIDDEN], round_x, weight_b, HIDDEN, 1, NULL, false,
            trial.results[RESULT_Y]);
        if (mode == PH_TRAINING)
            check_rounded(OUT, HIDDEN, trial.results[RESULT_DY], bf16, weight_b, 1, HIDDEN, NULL, false,
                trial.results[RESULT_DHIDDEN]);
        alone = (struct trial){.mode = mode, .recipes = recipes, .num_recipes = 2, .num_threads = 1};
        run(&alone);
        assert_memory_equal(alone.results, trial.results, sizeof trial.results);
    }
}

static void recipes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    assert_refused_recipe(&(struct ph_site_recipe){"c", PH_RECIPE_INT8, PH_RECIPE_FP32}, PH_PRECISION_FP32,
        "recipe of 'c': the program has no product with it");
    assert_refused_recipe(both_ways, PH_PRECISION_BF16, "recipe int8 of 'b': it needs the precision fp32");
    assert_string_equal(ph_recipe_name(PH_RECIPE_INT8), "int8");
    /* A scorer has no backward products, so that their recipes do not matter to it. */
    struct ph_program *program = NULL;
    const struct ph_site_recipe backward = {"b", PH_RECIPE_FP32, PH_RECIPE_INT8};
    assert_ok(build(&(struct trial){.mode = PH_INFERENCE, .recipes = &backward, .num_recipes = 1},
        PH_PRECISION_BF16, &program));
    ph_program_destroy(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_products_have_the_bits_of_levels),
        cmocka_unit_test(the_gradient_of_an_input_has_a_recipe_of_its_own),
        cmocka_unit_test(products_of_bf16_have_rounded_operands),
        cmocka_unit_test(recipes_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, make_batch, NULL);
}
