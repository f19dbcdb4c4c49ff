/* Checkpoints that are folders, under several names. */
#include "store/checkpoint_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "store/checkpoint_folder.h"
#include "support/test_support.h"

static struct ph__arena arena;

static int tear_down(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static const char *path_of(const char *folder, const char *name)
{
    return ph__path_join(&arena, folder, name);
}

/* A checkpoint of one tensor that begins with `number`. */
static void write_folder(const char *path, ph_real number)
{
    ph_real numbers[3] = {number, 2, 3};
    const struct ph_tensor tensor = {
        .name = "deep.bias", .dtype = PH_REAL, .shape = {1, {3}}, .data = numbers};
    char *description;
    assert_ok(ph__folder_begin(path));
    assert_ok(ph__folder_write_part(path, 0, 1, 1, &tensor, &description));
    assert_ok(ph__folder_commit(path, 1, (const char *const[]){description}, NULL));
    free(description);
}

static double first_number(const char *path)
{
    ph_real numbers[3];
    const struct ph_tensor tensor = {
        .name = "deep.bias", .dtype = PH_REAL, .shape = {1, {3}}, .data = numbers};
    struct ph__folder *folder;
    assert_ok(ph__folder_open(path, &folder));
    assert_ok(ph__folder_load(folder, 1, &tensor));
    ph__folder_close(folder);
    return (double)numbers[0];
}

static void another_name_outlives_what_comes_in_the_place_of_the_first(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder(), *model = path_of(folder, "model"),
               *best = path_of(folder, "best");
    write_folder(model, 1);
    assert_ok(ph__checkpoint_link(model, best));
    write_folder(model, 7);
    assert_true(first_number(best) == 1 && first_number(model) == 7);
    assert_ok(ph__checkpoint_link(model, best));
    assert_true(first_number(best) == 7);
}

/* Who is killed while it saves must not leave the best model of an earlier checkpoint without its index. */
static void what_is_there_already_is_not_taken_away_for_a_moment(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder(), *model = path_of(folder, "model"),
               *best = path_of(folder, "best");
    write_folder(model, 1);
    assert_ok(ph__checkpoint_link(model, best));
    const char *witness =
        path_of(best, "part-00009-of-00009.safetensors"); /* goes whenever it is begun anew */
    test_write_text(witness, "x");
    assert_ok(ph__checkpoint_link(model, best));
    assert_true(ph__file_exists(witness));
    assert_int_equal(remove(path_of(best, "model.safetensors.index.json")), 0);
    assert_true(ph__checkpoint_is_half_written(best) && !ph__checkpoint_is_half_written(model));
    assert_ok(ph__checkpoint_link(model, best));
    assert_false(ph__file_exists(witness));
    assert_true(first_number(best) == 1);
}

/* What is no file cannot be linked. */
static void what_is_there_stays_where_it_cannot_be_replaced(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder(), *model = path_of(folder, "model"),
               *best = path_of(folder, "best");
    write_folder(model, 1);
    assert_ok(ph__checkpoint_link(model, best));
    write_folder(model, 7);
    assert_int_equal(mkdir(path_of(model, "part-00002-of-00002.safetensors"), 0700), 0);
    assert_int_equal(ph__checkpoint_link(model, best), PH_ERROR_DISK);
    assert_true(first_number(best) == 1);
}

static void a_file_and_a_folder_take_each_others_place(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder(), *model = path_of(folder, "model"),
               *best = path_of(folder, "best"), *file = path_of(folder, "file");
    write_folder(model, 1);
    test_write_text(file, "x");
    assert_ok(ph__checkpoint_link(file, best));
    assert_ok(ph__checkpoint_link(model, best));
    assert_true(first_number(best) == 1);
    assert_ok(ph__checkpoint_link(file, best));
    assert_true(ph__file_exists(best) && !ph__directory_exists(best));
    assert_false(ph__file_exists(path_of(folder, "best.tmp")));
}

/* Of a process that was killed while it wrote a part, or the index. */
static void what_is_half_written_is_removed_with_its_folder(void **state)
{
    (void)state;
    static const char *const names[] = {
        "part-00001-of-00002.safetensors.tmp", "model.safetensors.index.json.tmp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = path_of(test_fresh_folder(), "checkpoint");
        assert_ok(ph__folder_begin(path));
        test_write_text(path_of(path, names[i]), "{");
        assert_true(ph__checkpoint_is_half_written(path));
        assert_ok(ph__checkpoint_remove(path));
        assert_false(ph__file_exists(path));
    }
}

static void a_file_and_nothing_at_all_are_not_half_written(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder(), *file = path_of(folder, "file");
    test_write_text(file, "x");
    assert_false(ph__checkpoint_is_half_written(file));
    assert_false(ph__checkpoint_is_half_written(path_of(folder, "nothing")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_name_outlives_what_comes_in_the_place_of_the_first),
        cmocka_unit_test(what_is_there_already_is_not_taken_away_for_a_moment),
        cmocka_unit_test(what_is_there_stays_where_it_cannot_be_replaced),
        cmocka_unit_test(a_file_and_a_folder_take_each_others_place),
        cmocka_unit_test(what_is_half_written_is_removed_with_its_folder),
        cmocka_unit_test(a_file_and_nothing_at_all_are_not_half_written),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
