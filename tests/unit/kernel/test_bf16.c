#include "tensor/float16.h"
#include "unit/kernel/kernel_test.h"

/* Every upper half, with lower halves below, at and above the middle. */
static void check_every_word(const struct ph__kernels *kernels)
{
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { COUNT = 1 << 16, BLOCK = 61 };
    for (size_t l = 0; l < sizeof lower / sizeof *lower; l++) {
        for (uint32_t first = 0; first < COUNT; first += BLOCK) {
            const uint32_t count = COUNT - first < BLOCK ? COUNT - first : BLOCK;
            float x[BLOCK], back[BLOCK + 1] = {0};
            uint16_t words[BLOCK + 1] = {0};
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t bits = (first + i) << 16 | lower[l];
                memcpy(&x[i], &bits, sizeof bits);
            }
            kernels->bf16_narrow(count, x, words);
            kernels->bf16_widen(count, words, back);
            for (uint32_t i = 0; i < count; i++) {
                const uint16_t word = ph__bfloat_from_float(x[i]);
                const float widened = ph__float_from_bfloat(word);
                assert_int_equal(words[i], word);
                assert_memory_equal(&back[i], &widened, sizeof widened);
            }
            assert_int_equal(words[count], 0);
        }
    }
}

static void every_number_is_rounded_as_the_specification_says(void **state)
{
    (void)state;
    on_every_isa(check_every_word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_rounded_as_the_specification_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
