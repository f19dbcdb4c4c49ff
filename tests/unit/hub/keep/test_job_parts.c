/* The files of a job's parts: their names, and what becomes of them. */
#include "hub/keep/job_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "hub/wire/part_list.h"
#include "support/test_support.h"

static void assert_path(const char *path, uint64_t iteration, const char *wanted)
{
    char *part;
    assert_ok(ph__job_part_path(path, iteration, &part));
    assert_string_equal(part, wanted);
    free(part);
}

static void a_part_is_named_after_its_service(void **state)
{
    (void)state;
    uint64_t iteration;
    const char *path = "folder/job.safetensors";
    assert_path(path, 0, "folder/job~at-0.safetensors");
    assert_path(path, PH_HUB_MAX_ITERATION, "folder/job~at-4611686018427387904.safetensors");
    assert_path(path, PH_NO_ITERATION, path);
    assert_true(ph__job_part_is_of(path, "job~at-12.safetensors", &iteration) && iteration == 12);
    assert_true(ph__job_part_is_of("job.safetensors", "job~at-0.safetensors", &iteration) && iteration == 0);
}

static void no_other_file_is_one(void **state)
{
    (void)state;
    static const char *const others[] = {"job.safetensors", "job~at-5.safetensors.tmp", "job~at-.safetensors",
        "job~at-05.safetensors", "job~at-+5.safetensors", "job~at--5.safetensors", "job~at-5x.safetensors",
        "job~at-9223372036854775807.safetensors", "job~at-99999999999999999999999.safetensors",
        "jobs~at-5.safetensors", "jo~at-5.safetensors", "job~0123456789abcdef.safetensors",
        "job~at-5~at-6.safetensors", "j", ""};
    uint64_t iteration;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(ph__job_part_is_of("folder/job.safetensors", others[i], &iteration));
}

/* A service whose name says that it were one. */
static void no_service_has_such_a_name(void **state)
{
    (void)state;
    static const char *const names[] = {"job~at-5", "~at-5"};
    char *path, name[PH_HUB_MAX_NAME + 1] = "";
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ph__job_checkpoint_path("folder", names[i], &path));
        assert_false(ph__job_part_is_open(path));
        free(path);
    }
    memset(name, '%', PH_HUB_MAX_NAME);
    assert_ok(ph__job_checkpoint_path("folder", name, &path));
    assert_false(ph__job_part_is_open(path));
    free(path);
}

/* ---- files ---- */

static const char *folder;

static void put(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(name, file);
    fclose(file);
}

static int make_folder(void **state)
{
    static const char *const names[] = {"job.safetensors", "job~at-5.safetensors", "job~at-7.safetensors",
        "job~at-9.safetensors", "jobs~at-5.safetensors", "job~at-5.safetensors.tmp"};
    static char path[4096];
    (void)state;
    snprintf(path, sizeof path, "%s", test_path("parts"));
    folder = path;
    assert_ok(ph__directory_create(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i]);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void assert_there(const char *name, const char *wanted)
{
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    if (wanted == NULL) {
        assert_false(ph__file_exists(path_of(name)));
        return;
    }
    assert_ok(ph__file_read(&arena, path_of(name), 100, &text, &size));
    assert_string_equal(text, wanted);
    ph__arena_fini(&arena);
}

static void assert_others_are_there(void)
{
    assert_there("jobs~at-5.safetensors", "jobs~at-5.safetensors");
    assert_there("job~at-5.safetensors.tmp", "job~at-5.safetensors.tmp");
}

static void keep(const char *path, uint64_t iteration, uint64_t settled_end)
{
    bool is_kept = false;
    assert_ok(ph__job_parts_keep(path, iteration, settled_end, &is_kept));
    assert_true(is_kept);
}

static void the_part_that_is_kept_replaces_the_former_one(void **state)
{
    char path[4096];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("job.safetensors"));
    keep(path, 7, 8);
    assert_there("job.safetensors", "job~at-7.safetensors");
    assert_there("job~at-5.safetensors", NULL);
    assert_there("job~at-7.safetensors", NULL);
    assert_there("job~at-9.safetensors", "job~at-9.safetensors");
    keep(path, 7, 8); /* again: it is so already */
    assert_there("job.safetensors", "job~at-7.safetensors");
    keep(path, PH_NO_ITERATION, UINT64_MAX);
    assert_there("job.safetensors", "job~at-7.safetensors");
    assert_there("job~at-9.safetensors", NULL);
    assert_others_are_there();
}

static void what_is_not_settled_stays(void **state)
{
    char path[4096];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("job.safetensors"));
    keep(path, PH_NO_ITERATION, 0);
    assert_there("job~at-5.safetensors", "job~at-5.safetensors");
    keep(path, PH_NO_ITERATION, 7);
    assert_there("job~at-5.safetensors", NULL);
    assert_there("job~at-7.safetensors", "job~at-7.safetensors");
    assert_there("job.safetensors", "job.safetensors");
    assert_others_are_there();
}

/* A folder in the place of a part cannot be removed. */
static void what_was_done_before_an_error_is_told(void **state)
{
    char path[4096];
    bool is_kept;
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("job.safetensors"));
    assert_ok(ph__directory_create(path_of("job~at-3.safetensors")));
    assert_fails(ph__job_parts_keep(path, 7, 8, &is_kept), PH_ERROR_DISK, "cannot remove");
    assert_true(is_kept);
    assert_there("job.safetensors", "job~at-7.safetensors");
    assert_fails(ph__job_parts_keep(path, 3, 4, &is_kept), PH_ERROR_DISK, "cannot rename");
    assert_false(is_kept);
    assert_int_equal(rmdir(path_of("job~at-3.safetensors")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_named_after_its_service),
        cmocka_unit_test(no_other_file_is_one),
        cmocka_unit_test(no_service_has_such_a_name),
        cmocka_unit_test_setup(the_part_that_is_kept_replaces_the_former_one, make_folder),
        cmocka_unit_test_setup(what_is_not_settled_stays, make_folder),
        cmocka_unit_test_setup(what_was_done_before_an_error_is_told, make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
