/* Units of dense parameters: where they are cut, which parameters they have, and their lines in a plan
 * file. */
#include "support/test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "plan/plan_choice.h"
#include "plan/plan_units.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct ph__table_facts table = {
    .name = "embedding.user", .num_rows = 100, .dim = 4, .num_features = 1, .weight_bytes = 16};

/* Two layers, of which the first is narrow, and a parameter of no layer. */
static const struct ph__dense_facts layers[] = {
    {"bottom.0.weight", 300, 13, 2, true, false, 2, false},
    {"bottom.0.bias", 300, 1, 2, true, false, 3, false},
    {"top.0.weight", 200, 700, 2, true, true, 5, false},
    {"top.0.bias", 200, 1, 2, true, false, 6, false},
    {"scale", 1, 1, 2, true, true, 8, false},
};

static struct ph__plan plan_of(size_t world_size, size_t ranks_per_host)
{
    const struct ph__topology topology = {world_size, ranks_per_host};
    const struct ph__plan_choice choice = {.kind = PH_SHARD_DATA_PARALLEL};
    struct ph__plan plan;
    assert_ok(ph__plan_build(&topology, &table, 1, &choice, &plan));
    return plan;
}

static struct ph__plan units_of(size_t world_size, const struct ph__dense_settings *settings)
{
    struct ph__plan plan = plan_of(world_size, world_size);
    assert_ok(ph__plan_units_make(&plan, settings, layers, COUNT(layers)));
    return plan;
}

/* ---- cuts ---- */

/* Every member's rows follow the former's, begin with a block, and are near an equal share. */
static void check_cut(const struct ph__plan_unit *unit, size_t group_size)
{
    const size_t share = ph__unit_numbers(unit) / group_size;
    size_t sum = 0;
    for (size_t m = 0; m < group_size; m++) {
        const size_t own = ph__unit_own_numbers(unit, m);
        size_t largest_block = 0;
        sum += own;
        for (size_t k = 0; k < unit->num_parameters; k++) {
            const struct ph__unit_parameter *parameter = &unit->parameters[k];
            const size_t block = ph__block_rows(parameter->columns), end = parameter->bounds[m + 1];
            assert_true(parameter->bounds[m] <= end);
            assert_true(end == parameter->rows || end % block == 0);
            largest_block = ph__max(largest_block, ph__min(block, parameter->rows) * parameter->columns);
        }
        assert_true(own <= share + largest_block + 1);
        assert_true(own + largest_block + 1 >= share);
    }
    assert_int_equal(sum, ph__unit_numbers(unit));
}

static void units_are_cut_between_blocks_into_near_equal_shards(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 9; world_size++) {
        const struct ph__dense_settings settings = {.mode = PH_DENSE_FULL, .unit_bytes = 1 << 14};
        struct ph__plan plan = units_of(world_size, &settings);
        assert_true(plan.units.num_units > 1);
        for (size_t u = 0; u < plan.units.num_units; u++)
            check_cut(&plan.units.units[u], world_size);
        ph__plan_fini(&plan);
    }
}

/* ---- units ---- */

static void check_unit(const struct ph__plan_unit *unit, size_t first, size_t count)
{
    assert_int_equal(unit->num_parameters, count);
    for (size_t k = 0; k < count; k++)
        assert_string_equal(unit->parameters[k].name, layers[first + k].name);
}

static void layers_are_joined_up_to_the_bytes_of_a_unit(void **state)
{
    (void)state;
    const struct ph__dense_settings small = {.mode = PH_DENSE_FULL, .unit_bytes = 1};
    const struct ph__dense_settings middle = {.mode = PH_DENSE_FULL, .unit_bytes = 20000};
    const struct ph__dense_settings large = {.mode = PH_DENSE_FULL};
    struct ph__plan plan = units_of(2, &small);
    assert_int_equal(plan.units.num_units, 3);
    check_unit(&plan.units.units[0], 0, 2);
    check_unit(&plan.units.units[1], 2, 2);
    check_unit(&plan.units.units[2], 4, 1);
    ph__plan_fini(&plan);
    plan = units_of(2, &middle);
    assert_int_equal(plan.units.num_units, 3);
    ph__plan_fini(&plan);
    plan = units_of(2, &large);
    assert_int_equal(plan.units.num_units, 1);
    check_unit(&plan.units.units[0], 0, 5);
    ph__plan_fini(&plan);
}

