#include "graph/executor.h"
#include "unit/op/product_trial.h"

/* The shape on trial: op(a) (P,R) times op(b) (R,Q). */
static size_t p, r, q;
static bool is_a_transposed, is_b_transposed;

static ph_value product(struct ph_builder *builder, ph_value x)
{
    ph_value a = is_a_transposed ? matrix_of(builder, x, 0, r, p) : matrix_of(builder, x, 0, p, r);
    ph_value b = is_b_transposed ? matrix_of(builder, x, p * r, q, r) : matrix_of(builder, x, p * r, r, q);
    return ph_batch_product(builder, a, b, is_a_transposed, is_b_transposed);
}

static size_t expect_product(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    for (size_t s = 0; s < num_samples; s++) {
        const ph_real *a = x + s * (p * r + r * q), *b = a + p * r;
        for (size_t i = 0; i < p; i++)
            for (size_t j = 0; j < q; j++) {
                double sum = 0;
                for (size_t k = 0; k < r; k++)
                    sum += (double)a[is_a_transposed ? k * p + i : i * r + k] *
                           (double)b[is_b_transposed ? j * r + k : k * q + j];
                *y_out++ = sum;
            }
    }
    return num_samples * p * q;
}

static void check_shape(size_t num_samples, size_t rows, size_t inner, size_t columns)
{
    p = rows;
    r = inner;
    q = columns;
    for (int transposed = 0; transposed < 4; transposed++) {
        is_a_transposed = transposed % 2 != 0;
        is_b_transposed = transposed / 2 != 0;
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = p * r + r * q,
            .build = product,
            .expect = expect_product});
    }
}

static void products_are_sums_over_the_inner_dimension(void **state)
{
    (void)state;
    check_shape(1, 1, 1, 1);
    check_shape(70, 10, 10, 10); /* more samples than are laid the other way at a time */
    check_shape(9, 4, 16, 40);
    check_shape(3, 40, 17, 33);
    check_shape(2, 3, 70, 65); /* of a transposed b, a sample at a time */
    check_shape(0, 4, 5, 6);
}

static ph_value other_inner_dimension(struct ph_builder *builder, ph_value x)
{
    return ph_batch_product(
        builder, matrix_of(builder, x, 0, 2, 3), matrix_of(builder, x, 0, 2, 3), false, false);
}

static ph_value no_matrix(struct ph_builder *builder, ph_value x)
{
    return ph_batch_product(builder, x, matrix_of(builder, x, 0, 2, 3), false, false);
}

static void products_refuse_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(other_inner_dimension, "or either transposed; got (B,2,3), (B,2,3)");
    assert_refused(no_matrix, "got (B,12), (B,2,3)");
}

/* ---- the cost of factorisation machines ---- */

enum { SAMPLES = 3, DIM = 8, RANK = 5 };

/* X (X^T Y) with a learnt Y (n,RANK), or all pairs X X^T, and the gradients to X and Y. */
static struct ph_program *machine_of(size_t n, bool has_projection)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    ph_value gradients[2] = {0, 0};
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value x = ph_reshape(builder, ph_input_dense(builder, n * DIM), 2, (size_t[]){n, DIM});
    const ph_value y = has_projection ? learnt(builder, "y", 2, (size_t[]){RANK, n}) : 0;
    const ph_value products =
        ph_batch_product(builder, x, has_projection ? ph_mix_fields(builder, x, y, 0) : x, false, true);
    const size_t row[] = {1, n * (has_projection ? RANK : n)};
    const ph_value logits = ph_sum_last(builder, ph_reshape(builder, products, 2, row));
    const ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, has_projection ? 2 : 1, (const ph_value[]){x, y}, gradients);
    ph_output(builder, "dx", gradients[0]);
    if (has_projection)
        ph_output(builder, "dy", gradients[1]);
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* By the cost rules of batch_product and mix_fields, forward and backward. */
static double product_flops(struct ph_workspace *workspace, const struct ph__graph *graph)
{
    struct ph__operand operands[2 * PH_MAX_OPERANDS];
    double flops = 0;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        struct ph__call call;
        struct ph__cost cost = {0};
        const char *name = graph->nodes[i].op->name;
        if (strcmp(name, "batch_product") != 0 && strncmp(name, "mix_fields", strlen("mix_fields")) != 0)
            continue;
        ph__workspace_call(workspace, i, workspace->extents, operands, &call);
        graph->nodes[i].op->cost(&call, &cost);
        flops += cost.flops;
    }
    return flops;
}

static double machine_flops(size_t n, bool has_projection)
{
    struct ph_program *program = machine_of(n, has_projection);
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    ph_real *x = trial_memory(SAMPLES * n * DIM, sizeof *x);
    const ph_real labels[SAMPLES] = {0};
    const struct ph_batch batch = {
        .num_samples = SAMPLES, .num_dense = n * DIM, .num_tasks = 1, .dense = x, .labels = labels};
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, SAMPLES, 0, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    const double flops = product_flops(workspace, &program->graph);
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
    free(x);
    return flops;
}

/* Two products forward and four backward of n RANK DIM multiplications and additions each; of n n DIM one and
 * two. */
static void products_with_a_projection_cost_in_proportion_to_the_vectors_and_all_pairs_to_their_square(
    void **state)
{
    (void)state;
    for (size_t n = 10; n <= 40; n *= 2) {
        const double each = 2.0 * SAMPLES * DIM * (double)n;
        assert_near(machine_flops(n, true), 6 * RANK * each, 0, 0);
        assert_near(machine_flops(n, false), 3 * (double)n * each, 0, 0);
        assert_near(machine_flops(2 * n, true), 2 * machine_flops(n, true), 0, 0);
        assert_near(machine_flops(2 * n, false), 4 * machine_flops(n, false), 0, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sums_over_the_inner_dimension),
        cmocka_unit_test(products_refuse_what_does_not_fit),
        cmocka_unit_test(
            products_with_a_projection_cost_in_proportion_to_the_vectors_and_all_pairs_to_their_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
