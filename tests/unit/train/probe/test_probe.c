/* A probe of a running program sees the rows that enter each product, and changes nothing. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "phloem/op.h"
#include "phloem/store.h"
#include "support/test_support.h"
#include "train/probe/probe.h"

enum { ROWS = 240, IN = 9, HIDDEN = 13, OUT = 5, STEPS = 8 };

static ph_real samples[STEPS][ROWS * IN], labels[ROWS * OUT];

static int make_batches(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * OUT; i++)
        labels[i] = (ph_real)ph__rng_below(&random, 2);
    for (size_t step = 0; step < STEPS; step++)
        for (size_t i = 0; i < ROWS * IN; i++)
            samples[step][i] = (ph_real)(ph__rng_next_normal(&random) * (double)(1 + i % IN));
    return 0;
}

static struct ph_program *build(void)
{
    const struct ph_init normal = {PH_INIT_NORMAL, .3};
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value weights[] = {ph_parameter(builder, "a", 2, (size_t[]){HIDDEN, IN}, normal),
        ph_parameter(builder, "b", 2, (size_t[]){OUT, HIDDEN}, normal)};
    const ph_value hidden = ph_linear(builder, ph_input_dense(builder, IN), weights[0], 0, PH_RELU);
    const ph_value y = ph_linear(builder, hidden, weights[1], 0, PH_IDENTITY);
    ph_value gradients[2], dy;
    const ph_value loss = ph_bce_with_logits(builder, y, ph_input_labels(builder, OUT), 0, 0);
    ph_backward(builder, loss, 2, weights, gradients);
    ph_backward(builder, loss, 1, &y, &dy);
    ph_output(builder, "hidden", hidden);
    ph_output(builder, "dy", dy);
    ph_output(builder, "gradient", gradients[0]);
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

struct results {
    ph_real hidden[STEPS][ROWS * HIDDEN], dy[STEPS][ROWS * OUT], gradient[STEPS][HIDDEN * IN];
};

static void keep(struct ph_workspace *workspace, const char *name, size_t bytes, ph_real *to)
{
    const ph_real *data;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, name, &data, &shape));
    assert_int_equal(ph_shape_elements(&shape) * sizeof *data, bytes);
    memcpy(to, data, bytes);
}

/* Writes the probe, reads it, and compares the two. */
static void check_file(const struct ph__probe *probe, struct ph__gemm *gemm)
{
    const char *path = test_path("probe.safetensors");
    struct ph__probe *read = NULL;
    assert_ok(ph__probe_write(probe, STEPS, path));
    assert_ok(ph__probe_read(path, gemm, &read));
    assert_int_equal(read->num_products, probe->num_products);
    assert_int_equal(read->num_weights, 2);
    for (size_t i = 0; i < probe->num_products; i++) {
        const struct ph__probe_product *a = &probe->products[i], *b = &read->products[i];
        const size_t square = a->terms * a->terms;
        assert_true(
            a->is_backward == b->is_backward && a->outputs == b->outputs && a->num_rows == b->num_rows);
        assert_memory_equal(a->rows, b->rows, a->num_rows * a->terms * sizeof *a->rows);
        assert_int_equal(a->statistics.count, b->statistics.count);
        assert_memory_equal(a->statistics.scatter, b->statistics.scatter, square * sizeof(double));
        assert_memory_equal(a->statistics.fourths, b->statistics.fourths, a->terms * sizeof(double));
    }
    for (size_t i = 0; i < probe->num_weights; i++) {
        const struct ph__matrix_normal *a = &probe->weights[i].distribution,
                                       *b = &read->weights[i].distribution;
        assert_string_equal(probe->weights[i].name, read->weights[i].name);
        assert_int_equal(a->count, STEPS);
        assert_int_equal(b->count, STEPS);
        assert_memory_equal(a->u, b->u, a->rows * a->rows * sizeof(double));
        assert_memory_equal(a->mean, b->mean, a->rows * a->columns * sizeof(double));
    }
    ph__probe_destroy(read);
    test_write_file("other.safetensors", "not a file of tensors");
    assert_fails(ph__probe_read(test_path("other.safetensors"), gemm, &read), PH_ERROR_CHECKPOINT,
        "other.safetensors");
}

