#include "support/test_support.h"
#include "toy_ops.h"

#include <stdlib.h>

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
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_USAGE, "'twice' is no scalar");
    ph_builder_destroy(builder);
}

/* ---- the union of two sparse gradients ----------------------------------------------------------------------- */

static struct ph_operand sparse_operand(
    const struct ph_type *type, size_t rows, uint32_t *slots, ph_real *data)
{
    return (struct ph_operand){
        .type = type, .shape = {.rank = 2, .dims = {rows, 2}}, .data = data, .index = slots};
}

static void sparse_gradients_merge_by_slot(void **state)
{
    (void)state;
    struct ph_backend *backend = NULL;
    assert_ok(ph_backend_create(&(struct ph_backend_options){.num_threads = 1}, &backend));
    struct ph_type type = {.kind = PH_SPARSE_ROWS, .dtype = PH_REAL, .rank = 2, .dims = {{1, 3}, {2, 0}}};
    uint32_t a_slots[] = {1, 4, 9}, b_slots[] = {0, 4, 10, 11}, slots[7];
    ph_real a[] = {1, 1, 2, 2, 3, 3}, b[] = {10, 10, 20, 20, 30, 30, 40, 40}, sum[14];
    struct ph_operand inputs[] = {sparse_operand(&type, 3, a_slots, a), sparse_operand(&type, 4, b_slots, b)};
    struct ph_operand output = sparse_operand(&type, 7, slots, sum);
    uint64_t extents[PH_MAX_SYMBOLS] = {0};
    struct ph_call call = {.backend = backend,
        .inputs = inputs,
        .num_inputs = 2,
        .outputs = &output,
        .num_outputs = 1,
        .extents = extents};
    assert_ok(ph__op_accumulate.run(&call));
    assert_int_equal(extents[3], 6);
    const uint32_t expected_slots[] = {0, 1, 4, 9, 10, 11};
    const ph_real expected[] = {10, 1, 22, 3, 30, 40};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(slots[i], expected_slots[i]);
        assert_near(sum[2 * i + 1], expected[i], 0, 0);
    }
    ph_backend_destroy(backend);
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
        cmocka_unit_test(sparse_gradients_merge_by_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
