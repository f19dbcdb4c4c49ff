#include "support/test_support.h"

#include "support/count_allocations.h"
#include "unit/graph/toy_ops.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/thread/cpu.h"

static const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
static const ph_real dense[] = {1, -2, 3, 4, -5, 6, 7, 8};

static struct ph_builder *new_builder(void)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    return builder;
}

/* forward: sum(2 x); update: p += 1. */
static void start_small_machine(struct toy_machine *machine)
{
    struct ph_builder *builder = new_builder();
    ph_value x = ph_input_dense(builder, 1);
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, zeros);
    ph_output(builder, "kept", toy1(builder, &toy_keep, p));
    ph_output(builder, "loss", toy1(builder, &toy_sum, toy1(builder, &toy_twice, x)));
    ph_output(builder, "positive", toy1(builder, &toy_positive, x));
    ph_builder_begin_entry(builder, "update");
    toy1(builder, &toy_bump, p);
    TOY_MACHINE_START(machine, builder, 4);
}

static void bind(struct toy_machine *machine, size_t rows)
{
    struct ph_batch batch = toy_batch(rows, 1, dense);
    assert_ok(ph_workspace_bind(machine->workspace, &batch, 0, 0));
}

static const ph_real *output_of(struct toy_machine *machine, const char *name, struct ph_shape *shape_out)
{
    const ph_real *data = NULL;
    assert_ok(ph_workspace_output(machine->workspace, name, &data, shape_out));
    return data;
}

static void entries_run_one_by_one(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    bind(&machine, 3);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    double loss = 0;
    assert_ok(ph_workspace_scalar(machine.workspace, "loss", &loss));
    assert_near(loss, 2 * (1 - 2 + 3), 0, 0);
    struct ph_tensor p;
    assert_ok(ph_store_find(machine.store, "p", &p));
    assert_near(*(ph_real *)p.data, 0, 0, 0);
    assert_ok(ph_workspace_run(machine.workspace, "update"));
    assert_near(*(ph_real *)p.data, 1, 0, 0);
    toy_machine_stop(&machine);
}

static void operator_decides_a_dimension_at_run_time(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    struct ph_shape shape;
    bind(&machine, 4);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    const ph_real *positive = output_of(&machine, "positive", &shape);
    assert_int_equal(shape.dims[0], 3);
    assert_near(positive[2], 4, 0, 0);
    bind(&machine, 2);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    output_of(&machine, "positive", &shape);
    assert_int_equal(shape.dims[0], 1);
    toy_machine_stop(&machine);
}

static void larger_batch_grows_the_workspace_and_is_counted(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    bind(&machine, 4);
    assert_int_equal(ph_workspace_memory(machine.workspace).num_growths, 0);
    bind(&machine, 8);
    assert_int_equal(ph_workspace_memory(machine.workspace).num_growths, 1);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    double loss = 0;
    assert_ok(ph_workspace_scalar(machine.workspace, "loss", &loss));
    assert_near(loss, 2 * 22, 0, 0);
    bind(&machine, 3);
    assert_int_equal(ph_workspace_memory(machine.workspace).num_growths, 1);
    toy_machine_stop(&machine);
}

static void kept_result_is_made_anew_when_its_parameter_changes(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    struct ph_shape shape;
    bind(&machine, 4);
    for (size_t i = 0; i < 3; i++)
        assert_ok(ph_workspace_run(machine.workspace, "forward"));
    assert_near(output_of(&machine, "kept", &shape)[0], 1, 0, 0);
    assert_ok(ph_workspace_run(machine.workspace, "update"));
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    assert_near(output_of(&machine, "kept", &shape)[0], 2, 0, 0);
    assert_near(output_of(&machine, "kept", &shape)[1], 1, 0, 0);
    ph_store_touch(machine.store);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    assert_near(output_of(&machine, "kept", &shape)[0], 3, 0, 0);
    toy_machine_stop(&machine);
}

static void wrong_use_is_one_clear_line(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    double value = 0;
    struct ph_shape shape;
    const ph_real *data = NULL;
    assert_fails(ph_workspace_run(machine.workspace, "forward"), PH_ERROR_USAGE,
        "needs a batch; bind one before the run");
    bind(&machine, 1);
    assert_fails(ph_workspace_run(machine.workspace, "backward"), PH_ERROR_USAGE, "no entry 'backward'");
    assert_fails(ph_workspace_scalar(machine.workspace, "auc", &value), PH_ERROR_USAGE, "no output 'auc'");
    assert_fails(
        ph_workspace_scalar(machine.workspace, "kept", &value), PH_ERROR_USAGE, "'kept' is not a scalar");
    assert_fails(ph_workspace_output(machine.workspace, "loss", &data, &shape), PH_ERROR_USAGE,
        "'loss' is not an array");
    assert_fails(ph_workspace_set_scalar(machine.workspace, "x", 1), PH_ERROR_USAGE, "no scalar input 'x'");
    struct ph_batch batch = toy_batch(2, 3, dense);
    assert_fails(ph_workspace_bind(machine.workspace, &batch, 0, 0), PH_ERROR_DATA,
        "the batch has 3 dense features, but the model needs 1");
    toy_machine_stop(&machine);
}

