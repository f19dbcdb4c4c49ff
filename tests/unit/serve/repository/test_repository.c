/* The repository over folders that come, change and go, without control by clients. */
#include "unit/serve/repository/repository_case.h"

#include "store/store.h"

/* ---- which versions serve ---- */

static void the_latest_version_serves_by_default(void **state)
{
    (void)state;
    put_version(run, folder, "a", 2);
    put_version(run, folder, "a", 10);
    put_version(run, folder, "b", 1);
    make_version_folder(folder, "empty", 1);
    rmdir(make_version_folder(folder, "empty", 1));
    start(PH_CONTROL_NONE, "");
    assert_true(serves("a/10;b/1;"));
    assert_true(lists("a/2  ;"));
    assert_int_equal(find("a", ""), PH_OIP_OK);
    assert_int_equal(find("a", "10"), PH_OIP_OK);
    assert_int_equal(find("a", "2"), PH_OIP_UNAVAILABLE);
    assert_int_equal(find("a", "3"), PH_OIP_NOT_FOUND);
    assert_int_equal(find("a", "10x"), PH_OIP_NOT_FOUND);
    assert_int_equal(find("a", "+10"), PH_OIP_NOT_FOUND);
    assert_int_equal(find("a", "latest"), PH_OIP_NOT_FOUND);
    assert_int_equal(find("a", "100000000000000000000000000"), PH_OIP_NOT_FOUND);
    assert_int_equal(find("c", ""), PH_OIP_NOT_FOUND);
    assert_int_equal(find("empty", ""), PH_OIP_NOT_FOUND);
}

static void each_model_has_its_own_policy(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 4; version++) {
        put_version(run, folder, "all", version);
        put_version(run, folder, "latest", version);
        put_version(run, folder, "specific", version);
    }
    write_settings(folder, "all", "versions: all\n");
    write_settings(folder, "latest", "num_versions: 2\n");
    write_settings(folder, "specific", "versions: specific\nversion_list: 1, 3,9\n");
    start(PH_CONTROL_NONE, "");
    assert_true(serves("all/1;all/2;all/3;all/4;latest/3;latest/4;specific/1;specific/3;"));
    struct ph__served *served = hold("specific", "");
    assert_int_equal(served->version, 3);
    ph__repository_release(repository, served);
    struct ph__arena arena = {0};
    struct ph__list versions = {NULL, 0};
    assert_int_equal(
        ph__repository_versions(repository, ph__bytes_of("specific"), &arena, &versions), PH_OIP_OK);
    assert_int_equal(versions.count, 2);
    assert_true(ph__bytes_are(((struct ph__bytes *)versions.items)[1], "3"));
    assert_int_equal(
        ph__repository_versions(repository, ph__bytes_of("none"), &arena, &versions), PH_OIP_NOT_FOUND);
    ph__arena_fini(&arena);
}

static void a_run_folder_is_a_repository_of_its_own(void **state)
{
    (void)state;
    assert_ok(create(run, PH_CONTROL_NONE, ""));
    await(ph__repository_is_settled(repository));
    assert_true(serves("deepfm/1;"));
    assert_int_equal(find("deepfm", "1"), PH_OIP_OK);
}

static void there_must_be_a_folder(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/none", folder);
    assert_fails(create(path, PH_CONTROL_NONE, ""), PH_ERROR_DATA, "none");
    start(PH_CONTROL_NONE, "");
    assert_true(serves(""));
}

static void settings_that_are_wrong_are_the_reason(void **state)
{
    (void)state;
    put_version(run, folder, "key", 1);
    put_version(run, folder, "output", 1);
    put_version(run, folder, "right", 1);
    write_settings(folder, "key", "max_batches: 3\n");
    write_settings(folder, "output", "outputs: nonsense\n");
    start(PH_CONTROL_NONE, "");
    assert_true(serves("right/1;"));
    assert_true(lists("key/1 UNAVAILABLE"));
    assert_true(lists("max_batches"));
    assert_true(lists("output/1 UNAVAILABLE outputs: model 'output' has no output 'nonsense';"));
}

/* ---- polls ---- */

static void a_poll_replaces_a_version_when_the_new_one_serves(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_POLL, "");
    assert_true(serves("a/1;"));
    struct ph__served *held = hold("a", "");
    put_version(run, folder, "a", 2);
    const uint64_t until = ph__clock_deadline(DEADLINE_MS);
    while (!serves("a/2;") && ph__clock_ms_until(until) > 0) {
        assert_int_equal(find("a", ""), PH_OIP_OK); /* at any time */
        turn();
    }
    assert_true(serves("a/2;"));
    assert_true(lists("a/1 UNLOADING another version is served;"));
    pass_polls();
    assert_int_equal(held->version, 1); /* the version that it began with */
    assert_int_equal(find("a", "1"), PH_OIP_UNAVAILABLE);
    ph__repository_release(repository, held);
    assert_true(lists("a/1 UNAVAILABLE another version is served;"));
    put_version(run, folder, "b", 1);
    await(serves("a/2;b/1;"));
    remove_version(folder, "b", 1);
    await(serves("a/2;"));
    remove_version(folder, "a", 2);
    await(serves("a/1;"));
}

