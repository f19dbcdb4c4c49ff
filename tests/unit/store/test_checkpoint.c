#include "phloem/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/safetensors.h"
#include "store/store.h"
#include "support/test_support.h"
#include "tensor/row_format.h"

struct model {
    struct ph_store *store;
    struct ph_state *state;
};

static const struct ph_init normal = {PH_INIT_NORMAL, 1};
static const struct ph_table_slice slices[] = {{"embedding.user", 7}, {"embedding.item", 5}};

static void add_dense(struct model *model, const char *name, size_t rows, size_t columns)
{
    struct ph_parameter *parameter;
    const struct ph__declaration declaration = {.name = name, .shape = {2, {rows, columns}}, .init = normal};
    assert_ok(ph__store_add(model->store, &declaration, NULL, &parameter));
}

static void add_table(struct model *model)
{
    struct ph_parameter *parameter;
    const struct ph__declaration declaration = {.name = "embedding",
        .is_table = true,
        .shape = {2, {12, 3}},
        .init = normal,
        .num_slices = 2,
        .slices = slices};
    assert_ok(ph__store_add(model->store, &declaration, NULL, &parameter));
}

static void add_state(struct model *model, const char *name)
{
    struct ph__state_array *array;
    assert_ok(ph__state_add(model->state, name, 4, 0.5, &array));
}

static struct model empty_model(uint64_t seed)
{
    struct model model;
    assert_ok(ph_store_create(seed, &model.store));
    assert_ok(ph_state_create(&model.state));
    return model;
}

static struct model make_model(uint64_t seed)
{
    struct model model = empty_model(seed);
    add_dense(&model, "deep.weight", 3, 4);
    add_table(&model);
    add_state(&model, "norm.mean");
    return model;
}

static void destroy_model(struct model *model)
{
    ph_store_destroy(model->store);
    ph_state_destroy(model->state);
}

