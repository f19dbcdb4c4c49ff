/* What is noticed of files that have changed since a preparation was begun. */
#include "data/prepared/prepare_input.h"

#include <unistd.h>

#include "unit/data/array_fixture.h"
#include "unit/data/prepare_fixture.h"

static struct ph_arena arena;

/* What is kept of a path's files, as plan.json holds it. */
static struct ph_json *keep(const char *path, bool is_arrays, size_t count)
{
    struct ph__prepare_inputs inputs;
    assert_ok(ph__prepare_inputs_look(&arena, path, is_arrays, &inputs));
    assert_int_equal(inputs.count, count);
    return ph__prepare_inputs_json(&inputs);
}

static ph_status compare(const char *path, bool is_arrays, const struct ph_json *kept)
{
    struct ph__prepare_inputs inputs;
    PH_TRY(ph__prepare_inputs_look(&arena, path, is_arrays, &inputs));
    return ph__prepare_inputs_compare(&inputs, kept);
}

/* A file of 'a' with another letter at one byte; SIZE_MAX: nowhere. */
static const char *letters(const char *name, size_t size, size_t other)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'a', size);
    text[size] = '\0';
    if (other < size)
        text[other] = 'b';
    const char *path = fixture_file(name, text);
    free(text);
    return path;
}

static void every_byte_of_a_small_file_is_noticed(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 65536, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t size = sizes[i];
        const size_t places[] = {0, size / 3, size / 2, size - 1};
        const char *path = letters("small", size, SIZE_MAX);
        struct ph_json *kept = keep(path, false, 1);
        assert_ok(compare(path, false, kept));
        for (size_t k = 0; k < 4; k++) {
            letters("small", size, places[k]);
            assert_fails(compare(path, false, kept), PH_ERROR_DATA, "small: its bytes are others than when");
        }
        letters("small", size + 1, SIZE_MAX);
        assert_fails(compare(path, false, kept), PH_ERROR_DATA, "small: had ");
        ph__json_destroy(kept);
    }
}

static void the_ends_of_a_large_file_are_noticed(void **state)
{
    (void)state;
    const size_t size = 1000000, places[] = {0, 65535, 1000000 - 65536, 1000000 - 1};
    const char *path = letters("large", size, SIZE_MAX);
    struct ph_json *kept = keep(path, false, 1);
    for (size_t k = 0; k < 4; k++) {
        letters("large", size, places[k]);
        assert_fails(compare(path, false, kept), PH_ERROR_DATA, "large: its bytes are others than when");
    }
    letters("large", size, SIZE_MAX); /* a copy has another time, which does not count */
    assert_ok(compare(path, false, kept));
    ph__json_destroy(kept);
}

static void standard_input_is_no_file(void **state)
{
    (void)state;
    ph__json_destroy(keep("-", false, 0));
}

static void each_array_of_a_set_is_compared(void **state)
{
    (void)state;
    static const char *const files[] = {"set_labels.npy", "set_dense.npy", "set_sparse.npy"};
    static const char *const paths[] = {"set", "set_labels.npy"};
    const float values[4] = {1, 2, 3, 4}, others[4] = {1, 2, 3, 5};
    for (size_t i = 0; i < 3; i++)
        npy_file(files[i], "<f4", "(4,)", values, sizeof values);
    for (size_t p = 0; p < 2; p++) {
        struct ph_json *kept = keep(test_path(paths[p]), true, 3);
        for (size_t i = 0; i < 3; i++) {
            npy_file(files[i], "<f4", "(4,)", others, sizeof others);
            assert_fails(compare(test_path(paths[p]), true, kept), PH_ERROR_DATA, files[i]);
            npy_file(files[i], "<f4", "(4,)", values, sizeof values);
            assert_ok(compare(test_path(paths[p]), true, kept));
        }
        assert_int_equal(unlink(test_path("set_sparse.npy")), 0);
        assert_fails(compare(test_path(paths[p]), true, kept), PH_ERROR_DATA,
            "set_sparse.npy: was there when the preparation was begun");
        npy_file("set_sparse_multi_hot.npz", "<f4", "(4,)", values, sizeof values);
        assert_fails(compare(test_path(paths[p]), true, kept), PH_ERROR_DATA,
            "set_sparse_multi_hot.npz: was not there when the preparation was begun");
        assert_int_equal(unlink(test_path("set_sparse_multi_hot.npz")), 0);
        npy_file("set_sparse.npy", "<f4", "(4,)", values, sizeof values);
        ph__json_destroy(kept);
    }
}

static void an_archive_is_one_file(void **state)
{
    (void)state;
    const float values[4] = {1, 2, 3, 4}, others[4] = {1, 2, 3, 5};
    const char *path = npy_file("one.npz", "<f4", "(4,)", values, sizeof values);
    struct ph_json *kept = keep(path, true, 1);
    assert_ok(compare(path, true, kept));
    npy_file("one.npz", "<f4", "(4,)", others, sizeof others);
    assert_fails(compare(path, true, kept), PH_ERROR_DATA, "one.npz: its bytes are others");
    ph__json_destroy(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_of_a_small_file_is_noticed),
        cmocka_unit_test(the_ends_of_a_large_file_are_noticed),
        cmocka_unit_test(standard_input_is_no_file),
        cmocka_unit_test(each_array_of_a_set_is_compared),
        cmocka_unit_test(an_archive_is_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
