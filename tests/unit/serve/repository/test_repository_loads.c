/* A repository whose models clients load and unload. */
#include "unit/serve/repository/repository_case.h"

/* ---- loads ---- */

/* A load that a test waits for. */
struct load {
    size_t num_calls;
    enum ph__oip_code code;
    char text[400];
};

static void loaded(void *context, enum ph__oip_code code)
{
    struct load *load = context;
    load->num_calls++;
    load->code = code;
    snprintf(load->text, sizeof load->text, "%s", code != PH_OIP_OK ? ph_error_text() : "");
}

static void begin_load_with(const char *model, const char *config, struct load *load)
{
    *load = (struct load){.num_calls = 0};
    assert_int_equal(
        ph__repository_load(repository, ph__bytes_of(model), ph__bytes_of(config), loaded, load), PH_OIP_OK);
    assert_int_equal(load->num_calls, 0);
}

static void begin_load(const char *model, struct load *load)
{
    begin_load_with(model, "", load);
}

static struct load load_with(const char *model, const char *config)
{
    struct load load;
    begin_load_with(model, config, &load);
    await(load.num_calls > 0);
    assert_int_equal(load.num_calls, 1);
    return load;
}

static struct load load(const char *model)
{
    return load_with(model, "");
}

/* ---- tests ---- */

static void without_explicit_control_clients_load_nothing(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_NONE, "");
    assert_int_equal(ph__repository_load(repository, ph__bytes_of("a"), ph__bytes_of(""), loaded, run),
        PH_OIP_UNSUPPORTED);
    assert_int_equal(ph__repository_unload(repository, ph__bytes_of("a")), PH_OIP_UNSUPPORTED);
    assert_true(serves("a/1;"));
}

static void clients_load_and_unload(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    put_version(run, folder, "b", 1);
    put_version(run, folder, "c", 1);
    start(PH_CONTROL_EXPLICIT, "b, c");
    assert_true(serves("b/1;c/1;"));
    assert_true(lists("a/1  ;"));
    assert_int_equal(find("a", ""), PH_OIP_UNAVAILABLE);
    struct load first, second;
    begin_load("a", &first);
    begin_load("a", &second);
    await(first.num_calls == 1 && second.num_calls == 1);
    assert_true(first.code == PH_OIP_OK && second.code == PH_OIP_OK);
    assert_true(serves("a/1;b/1;c/1;"));
    assert_int_equal(ph__repository_unload(repository, ph__bytes_of("b")), PH_OIP_OK);
    assert_true(serves("a/1;c/1;"));
    assert_true(lists("b/1 UNAVAILABLE unloaded;"));
    assert_int_equal(ph__repository_unload(repository, ph__bytes_of("none")), PH_OIP_INVALID);
    assert_int_equal(load("b").code, PH_OIP_OK);
    assert_true(serves("a/1;b/1;c/1;"));
    const struct load missing = load("none");
    assert_int_equal(missing.code, PH_OIP_INVALID);
    assert_non_null(strstr(missing.text, "'none'"));
}

static void a_name_that_is_not_there_leaves_no_model(void **state)
{
    (void)state;
    start(PH_CONTROL_EXPLICIT, "");
    struct ph__arena arena = {0};
    struct ph__list versions = {NULL, 0};
    assert_int_equal(load("later").code, PH_OIP_INVALID);
    assert_int_equal(
        ph__repository_versions(repository, ph__bytes_of("later"), &arena, &versions), PH_OIP_NOT_FOUND);
    ph__arena_fini(&arena);
    put_version(run, folder, "later", 1);
    assert_int_equal(load("later").code, PH_OIP_OK);
    assert_true(serves("later/1;"));
}

static void a_load_tries_again_what_has_failed(void **state)
{
    (void)state;
    char path[700];
    put_version(run, folder, "a", 1);
    snprintf(path, sizeof path, "%s/a/1/model.safetensors", folder);
    start(PH_CONTROL_EXPLICIT, "");
    invert_byte(path, 5000);
    const struct load failed = load("a");
    assert_int_equal(failed.code, PH_OIP_INVALID);
    assert_non_null(strstr(failed.text, "model.safetensors"));
    invert_byte(path, 5000);
    assert_int_equal(load("a").code, PH_OIP_OK);
}

