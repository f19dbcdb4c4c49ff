/* Control groups imitated by a folder of files. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "support/test_support.h"

struct fixture {
    struct ph__arena arena;
    const char *root;
};

static int set_up(void **state)
{
    static int count;
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->root = ph__arena_printf(&fixture->arena, "%s/machine%d", test_folder(), count++);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ph__arena_fini(&fixture->arena);
    free(fixture);
    return 0;
}

static void put(struct fixture *fixture, const char *folder, const char *name, const char *text)
{
    const char *path = ph__arena_printf(&fixture->arena, "%s%s", fixture->root, folder);
    assert_ok(ph__directory_create(path));
    test_write_text(ph__path_join(&fixture->arena, path, name), text);
}

static void put_version_2(struct fixture *fixture)
{
    put(fixture, "/proc/self", "cgroup", "0::/jobs/one\n");
    put(fixture, "/proc/self", "mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
}

static void version_2_gives_the_least_of_the_group_and_its_parents(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes = 0;
    put_version_2(fixture);
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.max", "max\n");
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.current", "100\n");
    assert_false(ph__cgroup_memory_remaining(fixture->root, &bytes));
    put(fixture, "/sys/fs/cgroup/jobs", "memory.max", "10000\n");
    put(fixture, "/sys/fs/cgroup/jobs", "memory.current", "4000\n");
    assert_true(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_int_equal(bytes, 6000);
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.max", "1000\n");
    assert_true(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_int_equal(bytes, 900);
}

static void page_cache_that_can_be_given_up_counts_as_free(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes = 0;
    put_version_2(fixture);
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.max", "1000\n");
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.current", "900\n");
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.stat", "anon 100\ninactive_file 500\nactive_file 300\n");
    assert_true(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_int_equal(bytes, 600);
}

static void a_group_over_its_limit_has_nothing_left(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes = 1;
    put_version_2(fixture);
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.max", "1000\n");
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.current", "1900\n");
    assert_true(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_int_equal(bytes, 0);
}

static void put_version_1(struct fixture *fixture)
{
    put(fixture, "/proc/self", "cgroup",
        "9:name=systemd:/\n4:memory:/docker/abc/job\n1:cpu,cpuacct:/docker/abc\n");
    put(fixture, "/proc/self", "mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
        "36 31 0:33 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
}

static void version_1_is_found_below_a_containers_mount(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes = 0;
    put_version_1(fixture);
    put(fixture, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    put(fixture, "/sys/fs/cgroup/memory", "memory.usage_in_bytes", "5\n");
    assert_false(ph__cgroup_memory_remaining(fixture->root, &bytes));
    put(fixture, "/sys/fs/cgroup/memory/job", "memory.limit_in_bytes", "5000\n");
    put(fixture, "/sys/fs/cgroup/memory/job", "memory.usage_in_bytes", "3000\n");
    put(fixture, "/sys/fs/cgroup/memory/job", "memory.stat", "cache 9\ntotal_inactive_file 200\n");
    assert_true(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_int_equal(bytes, 2200);
}

static void quotas_are_read_in_both_versions(void **state)
{
    struct fixture *fixture = *state;
    double processors = 0;
    put_version_1(fixture);
    put(fixture, "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "-1\n");
    put(fixture, "/sys/fs/cgroup/cpu", "cpu.cfs_period_us", "100000\n");
    assert_false(ph__cgroup_cpu_quota(fixture->root, &processors));
    put(fixture, "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "150000\n");
    assert_true(ph__cgroup_cpu_quota(fixture->root, &processors));
    assert_near(processors, 1.5, 1e-12, 0);
    put_version_2(fixture);
    put(fixture, "/sys/fs/cgroup/jobs/one", "cpu.max", "max 100000\n");
    assert_false(ph__cgroup_cpu_quota(fixture->root, &processors));
    put(fixture, "/sys/fs/cgroup/jobs", "cpu.max", "50000 100000\n");
    assert_true(ph__cgroup_cpu_quota(fixture->root, &processors));
    assert_near(processors, .5, 1e-12, 0);
}

static void the_limit_does_not_change_with_what_is_used(void **state)
{
    static const char *const used[] = {"10\n", "900\n", "5000\n"};
    struct fixture *fixture = *state;
    uint64_t bytes = 0;
    put_version_1(fixture);
    put(fixture, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    assert_false(ph__cgroup_memory_limit(fixture->root, &bytes));
    put(fixture, "/sys/fs/cgroup/memory/job", "memory.limit_in_bytes", "5000\n");
    assert_true(ph__cgroup_memory_limit(fixture->root, &bytes));
    assert_int_equal(bytes, 5000);
    put_version_2(fixture);
    put(fixture, "/sys/fs/cgroup/jobs", "memory.max", "1000\n");
    put(fixture, "/sys/fs/cgroup/jobs/one", "memory.max", "max\n");
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        put(fixture, "/sys/fs/cgroup/jobs", "memory.current", used[i]);
        assert_true(ph__cgroup_memory_limit(fixture->root, &bytes));
        assert_int_equal(bytes, 1000);
    }
}

static void a_machine_without_groups_has_no_limits(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes = 0;
    double processors = 0;
    assert_false(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_false(ph__cgroup_memory_limit(fixture->root, &bytes));
    assert_false(ph__cgroup_cpu_quota(fixture->root, &processors));
    put(fixture, "/proc/self", "cgroup", "nonsense\n0::\n::::\n");
    put(fixture, "/proc/self", "mountinfo", "nonsense\n1 2 3 - x\n - \n1 2 3 / /nowhere - cgroup2 x rw\n");
    assert_false(ph__cgroup_memory_remaining(fixture->root, &bytes));
    assert_false(ph__cgroup_cpu_quota(fixture->root, &processors));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            version_2_gives_the_least_of_the_group_and_its_parents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(page_cache_that_can_be_given_up_counts_as_free, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_group_over_its_limit_has_nothing_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_1_is_found_below_a_containers_mount, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_limit_does_not_change_with_what_is_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quotas_are_read_in_both_versions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_machine_without_groups_has_no_limits, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
