#include <stdint.h>
#include <string.h>

#include "base/memory/arena.h"
#include "support/test_support.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    unsigned char *former = NULL;
    for (size_t size = 1; size < 300; size++) {
        unsigned char *bytes = ph__arena_alloc(&arena, size);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes, 0xff, size);
        if (former != NULL)
            assert_int_equal(former[0], 0xff);
        former = bytes;
    }
    ph__arena_fini(&arena);
}

static void a_large_request_gets_a_block_of_its_own(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    char *small = ph__arena_strdup(&arena, "small");
    unsigned char *large = ph__arena_alloc(&arena, 1 << 20);
    assert_non_null(large);
    memset(large, 1, 1 << 20);
    assert_string_equal(small, "small");
    ph__arena_fini(&arena);
}

static void requests_that_overflow_fail_with_a_record(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    assert_null(ph__arena_alloc_array(&arena, SIZE_MAX / 2, 3));
    assert_non_null(strstr(ph_error_text(), "out of memory"));
    assert_null(ph__arena_alloc(&arena, SIZE_MAX - 1));
    assert_null(ph__arena_alloc(&arena, SIZE_MAX - 40));
    ph__arena_fini(&arena);
}

static void texts_are_copied_and_formatted(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    assert_string_equal(ph__arena_strdup(&arena, ""), "");
    assert_string_equal(ph__arena_printf(&arena, "%s[%d].%s", "fields", 3, "name"), "fields[3].name");
    ph__arena_fini(&arena);
}

static void nothing_can_be_asked_for_and_freed(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    ph__arena_fini(&arena);
    assert_non_null(ph__arena_alloc(&arena, 0));
    ph__arena_fini(&arena);
    assert_null(arena.blocks);
}

static void a_reset_arena_gives_zeroed_memory_again_from_one_block(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    unsigned char *memory = NULL;
    ph__arena_reset(&arena);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 5; i++) {
            memory = ph__arena_alloc(&arena, 20000);
            assert_non_null(memory);
            for (size_t byte = 0; byte < 20000; byte++)
                assert_int_equal(memory[byte], 0);
            memset(memory, 0xff, 20000);
        }
        ph__arena_reset(&arena);
    }
    struct ph__arena_block *block = arena.blocks;
    for (size_t i = 0; i < 5; i++)
        assert_non_null(ph__arena_alloc(&arena, 20000));
    assert_ptr_equal(arena.blocks, block);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(a_large_request_gets_a_block_of_its_own),
        cmocka_unit_test(requests_that_overflow_fail_with_a_record),
        cmocka_unit_test(texts_are_copied_and_formatted),
        cmocka_unit_test(nothing_can_be_asked_for_and_freed),
        cmocka_unit_test(a_reset_arena_gives_zeroed_memory_again_from_one_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
