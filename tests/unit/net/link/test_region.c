/* Shared memory: what the maker wrote is what others see, and no holder of the descriptor can do more than it
 * was given for. */
#include "net/link/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/test_support.h"

#define LARGE_PAGE ((size_t)2 << 20)
#define MADV_COLLAPSE_SINCE_6_1 25

/* A descriptor of the same memory, as another process would get it. */
static int sent_copy(const struct ph__region *region)
{
    const int copy = fcntl(region->descriptor, F_DUPFD_CLOEXEC, 0);
    assert_true(copy >= 0);
    return copy;
}

static bool is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

static void is_zeros_at_first_and_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1, 100, 4096, LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 1, 3 * LARGE_PAGE + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct ph__region region;
        assert_ok(ph__region_create("test-region", sizes[i], &region));
        const char *memory = region.memory;
        assert_int_equal(region.size, sizes[i]);
        assert_int_equal((uintptr_t)memory % (sizes[i] < LARGE_PAGE ? 4096 : LARGE_PAGE), 0);
        for (size_t at = 0; at < sizes[i]; at += at + 4096 < sizes[i] ? 4096 : 1)
            assert_int_equal(memory[at], 0);
        memset(region.memory, 7, sizes[i]);
        ph__region_close(&region);
        assert_null(region.memory);
    }
}

static void another_mapping_sees_the_same_bytes(void **state)
{
    (void)state;
    struct ph__region made, opened;
    assert_ok(ph__region_create("test-region", LARGE_PAGE + 5000, &made));
    assert_ok(ph__region_open(sent_copy(&made), made.size, true, &opened));
    assert_ptr_not_equal(made.memory, opened.memory);
    memcpy((char *)made.memory + LARGE_PAGE + 4990, "from here", 10);
    assert_string_equal((char *)opened.memory + LARGE_PAGE + 4990, "from here");
    memcpy(opened.memory, "from there", 11);
    assert_string_equal(made.memory, "from there");
    ph__region_close(&made);
    assert_string_equal(opened.memory, "from there");
    ph__region_close(&opened);
}

/* Bytes of the mapping at `memory` that large pages back, as the kernel says. */
static size_t bytes_of_large_pages(const void *memory)
{
    char line[256];
    size_t kib = 0;
    bool is_there = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            is_there = begin == (unsigned long)memory;
        if (is_there && sscanf(line, "ShmemPmdMapped: %zu kB", &kib) == 1)
            break;
    }
    fclose(file);
    return kib << 10;
}

