#include "store/store.h"

#include <signal.h>
#include <string.h>

#include "support/test_support.h"

static const struct ph_table_slice slices[] = {{"embedding.user", 30}, {"embedding.item", 20}};
static const struct ph_init normal = {PH_INIT_NORMAL, 1};

static struct ph__declaration dense(const char *name, size_t rows, size_t columns)
{
    return (struct ph__declaration){.name = name, .shape = {2, {rows, columns}}, .init = normal};
}

static struct ph__declaration table(const char *name, size_t dim)
{
    return (struct ph__declaration){.name = name,
        .is_table = true,
        .shape = {2, {50, dim}},
        .init = normal,
        .num_slices = 2,
        .slices = slices};
}

/* Of one number a row, which int8 does not make smaller. */
static struct ph__declaration narrow_table(void)
{
    static const struct ph_table_slice slice = {"linear.user", 20};
    return (struct ph__declaration){.name = "linear",
        .is_table = true,
        .shape = {2, {20, 1}},
        .init = normal,
        .num_slices = 1,
        .slices = &slice};
}

static struct ph_store *make_store(void)
{
    struct ph_store *store;
    assert_ok(ph_store_create(test_seed(), &store));
    return store;
}

static void a_store_for_scoring_holds_smaller_rows_of_zeros(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *former, *weight, *embedding, *linear;
    const struct ph__declaration declarations[] = {{.name = "former", .shape = {2, {3, 4}}, .init = normal},
        dense("deep.weight", 3, 4), table("embedding", 8), narrow_table()};
    assert_ok(ph__store_add(store, &declarations[0], NULL, &former));
    ph__store_set_row_format(store, PH_ROWS_INT8);
    assert_int_equal(ph__store_missing_bytes(store, &declarations[2]), 50 * (8 + 8));
    assert_ok(ph__store_add(store, &declarations[1], NULL, &weight));
    assert_ok(ph__store_add(store, &declarations[2], NULL, &embedding));
    assert_ok(ph__store_add(store, &declarations[3], NULL, &linear));
    assert_int_equal(weight->row_format, PH_ROWS_FP32);
    assert_int_equal(embedding->row_format, PH_ROWS_INT8);
    assert_int_equal(linear->row_format, PH_ROWS_FP32);
    assert_null(embedding->data);
    assert_ptr_equal(linear->data, linear->memory);
    assert_int_equal(ph_store_parameter_count(store), 12 + 12 + 400 + 20);
    assert_int_equal(ph_store_parameter_bytes(store), 50 * 16 + (12 + 12 + 20) * sizeof(ph_real));

    const struct ph_tensor item = ph_store_tensor(store, 3);
    assert_string_equal(item.name, "embedding.item");
    assert_int_equal(item.row_format, PH_ROWS_INT8);
    assert_ptr_equal(item.data, (char *)embedding->memory + 30 * 16);
    const unsigned char zeros[50 * 16] = {0};
    assert_memory_equal(embedding->memory, zeros, sizeof zeros);
    ph_store_destroy(store);
}

static void a_store_that_will_be_loaded_begins_as_zeros(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *weight, *embedding;
    const struct ph__declaration declarations[] = {dense("deep.weight", 3, 4), table("embedding", 8)};
    const ph_real zeros[400] = {0};
    ph__store_will_be_loaded(store);
    assert_ok(ph__store_add(store, &declarations[0], NULL, &weight));
    assert_ok(ph__store_add(store, &declarations[1], NULL, &embedding));
    assert_memory_equal(weight->data, zeros, 12 * sizeof(ph_real));
    assert_memory_equal(embedding->data, zeros, 400 * sizeof(ph_real));
    ph_store_destroy(store);
}

