#include "store/tensor_list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static const struct ph_table_slice slices[] = {{"embedding.user", 7}, {"embedding.item", 5}};

struct model {
    struct ph_store *store;
    struct ph_parameter *dense, *table;
    struct ph__slot *dense_m, *table_m, *table_s;
};

/* A dense parameter with the slot m, a table with m and, one number a row, s; all slots count up. */
static struct model make_model(void)
{
    struct model model;
    const struct ph__declaration dense = {.name = "deep.weight", .shape = {2, {3, 4}}};
    const struct ph__declaration table = {
        .name = "embedding", .is_table = true, .shape = {2, {12, 3}}, .num_slices = 2, .slices = slices};
    assert_ok(ph_store_create(1, &model.store));
    assert_ok(ph__store_add(model.store, &dense, NULL, &model.dense));
    assert_ok(ph__store_add(model.store, &table, NULL, &model.table));
    assert_ok(ph__store_add_slot(model.store, model.dense, "m", false, &model.dense_m));
    assert_ok(ph__store_add_slot(model.store, model.table, "m", false, &model.table_m));
    assert_ok(ph__store_add_slot(model.store, model.table, "s", true, &model.table_s));
    struct ph__slot *slots[] = {model.dense_m, model.table_m, model.table_s};
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < slots[s]->elements; i++)
            slots[s]->data[i] = (ph_real)(100 * s + i);
    return model;
}

static struct ph_tensor find(const struct ph__tensor_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->tensors[i].name, name) == 0)
            return list->tensors[i];
    fail_msg("the list has no '%s'", name);
    return (struct ph_tensor){0};
}

static void expect_tensor(
    const struct ph__tensor_list *list, const char *name, struct ph_shape shape, const ph_real *first)
{
    struct ph_tensor tensor = find(list, name);
    assert_int_equal(tensor.shape.num_dims, shape.num_dims);
    for (size_t i = 0; i < shape.num_dims; i++)
        assert_int_equal(tensor.shape.dims[i], shape.dims[i]);
    assert_ptr_equal(tensor.data, first);
}

static void slots_are_listed_by_logical_name_and_cut_as_their_tensors(void **state)
{
    (void)state;
    struct model model = make_model();
    struct ph__tensor_list list = {0};
    assert_ok(ph__tensor_list_add_slots(&list, model.store));
    assert_int_equal(list.count, 5);
    expect_tensor(&list, "slot.m:deep.weight", (struct ph_shape){2, {3, 4}}, model.dense_m->data);
    expect_tensor(&list, "slot.m:embedding.user", (struct ph_shape){2, {7, 3}}, model.table_m->data);
    expect_tensor(&list, "slot.m:embedding.item", (struct ph_shape){2, {5, 3}}, model.table_m->data + 21);
    expect_tensor(&list, "slot.s:embedding.user", (struct ph_shape){1, {7}}, model.table_s->data);
    expect_tensor(&list, "slot.s:embedding.item", (struct ph_shape){1, {5}}, model.table_s->data + 7);
    ph__tensor_list_fini(&list);
    ph_store_destroy(model.store);
}

/* Of a shard per weight its shard, of a shard per row its rows: all the shards of some columns have those. */
static void slots_of_parts_are_parts_of_slots(void **state)
{
    (void)state;
    const struct ph__slice_shard shards[] = {{10, 40, 0, 9}, {0, 5, 4, 9}};
    const struct ph__declaration table = {.name = "embedding",
        .is_table = true,
        .shape = {2, {12, 3}},
        .num_slices = 2,
        .slices = slices,
        .shards = shards};
    struct ph_store *store;
    struct ph_parameter *parameter;
    struct ph__slot *slot;
    struct ph__tensor_list list = {0};
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph__store_add(store, &table, NULL, &parameter));
    assert_ok(ph__store_add_slot(store, parameter, "m", false, &slot));
    assert_ok(ph__store_add_slot(store, parameter, "s", true, &slot));
    assert_ok(ph__tensor_list_add_slots(&list, store));
    const struct ph_tensor user_m = find(&list, "slot.m:embedding.user");
    const struct ph_tensor user_s = find(&list, "slot.s:embedding.user");
    const struct ph_tensor item_s = find(&list, "slot.s:embedding.item");
    assert_int_equal(user_m.first_row, 10);
    assert_int_equal(user_m.whole.num_dims, 2);
    assert_int_equal(user_m.whole.dims[1], 9);
    assert_int_equal(user_s.first_row, 10);
    assert_int_equal(user_s.shape.num_dims, 1);
    assert_int_equal(user_s.whole.num_dims, 1);
    assert_int_equal(user_s.whole.dims[0], 40);
    assert_int_equal(item_s.first_column, 4);
    assert_int_equal(item_s.whole.num_dims, 1);
    assert_ptr_equal(item_s.data, slot->data + 7);
    ph__tensor_list_fini(&list);
    ph_store_destroy(store);
}

