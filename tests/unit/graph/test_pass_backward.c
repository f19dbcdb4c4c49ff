#include "support/test_support.h"
#include "unit/graph/toy_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static const struct ph_init ones = {PH_INIT_CONSTANT, 1};

static struct ph_builder *new_builder(void)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    return builder;
}

/* p = 3 everywhere: checks d loss / d p against the formula. */
static void assert_gradient(struct ph_builder *builder, ph_value p, ph_value loss, double expected)
{
    ph_value gradient = 0;
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 1, &p, &gradient);
    ph_output(builder, "gradient", gradient);
    struct toy_machine machine = {0};
    TOY_MACHINE_START(&machine, builder, 1);
    struct ph_tensor tensor;
    assert_ok(ph_store_find(machine.store, "p", &tensor));
    for (size_t i = 0; i < 2; i++)
        ((ph_real *)tensor.data)[i] = 3;
    struct ph_batch batch = toy_batch(1, 0, NULL);
    assert_ok(ph_workspace_bind(machine.workspace, &batch, 0, 0));
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    assert_ok(ph_workspace_run(machine.workspace, "backward"));
    const ph_real *data = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(machine.workspace, "gradient", &data, &shape));
    assert_int_equal(shape.dims[0], 2);
    for (size_t i = 0; i < 2; i++)
        assert_near(data[i], expected, 0, 1e-12);
    toy_machine_stop(&machine);
}

static void gradient_flows_through_a_chain(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, ones);
    ph_value loss = toy1(builder, &toy_sum, toy1(builder, &toy_twice, toy1(builder, &toy_twice, p)));
    assert_gradient(builder, p, loss, 4);
}

static void gradients_of_several_readers_add_up(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, ones);
    ph_value square = toy2(builder, &toy_product, p, p);
    ph_value loss =
        toy1(builder, &toy_sum, toy2(builder, &toy_product, square, toy1(builder, &toy_twice, p)));
    assert_gradient(builder, p, loss, 6 * 3 * 3); /* d (2 p^3) */
}

static void loss_that_does_not_depend_has_no_gradient(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, ones);
    ph_value q = ph_parameter(builder, "q", 1, (size_t[]){2}, ones);
    ph_value loss = toy1(builder, &toy_sum, toy1(builder, &toy_twice, p));
    ph_value gradients[2];
    ph_backward(builder, loss, 2, (ph_value[]){p, q}, gradients);
    assert_int_not_equal(gradients[0], 0);
    assert_int_equal(gradients[1], 0);
    ph_builder_destroy(builder);
}

static void only_wanted_gradients_are_built(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, ones);
    ph_value constant = toy1(builder, &toy_positive, ph_input_dense(builder, 1)); /* has no gradient rule */
    ph_output(builder, "constant", constant);
    ph_value loss = toy1(builder, &toy_sum, toy2(builder, &toy_product, p, p));
    ph_value gradient = 0;
    ph_backward(builder, loss, 1, &p, &gradient);
    assert_ok(ph_builder_status(builder));
    ph_builder_destroy(builder);
}

static void operator_without_a_rule_is_refused_by_name(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 2, (size_t[]){2, 1}, ones);
    ph_value loss = toy1(builder, &toy_sum, toy1(builder, &toy_positive, p));
    ph_value gradient = 0;
    ph_backward(builder, loss, 1, &p, &gradient);
    struct ph_program *program = NULL;
    assert_fails(
        ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "operator positive cannot be differentiated");
    ph_builder_destroy(builder);
}

static void loss_must_be_a_scalar(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, ones);
    ph_value gradient = 0;
    ph_backward(builder, toy1(builder, &toy_twice, p), 1, &p, &gradient);
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_USAGE, "'twice' is not a scalar");
    ph_builder_destroy(builder);
}

static void inference_has_no_gradients(void **state)
{
    (void)state;
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, ones), gradient = 0;
    ph_backward(builder, toy1(builder, &toy_sum, p), 1, &p, &gradient);
    assert_int_equal(gradient, 0);
    struct ph_program *program = NULL;
    assert_fails(
        ph_builder_finish(builder, &program), PH_ERROR_USAGE, "an inference program has no gradients");
    ph_builder_destroy(builder);
}

/* ---- the union of two sparse gradients ---- */

enum { MOST_SLOTS = 40000, DIM = 2 };

/* Some of the slots below num_slots, `share` of them, each with a row of its own. */
struct rows {
    size_t count;
    uint32_t slots[MOST_SLOTS];
    ph_real data[MOST_SLOTS * DIM];
};