static const char *digest_of(const struct model *model)
{
    static char digests[2][65];
    static size_t next;
    char *digest = digests[next++ % 2];
    assert_ok(ph_checkpoint_digest(model->store, model->state, digest));
    return digest;
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static const char *saved(const struct model *model)
{
    const char *path = path_of("model.safetensors");
    assert_ok(ph_checkpoint_save(path, model->store, model->state, NULL));
    return path;
}

static void a_loaded_model_is_the_saved_one(void **state)
{
    (void)state;
    struct model model = make_model(1), other = make_model(2);
    struct ph__state_array *mean;
    assert_ok(ph__state_add(other.state, "norm.mean", 4, 0.5, &mean));
    const uint64_t version = mean->version;
    *(ph_real *)ph_state_tensor(model.state, 0).data = 9;
    assert_string_not_equal(digest_of(&model), digest_of(&other));
    assert_ok(ph_checkpoint_load(saved(&model), other.store, other.state));
    assert_string_equal(digest_of(&model), digest_of(&other));
    assert_true(mean->data[0] == 9);
    assert_true(mean->version > version);
    destroy_model(&model);
    destroy_model(&other);
}

static void the_file_holds_logical_slices_and_metadata(void **state)
{
    (void)state;
    struct model model = make_model(1);
    const char *metadata[] = {"format", "phloem", "seed", "1", NULL};
    const char *path = path_of("slices.safetensors");
    assert_ok(ph_checkpoint_save(path, model.store, model.state, metadata));
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(path, &file));
    static const char *const names[] = {"deep.weight", "embedding.item", "embedding.user", "norm.mean"};
    assert_int_equal(ph__safetensors_num_tensors(file), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(ph__safetensors_tensor(file, i).name, names[i]);
    assert_string_equal(ph__safetensors_metadata(file, "format"), "phloem");
    ph__safetensors_close(file);
    destroy_model(&model);
}

static void loading_makes_packed_copies_stale(void **state)
{
    (void)state;
    struct model model = make_model(1);
    struct ph_parameter *parameter;
    const struct ph__declaration declaration = {.name = "deep.weight", .shape = {2, {3, 4}}, .init = normal};
    assert_ok(ph__store_add(model.store, &declaration, NULL, &parameter));
    const uint64_t before = parameter->version;
    assert_ok(ph_checkpoint_load(saved(&model), model.store, model.state));
    assert_true(parameter->version > before);
    destroy_model(&model);
}

static void digest_does_not_depend_on_the_order_of_creation(void **state)
{
    (void)state;
    struct model model = make_model(1), other = empty_model(1);
    add_state(&other, "norm.mean");
    add_table(&other);
    add_dense(&other, "deep.weight", 3, 4);
    assert_string_equal(digest_of(&model), digest_of(&other));
    destroy_model(&model);
    destroy_model(&other);
}

static void digest_sees_every_bit_name_and_shape(void **state)
{
    (void)state;
    struct model model = make_model(1);
    char before[65];
    assert_ok(ph_checkpoint_digest(model.store, model.state, before));
    assert_int_equal(strlen(before), 64);
    struct ph_tensor tensor;
    assert_ok(ph_store_find(model.store, "embedding.item", &tensor));
    unsigned char *bytes = tensor.data;
    bytes[0] ^= 1;
    assert_string_not_equal(digest_of(&model), before);
    bytes[0] ^= 1;
    assert_string_equal(digest_of(&model), before);
    destroy_model(&model);

    struct model wide = empty_model(1), tall = empty_model(1), named = empty_model(1);
    add_dense(&wide, "w", 2, 6);
    add_dense(&tall, "w", 6, 2);
    add_dense(&named, "v", 2, 6);
    struct model *models[] = {&wide, &tall, &named};
    for (size_t i = 0; i < 3; i++)
        memset(ph_store_tensor(models[i]->store, 0).data, 0, 12 * sizeof(ph_real));
    assert_string_not_equal(digest_of(&wide), digest_of(&tall));
    assert_string_not_equal(digest_of(&wide), digest_of(&named));
    destroy_model(&wide);
    destroy_model(&tall);
    destroy_model(&named);
}

/* Loads model's checkpoint into other, which must refuse and stay as it is. */
static void assert_not_loaded(const struct model *model, const struct model *other, const char *part)
{
    char before[65];
    assert_ok(ph_checkpoint_digest(other->store, other->state, before));
    assert_fails(ph_checkpoint_load(saved(model), other->store, other->state), PH_ERROR_CHECKPOINT, part);
    assert_non_null(strstr(ph_error_text(), "model.safetensors"));
    assert_string_equal(digest_of(other), before);
}

static void a_missing_tensor_is_refused(void **state)
{
    (void)state;
    struct model model = make_model(1), other = make_model(2);
    add_dense(&other, "top.weight", 2, 2);
    assert_not_loaded(&model, &other, "'top.weight' is missing");
    destroy_model(&model);
    destroy_model(&other);
}

static void a_surplus_tensor_is_refused(void **state)
{
    (void)state;
    struct model model = make_model(1), other = make_model(2);
    add_state(&model, "norm.variance");
    assert_not_loaded(&model, &other, "the model has no tensor 'norm.variance'");
    destroy_model(&model);
    destroy_model(&other);
}

static void a_misshapen_tensor_is_refused(void **state)
{
    (void)state;
    struct model model = empty_model(1), other = empty_model(2);
    add_dense(&model, "a.weight", 3, 3);
    add_dense(&model, "deep.weight", 4, 3);
    add_dense(&other, "a.weight", 3, 3);
    add_dense(&other, "deep.weight", 3, 4);
    assert_not_loaded(&model, &other, "'deep.weight' is F32 (4,3), but the model's is F32 (3,4)");
    destroy_model(&model);
    destroy_model(&other);
}

/* The file's bytes into 4 KiB. */
static size_t read_bytes(const char *path, unsigned char bytes[4096])
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, 4096, file);
    fclose(file);
    assert_in_range(size, 500, 4095);
    return size;
}

/* Over the former file: thousands of new ones would take the file system's time. */
static void write_bytes(const char *path, const unsigned char *bytes, size_t size)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, bytes, size, 0), size);
    assert_int_equal(ftruncate(descriptor, (off_t)size), 0);
    close(descriptor);
}

