#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "phloem/memory.h"
#include "support/is_sanitized.h"
#include "support/test_support.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 63, 64, 65, 100000, (2u << 20) - 1, 2u << 20, (2u << 20) + 1, 5000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *pointer = NULL;
        assert_ok(ph__memory_alloc(sizes[i], "a test", &pointer));
        const unsigned char *bytes = pointer;
        assert_int_equal((uintptr_t)pointer % (sizes[i] >= 2u << 20 ? 2u << 20 : PH_ALIGNMENT), 0);
        for (size_t b = 0; b < sizes[i]; b += 61)
            assert_int_equal(bytes[b], 0);
        memset(pointer, 0xab, sizes[i]);
        ph__memory_free(pointer, sizes[i]);
    }
    ph__memory_free(NULL, 12);
}

/* Arrays that are little larger than two huge pages must not take three. */
static void huge_pages_waste_little(void **state)
{
    (void)state;
    enum { NUM_ARRAYS = 16 };
    const size_t size = (4u << 20) + 5000;
    void *arrays[NUM_ARRAYS];
    if (PH_IS_SANITIZED)
        skip(); /* a sanitizer's own memory grows with what is touched */
    const uint64_t before = ph__memory_anonymous_bytes();
    for (size_t i = 0; i < NUM_ARRAYS; i++) {
        assert_ok(ph__memory_alloc(size, "a test", &arrays[i]));
        memset(arrays[i], 1, size);
    }
    const uint64_t taken = ph__memory_anonymous_bytes() - before;
    assert_true(taken >= NUM_ARRAYS * size);
    assert_true(taken < NUM_ARRAYS * (size + size / 8));
    for (size_t i = 0; i < NUM_ARRAYS; i++)
        ph__memory_free(arrays[i], size);
}

static void what_cannot_be_had_is_named(void **state)
{
    (void)state;
    void *pointer = NULL;
    assert_fails(ph__memory_alloc(SIZE_MAX / 4, "the tables", &pointer), PH_ERROR_MEMORY, "the tables");
    assert_fails(ph__memory_alloc(SIZE_MAX, "the tables", &pointer), PH_ERROR_MEMORY, "the tables");
    assert_null(pointer);
}

static void size_arithmetic_sees_overflow(void **state)
{
    (void)state;
    size_t out = 7;
    assert_true(ph__size_mul(3, 5, &out));
    assert_int_equal(out, 15);
    assert_true(ph__size_mul(0, SIZE_MAX, &out));
    assert_int_equal(out, 0);
    out = 7;
    assert_false(ph__size_mul(SIZE_MAX / 2, 3, &out));
    assert_false(ph__size_add(SIZE_MAX, 1, &out));
    assert_int_equal(out, 7);
    assert_true(ph__size_add(SIZE_MAX, 0, &out));
    assert_true(out == SIZE_MAX);
    assert_int_equal(ph__size_align(0), 0);
    assert_int_equal(ph__size_align(1), 64);
    assert_int_equal(ph__size_align(64), 64);
}