static void loading_in_the_foreground_is_done_at_once(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    options.load_in_background = false;
    assert_ok(create(folder, PH_CONTROL_EXPLICIT, "*"));
    ph__repository_run(repository);
    assert_true(serves("a/1;"));
    put_version(run, folder, "a", 2);
    struct load load;
    begin_load("a", &load);
    ph__repository_run(repository);
    assert_int_equal(load.num_calls, 1);
    assert_true(serves("a/2;"));
}

static void a_load_takes_what_has_changed(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_EXPLICIT, "*");
    struct ph__served *first = hold("a", "");
    assert_int_equal(load("a").code, PH_OIP_OK);
    struct ph__served *same = hold("a", "");
    assert_ptr_equal(same, first);
    ph__repository_release(repository, same);
    replace_file(run, folder, "a", 1, "model.safetensors", 2000);
    const struct load failed = load("a");
    assert_int_equal(failed.code, PH_OIP_INVALID);
    assert_non_null(strstr(failed.text, "failed to load 'a', version 1: "));
    assert_true(serves("a/1;"));
    put_version(run, folder, "a", 2);
    assert_int_equal(load("a").code, PH_OIP_OK);
    assert_true(serves("a/2;"));
    ph__repository_release(repository, first);
}

/* Expects what the newest version of model a is served with. */
static void expect_settings(uint64_t max_batch, uint64_t max_queue_delay_us, size_t num_outputs)
{
    struct ph__served *served = hold("a", "");
    assert_int_equal(served->settings.max_batch, max_batch);
    assert_int_equal(served->settings.max_queue_delay_us, max_queue_delay_us);
    assert_int_equal(served->num_outputs, num_outputs);
    ph__repository_release(repository, served);
}

static void a_config_goes_before_the_settings_until_the_next_load(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 3; version++)
        put_version(run, folder, "a", version);
    write_settings(folder, "a", "max_batch: 5\nmax_queue_delay_us: 7\n");
    start(PH_CONTROL_EXPLICIT, "a");
    expect_settings(5, 7, 2);
    const char *config = "{\"name\":\"a\",\"backend\":\"phloem\",\"max_batch_size\":9,"
                         "\"version_policy\":{\"specific\":{\"versions\":[1,\"2\"]}},\"input\":[],"
                         "\"output\":[{\"name\":\"logit\",\"data_type\":\"TYPE_FP32\",\"dims\":[\"1\"]},"
                         "{\"name\":\"hidden\"}]}";
    assert_int_equal(load_with("a", config).code, PH_OIP_OK);
    assert_true(serves("a/1;a/2;"));
    expect_settings(9, 7, 3);
    struct ph__served *same = hold("a", "");
    assert_int_equal(load_with("a", config).code, PH_OIP_OK); /* nothing is new */
    struct ph__served *again = hold("a", "");
    assert_ptr_equal(again, same);
    ph__repository_release(repository, again);
    ph__repository_release(repository, same);
    assert_int_equal(load_with("a", "{\"dynamic_batching\":{\"max_queue_delay_microseconds\":300},"
                                    "\"version_policy\":{\"all\":{}}}")
                         .code,
        PH_OIP_OK);
    assert_true(serves("a/1;a/2;a/3;"));
    expect_settings(5, 300, 2);
    assert_int_equal(
        load_with("a", "{\"version_policy\":{\"latest\":{\"num_versions\":2}}}").code, PH_OIP_OK);
    assert_true(serves("a/2;a/3;"));
    assert_int_equal(load("a").code, PH_OIP_OK);
    assert_true(serves("a/3;"));
    expect_settings(5, 7, 2);
    const struct load failed = load_with("a", "{\"output\":[{\"name\":\"nonsense\"}]}");
    assert_int_equal(failed.code, PH_OIP_INVALID);
    assert_non_null(strstr(failed.text, "model 'a' has no output 'nonsense'"));
    expect_settings(5, 7, 2);
}