/* Runs the steps; all but the first are probed. */
static struct ph__probe *run_steps(struct ph_program *program, bool is_probed, struct results *results)
{
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    struct ph__probe *probe = NULL;
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, ROWS, 0, &workspace));
    if (is_probed)
        assert_ok(ph__probe_create(program, backend->gemm, &probe));
    for (size_t step = 0; step < STEPS; step++) {
        const struct ph_batch batch = {
            .num_samples = ROWS, .num_dense = IN, .num_tasks = OUT, .dense = samples[step], .labels = labels};
        backend->simulator = is_probed && step > 0 ? ph__probe_hook(probe) : NULL;
        assert_ok(ph_workspace_bind(workspace, &batch, 1, step));
        assert_ok(ph_workspace_run(workspace, "forward"));
        keep(workspace, "hidden", sizeof results->hidden[step], results->hidden[step]);
        keep(workspace, "dy", sizeof results->dy[step], results->dy[step]);
        keep(workspace, "gradient", sizeof results->gradient[step], results->gradient[step]);
        for (size_t weight = 0; is_probed && weight < 2; weight++)
            assert_ok(ph__probe_see_weight(probe, store));
    }
    if (is_probed)
        check_file(probe, backend->gemm);
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    return probe;
}

/* Compares a product's mean and variances with those of rows (STEPS - 1, ROWS, terms), and its sample with
 * the rows. */
static void check_product(const struct ph__probe_product *product, const ph_real *rows, size_t sampled_steps)
{
    const size_t terms = product->terms, count = sampled_steps * ROWS;
    assert_int_equal(product->statistics.count, count);
    for (size_t k = 0; k < terms; k++) {
        double sum = 0, square = 0;
        for (size_t r = 0; r < count; r++)
            sum += (double)rows[r * terms + k];
        for (size_t r = 0; r < count; r++)
            square += pow((double)rows[r * terms + k] - sum / (double)count, 2);
        assert_near(product->statistics.mean[k], sum / (double)count, 1e-6, 0);
        assert_near(ph__row_statistics_covariance(&product->statistics, k, k), square / (double)(count - 1),
            1e-12, 1e-4);
    }
    assert_int_equal(product->num_rows, count < PH_PROBE_ROWS ? count : PH_PROBE_ROWS);
    size_t late = 0;
    for (size_t kept = 0; kept < product->num_rows; kept++) {
        size_t r = 0;
        while (r < count && memcmp(rows + r * terms, product->rows + kept * terms, terms * sizeof *rows) != 0)
            r++;
        assert_true(r < count);
        late += r >= count / 2;
    }
    assert_true(late > product->num_rows / 4 && late < 3 * product->num_rows / 4);
}

static void a_probe_sees_all_rows_of_probed_steps(void **state)
{
    (void)state;
    static struct results plain, probed;
    struct ph_program *program = build();
    (void)run_steps(program, false, &plain);
    struct ph__probe *probe = run_steps(program, true, &probed);
    assert_memory_equal(&probed, &plain, sizeof plain);
    assert_int_equal(probe->num_products, 3); /* a's input is data: it has no gradient */
    for (size_t i = 0; i < probe->num_products; i++) {
        const struct ph__probe_product *product = &probe->products[i];
        if (strcmp(probe->weights[product->weight].name, "a") == 0) {
            assert_true(!product->is_backward && product->terms == IN && product->outputs == HIDDEN);
            check_product(product, samples[1], STEPS - 1);
        } else if (product->is_backward) {
            assert_true(product->terms == OUT && product->outputs == HIDDEN);
            check_product(product, probed.dy[1], STEPS - 1);
        } else {
            assert_true(product->terms == HIDDEN && product->outputs == OUT);
            check_product(product, probed.hidden[1], STEPS - 1);
        }
    }
    ph__probe_destroy(probe);
    ph_program_destroy(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_sees_all_rows_of_probed_steps),
    };
    return cmocka_run_group_tests(tests, make_batches, NULL);
}