/* Loads a file of these bytes into `other`, which must refuse it and stay as it is. */
static void assert_damage_is_found(
    const unsigned char *bytes, size_t size, const struct model *other, const char *digest)
{
    const char *path = path_of("damaged.safetensors");
    write_bytes(path, bytes, size);
    assert_fails(ph_checkpoint_load(path, other->store, other->state), PH_ERROR_CHECKPOINT, path);
    assert_string_equal(digest_of(other), digest);
}

static void a_flip_of_any_byte_is_found(void **state)
{
    (void)state;
    struct model model = make_model(1), other = make_model(2);
    unsigned char bytes[4096];
    const size_t size = read_bytes(saved(&model), bytes);
    char before[65];
    assert_ok(ph_checkpoint_digest(other.store, other.state, before));
    static const unsigned char flips[] = {0x01, 0x20, 0x80, 0xff}; /* 0x20: the case of a letter */
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < sizeof flips; j++) {
            bytes[i] ^= flips[j];
            assert_damage_is_found(bytes, size, &other, before);
            bytes[i] ^= flips[j];
        }
    write_bytes(path_of("damaged.safetensors"), bytes, size);
    assert_ok(ph_checkpoint_load(path_of("damaged.safetensors"), other.store, other.state));
    destroy_model(&model);
    destroy_model(&other);
}

static void a_cut_at_any_length_and_a_surplus_byte_are_found(void **state)
{
    (void)state;
    struct model model = make_model(1), other = make_model(2);
    unsigned char bytes[4096];
    const size_t size = read_bytes(saved(&model), bytes);
    char before[65];
    assert_ok(ph_checkpoint_digest(other.store, other.state, before));
    for (size_t length = 0; length < size; length++)
        assert_damage_is_found(bytes, length, &other, before);
    bytes[size] = 0;
    assert_damage_is_found(bytes, size + 1, &other, before);
    destroy_model(&model);
    destroy_model(&other);
}

/* What another program writes: the right tensors, but no seal. */
static void a_file_without_a_seal_is_refused(void **state)
{
    (void)state;
    struct model other = empty_model(2);
    add_dense(&other, "w", 1, 1);
    char before[65];
    assert_ok(ph_checkpoint_digest(other.store, other.state, before));
    unsigned char bytes[80] = {64};
    const char *header = sizeof(ph_real) == 4
                             ? "{\"w\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}"
                             : "{\"w\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]}}";
    memset(bytes + 8, ' ', 64);
    memcpy(bytes + 8, header, strlen(header));
    assert_damage_is_found(bytes, 72 + sizeof(ph_real), &other, before);
    assert_non_null(strstr(ph_error_text(), "does not begin with a seal"));
    destroy_model(&other);
}

static void a_missing_file_is_refused(void **state)
{
    (void)state;
    struct model model = make_model(1);
    assert_fails(ph_checkpoint_load("/no/such/model", model.store, model.state), PH_ERROR_CHECKPOINT,
        "/no/such/model");
    destroy_model(&model);
}

static void a_failed_save_keeps_the_former_checkpoint(void **state)
{
    (void)state;
    struct model model = make_model(1);
    const char *path = path_of("missing/model.safetensors");
    assert_fails(ph_checkpoint_save(path, model.store, model.state, NULL), PH_ERROR_DISK, "missing/model");
    if (access("/dev/full", W_OK) == 0) {
        path = saved(&model);
        char temporary[520];
        snprintf(temporary, sizeof temporary, "%s.tmp", path);
        assert_int_equal(symlink("/dev/full", temporary), 0);
        assert_fails(ph_checkpoint_save(path, model.store, model.state, NULL), PH_ERROR_DISK, path);
        unlink(temporary);
        assert_ok(ph_checkpoint_load(path, model.store, model.state));
    }
    destroy_model(&model);
}

/* Two slices, of which the first has more rows than are converted at once. */
static struct ph_parameter *add_large_table(struct ph_store *store)
{
    static const struct ph_table_slice large_slices[] = {{"large.user", 100003}, {"large.item", 17}};
    struct ph_parameter *parameter;
    const struct ph__declaration declaration = {.name = "large",
        .is_table = true,
        .shape = {2, {100020, 5}},
        .init = normal,
        .num_slices = 2,
        .slices = large_slices};
    assert_ok(ph__store_add(store, &declaration, NULL, &parameter));
    return parameter;
}