static void a_config_that_cannot_be_changes_nothing(void **state)
{
    static const struct {
        const char *config, *part;
    } cases[] = {
        {"{", "JSON, byte 1"},
        {"{\"instance_group\":[{\"count\":2}]}", "'instance_group': the key is not supported"},
        {"{\"dynamic_batching\":{\"preferred_batch_size\":[4]}}", "'preferred_batch_size'"},
        {"{\"name\":\"b\"}", "'name': must be 'a', not 'b'"},
        {"{\"backend\":\"onnxruntime\"}", "'backend': must be 'phloem'"},
        {"{\"platform\":\"pytorch\"}", "'platform': must be 'phloem'"},
        {"{\"max_batch_size\":-1}", "'max_batch_size': must be from 0"},
        {"{\"max_batch_size\":65537}", "'max_batch_size': must be from 0"},
        {"{\"dynamic_batching\":{\"max_queue_delay_microseconds\":4000000000}}",
            "'max_queue_delay_microseconds': must be from 0"},
        {"{\"version_policy\":{\"all\":{},\"latest\":{\"num_versions\":1}}}",
            "'version_policy': must be one"},
    };
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_EXPLICIT, "a");
    struct ph__served *first = hold("a", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            ph__repository_load(repository, ph__bytes_of("a"), ph__bytes_of(cases[i].config), loaded, folder),
            PH_OIP_INVALID);
        assert_non_null(strstr(ph_error_text(), cases[i].part));
    }
    assert_int_equal(load("a").code, PH_OIP_OK);
    struct ph__served *same = hold("a", "");
    assert_ptr_equal(same, first);
    ph__repository_release(repository, same);
    ph__repository_release(repository, first);
}

static void a_version_that_is_held_may_be_loaded_again(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_EXPLICIT, "a");
    struct ph__served *held = hold("a", "");
    assert_int_equal(ph__repository_unload(repository, ph__bytes_of("a")), PH_OIP_OK);
    assert_true(lists("a/1 UNLOADING unloaded;"));
    assert_int_equal(find("a", ""), PH_OIP_UNAVAILABLE);
    assert_int_equal(load("a").code, PH_OIP_OK);
    assert_true(serves("a/1;"));
    struct ph__served *newer = hold("a", "");
    assert_ptr_not_equal(newer, held);
    ph__repository_release(repository, held);
    assert_true(serves("a/1;"));
    ph__repository_release(repository, newer);
    assert_true(serves("a/1;"));
}

static void a_load_whose_client_has_gone_is_forgotten(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_EXPLICIT, "");
    struct load gone, other;
    begin_load("a", &gone);
    begin_load("a", &other);
    ph__repository_forget(repository, &gone);
    await(other.num_calls == 1);
    assert_int_equal(gone.num_calls, 0);
    assert_true(serves("a/1;"));
}

static void an_unload_while_it_is_loaded_ends_unloaded(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    start(PH_CONTROL_EXPLICIT, "");
    struct load load;
    begin_load("a", &load);
    assert_int_equal(ph__repository_unload(repository, ph__bytes_of("a")), PH_OIP_OK);
    await(load.num_calls == 1);
    assert_true(serves(""));
}

static void a_repository_may_go_while_it_loads(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 5; version++)
        put_version(run, folder, "a", version);
    write_settings(folder, "a", "versions: all\n");
    assert_ok(create(folder, PH_CONTROL_EXPLICIT, "*"));
    struct load load;
    begin_load("a", &load);
    ph__repository_run(repository);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_explicit_control_clients_load_nothing),
        TEST(clients_load_and_unload),
        TEST(a_name_that_is_not_there_leaves_no_model),
        TEST(a_load_tries_again_what_has_failed),
        TEST(loading_in_the_foreground_is_done_at_once),
        TEST(a_load_takes_what_has_changed),
        TEST(a_config_goes_before_the_settings_until_the_next_load),
        TEST(a_config_that_cannot_be_changes_nothing),
        TEST(a_version_that_is_held_may_be_loaded_again),
        TEST(a_load_whose_client_has_gone_is_forgotten),
        TEST(an_unload_while_it_is_loaded_ends_unloaded),
        TEST(a_repository_may_go_while_it_loads),
    };
    return cmocka_run_group_tests(tests, make_run, drop_run);
}
