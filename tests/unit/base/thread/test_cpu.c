#include <fenv.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "support/test_support.h"

static void the_environment_lowers_the_isa(void **state)
{
    (void)state;
    enum ph__isa best = PH_ISA_COUNT, isa = PH_ISA_COUNT;
    unsetenv("PHLOEM_ISA");
    assert_ok(ph__cpu_isa(&best));
    assert_true(best < PH_ISA_COUNT);
    for (int wanted = 0; wanted <= (int)best; wanted++) {
        setenv("PHLOEM_ISA", ph__isa_name((enum ph__isa)wanted), 1);
        assert_ok(ph__cpu_isa(&isa));
        assert_int_equal(isa, wanted);
    }
    for (int wanted = (int)best + 1; wanted < PH_ISA_COUNT; wanted++) {
        setenv("PHLOEM_ISA", ph__isa_name((enum ph__isa)wanted), 1);
        assert_fails(ph__cpu_isa(&isa), PH_ERROR_USAGE, "at most");
    }
    unsetenv("PHLOEM_ISA");
}

static void an_unknown_isa_is_refused(void **state)
{
    (void)state;
    enum ph__isa isa = PH_ISA_COUNT;
    setenv("PHLOEM_ISA", "sse9", 1);
    assert_fails(ph__cpu_isa(&isa), PH_ERROR_USAGE, "PHLOEM_ISA=sse9");
    assert_int_equal(isa, PH_ISA_COUNT);
    unsetenv("PHLOEM_ISA");
    assert_string_equal(ph__isa_name(PH_ISA_COUNT), "unknown");
}

static void subnormals_can_be_zero(void **state)
{
    (void)state;
    if (ph__cpu_float_control() == 0)
        test_skip("this processor's float control is not known here");
    fenv_t former;
    volatile float tiny = FLT_MIN;
    ph__cpu_float_enter(true, &former);
    volatile float half = tiny * .5f;
    float flushed = half;
    ph__cpu_float_leave(&former);
    half = tiny * .5f;
    assert_true(flushed == 0);
    assert_true(half > 0);
}

/* A third, rounded up and to nearest, is the next float and the one below. */
static void a_callers_mode_is_not_followed_and_comes_back(void **state)
{
    (void)state;
    fenv_t former;
    volatile float one = 1, three = 3;
    volatile long double long_one = 1, long_three = 3;
    volatile float third = one / three;
    volatile long double long_third = long_one / long_three;
    for (int are_subnormals_zero = 0; are_subnormals_zero <= 1; are_subnormals_zero++) {
        fesetround(FE_DOWNWARD);
        feclearexcept(FE_ALL_EXCEPT);
        feraiseexcept(FE_DIVBYZERO);
        ph__cpu_float_enter(are_subnormals_zero != 0, &former);
        volatile float inside = one / three;
        volatile long double long_inside = long_one / long_three;
        volatile float overflow = FLT_MAX * three;
        (void)overflow;
        ph__cpu_float_leave(&former);
        int rounding = fegetround(), flags = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW);
        volatile float outside = one / three;
        fesetround(FE_TONEAREST);
        assert_true(inside == third && long_inside == long_third);
        assert_true(outside < third);
        assert_int_equal(rounding, FE_DOWNWARD);
        assert_int_equal(flags, FE_DIVBYZERO);
    }
}

static void there_is_a_processor(void **state)
{
    (void)state;
    char name[128], cut[4];
    assert_true(ph__cpu_count() >= 1);
    ph__cpu_name(name, sizeof name);
    ph__cpu_name(cut, sizeof cut);
    assert_true(strlen(name) > 0 && strpbrk(name, "\n\t") == NULL);
    assert_true(strlen(cut) < sizeof cut && strncmp(name, cut, strlen(cut)) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_lowers_the_isa),
        cmocka_unit_test(an_unknown_isa_is_refused),
        cmocka_unit_test(subnormals_can_be_zero),
        cmocka_unit_test(a_callers_mode_is_not_followed_and_comes_back),
        cmocka_unit_test(there_is_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
