#include "sim/op_times.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "support/test_support.h"

/* An operator that has a cost, and nothing else. */
static void made_up_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.flops = 4e6, .bytes = 1e6};
}

static ph_status do_nothing(const struct ph__call *call)
{
    (void)call;
    return PH_OK;
}

static const struct ph__op made_up = {.name = "made_up", .cost = made_up_cost};
static const struct ph__node node = {.op = &made_up};
static const uint64_t extents[PH_MAX_SYMBOLS] = {0};
static const struct ph__call call = {.node = &node, .extents = (uint64_t *)(uintptr_t)extents};

static void work_nothing(void *context)
{
    (void)context;
}

static struct ph_backend *create_backend(void)
{
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = 1};
    struct ph_backend *backend;
    assert_ok(ph_backend_create(&options, &backend));
    return backend;
}

static ph_status open_text(
    const struct ph_backend *backend, const char *text, bool may_measure, struct ph__op_times **times_out)
{
    const struct ph__op_times_options options = {test_write_file("profile.json", text), backend, may_measure};
    return ph__op_times_open(&options, times_out);
}

static void rates_stand_in_for_operators_without_an_entry(void **state)
{
    (void)state;
    struct ph_backend *backend = create_backend();
    struct ph__op_times *times;
    double ns;
    assert_ok(open_text(backend,
        "{\"version\": 1, \"isa\": \"sm_90\", \"label\": \"published: somewhere\","
        " \"rates\": {\"flops_per_s\": 1e12, \"bytes_per_s\": 1e9, \"overhead_us\": 5},"
        " \"operators\": {\"packs 2^10\": [250, 1000]}}",
        true, &times));
    assert_string_equal(ph__op_times_label(times), "published: somewhere");
    assert_ok(ph__op_times_find(times, &call, do_nothing, &ns));
    assert_float_equal(ns, 1e6 + 5e3, 1e-6); /* a million bytes last longer than four million operations */

    struct ph__op_work work = {.run = work_nothing, .amount = 500, .bytes = {2000, 1000}};
    assert_ok(ph__op_times_find_work(times, "adds", &work, &ns));
    assert_float_equal(ns, 3e3 + 5e3, 1e-6);
    work.bytes[0] = work.bytes[1] = 0;
    assert_ok(ph__op_times_find_work(times, "orders", &work, &ns));
    assert_float_equal(ns, 4e3 + 5e3, 1e-6); /* each of 500 numbers is read and written */
    work.amount = 1000;
    assert_ok(ph__op_times_find_work(times, "packs", &work, &ns));
    assert_float_equal(ns, 250, 1e-6);

    assert_int_equal(ph__op_times_num_measured(times), 0);
    assert_ok(ph__op_times_missing(times));
    ph__op_times_close(times);
    ph_backend_destroy(backend);
}

static void rates_are_checked(void **state)
{
    (void)state;
    struct ph_backend *backend = create_backend();
    struct ph__op_times *times;
    assert_fails(open_text(backend, "{\"version\": 1, \"rates\": {\"byte_per_s\": 1e9}}", true, &times),
        PH_ERROR_CONFIG, "unknown member 'byte_per_s'");
    assert_fails(open_text(backend, "{\"version\": 1, \"rates\": {\"flops_per_s\": -1}}", true, &times),
        PH_ERROR_CONFIG, "'flops_per_s' must be a number of at least 1");
    assert_fails(open_text(backend, "{\"version\": 1, \"rates\": {\"flops_per_s\": 1e12}}", true, &times),
        PH_ERROR_CONFIG, "rates must have flops_per_s and bytes_per_s");
    assert_fails(open_text(backend, "{\"version\": 1, \"label\": \"nothing\"}", true, &times),
        PH_ERROR_CONFIG, "not a profile of operators");
    ph_backend_destroy(backend);
}

static void nothing_is_measured_into_another_machines_profile(void **state)
{
    (void)state;
    static const char others[] =
        "{\"version\": 1, \"machine\": \"elsewhere\", \"isa\": \"neon\", \"threads\": 96,"
        " \"operators\": {\"packs 2^10\": [250, 1000]}}";
    struct ph_backend *backend = create_backend();
    struct ph__op_times *times;
    const struct ph__op_work work = {.run = work_nothing, .amount = 1000};
    double ns;
    assert_fails(open_text(backend, others, true, &times), PH_ERROR_CONFIG, "is of instruction set 'neon'");
    assert_ok(open_text(backend, others, false, &times));
    assert_ok(ph__op_times_find_work(times, "packs", &work, &ns));
    assert_ok(ph__op_times_missing(times));
    assert_fails(
        ph__op_times_find_work(times, "adds", &work, &ns), PH_ERROR_CONFIG, "no time for 'adds 2^10'");
    assert_fails(ph__op_times_missing(times), PH_ERROR_CONFIG, "no time for 'adds 2^10'");
    assert_ok(ph__op_times_save(times));
    ph__op_times_close(times);
    ph_backend_destroy(backend);
}

static void a_measured_profile_is_read_again_on_its_machine_alone(void **state)
{
    (void)state;
    struct ph_backend *backend = create_backend();
    const struct ph__op_times_options options = {test_path("measured.json"), backend, true};
    const struct ph__op_work work = {.run = work_nothing, .amount = 1000};
    struct ph__op_times *times;
    double first, second;
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    assert_ok(ph__op_times_open(&options, &times));
    assert_ok(ph__op_times_find_work(times, "packs", &work, &first));
    assert_ok(ph__op_times_save(times));
    ph__op_times_close(times);

    assert_ok(ph__op_times_open(&options, &times));
    assert_ok(ph__op_times_find_work(times, "packs", &work, &second));
    assert_true(first == second);
    assert_int_equal(ph__op_times_num_measured(times), 0);
    ph__op_times_close(times);

    assert_ok(ph__file_read(&arena, options.path, 1 << 20, &text, &size));
    char *machine = strstr(text, "\"machine\": \"");
    assert_non_null(machine);
    machine[strlen("\"machine\": \"")] ^= 1; /* another name of as many letters */
    assert_fails(open_text(backend, text, true, &times), PH_ERROR_CONFIG, "is of machine");
    ph__arena_fini(&arena);
    ph_backend_destroy(backend);
}

static void the_place_of_a_profile_has_instruction_set_and_threads_in_its_name(void **state)
{
    (void)state;
    struct ph_backend *backend = create_backend();
    struct ph__arena arena = {0};
    const char *path;
    struct stat folder;
    assert_int_equal(setenv("XDG_CACHE_HOME", test_path("cache"), 1), 0);
    assert_ok(ph__op_times_place(backend, &arena, &path));
    assert_non_null(strstr(path, "/cache/phloem/profile-"));
    assert_non_null(strstr(path, "-1t.json"));
    assert_int_equal(stat(test_path("cache/phloem"), &folder), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_fails(ph__op_times_place(backend, &arena, &path), PH_ERROR_USAGE, "HOME is not set");
    ph__arena_fini(&arena);
    ph_backend_destroy(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_stand_in_for_operators_without_an_entry),
        cmocka_unit_test(rates_are_checked),
        cmocka_unit_test(nothing_is_measured_into_another_machines_profile),
        cmocka_unit_test(a_measured_profile_is_read_again_on_its_machine_alone),
        cmocka_unit_test(the_place_of_a_profile_has_instruction_set_and_threads_in_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
