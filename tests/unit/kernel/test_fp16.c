#include "tensor/float16.h"
#include "unit/kernel/kernel_test.h"

enum { WORDS = 1 << 16, BLOCK = 61 };

/* Numbers with every upper half, and lower halves that fall on both sides of what is rounded to even. */
static void check_narrowing(const struct ph__kernels *kernels)
{
    static const uint32_t lower[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x8000, 0xffff};
    for (size_t l = 0; l < sizeof lower / sizeof *lower; l++) {
        for (uint32_t first = 0; first < WORDS; first += BLOCK) {
            const uint32_t count = WORDS - first < BLOCK ? WORDS - first : BLOCK;
            float x[BLOCK];
            uint16_t words[BLOCK + 1] = {0};
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t bits = (first + i) << 16 | lower[l];
                memcpy(&x[i], &bits, sizeof bits);
            }
            kernels->fp16_narrow(count, x, words);
            for (uint32_t i = 0; i < count; i++)
                assert_int_equal(words[i], ph__half_from_float(x[i]));
            assert_int_equal(words[count], 0);
        }
    }
}

static void check_widening(const struct ph__kernels *kernels)
{
    for (uint32_t first = 0; first < WORDS; first += BLOCK) {
        const uint32_t count = WORDS - first < BLOCK ? WORDS - first : BLOCK;
        uint16_t words[BLOCK];
        float y[BLOCK + 1] = {0};
        for (uint32_t i = 0; i < count; i++)
            words[i] = (uint16_t)(first + i);
        kernels->fp16_widen(count, words, y);
        for (uint32_t i = 0; i < count; i++) {
            const float wanted = ph__float_from_half(words[i]);
            assert_memory_equal(&y[i], &wanted, sizeof wanted);
        }
        assert_true(y[count] == 0);
    }
}

static void every_number_is_rounded_as_the_specification_says(void **state)
{
    (void)state;
    on_every_isa(check_narrowing);
}

static void every_half_is_read_as_the_specification_says(void **state)
{
    (void)state;
    on_every_isa(check_widening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_rounded_as_the_specification_says),
        cmocka_unit_test(every_half_is_read_as_the_specification_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
