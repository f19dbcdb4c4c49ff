/* The plan of a preparation: what is kept of it is that of the one that is resumed. */
#include "data/prepared/prepare_plan.h"

#include <unistd.h>

#include "base/format/json.h"
#include "base/format/seal.h"
#include "unit/data/array_fixture.h"
#include "unit/data/prepare_fixture.h"

static const struct ph_prepare_settings cut = {.part_bytes = PREPARE_PART_BYTES, .block_rows = 1024};

static void a_plan_that_was_kept_is_the_same(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph__prepare_plan plan;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 1000, 1));
    assert_ok(ph__prepare_plan_init(&plan, &fixture.settings, cut));
    assert_ok(ph__prepare_plan_save(&plan, test_path("plan.json")));
    assert_ok(ph__prepare_plan_compare(&plan, test_path("plan.json")));
    ph__prepare_plan_fini(&plan);
}

/* As they were written before the files' checksums. */
static void a_plan_of_another_version_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph__prepare_plan plan;
    struct ph__json *old = ph__sealed_json_object();
    ph__json_set_text(old, "format", "phloem-prepare-plan");
    ph__json_set_integer(old, "part_bytes", PREPARE_PART_BYTES);
    ph__json_set_integer(old, "block_rows", 1024);
    ph__json_set(old, "files", ph__json_array());
    assert_ok(ph__sealed_json_write(old, test_path("old.json")));
    ph__json_destroy(old);
    prepare_fixture_init(&fixture, prepare_file("train.csv", 1000, 1));
    assert_ok(ph__prepare_plan_init(&plan, &fixture.settings, cut));
    assert_fails(ph__prepare_plan_compare(&plan, test_path("old.json")), PH_ERROR_DATA,
        "old.json: version 1 of the plan is not supported, only version 2; prepare again");
    ph__prepare_plan_fini(&plan);
}

/* ---- files that have changed since a preparation was begun ---- */

/* The plan of one path of training data. */
static ph_status init_plan(struct ph__prepare_plan *plan, const char *path, bool is_arrays)
{
    struct fixture fixture;
    prepare_fixture_init(&fixture, path);
    if (is_arrays)
        fixture.settings.format = PH_DATA_NPY;
    return ph__prepare_plan_init(plan, &fixture.settings, cut);
}

/* Keeps what there is of a path's files. Returns where. */
static const char *keep(const char *path, bool is_arrays, size_t count)
{
    struct ph__prepare_plan plan;
    const char *kept = test_path("kept.json");
    assert_ok(init_plan(&plan, path, is_arrays));
    assert_int_equal(plan.num_files, 1);
    assert_int_equal(plan.files[0].inputs.count, count);
    assert_ok(ph__prepare_plan_save(&plan, kept));
    ph__prepare_plan_fini(&plan);
    return kept;
}

static ph_status compare(const char *path, bool is_arrays, const char *kept)
{
    struct ph__prepare_plan plan;
    ph_status status = init_plan(&plan, path, is_arrays);
    if (status == PH_OK)
        status = ph__prepare_plan_compare(&plan, kept);
    ph__prepare_plan_fini(&plan);
    return status;
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
        const char *kept = keep(path, false, 1);
        assert_ok(compare(path, false, kept));
        for (size_t k = 0; k < 4; k++) {
            letters("small", size, places[k]);
            assert_fails(compare(path, false, kept), PH_ERROR_DATA, "small: the contents have changed since");
        }
        letters("small", size + 1, SIZE_MAX);
        assert_fails(compare(path, false, kept), PH_ERROR_DATA, "small: had ");
    }
}

static void the_ends_of_a_large_file_are_noticed(void **state)
{
    (void)state;
    const size_t size = 1000000, places[] = {0, 65535, 1000000 - 65536, 1000000 - 1};
    const char *path = letters("large", size, SIZE_MAX);
    const char *kept = keep(path, false, 1);
    for (size_t k = 0; k < 4; k++) {
        letters("large", size, places[k]);
        assert_fails(compare(path, false, kept), PH_ERROR_DATA, "large: the contents have changed since");
    }
    letters("large", size, SIZE_MAX); /* a copy has another time, which does not count */
    assert_ok(compare(path, false, kept));
}

static void standard_input_is_no_file(void **state)
{
    (void)state;
    keep("-", false, 0);
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
        const char *kept = keep(test_path(paths[p]), true, 3);
        for (size_t i = 0; i < 3; i++) {
            npy_file(files[i], "<f4", "(4,)", others, sizeof others);
            assert_fails(compare(test_path(paths[p]), true, kept), PH_ERROR_DATA, files[i]);
            npy_file(files[i], "<f4", "(4,)", values, sizeof values);
            assert_ok(compare(test_path(paths[p]), true, kept));
        }
        assert_int_equal(unlink(test_path("set_sparse.npy")), 0);
        assert_fails(compare(test_path(paths[p]), true, kept), PH_ERROR_DATA,
            "set_sparse.npy: the preparation began with this file, which is now missing");
        npy_file("set_sparse_multi_hot.npz", "<f4", "(4,)", values, sizeof values);
        assert_fails(compare(test_path(paths[p]), true, kept), PH_ERROR_DATA,
            "set_sparse_multi_hot.npz: not among the files with which the preparation began");
        assert_int_equal(unlink(test_path("set_sparse_multi_hot.npz")), 0);
        npy_file("set_sparse.npy", "<f4", "(4,)", values, sizeof values);
    }
}

static void an_archive_is_one_file(void **state)
{
    (void)state;
    const float values[4] = {1, 2, 3, 4}, others[4] = {1, 2, 3, 5};
    const char *path = npy_file("one.npz", "<f4", "(4,)", values, sizeof values);
    const char *kept = keep(path, true, 1);
    assert_ok(compare(path, true, kept));
    npy_file("one.npz", "<f4", "(4,)", others, sizeof others);
    assert_fails(compare(path, true, kept), PH_ERROR_DATA, "one.npz: the contents have changed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_was_kept_is_the_same),
        cmocka_unit_test(a_plan_of_another_version_is_refused),
        cmocka_unit_test(every_byte_of_a_small_file_is_noticed),
        cmocka_unit_test(the_ends_of_a_large_file_are_noticed),
        cmocka_unit_test(standard_input_is_no_file),
        cmocka_unit_test(each_array_of_a_set_is_compared),
        cmocka_unit_test(an_archive_is_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