static void patterns_name_units_and_the_rest_goes_by_bytes(void **state)
{
    (void)state;
    static const struct ph__unit_rule rules[] = {
        {"top.*", PH_UNIT_WIRE_BF16}, {"*.weight", PH_UNIT_WIRE_OF_JOB}};
    const struct ph__dense_settings settings = {
        .mode = PH_DENSE_FULL, .wire = PH_UNIT_WIRE_FP16, .rules = rules, .num_rules = 2};
    const struct ph__plan_unit *unit;
    struct ph__plan plan = units_of(2, &settings);
    assert_int_equal(plan.units.num_units, 3);
    check_unit(&plan.units.units[0], 2, 2);
    check_unit(&plan.units.units[1], 0, 1);
    assert_int_equal(plan.units.units[0].wire, PH_UNIT_WIRE_BF16);
    assert_int_equal(plan.units.units[1].wire, PH_UNIT_WIRE_FP16);
    assert_int_equal(plan.units.units[2].wire, PH_UNIT_WIRE_FP16);
    assert_non_null(ph__plan_units_find(&plan.units, "scale", &unit));
    assert_ptr_equal(unit, &plan.units.units[2]);
    assert_null(ph__plan_units_find(&plan.units, "embedding.user", &unit));
    ph__plan_fini(&plan);
}

static void replicated_parameters_are_in_no_unit(void **state)
{
    (void)state;
    const struct ph__dense_settings settings = {.mode = PH_DENSE_REPLICATED};
    struct ph__plan plan = units_of(4, &settings);
    assert_int_equal(plan.units.num_units, 0);
    ph__plan_fini(&plan);
}

static void units_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct ph__unit_rule all[] = {{"*", PH_UNIT_WIRE_OF_JOB}, {"top.*", PH_UNIT_WIRE_OF_JOB}};
    struct ph__dense_facts many[PH_UNIT_MOST_PARAMETERS + 1];
    struct ph__dense_settings settings = {.mode = PH_DENSE_FULL, .rules = all, .num_rules = 2};
    struct ph__plan plan = plan_of(6, 6);
    assert_fails(ph__plan_units_make(&plan, &settings, layers, COUNT(layers)), PH_ERROR_CONFIG,
        "unit 'top.*' fits no dense parameter that is left");
    settings.num_rules = 1;
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = layers[0];
    assert_fails(ph__plan_units_make(&plan, &settings, many, COUNT(many)), PH_ERROR_CONFIG,
        "unit '*' has 31 parameters, but a unit has at most 30");
    many[0].is_element_wise = false;
    assert_fails(ph__plan_units_make(&plan, &settings, many, 1), PH_ERROR_CONFIG,
        "mode 'full' cuts 'bottom.0.weight', whose optimizer is not element-wise");
    settings = (struct ph__dense_settings){.mode = PH_DENSE_HYBRID, .group_size = 4};
    assert_fails(ph__plan_units_make(&plan, &settings, layers, COUNT(layers)), PH_ERROR_CONFIG,
        "a group of 4 ranks does not divide the 6 ranks evenly");
    ph__plan_fini(&plan);
}

/* ---- the file ---- */

static const char *file(const char *dense)
{
    char text[1024];
    snprintf(text, sizeof text, "version: 1\nworld_size: 4\ndefault: {kind: data_parallel}\n%s", dense);
    return test_write_file("plan.yaml", text);
}

