#include "train/folder/checkpoints.h"

#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_names.h"
#include "store/safetensors.h"
#include "support/test_support.h"

static struct ph__arena arena;

static int tear_down(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

/* An empty training folder of this name. */
static const char *make_folder(const char *name)
{
    const char *folder = ph__path_join(&arena, test_folder(), name);
    assert_ok(ph__checkpoints_create(folder));
    return folder;
}

static void put(const char *folder, const char *name)
{
    test_write_text(ph__path_join(&arena, folder, name), "x");
}

static bool is_there(const char *folder, const char *name)
{
    return ph__file_exists(ph__path_join(&arena, folder, name));
}

/* A checkpoint with all that pruning looks at. */
static void put_checkpoint(const char *folder, uint64_t step, uint64_t best_step)
{
    char path[PH_CHECKPOINT_PATH_BYTES], carried[64];
    snprintf(carried, sizeof carried, "{\"best_step\":%d}", (int)best_step);
    const char *metadata[] = {"carried", carried, NULL};
    assert_ok(ph__safetensors_write(ph__checkpoint_path(folder, step, path), 0, NULL, metadata));
    if (best_step > 0)
        test_write_text(ph__checkpoint_best_path(folder, best_step, path), "best");
}

static void expect_steps(const char *folder, size_t count, const uint64_t *steps)
{
    struct ph__checkpoint_list list;
    assert_ok(ph__checkpoints_list(folder, &list));
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(list.steps[i], steps[i]);
    ph__checkpoint_list_fini(&list);
}

static void paths_are_those_of_the_contract(void **state)
{
    (void)state;
    char path[PH_CHECKPOINT_PATH_BYTES];
    assert_string_equal(
        ph__checkpoint_path("run", 1200, path), "run/checkpoints/step-000000001200.safetensors");
    assert_string_equal(ph__checkpoint_best_path("run", 1234567890123, path),
        "run/checkpoints/best-1234567890123.safetensors");
}

static void steps_are_listed_newest_first_and_all_else_is_left_out(void **state)
{
    (void)state;
    static const char *const names[] = {"step-000000000009.safetensors", "step-1000000000000.safetensors",
        "step-000000000100.safetensors", "step-000000000007.safetensors.tmp", "step-.safetensors",
        "step-12.txt", "step--3.safetensors", "step-99999999999999999999999.safetensors",
        "best-000000000005.safetensors", "notes"};
    const char *folder = make_folder("listed");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(folder, ph__arena_printf(&arena, "checkpoints/%s", names[i]));
    expect_steps(folder, 3, (uint64_t[]){1000000000000, 100, 9});
    expect_steps("/no/such/folder", 0, NULL);
}

/* What a process leaves that is killed while it writes a folder: the first one, too, so that there is no
 * checkpoint yet. */
static void folders_without_an_index_are_left_out(void **state)
{
    (void)state;
    const char *folder = make_folder("half");
    char path[PH_CHECKPOINT_PATH_BYTES];
    assert_ok(ph__folder_begin(ph__checkpoint_path(folder, 7, path)));
    put(path, "part-00001-of-00002.safetensors");
    expect_steps(folder, 0, NULL);
    put(path, "model.safetensors.index.json");
    expect_steps(folder, 1, (uint64_t[]){7});
}

static void pruning_keeps_the_newest_and_drops_what_was_abandoned(void **state)
{
    (void)state;
    const char *folder = make_folder("pruned");
    for (uint64_t step = 10; step <= 60; step += 10)
        put_checkpoint(folder, step, 0);
    assert_ok(ph__checkpoints_prune(folder, 40, 0, 2)); /* 50 and 60 are of a life that is over */
    expect_steps(folder, 2, (uint64_t[]){40, 30});
    assert_ok(ph__checkpoints_prune(folder, 40, 0, 1));
    expect_steps(folder, 1, (uint64_t[]){40});
    assert_ok(ph__checkpoints_prune(folder, 40, 0, 0));
    expect_steps(folder, 1, (uint64_t[]){40});
}

static void best_models_stay_as_long_as_a_kept_checkpoint_names_them(void **state)
{
    (void)state;
    char path[PH_CHECKPOINT_PATH_BYTES];
    const char *folder = make_folder("bests");
    put_checkpoint(folder, 10, 5);
    put_checkpoint(folder, 20, 5);
    put_checkpoint(folder, 30, 25);
    assert_ok(ph__checkpoints_prune(folder, 30, 25, 2));
    assert_true(ph__file_exists(ph__checkpoint_best_path(folder, 5, path)));
    assert_ok(ph__checkpoints_prune(folder, 30, 25, 1));
    assert_false(ph__file_exists(ph__checkpoint_best_path(folder, 5, path)));
    assert_true(ph__file_exists(ph__checkpoint_best_path(folder, 25, path)));
    /* One that cannot be read may need any of them. */
    put(folder, "checkpoints/step-000000000028.safetensors");
    put(folder, "checkpoints/best-000000000027.safetensors");
    assert_ok(ph__checkpoints_prune(folder, 30, 25, 2));
    assert_true(ph__file_exists(ph__checkpoint_best_path(folder, 27, path)));
}

static void cleaning_removes_half_written_files_alone(void **state)
{
    (void)state;
    const char *folder = make_folder("cleaned");
    static const char *const gone[] = {"config.yaml.tmp", "encoder.json.tmp", "model.safetensors.tmp",
        "summary.json.tmp", "checkpoints/step-000000000007.safetensors.tmp",
        "checkpoints/best-000000000007.safetensors.tmp"};
    static const char *const kept[] = {
        "mine.tmp", "model.safetensors", "checkpoints/.tmp", "checkpoints/step-000000000006.safetensors"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        put(folder, gone[i]);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        put(folder, kept[i]);
    assert_ok(ph__checkpoints_clean(folder));
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        assert_false(is_there(folder, gone[i]));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(is_there(folder, kept[i]));
    assert_ok(ph__checkpoints_clean("/no/such/folder"));
}

static void a_seal_is_read_and_may_be_checked(void **state)
{
    (void)state;
    char path[PH_CHECKPOINT_PATH_BYTES], seal[65];
    const char *folder = make_folder("sealed");
    put_checkpoint(folder, 1, 0);
    ph__checkpoint_path(folder, 1, path);
    assert_ok(ph__checkpoint_read_seal(path, seal));
    assert_ok(ph__checkpoint_check_seals(path, 0, 1, &(struct ph__meanwhile){0}));
    assert_int_equal(strlen(seal), 64);
    FILE *file = fopen(path, "r+b"); /* "best_step":0 becomes another number */
    assert_non_null(file);
    char bytes[512];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    char *digit = memmem(bytes, size, "best_step", 9);
    assert_non_null(digit);
    assert_int_equal(fseek(file, digit - bytes + 12, SEEK_SET), 0);
    fputc('7', file);
    fclose(file);
    assert_ok(ph__checkpoint_read_seal(path, seal));
    assert_fails(
        ph__checkpoint_check_seals(path, 0, 1, &(struct ph__meanwhile){0}), PH_ERROR_CHECKPOINT, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_those_of_the_contract),
        cmocka_unit_test(steps_are_listed_newest_first_and_all_else_is_left_out),
        cmocka_unit_test(folders_without_an_index_are_left_out),
        cmocka_unit_test(pruning_keeps_the_newest_and_drops_what_was_abandoned),
        cmocka_unit_test(best_models_stay_as_long_as_a_kept_checkpoint_names_them),
        cmocka_unit_test(cleaning_removes_half_written_files_alone),
        cmocka_unit_test(a_seal_is_read_and_may_be_checked),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