static void a_half_copied_folder_is_never_loaded(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_POLL, "");
    char copy[600];
    snprintf(copy, sizeof copy, "%s", make_version_folder(folder, "a", 2));
    await(lists("a/2 UNAVAILABLE") && lists("/a/2 has no encoder.json;"));
    copy_file(run, copy, "encoder.json");
    await(lists("/a/2 has no model.safetensors;"));
    copy_bytes(run, copy, "model.safetensors", 1000);
    copy_file(run, copy, "config.yaml");
    await(lists("a/2 UNAVAILABLE") && lists("model.safetensors") && !lists("has no model.safetensors"));
    pass_polls();
    assert_true(serves("a/1;"));
    copy_file(run, copy, "model.safetensors");
    await(serves("a/2;"));
    assert_true(lists("a/2 READY ;"));
}

static void a_half_copied_version_at_the_start_leaves_the_one_before_it(void **state)
{
    (void)state;
    char copy[600];
    put_version(run, folder, "a", 1);
    snprintf(copy, sizeof copy, "%s", make_version_folder(folder, "a", 2));
    copy_file(run, copy, "encoder.json");
    start(PH_CONTROL_POLL, "");
    await(serves("a/1;") && lists("/a/2 has no model.safetensors;"));
    copy_file(run, copy, "config.yaml");
    copy_file(run, copy, "model.safetensors");
    await(serves("a/2;"));
}

static void a_damaged_file_leaves_the_old_one_serving(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_POLL, "");
    struct ph__served *former = hold("a", "1");
    ph__repository_release(repository, former);
    replace_file(run, folder, "a", 1, "model.safetensors", 3000);
    await(lists("a/1 READY ") && !lists("a/1 READY ;"));
    struct ph__served *served = hold("a", "1");
    assert_ptr_equal(served, former);
    replace_file(run, folder, "a", 1, "model.safetensors", SIZE_MAX);
    await(lists("a/1 READY ;"));
    struct ph__served *newer = hold("a", "1");
    assert_ptr_not_equal(newer, served);
    ph__repository_release(repository, newer);
    ph__repository_release(repository, served);
}

static void a_damaged_version_at_the_start_leaves_the_one_before_it(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 3; version++)
        put_version(run, folder, "a", version);
    replace_file(run, folder, "a", 3, "model.safetensors", 3000);
    replace_file(run, folder, "a", 2, "encoder.json", 300);
    start(PH_CONTROL_POLL, "");
    assert_true(serves("a/1;"));
    assert_true(lists("a/2 UNAVAILABLE ") && !lists("a/2 UNAVAILABLE ;"));
    assert_true(lists("a/3 UNAVAILABLE ") && !lists("a/3 UNAVAILABLE ;"));
    pass_polls();
    assert_true(serves("a/1;"));
    replace_file(run, folder, "a", 2, "encoder.json", SIZE_MAX);
    await(serves("a/2;"));
    replace_file(run, folder, "a", 3, "model.safetensors", SIZE_MAX);
    await(serves("a/3;"));
}

static void settings_that_become_wrong_change_nothing(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    put_version(run, folder, "a", 2);
    write_settings(folder, "a", "versions: all\n");
    start(PH_CONTROL_POLL, "");
    assert_true(serves("a/1;a/2;"));
    write_settings(folder, "a", "versions: alll\n");
    await(lists("a/1 READY ") && !lists("a/1 READY ;"));
    put_version(run, folder, "a", 3);
    pass_polls();
    assert_true(strstr(list(true), "a/1 READY ") != NULL && strstr(list(true), "a/2 READY ") != NULL);
    assert_null(strstr(list(true), "a/3"));
    write_settings(folder, "a", "versions: all\n");
    await(serves("a/1;a/2;a/3;") && lists("a/1 READY ;"));
}

static void new_settings_are_a_change(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    write_settings(folder, "a", "outputs: nonsense\n");
    start(PH_CONTROL_POLL, "");
    assert_true(serves(""));
    write_settings(folder, "a", "outputs: \"\"\nmax_batch: 5\n");
    await(serves("a/1;"));
    struct ph__served *served = hold("a", ""), *newer;
    assert_int_equal(served->settings.max_batch, 5);
    write_settings(folder, "a", "max_batch: 6\n");
    for (newer = hold("a", ""); newer == served; newer = hold("a", "")) {
        ph__repository_release(repository, newer);
        turn();
    }
    assert_int_equal(newer->settings.max_batch, 6);
    const struct ph_store *stores[] = {served->session->model.store, newer->session->model.store};
    for (size_t i = 0; i < ph__store_num_parameters(stores[0]); i++) { /* the tables were not read again */
        const struct ph_parameter *table = ph__store_parameter(stores[0], i);
        const struct ph_parameter *same = ph__store_parameter(stores[1], i);
        assert_true(!table->is_table || table->memory == same->memory);
    }
    ph__repository_release(repository, newer);
    ph__repository_release(repository, served);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_latest_version_serves_by_default),
        TEST(each_model_has_its_own_policy),
        TEST(a_run_folder_is_a_repository_of_its_own),
        TEST(there_must_be_a_folder),
        TEST(settings_that_are_wrong_are_the_reason),
        TEST(a_poll_replaces_a_version_when_the_new_one_serves),
        TEST(a_half_copied_folder_is_never_loaded),
        TEST(a_half_copied_version_at_the_start_leaves_the_one_before_it),
        TEST(a_damaged_file_leaves_the_old_one_serving),
        TEST(a_damaged_version_at_the_start_leaves_the_one_before_it),
        TEST(settings_that_become_wrong_change_nothing),
        TEST(new_settings_are_a_change),
    };
    return cmocka_run_group_tests(tests, make_run, drop_run);
}