static void fill_rows(struct rows *rows, struct ph__rng_sequence *random, uint32_t num_slots, double share)
{
    rows->count = 0;
    for (uint32_t slot = 0; slot < num_slots; slot++) {
        if (ph__rng_next_uniform(random) >= share)
            continue;
        rows->slots[rows->count] = slot;
        for (size_t d = 0; d < DIM; d++)
            rows->data[rows->count * DIM + d] = (ph_real)ph__rng_below(random, 1000);
        rows->count++;
    }
}

static struct ph__operand rows_operand(const struct ph_type *type, struct rows *rows)
{
    return (struct ph__operand){.type = type,
        .shape = {.num_dims = 2, .dims = {rows->count, DIM}},
        .data = rows->data,
        .index = rows->slots};
}

/* The sum by slot, row after row. */
static void check_union(struct ph_backend *backend, struct rows *a, struct rows *b)
{
    static struct rows sum;
    static ph_real dense[MOST_SLOTS * DIM];
    static size_t begins[MOST_SLOTS];
    static bool is_there[MOST_SLOTS];
    const struct ph_type type = {
        .kind = PH_SPARSE_ROWS, .dtype = PH_REAL, .num_dims = 2, .dims = {{1, 3}, {DIM, 0}}};
    struct ph__operand inputs[] = {rows_operand(&type, a), rows_operand(&type, b)};
    struct ph__operand output = rows_operand(&type, &sum);
    uint64_t extents[PH_MAX_SYMBOLS] = {0};
    output.shape.dims[1] = DIM;
    struct ph__call call = {.backend = backend,
        .inputs = inputs,
        .num_inputs = 2,
        .outputs = &output,
        .num_outputs = 1,
        .scratch = begins,
        .extents = extents};
    assert_true(ph__op_accumulate.scratch_bytes(&call) <= sizeof begins);
    assert_ok(ph__op_accumulate.run(&call));
    memset(dense, 0, sizeof dense);
    memset(is_there, 0, sizeof is_there);
    for (int i = 0; i < 2; i++) {
        const struct rows *rows = i == 0 ? a : b;
        for (size_t j = 0; j < rows->count; j++) {
            is_there[rows->slots[j]] = true;
            for (size_t d = 0; d < DIM; d++)
                dense[rows->slots[j] * DIM + d] += rows->data[j * DIM + d];
        }
    }
    size_t count = 0;
    for (uint32_t slot = 0; slot < MOST_SLOTS; slot++) {
        if (!is_there[slot])
            continue;
        assert_true(count < extents[3] && sum.slots[count] == slot);
        assert_memory_equal(&sum.data[count * DIM], &dense[slot * DIM], DIM * sizeof(ph_real));
        count++;
    }
    assert_int_equal(extents[3], count);
}

/* Lists of any lengths, and so many slots that they are merged in several blocks. */
static void sparse_gradients_merge_by_slot(void **state)
{
    (void)state;
    static struct rows a, b;
    static const struct {
        uint32_t num_slots;
        double share_a, share_b;
    } cases[] = {{0, 1, 1}, {1, 1, 0}, {1, 0, 1}, {1, 1, 1}, {12, 0.5, 0.5}, {MOST_SLOTS, 0.9, 0.8},
        {MOST_SLOTS, 1, 1}, {MOST_SLOTS, 0.5, 0.001}, {MOST_SLOTS, 0.001, 0.5}, {MOST_SLOTS, 0, 0.5}};
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t threads = 1; threads <= 3; threads += 2) {
        struct ph_backend *backend = NULL;
        assert_ok(ph_backend_create(
            &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = threads},
            &backend));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            fill_rows(&a, &random, cases[i].num_slots, cases[i].share_a);
            fill_rows(&b, &random, cases[i].num_slots, cases[i].share_b);
            check_union(backend, &a, &b);
        }
        ph_backend_destroy(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_flows_through_a_chain),
        cmocka_unit_test(gradients_of_several_readers_add_up),
        cmocka_unit_test(loss_that_does_not_depend_has_no_gradient),
        cmocka_unit_test(only_wanted_gradients_are_built),
        cmocka_unit_test(operator_without_a_rule_is_refused_by_name),
        cmocka_unit_test(loss_must_be_a_scalar),
        cmocka_unit_test(inference_has_no_gradients),
        cmocka_unit_test(sparse_gradients_merge_by_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