static void check_loaded_as(enum ph_row_format format)
{
    struct model model = empty_model(1), other = empty_model(2);
    const struct ph_parameter *whole = add_large_table(model.store);
    ph__store_set_row_format(other.store, format);
    const struct ph_parameter *loaded = add_large_table(other.store);
    unsigned char *wanted = malloc(loaded->bytes);
    const size_t num_low = loaded->low != NULL ? loaded->elements : 0;
    assert_non_null(wanted);
    assert_ok(ph_checkpoint_load(saved(&model), other.store, other.state));
    uint16_t *low = num_low > 0 ? (uint16_t *)(void *)wanted + num_low : NULL;
    ph__rows_encode(format, 100020, 5, whole->data, wanted, low);
    assert_int_equal(loaded->bytes, 100020 * ph__row_bytes(format, 5) + num_low * sizeof *low);
    assert_memory_equal(loaded->memory, wanted, loaded->bytes);
    free(wanted);
    destroy_model(&model);
    destroy_model(&other);
}

static void a_store_for_scoring_converts_the_rows_that_it_loads(void **state)
{
    (void)state;
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++)
        check_loaded_as((enum ph_row_format)format);
}

static void a_store_for_scoring_is_not_saved(void **state)
{
    (void)state;
    char digest[65];
    struct model model = empty_model(1);
    ph__store_set_row_format(model.store, PH_ROWS_BF16);
    add_dense(&model, "deep.weight", 3, 4);
    add_table(&model);
    const char *wanted = "table 'embedding' is held as bf16, for scoring: it cannot be saved";
    assert_fails(ph_checkpoint_save(path_of("none.safetensors"), model.store, model.state, NULL),
        PH_ERROR_USAGE, wanted);
    assert_fails(ph_checkpoint_digest(model.store, model.state, digest), PH_ERROR_USAGE, wanted);
    destroy_model(&model);
}

/* ---- rows that are learnt in fewer bytes ---- */

static struct model learning_model(uint64_t seed, enum ph_row_format format)
{
    struct model model = empty_model(seed);
    ph__store_learn_rows(model.store, format);
    add_dense(&model, "deep.weight", 3, 4);
    add_table(&model);
    return model;
}

static enum ph_dtype dtype_in(const char *path, const char *name)
{
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(path, &file));
    const enum ph_dtype dtype = ph__safetensors_tensor(file, ph__safetensors_find(file, name)).dtype;
    ph__safetensors_close(file);
    return dtype;
}

static const struct ph_parameter *table_of(const struct model *model)
{
    return ph__store_parameter(model->store, 1);
}