static void arrays_grow_by_doubling_and_keep_their_items(void **state)
{
    (void)state;
    void *items = NULL;
    size_t capacity = 0;
    for (size_t count = 1; count <= 1000; count++) {
        assert_ok(ph__array_reserve(&items, &capacity, count, sizeof(int)));
        assert_true(capacity >= count);
        ((int *)items)[count - 1] = (int)count;
    }
    assert_true(capacity < 3000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(((int *)items)[i], (int)i + 1);
    size_t former = capacity;
    assert_fails(ph__array_reserve(&items, &capacity, SIZE_MAX / 2, 8), PH_ERROR_MEMORY, "out of memory");
    assert_int_equal(capacity, former);
    free(items);
}

static void the_machine_tells_its_memory(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_ok(ph__memory_available_bytes(&bytes));
    assert_true(bytes > 1 << 20);
    uint64_t total = 0;
    assert_ok(ph__memory_total_bytes("", &total));
    assert_true(total >= bytes);
    assert_true(ph__memory_peak_rss_bytes() > 1 << 16);
    assert_true(ph__memory_anonymous_bytes() > 1 << 12);
}

static void put(const char *root, const char *folder, const char *name, const char *text)
{
    struct ph__arena arena = {0};
    const char *path = ph__arena_printf(&arena, "%s/%s", root, folder);
    assert_ok(ph__directory_create(path));
    test_write_text(ph__path_join(&arena, path, name), text);
    ph__arena_fini(&arena);
}

static uint64_t total_of(const char *root)
{
    uint64_t bytes = 0;
    assert_ok(ph__memory_total_bytes(root, &bytes));
    return bytes;
}

static void the_total_is_the_least_of_the_machine_and_its_groups_whatever_is_free(void **state)
{
    (void)state;
    const char *root = test_fresh_folder();
    uint64_t bytes = 7;
    assert_fails(
        ph__memory_total_bytes(root, &bytes), PH_ERROR_MEMORY, "no MemTotal, and no cgroup sets a limit");
    assert_int_equal(bytes, 7);
    put(root, "proc", "meminfo",
        "MemTotal:       2000 kB\nMemFree:         100 kB\nMemAvailable:    500 kB\n");
    assert_int_equal(total_of(root), 2000 * 1024);
    put(root, "proc", "meminfo",
        "MemTotal:       2000 kB\nMemFree:        1900 kB\nMemAvailable:   1900 kB\n");
    assert_int_equal(total_of(root), 2000 * 1024);
    put(root, "proc/self", "cgroup", "0::/job\n");
    put(root, "proc/self", "mountinfo", "30 23 0:26 / /groups rw - cgroup2 cgroup2 rw\n");
    put(root, "groups/job", "memory.max", "1000000\n");
    put(root, "groups/job", "memory.current", "900000\n");
    assert_int_equal(total_of(root), 1000000);
    put(root, "groups/job", "memory.max", "9000000\n");
    assert_int_equal(total_of(root), 2000 * 1024);
}

/* Where the system does not allow it, the former peak stays: an upper bound. */
static void a_peak_that_is_over_can_be_forgotten(void **state)
{
    (void)state;
    const size_t size = (size_t)64 << 20;
    void *pointer;
    assert_ok(ph__memory_alloc(size, "a peak", &pointer));
    memset(pointer, 1, size);
    ph__memory_free(pointer, size);
    const uint64_t before = ph__memory_peak_rss_bytes();
    ph__memory_reset_peak_rss();
    const uint64_t after = ph__memory_peak_rss_bytes();
    assert_true(after <= before);
    if (access("/proc/self/clear_refs", W_OK) == 0)
        assert_true(after + size / 2 < before);
}

struct counted {
    size_t num_allocated, num_released, bytes;
};

static void *count_allocation(void *context, size_t bytes)
{
    struct counted *counted = context;
    counted->num_allocated++;
    counted->bytes += bytes;
    return bytes > (size_t)1 << 30 ? NULL : calloc(1, bytes);
}

static void count_release(void *context, void *pointer, size_t bytes)
{
    struct counted *counted = context;
    counted->num_released++;
    counted->bytes -= bytes;
    free(pointer);
}

static void hooks_are_asked_for_large_memory(void **state)
{
    (void)state;
    struct counted counted = {0};
    const struct ph_memory_hooks hooks = {
        .size = sizeof hooks, .context = &counted, .allocate = count_allocation, .release = count_release};
    const struct ph_memory_hooks half = {.size = sizeof half, .allocate = count_allocation};
    void *pointer = NULL, *other = NULL;
    assert_fails(ph_memory_set_hooks(&half), PH_ERROR_USAGE, "both allocate and release");
    assert_ok(ph_memory_set_hooks(&hooks));
    assert_ok(ph__memory_alloc((size_t)4 << 20, "a test", &pointer));
    assert_ok(ph__memory_alloc(0, "a test", &other));
    assert_int_equal(counted.num_allocated, 2);
    assert_int_equal(counted.bytes, ((size_t)4 << 20) + 1);
    assert_fails(ph_memory_set_hooks(NULL), PH_ERROR_USAGE, "in use");
    ph__memory_free(pointer, (size_t)4 << 20);
    ph__memory_free(other, 0);
    assert_int_equal(counted.num_released, 2);
    assert_int_equal(counted.bytes, 0);
    assert_fails(ph__memory_alloc((size_t)1 << 40, "a test", &pointer), PH_ERROR_MEMORY, "a test");
    assert_ok(ph_memory_set_hooks(NULL));
    assert_ok(ph__memory_alloc(100, "a test", &pointer));
    ph__memory_free(pointer, 100);
    assert_int_equal(counted.num_allocated, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(hooks_are_asked_for_large_memory),
        cmocka_unit_test(huge_pages_waste_little),
        cmocka_unit_test(what_cannot_be_had_is_named),
        cmocka_unit_test(size_arithmetic_sees_overflow),
        cmocka_unit_test(arrays_grow_by_doubling_and_keep_their_items),
        cmocka_unit_test(the_machine_tells_its_memory),
        cmocka_unit_test(the_total_is_the_least_of_the_machine_and_its_groups_whatever_is_free),
        cmocka_unit_test(a_peak_that_is_over_can_be_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