static void a_written_section_is_read_back(void **state)
{
    (void)state;
    static const char section[] =
        "dense:\n  mode: hybrid\n  group: 2\n  unit_bytes: 4096\n  prefetch: 0\n  wire: fp16\n"
        "  reduce: every\n  units:\n    \"top.*\": {wire: bf16}\n    \"bottom.*\": {}\n";
    struct ph__plan plan = plan_of(4, 4);
    struct ph__writer *writer;
    size_t size;
    assert_ok(ph__plan_units_read(file(section), NULL, layers, COUNT(layers), &plan));
    assert_ok(ph__writer_open_memory("a section", 4096, &writer));
    assert_ok(ph__plan_units_write(&plan.units, writer));
    assert_ok(ph__writer_write(writer, "", 1));
    assert_ok(ph__writer_finish(writer));
    char *text = ph__writer_take(writer, &size);
    ph__writer_close(writer);
    assert_string_equal(text, section);
    free(text);
    assert_int_equal(plan.units.num_units, 3);
    ph__plan_fini(&plan);
}

static void modes_that_keep_parameters_may_have_groups(void **state)
{
    (void)state;
    struct ph__plan plan = plan_of(4, 2);
    assert_ok(ph__plan_units_read(
        file("dense: {mode: keep_after_forward, group: 2}\n"), NULL, layers, COUNT(layers), &plan));
    assert_int_equal(plan.units.settings.group_size, 2);
    ph__plan_fini(&plan);
    plan = plan_of(4, 2);
    assert_ok(
        ph__plan_units_read(file("dense: {mode: keep_after_forward}\n"), NULL, layers, COUNT(layers), &plan));
    assert_int_equal(plan.units.settings.group_size, 4);
    ph__plan_fini(&plan);
}

static void a_mode_of_the_job_goes_before_the_file(void **state)
{
    (void)state;
    const enum ph__dense_mode mode = PH_DENSE_ZERO1;
    struct ph__plan plan = plan_of(4, 4);
    assert_ok(ph__plan_units_read(file("dense: {mode: full, unit_bytes: 1}\n"), &mode, layers, 2, &plan));
    assert_int_equal(plan.units.settings.mode, PH_DENSE_ZERO1);
    assert_int_equal(plan.units.settings.unit_bytes, 1);
    ph__plan_fini(&plan);
    plan = plan_of(4, 4);
    assert_ok(ph__plan_units_read(file(""), NULL, layers, COUNT(layers), &plan));
    assert_int_equal(plan.units.settings.mode, PH_DENSE_REPLICATED);
    ph__plan_fini(&plan);
}

static void lines_that_say_something_else_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *section, *error;
    } cases[] = {
        {"dense: full\n", "plan.yaml:4: dense: must be a mapping, such as {mode: full}"},
        {"dense: {mode: fully}\n", "plan.yaml:4: dense.mode: unknown word 'fully'; did you mean 'full'?"},
        {"dense:\n  mode: full\n  wire: int8\n",
            "plan.yaml:6: dense.wire: unknown word 'int8': must be one of fp32, fp16, bf16"},
        {"dense:\n  mode: full\n  groups: 2\n",
            "plan.yaml:6: unknown key 'dense.groups'; did you mean 'dense.group'?"},
        {"dense:\n  mode: full\n  group: 2\n",
            "plan.yaml:6: dense.group: mode 'full' has one group, of all ranks: remove it"},
        {"dense:\n  mode: hybrid\n  group: 3\n", "plan.yaml:6: dense: a group of 3 ranks does not divide"},
        {"dense: {mode: full, prefetch: 2}\n", "plan.yaml:4: dense.prefetch: must be an integer from 0 to 1"},
        {"dense: {mode: full, unit_bytes: 0}\n", "plan.yaml:4: dense.unit_bytes: must be an integer from 1"},
        {"dense: {mode: full, units: [a]}\n", "plan.yaml:4: dense.units: must be a mapping"},
        {"dense: {mode: full, units: {a: b}}\n", "plan.yaml:4: dense.units.a: must be a mapping"},
        {"dense: {mode: full, units: {a: {}}}\n", "plan.yaml:4: dense: unit 'a' fits no dense parameter"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ph__plan plan = plan_of(4, 4);
        assert_fails(ph__plan_units_read(file(cases[i].section), NULL, layers, COUNT(layers), &plan),
            PH_ERROR_CONFIG, cases[i].error);
        ph__plan_fini(&plan);
    }
}