static void what_was_saved_is_loaded_slots_and_all(void **state)
{
    (void)state;
    struct model model = make_model();
    struct ph__tensor_list list = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/all.safetensors", test_folder());
    assert_ok(ph__tensor_list_add_store(&list, model.store));
    assert_ok(ph__tensor_list_add_slots(&list, model.store));
    assert_ok(ph__safetensors_write(path, list.count, list.tensors, NULL));
    memset(model.table_s->data, 0, model.table_s->elements * sizeof(ph_real));
    memset(model.dense_m->data, 0, model.dense_m->elements * sizeof(ph_real));
    assert_ok(ph__tensor_list_load(&list, path));
    for (size_t i = 0; i < model.table_s->elements; i++)
        assert_true(model.table_s->data[i] == (ph_real)(200 + i));
    for (size_t i = 0; i < model.dense_m->elements; i++)
        assert_true(model.dense_m->data[i] == (ph_real)i);
    ph__tensor_list_fini(&list);
    ph_store_destroy(model.store);
}

static void number_that_is_not_finite_is_found_with_its_tensor(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct model model = make_model();
    struct ph__tensor_list list = {0};
    assert_ok(ph__tensor_list_add_slots(&list, model.store));
    assert_ok(ph__tensor_list_check_finite(&list));
    for (size_t i = 0; i < 3; i++) {
        model.table_m->data[35] = (ph_real)bad[i];
        assert_fails(ph__tensor_list_check_finite(&list), PH_ERROR_DATA, "'slot.m:embedding.item'");
    }
    ph__tensor_list_fini(&list);
    ph_store_destroy(model.store);
}

static void words_that_are_not_finite_are_found(void **state)
{
    (void)state;
    static const struct {
        enum ph_row_format format;
        uint16_t largest, infinite, nan;
    } cases[] = {{PH_ROWS_FP16, 0x7bff, 0xfc00, 0x7e01}, {PH_ROWS_BF16, 0x7f7f, 0xff80, 0x7fc0},
        {PH_ROWS_BF16_SPLIT, 0x7f7f, 0xff80, 0x7fc0}};
    const struct ph__declaration table = {
        .name = "embedding", .is_table = true, .shape = {2, {12, 3}}, .num_slices = 2, .slices = slices};
    for (size_t i = 0; i < 3; i++) {
        struct ph_store *store;
        struct ph_parameter *parameter;
        struct ph__tensor_list list = {0};
        assert_ok(ph_store_create(1, &store));
        ph__store_learn_rows(store, cases[i].format);
        assert_ok(ph__store_add(store, &table, NULL, &parameter));
        assert_ok(ph__tensor_list_add_store(&list, store));
        uint16_t *word = (uint16_t *)parameter->memory + 35;
        *word = cases[i].largest;
        assert_ok(ph__tensor_list_check_finite(&list));
        *word = cases[i].infinite;
        assert_fails(ph__tensor_list_check_finite(&list), PH_ERROR_DATA, "'embedding.item'");
        *word = cases[i].nan;
        assert_fails(ph__tensor_list_check_finite(&list), PH_ERROR_DATA, "'embedding.item'");
        ph__tensor_list_fini(&list);
        ph_store_destroy(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_listed_by_logical_name_and_cut_as_their_tensors),
        cmocka_unit_test(slots_of_parts_are_parts_of_slots),
        cmocka_unit_test(what_was_saved_is_loaded_slots_and_all),
        cmocka_unit_test(number_that_is_not_finite_is_found_with_its_tensor),
        cmocka_unit_test(words_that_are_not_finite_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