static void rows_of_16_bits_are_saved_as_they_are_and_split_ones_as_the_numbers_that_they_are(void **state)
{
    (void)state;
    static const struct {
        enum ph_row_format format;
        enum ph_dtype dtype;
        size_t bytes; /* of a number */
    } cases[] = {{PH_ROWS_FP16, PH_F16, 2}, {PH_ROWS_BF16, PH_BF16, 2}, {PH_ROWS_BF16_SPLIT, PH_REAL, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model model = learning_model(1, cases[i].format), other = learning_model(2, cases[i].format);
        const char *path = saved(&model);
        assert_int_equal(dtype_in(path, "embedding.item"), cases[i].dtype);
        assert_int_equal(dtype_in(path, "deep.weight"), PH_REAL);
        assert_int_equal(ph_store_parameter_bytes(model.store), 12 * 4 + 36 * cases[i].bytes);
        assert_string_not_equal(digest_of(&model), digest_of(&other));
        assert_ok(ph_checkpoint_load(path, other.store, other.state));
        assert_string_equal(digest_of(&model), digest_of(&other));
        assert_memory_equal(table_of(&model)->memory, table_of(&other)->memory, table_of(&model)->bytes);
        destroy_model(&model);
        destroy_model(&other);
    }
}

static void a_split_model_has_the_file_and_the_digest_of_the_same_numbers_in_fp32(void **state)
{
    (void)state;
    struct model split = learning_model(1, PH_ROWS_BF16_SPLIT), whole = learning_model(1, PH_ROWS_FP32);
    assert_string_equal(digest_of(&split), digest_of(&whole));
    memset(table_of(&whole)->memory, 0, table_of(&whole)->bytes);
    assert_ok(ph_checkpoint_load(saved(&split), whole.store, whole.state));
    assert_string_equal(digest_of(&split), digest_of(&whole));
    destroy_model(&split);
    destroy_model(&whole);
}

/* Any of the formats that files have, into any that a store has. */
static void check_converted(enum ph_row_format from, enum ph_row_format to)
{
    struct model model = learning_model(1, from), wide = learning_model(2, PH_ROWS_FP32),
                 other = empty_model(3);
    ph__store_set_row_format(other.store, to);
    add_dense(&other, "deep.weight", 3, 4);
    add_table(&other);
    const char *path = saved(&model);
    assert_ok(ph_checkpoint_load(path, wide.store, wide.state));
    assert_ok(ph_checkpoint_load(path, other.store, other.state));
    const ph_real *numbers = table_of(&wide)->data;
    const struct ph_parameter *loaded = table_of(&other);
    unsigned char wanted[36 * sizeof(ph_real)];
    ph__rows_encode(loaded->row_format, 12, 3, numbers, wanted, NULL);
    assert_memory_equal(loaded->memory, wanted, 12 * ph__row_bytes(loaded->row_format, 3));
    if (from == PH_ROWS_FP16 || from == PH_ROWS_BF16)
        for (size_t i = 0; i < 36; i++)
            assert_true(numbers[i] == ph__row_number(from, 36, table_of(&model)->memory, i));
    destroy_model(&model);
    destroy_model(&wide);
    destroy_model(&other);
}

static void what_was_learnt_in_fewer_bytes_is_loaded_into_every_format(void **state)
{
    (void)state;
    static const enum ph_row_format learnt[] = {PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    for (size_t i = 0; i < 3; i++)
        for (int to = 0; to < PH_ROW_FORMAT_COUNT; to++)
            check_converted(learnt[i], (enum ph_row_format)to);
}

static void a_model_without_state_is_saved_and_loaded(void **state)
{
    (void)state;
    struct model model = empty_model(1), other = empty_model(2);
    add_dense(&model, "w", 2, 2);
    add_dense(&other, "w", 2, 2);
    const char *path = path_of("stateless.safetensors");
    assert_ok(ph_checkpoint_save(path, model.store, NULL, NULL));
    assert_ok(ph_checkpoint_load(path, other.store, NULL));
    assert_string_equal(digest_of(&model), digest_of(&other));
    destroy_model(&model);
    destroy_model(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_model_is_the_saved_one),
        cmocka_unit_test(the_file_holds_logical_slices_and_metadata),
        cmocka_unit_test(loading_makes_packed_copies_stale),
        cmocka_unit_test(digest_does_not_depend_on_the_order_of_creation),
        cmocka_unit_test(digest_sees_every_bit_name_and_shape),
        cmocka_unit_test(a_missing_tensor_is_refused),
        cmocka_unit_test(a_surplus_tensor_is_refused),
        cmocka_unit_test(a_misshapen_tensor_is_refused),
        cmocka_unit_test(a_flip_of_any_byte_is_found),
        cmocka_unit_test(a_cut_at_any_length_and_a_surplus_byte_are_found),
        cmocka_unit_test(a_file_without_a_seal_is_refused),
        cmocka_unit_test(a_missing_file_is_refused),
        cmocka_unit_test(a_failed_save_keeps_the_former_checkpoint),
        cmocka_unit_test(a_store_for_scoring_converts_the_rows_that_it_loads),
        cmocka_unit_test(a_store_for_scoring_is_not_saved),
        cmocka_unit_test(rows_of_16_bits_are_saved_as_they_are_and_split_ones_as_the_numbers_that_they_are),
        cmocka_unit_test(a_split_model_has_the_file_and_the_digest_of_the_same_numbers_in_fp32),
        cmocka_unit_test(what_was_learnt_in_fewer_bytes_is_loaded_into_every_format),
        cmocka_unit_test(a_model_without_state_is_saved_and_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