/* ---- cost ---- */

static uint64_t bytes_by(const struct ph__plan *plan, enum ph__dense_mode mode)
{
    struct ph__dense_bytes bytes;
    assert_ok(ph__dense_bytes_in_mode(plan, mode, layers, COUNT(layers), 1, &bytes));
    return ph__dense_bytes_sum(&bytes);
}

static void bytes_are_shards_and_two_units(void **state)
{
    (void)state;
    const struct ph__dense_settings settings = {.mode = PH_DENSE_FULL, .unit_bytes = 1};
    struct ph__plan plan = units_of(4, &settings);
    struct ph__dense_bytes bytes;
    assert_ok(ph__dense_bytes_in_mode(&plan, PH_DENSE_FULL, layers, COUNT(layers), 1, &bytes));
    uint64_t most = 0;
    for (size_t m = 0; m < 4; m++) {
        uint64_t own = 0;
        for (size_t u = 0; u < plan.units.num_units; u++)
            own += ph__unit_own_numbers(&plan.units.units[u], m);
        most = own > most ? own : most;
    }
    assert_int_equal(bytes.parameters, 4 * most);
    assert_int_equal(bytes.slots, 8 * most);
    assert_int_equal(bytes.gathered, 2 * 4 * (200 * 700 + 200));
    assert_int_equal(bytes.gradients, 4 * most + bytes.gathered);
    ph__plan_fini(&plan);
}

static void the_first_mode_that_fits_is_chosen(void **state)
{
    (void)state;
    struct ph__plan plan = plan_of(4, 2);
    const uint64_t tables = 100 * 16;
    enum ph__dense_mode mode = PH_DENSE_MODE_COUNT;
    assert_ok(ph__dense_mode_choose(&plan, &table, layers, COUNT(layers), 1, UINT64_MAX, &mode));
    assert_int_equal(mode, PH_DENSE_REPLICATED);
    const uint64_t replicated = tables + bytes_by(&plan, PH_DENSE_REPLICATED);
    assert_ok(ph__dense_mode_choose(&plan, &table, layers, COUNT(layers), 1, replicated, &mode));
    assert_int_equal(mode, PH_DENSE_REPLICATED);
    assert_ok(ph__dense_mode_choose(&plan, &table, layers, COUNT(layers), 1, replicated - 1, &mode));
    assert_int_not_equal(mode, PH_DENSE_REPLICATED);
    assert_ok(ph__dense_mode_choose(&plan, &table, layers, COUNT(layers), 1, 1, &mode));
    assert_int_equal(mode, PH_DENSE_FULL);
    ph__plan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_cut_between_blocks_into_near_equal_shards),
        cmocka_unit_test(layers_are_joined_up_to_the_bytes_of_a_unit),
        cmocka_unit_test(patterns_name_units_and_the_rest_goes_by_bytes),
        cmocka_unit_test(replicated_parameters_are_in_no_unit),
        cmocka_unit_test(units_that_cannot_be_are_refused),
        cmocka_unit_test(a_written_section_is_read_back),
        cmocka_unit_test(modes_that_keep_parameters_may_have_groups),
        cmocka_unit_test(a_mode_of_the_job_goes_before_the_file),
        cmocka_unit_test(lines_that_say_something_else_are_refused),
        cmocka_unit_test(bytes_are_shards_and_two_units),
        cmocka_unit_test(the_first_mode_that_fits_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
