/* Which nodes may run side by side: each test has two neighbours that are alike but for the one thing that
 * orders them. */
#include "support/test_support.h"
#include "unit/graph/toy_ops.h"

#include "graph/wave.h"

/* Of a size that is worth a thread. */
static void large_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.bytes = 90 << 10};
}

static void slight_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.bytes = 1 << 10};
}

static void huge_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.flops = 1 << 20};
}

static ph_status copy_run(struct ph__call *call)
{
    const ph_real *x = call->inputs[0].data;
    ph_real *y = call->outputs[0].data;
    for (size_t i = 0; i < ph_shape_elements(&call->outputs[0].shape); i++)
        y[i] = x[i];
    return PH_OK;
}

static size_t some_scratch(const struct ph__call *call)
{
    (void)call;
    return 64;
}

static ph_status token_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static ph_status nothing_run(struct ph__call *call)
{
    (void)call;
    return PH_OK;
}

static ph_status first_of_run(struct ph__call *call)
{
    *call->outputs[0].scalar = 1;
    return PH_OK;
}

static ph_status dimension_infer(struct ph__infer *infer)
{
    infer->outputs[0] = *(const struct ph_type *)infer->attributes;
    return PH_OK;
}

static const struct ph__op copy = {
    .name = "copy", .infer = toy_same_infer, .cost = large_cost, .run = copy_run};
static const struct ph__op slight = {
    .name = "slight", .infer = toy_same_infer, .cost = slight_cost, .run = copy_run};
static const struct ph__op huge = {
    .name = "huge", .infer = toy_same_infer, .cost = huge_cost, .run = copy_run};
static const struct ph__op in_place = {.name = "in_place",
    .traits = PH_OP_IN_PLACE,
    .infer = toy_same_infer,
    .cost = large_cost,
    .run = copy_run};
static const struct ph__op with_scratch = {.name = "with_scratch",
    .infer = toy_same_infer,
    .cost = large_cost,
    .scratch_bytes = some_scratch,
    .run = copy_run};
static const struct ph__op by_library = {.name = "by_library",
    .traits = PH_OP_CALLS_LIBRARY,
    .infer = toy_same_infer,
    .cost = large_cost,
    .run = copy_run};
static const struct ph__op alias = {
    .name = "alias", .traits = PH_OP_ALIAS, .infer = toy_same_infer, .cost = toy_cost};
static const struct ph__op effect = {.name = "effect",
    .traits = PH_OP_HAS_EFFECT,
    .infer = token_infer,
    .cost = large_cost,
    .run = nothing_run};
static const struct ph__op first_of = {
    .name = "first_of", .infer = toy_sum_infer, .cost = large_cost, .run = first_of_run};
static const struct ph__op fill = {
    .name = "fill", .infer = toy_same_infer, .cost = large_cost, .run = toy_fill_run};
static const struct ph__op positive = {
    .name = "positive", .infer = toy_positive_infer, .cost = large_cost, .run = toy_positive_run};
static const struct ph__op of_dimension = {
    .name = "of_dimension", .infer = dimension_infer, .cost = large_cost, .run = nothing_run};

static ph_value output(struct ph_builder *builder, const char *name, ph_value value)
{
    ph_output(builder, name, value);
    return value;
}

/* How many nodes run together with the one of that number, counted from the first, in a program that `build`
 * makes. */
static size_t wave_from(void (*build)(struct ph_builder *builder), size_t threads, size_t node)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    build(builder);
    struct toy_machine machine = {0};
    TOY_TEAM_START(&machine, builder, 4, threads);
    const size_t size = machine.workspace->wave_ends[node] - node;
    const ph_real dense[4] = {1, 2, 3, 4};
    struct ph_batch batch = toy_batch(4, 1, dense);
    assert_ok(ph_workspace_bind(machine.workspace, &batch, 0, 0));
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    toy_machine_stop(&machine);
    return size;
}

static void two_of(struct ph_builder *builder, const struct ph__op *first, const struct ph__op *second)
{
    ph_value x = ph_input_dense(builder, 1);
    output(builder, "a", toy1(builder, first, x));
    output(builder, "b", toy1(builder, second, x));
}

static void two_copies(struct ph_builder *builder)
{
    two_of(builder, &copy, &copy);
}

static void neighbours_that_share_nothing_form_a_wave(void **state)
{
    (void)state;
    assert_int_equal(wave_from(two_copies, 2, 0), 2);
    assert_int_equal(wave_from(two_copies, 3, 0), 2);
}

static void one_thread_has_no_waves(void **state)
{
    (void)state;
    assert_int_equal(wave_from(two_copies, 1, 0), 1);
}

static void two_slight(struct ph_builder *builder)
{
    two_of(builder, &slight, &slight);
}

static void two_huge(struct ph_builder *builder)
{
    two_of(builder, &huge, &huge);
}

static void uneven(struct ph_builder *builder)
{
    two_of(builder, &copy, &slight);
}

static void a_wave_must_pay(void **state)
{
    (void)state;
    assert_int_equal(wave_from(two_slight, 2, 0), 1);
    assert_int_equal(wave_from(two_huge, 2, 0), 1);
    assert_int_equal(wave_from(uneven, 2, 0), 1);
}

static void two_by_library(struct ph_builder *builder)
{
    two_of(builder, &by_library, &copy);
}

static void the_library_runs_alone(void **state)
{
    (void)state;
    assert_int_equal(wave_from(two_by_library, 2, 0), 1);
}