static void a_table_lists_its_slices_as_tensors(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *weight, *embedding;
    const struct ph__declaration first = dense("deep.weight", 3, 4), second = table("embedding", 8);
    assert_ok(ph__store_add(store, &first, NULL, &weight));
    assert_ok(ph__store_add(store, &second, NULL, &embedding));

    assert_int_equal(ph_store_num_tensors(store), 3);
    assert_string_equal(ph_store_tensor(store, 0).name, "deep.weight");
    const struct ph_tensor user = ph_store_tensor(store, 1), item = ph_store_tensor(store, 2);
    assert_string_equal(user.name, "embedding.user");
    assert_int_equal(user.shape.dims[0], 30);
    assert_ptr_equal(user.data, embedding->data);
    assert_string_equal(item.name, "embedding.item");
    assert_int_equal(item.shape.dims[0], 20);
    assert_int_equal(item.shape.dims[1], 8);
    assert_ptr_equal(item.data, embedding->data + 30 * 8);
    assert_int_equal(ph_store_parameter_count(store), 12 + 400);
    assert_int_equal(ph_store_parameter_bytes(store), 412 * sizeof(ph_real));

    struct ph_tensor found;
    assert_ok(ph_store_find(store, "embedding.item", &found));
    assert_ptr_equal(found.data, item.data);
    assert_fails(ph_store_find(store, "embedding", &found), PH_ERROR_USAGE, "'embedding'");
    ph_store_destroy(store);
}

static void a_slice_starts_the_same_in_any_table(void **state)
{
    (void)state;
    struct ph_store *store = make_store(), *other = make_store();
    const struct ph_table_slice alone[] = {{"embedding.item", 20}};
    struct ph__declaration whole = table("embedding", 8), part = table("other", 8);
    part.shape.dims[0] = 20;
    part.num_slices = 1;
    part.slices = alone;
    struct ph_parameter *a, *b;
    assert_ok(ph__store_add(store, &whole, NULL, &a));
    assert_ok(ph__store_add(other, &part, NULL, &b));
    assert_memory_equal(a->data + 30 * 8, b->data, 20 * 8 * sizeof *b->data);
    ph_store_destroy(store);
    ph_store_destroy(other);
}

static void adding_again_finds_and_keeps(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *first, *second;
    const struct ph__declaration declaration = table("embedding", 8);
    assert_int_equal(ph__store_missing_bytes(store, &declaration), 400 * sizeof(ph_real));
    assert_ok(ph__store_add(store, &declaration, NULL, &first));
    first->data[5] = 42;
    assert_ok(ph__store_add(store, &declaration, NULL, &second));
    assert_ptr_equal(first, second);
    assert_true(second->data[5] == 42);
    assert_int_equal(ph__store_missing_bytes(store, &declaration), 0);
    ph_store_destroy(store);
}

static void another_shape_under_a_known_name_is_refused(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *parameter;
    struct ph__declaration declaration = table("embedding", 8);
    assert_ok(ph__store_add(store, &declaration, NULL, &parameter));

    struct ph__declaration wider = table("embedding", 9);
    assert_fails(ph__store_add(store, &wider, NULL, &parameter), PH_ERROR_CONFIG, "'embedding'");
    struct ph__declaration plain = dense("embedding", 50, 8);
    assert_fails(ph__store_add(store, &plain, NULL, &parameter), PH_ERROR_CONFIG, "'embedding'");
    const struct ph_table_slice swapped[] = {{"embedding.item", 20}, {"embedding.user", 30}};
    declaration.slices = swapped;
    assert_fails(ph__store_add(store, &declaration, NULL, &parameter), PH_ERROR_CONFIG, "other slices");
    ph_store_destroy(store);
}