static void nothing_is_allocated_after_the_first_run(void **state)
{
    (void)state;
    if (!allocations_are_counted())
        return print_message("a sanitizer owns malloc: not counted\n");
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    assert_ok(ph_executor_profile(machine.executor, true, 1000));
    for (size_t step = 0; step < 5; step++) {
        count_allocations(step > 0);
        bind(&machine, 4 - step % 2);
        ph_status forward = ph_workspace_run(machine.workspace, "forward");
        ph_status update = ph_workspace_run(machine.workspace, "update");
        count_allocations(false);
        assert_ok(forward);
        assert_ok(update);
    }
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
    count_allocations(true);
    bind(&machine, 8); /* growth allocates: the counter works */
    count_allocations(false);
    assert_true(num_allocations(ALLOCATOR_OURS) > 0);
    toy_machine_stop(&machine);
}

static double loss_of(struct toy_machine *machine)
{
    double loss = 0;
    assert_ok(ph_workspace_run(machine->workspace, "forward"));
    assert_ok(ph_workspace_scalar(machine->workspace, "loss", &loss));
    return loss;
}

static void workspace_that_cannot_grow_is_as_it_was(void **state)
{
    (void)state;
    if (!allocations_are_counted())
        return print_message("a sanitizer owns malloc: none can fail\n");
    const struct ph_batch large = toy_batch(8, 1, dense);
    ph_status status = PH_ERROR_MEMORY;
    int number = 0;
    while (status != PH_OK) {
        struct toy_machine machine = {0};
        start_small_machine(&machine);
        fail_allocation(++number);
        status = ph_workspace_bind(machine.workspace, &large, 0, 0);
        const bool has_failed = allocation_has_failed();
        fail_allocation(0);
        assert_int_equal(status, has_failed ? PH_ERROR_MEMORY : PH_OK);
        assert_int_equal(ph_workspace_memory(machine.workspace).num_growths, has_failed ? 0 : 1);
        bind(&machine, 4);
        assert_near(loss_of(&machine), 2 * (1 - 2 + 3 + 4), 0, 0);
        bind(&machine, 8);
        assert_near(loss_of(&machine), 2 * 22, 0, 0);
        assert_int_equal(ph_workspace_memory(machine.workspace).num_growths, 1);
        toy_machine_stop(&machine);
    }
    assert_true(number > 5); /* each of several was let fail */
}

static void subnormals_are_zero_inside_and_kept_outside(void **state)
{
    (void)state;
    if (ph__cpu_float_control() == 0)
        return print_message("the processor has no such control\n");
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    const ph_real tiny[] = {(ph_real)1e-39, (ph_real)1e-39};
    struct ph_batch batch = toy_batch(2, 1, tiny);
    assert_ok(ph_workspace_bind(machine.workspace, &batch, 0, 0));
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    double loss = 1;
    assert_ok(ph_workspace_scalar(machine.workspace, "loss", &loss));
    assert_true(loss == 0);
    volatile float outside = 1e-39f;
    assert_true(outside * 2 > 0);
    toy_machine_stop(&machine);
}

static void a_callers_rounding_and_flags_stay_outside(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    const ph_real parts[] = {
        (ph_real)1, (ph_real)1e-20}; /* as doubles, 1 and no more when rounded to nearest */
    struct ph_batch batch = toy_batch(2, 1, parts);
    assert_ok(ph_workspace_bind(machine.workspace, &batch, 0, 0));
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_OVERFLOW);
    ph_status status = ph_workspace_run(machine.workspace, "forward");
    const int rounding = fegetround(), flags = fetestexcept(FE_OVERFLOW | FE_INEXACT);
    fesetround(FE_TONEAREST);
    assert_ok(status);
    assert_int_equal(rounding, FE_UPWARD);
    assert_int_equal(flags, FE_OVERFLOW);
    double loss = 0;
    assert_ok(ph_workspace_scalar(machine.workspace, "loss", &loss));
    assert_true(loss == 2);
    toy_machine_stop(&machine);
}

static void profile_adds_up_calls_and_costs(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    start_small_machine(&machine);
    bind(&machine, 4);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    assert_ok(ph_executor_profile(machine.executor, true, 0));
    assert_ok(ph_workspace_run(machine.workspace, "update"));
    double flops = 0, bytes = 0;
    ph_executor_cost(machine.executor, &flops, &bytes);
    assert_near(flops, 2, 0, 0); /* bump of 2 elements */
    const char *path = test_path("written.txt");
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    assert_ok(ph_executor_write_profile(machine.executor, path));
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    assert_non_null(strstr(text, "bump"));
    assert_null(strstr(text, "twice"));
    ph__arena_fini(&arena);
    toy_machine_stop(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_run_one_by_one),
        cmocka_unit_test(operator_decides_a_dimension_at_run_time),
        cmocka_unit_test(larger_batch_grows_the_workspace_and_is_counted),
        cmocka_unit_test(kept_result_is_made_anew_when_its_parameter_changes),
        cmocka_unit_test(wrong_use_is_one_clear_line),
        cmocka_unit_test(nothing_is_allocated_after_the_first_run),
        cmocka_unit_test(workspace_that_cannot_grow_is_as_it_was),
        cmocka_unit_test(subnormals_are_zero_inside_and_kept_outside),
        cmocka_unit_test(a_callers_rounding_and_flags_stay_outside),
        cmocka_unit_test(profile_adds_up_calls_and_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