/* Whether this kernel gives a memfd large pages at all. */
static bool has_large_pages(void)
{
    const int descriptor = memfd_create("test-pages", MFD_CLOEXEC);
    assert_int_equal(ftruncate(descriptor, LARGE_PAGE), 0);
    char *reserved = mmap(NULL, 2 * LARGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *aligned = (char *)(((uintptr_t)reserved + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
    aligned = mmap(aligned, LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
    *aligned = 1;
    const bool is_large = madvise(aligned, LARGE_PAGE, MADV_COLLAPSE_SINCE_6_1) == 0;
    munmap(reserved, 2 * LARGE_PAGE);
    close(descriptor);
    return is_large;
}

/* Those that begin there and are whole: not the fourth, which the region's end cuts off. */
static void pages_become_large_and_keep_what_they_hold(void **state)
{
    (void)state;
    struct ph__region region;
    assert_ok(ph__region_create("test-region", 3 * LARGE_PAGE + 5000, &region));
    char *memory = region.memory;
    for (size_t at = 0; at < region.size; at += 1000)
        memory[at] = (char)(at / 1000);
    assert_int_equal(ph__region_enlarge_pages(&region, memory + 1, 3 * LARGE_PAGE), 2 * LARGE_PAGE);
    for (size_t at = 0; at < region.size; at++)
        assert_int_equal(memory[at], at % 1000 == 0 ? (char)(at / 1000) : 0);
    const size_t large = bytes_of_large_pages(memory);
    ph__region_close(&region);
    assert_int_equal(large, has_large_pages() ? 2 * LARGE_PAGE : 0);
}

static void nobody_can_change_its_size(void **state)
{
    (void)state;
    struct ph__region region;
    assert_ok(ph__region_create("test-region", 8192, &region));
    assert_int_equal(ftruncate(region.descriptor, 4096), -1);
    assert_int_equal(ftruncate(region.descriptor, 16384), -1);
    assert_int_equal(ftruncate(region.descriptor, 8192), 0);
    ph__region_close(&region);
}

static void after_the_seal_only_the_maker_can_write(void **state)
{
    (void)state;
    struct ph__region region, opened = {0};
    assert_ok(ph__region_create("test-region", 4096, &region));
    assert_ok(ph__region_seal_read_only(&region));
    memcpy(region.memory, "new parameters", 15);

    assert_fails(
        ph__region_open(sent_copy(&region), 4096, true, &opened), PH_ERROR_MEMORY, "cannot be mapped");
    assert_null(opened.memory);
    assert_ok(ph__region_open(sent_copy(&region), 4096, false, &opened));
    assert_string_equal(opened.memory, "new parameters");
    assert_int_equal(mprotect(opened.memory, 4096, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(pwrite(region.descriptor, "x", 1, 0), -1);
    assert_int_equal(fcntl(region.descriptor, F_ADD_SEALS, F_SEAL_WRITE), -1); /* no more seals either */
    ph__region_close(&opened);
    ph__region_close(&region);
}

static void a_read_only_mapping_cannot_be_written(void **state)
{
    (void)state;
    struct ph__region region, opened;
    const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_ok(ph__region_create("test-region", 4096, &region));
    assert_ok(ph__region_open(sent_copy(&region), 4096, false, &opened));
    assert_int_equal(read(zeros, region.memory, 8), 8);
    assert_int_equal(read(zeros, opened.memory, 8), -1);
    assert_int_equal(errno, EFAULT);
    close(zeros);
    ph__region_close(&opened);
    ph__region_close(&region);
}

static void what_was_not_made_so_is_refused(void **state)
{
    (void)state;
    struct ph__region region, opened = {0};
    int pipe_ends[2];
    assert_ok(ph__region_create("test-region", 4096, &region));
    int sent = sent_copy(&region);
    assert_fails(ph__region_open(sent, 8192, true, &opened), PH_ERROR_PEER, "4096 bytes instead of 8192");
    assert_false(is_open(sent));
    sent = sent_copy(&region);
    assert_fails(ph__region_open(sent, 100, true, &opened), PH_ERROR_PEER, "4096 bytes instead of 100");
    assert_false(is_open(sent));

    sent =
        memfd_create("test-region", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* could shrink after it was mapped */
    assert_int_equal(ftruncate(sent, 4096), 0);
    assert_fails(ph__region_open(sent, 4096, true, &opened), PH_ERROR_PEER, "not sealed");
    assert_false(is_open(sent));

    assert_int_equal(pipe(pipe_ends), 0);
    close(pipe_ends[1]);
    assert_fails(
        ph__region_open(pipe_ends[0], 4096, true, &opened), PH_ERROR_PEER, "0 bytes instead of 4096");
    assert_fails(ph__region_open(pipe_ends[0], 4096, true, &opened), PH_ERROR_PEER, "cannot be examined");
    assert_null(opened.memory);
    ph__region_close(&region);
}

static void what_cannot_be_had_is_one_clear_line(void **state)
{
    (void)state;
    struct ph__region region = {0};
    assert_fails(ph__region_create("too-much", SIZE_MAX / 2, &region), PH_ERROR_MEMORY,
        "too-much: cannot reserve addresses for 9223372036854775807 bytes");
    assert_null(region.memory);
    ph__region_close(&region); /* of none: nothing */
    assert_true(is_open(0));
}

static void a_descriptor_that_was_given_away_stays_open(void **state)
{
    (void)state;
    struct ph__region region;
    assert_ok(ph__region_create("test-region", 4096, &region));
    const int given = region.descriptor;
    region.descriptor = -1;
    ph__region_close(&region);
    assert_true(is_open(given));
    close(given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_zeros_at_first_and_aligned),
        cmocka_unit_test(another_mapping_sees_the_same_bytes),
        cmocka_unit_test(pages_become_large_and_keep_what_they_hold),
        cmocka_unit_test(nobody_can_change_its_size),
        cmocka_unit_test(after_the_seal_only_the_maker_can_write),
        cmocka_unit_test(a_read_only_mapping_cannot_be_written),
        cmocka_unit_test(what_was_not_made_so_is_refused),
        cmocka_unit_test(what_cannot_be_had_is_one_clear_line),
        cmocka_unit_test(a_descriptor_that_was_given_away_stays_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