static void two_tensors_of_one_name_are_refused(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *parameter;
    struct ph__declaration first = table("embedding", 8), second = table("again", 4),
                           plain = dense("embedding.user", 2, 2);
    assert_ok(ph__store_add(store, &first, NULL, &parameter));
    assert_fails(ph__store_add(store, &second, NULL, &parameter), PH_ERROR_CONFIG, "'embedding.user'");
    assert_fails(ph__store_add(store, &plain, NULL, &parameter), PH_ERROR_CONFIG, "'embedding.user'");
    const struct ph_table_slice twice[] = {{"x.a", 25}, {"x.a", 25}};
    second.slices = twice;
    assert_fails(ph__store_add(store, &second, NULL, &parameter), PH_ERROR_CONFIG, "'x.a'");
    assert_int_equal(ph_store_num_tensors(store), 2);
    ph_store_destroy(store);
}

static void a_parameter_larger_than_memory_is_refused(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *parameter;
    struct ph__declaration huge = dense("huge", SIZE_MAX / 2, 16);
    assert_fails(ph__store_add(store, &huge, NULL, &parameter), PH_ERROR_MEMORY, "'huge'");
    assert_true(ph__store_missing_bytes(store, &huge) == UINT64_MAX);
    assert_int_equal(ph_store_num_tensors(store), 0);
    ph_store_destroy(store);
}

static void slots_are_zero_and_counted(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *parameter;
    const struct ph__declaration declaration = table("embedding", 8);
    assert_ok(ph__store_add(store, &declaration, NULL, &parameter));
    struct ph__slot *m, *s, *again;
    assert_ok(ph__store_add_slot(store, parameter, "m", false, &m));
    assert_ok(ph__store_add_slot(store, parameter, "s", true, &s));
    assert_int_equal(m->elements, 400);
    assert_int_equal(s->elements, 50);
    for (size_t i = 0; i < m->elements; i++)
        assert_true(m->data[i] == 0);
    assert_int_equal(ph_store_slot_bytes(store), 450 * sizeof(ph_real));

    m->data[3] = 1;
    assert_ok(ph__store_add_slot(store, parameter, "m", false, &again));
    assert_ptr_equal(again, m);
    assert_true(again->data[3] == 1);
    assert_fails(ph__store_add_slot(store, parameter, "s", false, &again), PH_ERROR_CONFIG, "slot 's'");
    ph_store_destroy(store);
}

static void touching_the_store_makes_every_parameter_newer(void **state)
{
    (void)state;
    struct ph_store *store = make_store();
    struct ph_parameter *parameter;
    const struct ph__declaration declaration = dense("w", 2, 2);
    assert_ok(ph__store_add(store, &declaration, NULL, &parameter));
    const uint64_t before = parameter->version;
    ph_store_touch(store);
    assert_true(parameter->version > before);
    ph_store_destroy(store);
}

static void a_signal_ends_the_initialisation(void **state)
{
    (void)state;
    volatile int stop_signal = 0;
    struct ph_store *store = make_store();
    struct ph_parameter *parameter;
    const struct ph__declaration first = dense("w", 2, 2), second = table("embedding", 8);
    ph__store_stop_by(store, &stop_signal);
    assert_ok(ph__store_add(store, &first, NULL, &parameter));
    stop_signal = SIGTERM;
    assert_fails(ph__store_add(store, &second, NULL, &parameter), PH_ERROR_TERMINATED, "stopped by a signal");
    ph_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_for_scoring_holds_smaller_rows_of_zeros),
        cmocka_unit_test(a_store_that_will_be_loaded_begins_as_zeros),
        cmocka_unit_test(a_table_lists_its_slices_as_tensors),
        cmocka_unit_test(a_slice_starts_the_same_in_any_table),
        cmocka_unit_test(adding_again_finds_and_keeps),
        cmocka_unit_test(another_shape_under_a_known_name_is_refused),
        cmocka_unit_test(two_tensors_of_one_name_are_refused),
        cmocka_unit_test(a_parameter_larger_than_memory_is_refused),
        cmocka_unit_test(slots_are_zero_and_counted),
        cmocka_unit_test(touching_the_store_makes_every_parameter_newer),
        cmocka_unit_test(a_signal_ends_the_initialisation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