static void two_with_scratch(struct ph_builder *builder)
{
    two_of(builder, &with_scratch, &with_scratch);
}

static void reader_behind_its_value(struct ph_builder *builder)
{
    ph_value a = output(builder, "a", toy1(builder, &copy, ph_input_dense(builder, 1)));
    output(builder, "b", toy1(builder, &copy, a));
}

static void reader_behind_an_alias(struct ph_builder *builder)
{
    ph_value a = output(builder, "a", toy1(builder, &copy, ph_input_dense(builder, 1)));
    output(builder, "b", toy1(builder, &copy, toy1(builder, &alias, a)));
}

static void reader_behind_a_scalar(struct ph_builder *builder)
{
    ph_value x = ph_input_dense(builder, 1);
    ph_value s = output(builder, "s", toy1(builder, &first_of, x));
    output(builder, "b", toy2(builder, &fill, x, s));
}

static void reader_behind_a_token(struct ph_builder *builder)
{
    ph_value x = ph_input_dense(builder, 1);
    output(builder, "b", toy2(builder, &copy, x, toy1(builder, &effect, x)));
}

static void value_waits_for_its_maker(void **state)
{
    (void)state;
    assert_int_equal(wave_from(reader_behind_its_value, 2, 0), 1);
    assert_int_equal(wave_from(reader_behind_an_alias, 2, 0), 1);
    assert_int_equal(wave_from(reader_behind_a_scalar, 2, 0), 1);
    assert_int_equal(wave_from(reader_behind_a_token, 2, 0), 1);
}

/* c takes the bytes of a, whose last reader makes b. */
static void reused_bytes(struct ph_builder *builder)
{
    ph_value x = ph_input_dense(builder, 1);
    output(builder, "b", toy1(builder, &copy, toy1(builder, &copy, x)));
    output(builder, "c", toy1(builder, &copy, x));
}

/* c takes over the bytes of a, which b reads. */
static void bytes_taken_over(struct ph_builder *builder)
{
    ph_value a = toy1(builder, &copy, ph_input_dense(builder, 1));
    output(builder, "b", toy1(builder, &copy, a));
    output(builder, "c", toy1(builder, &in_place, a));
}

static void bytes_are_not_shared_in_a_wave(void **state)
{
    (void)state;
    assert_int_equal(wave_from(two_with_scratch, 2, 0), 1);
    assert_int_equal(wave_from(reused_bytes, 2, 1), 1);
    assert_int_equal(wave_from(bytes_taken_over, 2, 1), 1);
}

static void written_parameter(struct ph_builder *builder)
{
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, (struct ph_init){PH_INIT_CONSTANT, 0});
    output(builder, "a", toy1(builder, &copy, p));
    toy1(builder, &effect, p);
}

static void parameters_apart(struct ph_builder *builder)
{
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    toy1(builder, &effect, ph_parameter(builder, "p", 1, (size_t[]){2}, zeros));
    toy1(builder, &effect, ph_parameter(builder, "q", 1, (size_t[]){2}, zeros));
}

static void written_state(struct ph_builder *builder)
{
    ph_value s = ph_state_value(builder, "s", 2, 0);
    toy1(builder, &effect, s);
    output(builder, "a", toy1(builder, &copy, s));
}

static void what_is_written_is_written_in_order(void **state)
{
    (void)state;
    assert_int_equal(wave_from(written_parameter, 2, 0), 1);
    assert_int_equal(wave_from(written_state, 2, 0), 1);
    assert_int_equal(wave_from(parameters_apart, 2, 0), 2);
}

/* The second reads nothing of the first's, but is as long as that decides. */
static void decided_dimension(struct ph_builder *builder)
{
    ph_value x = ph_input_dense(builder, 1);
    ph_value a = output(builder, "a", toy1(builder, &positive, x));
    const struct ph_type type = ph_value_type(builder, a);
    output(builder, "b", ph__emit1(builder, &of_dimension, NULL, &type, sizeof type, 1, &x));
}

static void dimension_waits_for_its_decision(void **state)
{
    (void)state;
    assert_int_equal(wave_from(decided_dimension, 2, 0), 1);
}

static void copies_about_an_alias(struct ph_builder *builder)
{
    ph_value x = ph_input_dense(builder, 1);
    output(builder, "a", toy1(builder, &copy, x));
    output(builder, "b", toy1(builder, &copy, toy1(builder, &alias, x)));
}

static void alias_is_in_nobodys_way(void **state)
{
    (void)state;
    assert_int_equal(wave_from(copies_about_an_alias, 2, 0), 3);
}

static void two_entries(struct ph_builder *builder)
{
    ph_value x = ph_input_dense(builder, 1);
    output(builder, "a", toy1(builder, &copy, x));
    ph_builder_begin_entry(builder, "backward");
    output(builder, "b", toy1(builder, &copy, x));
}

static void wave_ends_with_its_entry(void **state)
{
    (void)state;
    assert_int_equal(wave_from(two_entries, 2, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_that_share_nothing_form_a_wave),
        cmocka_unit_test(one_thread_has_no_waves),
        cmocka_unit_test(a_wave_must_pay),
        cmocka_unit_test(the_library_runs_alone),
        cmocka_unit_test(value_waits_for_its_maker),
        cmocka_unit_test(bytes_are_not_shared_in_a_wave),
        cmocka_unit_test(what_is_written_is_written_in_order),
        cmocka_unit_test(dimension_waits_for_its_decision),
        cmocka_unit_test(alias_is_in_nobodys_way),
        cmocka_unit_test(wave_ends_with_its_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
