/* The repository over folders that come, change and go, in each way of control. */
#include "unit/serve/repository/repository_folder.h"

#include <semaphore.h>
#include <time.h>

#include "base/thread/clock.h"
#include "serve/repository/repository.h"

enum { DEADLINE_MS = 60000, POLL_MS = 10 };

static char run[512];    /* a run folder, which versions are copies of */
static char folder[512]; /* the repository */
static sem_t ready;      /* posted by the loader */
static struct ph__scheduler *scheduler;
static struct ph__repository *repository;
static struct ph_server_options options;

/* ---- life ---- */

static void nothing_done(void *context, struct ph__work *work)
{
    (void)context, (void)work;
}

static void no_batch_done(void *context)
{
    (void)context;
}

static void post(void *context)
{
    sem_post(context);
}

static int make_run(void **state)
{
    (void)state;
    const struct ph__scheduler_options settings = {
        .num_workers = 1, .done = nothing_done, .batch_done = no_batch_done};
    snprintf(run, sizeof run, "%s", make_run_folder("deepfm"));
    assert_int_equal(sem_init(&ready, 0, 0), 0);
    assert_ok(ph__scheduler_create(&settings, &scheduler));
    return 0;
}

static int drop_run(void **state)
{
    (void)state;
    ph__scheduler_destroy(scheduler);
    sem_destroy(&ready);
    return 0;
}

static int make_repository(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_fresh_folder());
    ph_server_options_init(&options);
    return 0;
}

static int drop_repository(void **state)
{
    (void)state;
    ph__repository_destroy(repository);
    repository = NULL;
    return 0;
}

static ph_status create(const char *path, enum ph_model_control control, const char *load)
{
    const struct ph__repository_options settings = {.path = path,
        .control = control,
        .poll_ms = POLL_MS,
        .load = load,
        .settings = &options.model,
        .scheduler = scheduler,
        .num_workers = 1,
        .ready = post,
        .context = &ready};
    return ph__repository_create(&settings, &repository);
}

/* Does what is due, and waits for the next result of the loader, or the next look at the folder. */
static void turn(void)
{
    const int due_ms = ph__repository_run(repository);
    const long wait_ms = due_ms >= 0 && due_ms < 50 ? due_ms : 50;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)sem_timedwait(&ready, &until);
}

/* Runs the repository until the condition holds. */
#define await(condition)                                                                                   \
    do {                                                                                                   \
        const uint64_t await_until = ph__clock_deadline(DEADLINE_MS);                                      \
        ph__repository_run(repository);                                                                    \
        while (!(condition) && ph__clock_ms_until(await_until) > 0)                                        \
            turn();                                                                                        \
        if (!(condition))                                                                                  \
            fail_msg("%s:%d: %s did not come true in %d ms", __FILE__, __LINE__, #condition, DEADLINE_MS); \
    } while (0)

/* Lets polls go by that change nothing. */
static void pass_polls(void)
{
    for (size_t i = 0; i < 20; i++)
        turn();
}

static void start(enum ph_model_control control, const char *load)
{
    assert_ok(create(folder, control, load));
    assert_false(ph__repository_is_settled(repository));
    await(ph__repository_is_settled(repository));
}

/* ---- questions ---- */

/* Lists "MODEL/VERSION STATE REASON;" of the index. Static storage. */
static const char *list(bool is_ready_only)
{
    static char text[4000];
    struct ph__arena arena = {0};
    struct ph__list entries = {NULL, 0};
    size_t size = 0;
    text[0] = '\0';
    assert_ok(ph__repository_index(repository, is_ready_only, &arena, &entries));
    for (size_t i = 0; i < entries.count; i++) {
        const struct ph__oip_index_entry *entry = (const struct ph__oip_index_entry *)entries.items + i;
        size += (size_t)snprintf(text + size, sizeof text - size, "%.*s/%.*s %.*s %.*s;",
            (int)entry->name.size, entry->name.bytes, (int)entry->version.size, entry->version.bytes,
            (int)entry->state.size, entry->state.bytes, (int)entry->reason.size, entry->reason.bytes);
    }
    ph__arena_fini(&arena);
    return text;
}

static bool lists(const char *part)
{
    return strstr(list(false), part) != NULL;
}

/* Tells whether exactly these serve: "a/1;a/2;". */
static bool serves(const char *versions)
{
    char text[1000] = "";
    const char *at = list(true);
    for (; *at != '\0'; at = strchr(at, ';') + 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s;", (int)strcspn(at, " "), at);
    return strcmp(text, versions) == 0;
}

static struct ph__served *hold(const char *model, const char *version)
{
    struct ph__served *served = NULL;
    assert_int_equal(
        ph__repository_find(repository, ph__bytes_of(model), ph__bytes_of(version), &served), PH_OIP_OK);
    assert_string_equal(served->model, model);
    return served;
}

static enum ph__oip_code find(const char *model, const char *version)
{
    struct ph__served *served = NULL;
    const enum ph__oip_code code =
        ph__repository_find(repository, ph__bytes_of(model), ph__bytes_of(version), &served);
    if (code == PH_OIP_OK)
        ph__repository_release(repository, served);
    else
        assert_null(served);
    return code;
}

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

static void begin_load(const char *model, struct load *load)
{
    *load = (struct load){.num_calls = 0};
    assert_int_equal(ph__repository_load(repository, ph__bytes_of(model), loaded, load), PH_OIP_OK);
    assert_int_equal(load->num_calls, 0);
}

static struct load load(const char *model)
{
    struct load load;
    begin_load(model, &load);
    await(load.num_calls > 0);
    assert_int_equal(load.num_calls, 1);
    return load;
}

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
    assert_int_equal(ph__repository_unload(repository, ph__bytes_of("a")), PH_OIP_UNSUPPORTED);
    assert_int_equal(ph__repository_load(repository, ph__bytes_of("a"), loaded, run), PH_OIP_UNSUPPORTED);
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
    assert_true(serves("a/1;"));
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

static void new_settings_are_a_change(void **state)
{
    (void)state;
    put_version(run, folder, "a", 1);
    write_settings(folder, "a", "outputs: nonsense\n");
    start(PH_CONTROL_POLL, "");
    assert_true(serves(""));
    write_settings(folder, "a", "outputs: \"\"\nmax_batch: 5\n");
    await(serves("a/1;"));
    struct ph__served *served = hold("a", "");
    assert_int_equal(served->settings.max_batch, 5);
    ph__repository_release(repository, served);
}

/* ---- explicit control ---- */

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
    assert_int_equal(first.code, PH_OIP_OK);
    assert_int_equal(second.code, PH_OIP_OK);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_repository, drop_repository)

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
        TEST(new_settings_are_a_change),
        TEST(clients_load_and_unload),
        TEST(a_load_takes_what_has_changed),
        TEST(a_version_that_is_held_may_be_loaded_again),
        TEST(a_load_whose_client_has_gone_is_forgotten),
        TEST(an_unload_while_it_is_loaded_ends_unloaded),
        TEST(a_repository_may_go_while_it_loads),
    };
    return cmocka_run_group_tests(tests, make_run, drop_run);
}
