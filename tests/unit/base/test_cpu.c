#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "support/test_support.h"

static void the_environment_lowers_the_isa(void **state)
{
    (void)state;
    enum ph_isa best = PH_ISA_COUNT, isa = PH_ISA_COUNT;
    unsetenv("PHLOEM_ISA");
    assert_ok(ph__cpu_isa(&best));
    assert_true(best < PH_ISA_COUNT);
    for (int wanted = 0; wanted <= (int)best; wanted++) {
        setenv("PHLOEM_ISA", ph__isa_name((enum ph_isa)wanted), 1);
        assert_ok(ph__cpu_isa(&isa));
        assert_int_equal(isa, wanted);
    }
    for (int wanted = (int)best + 1; wanted < PH_ISA_COUNT; wanted++) {
        setenv("PHLOEM_ISA", ph__isa_name((enum ph_isa)wanted), 1);
        assert_fails(ph__cpu_isa(&isa), PH_ERROR_USAGE, "at most");
    }
    unsetenv("PHLOEM_ISA");
}

static void an_unknown_isa_is_refused(void **state)
{
    (void)state;
    enum ph_isa isa = PH_ISA_COUNT;
    setenv("PHLOEM_ISA", "sse9", 1);
    assert_fails(ph__cpu_isa(&isa), PH_ERROR_USAGE, "PHLOEM_ISA=sse9");
    assert_int_equal(isa, PH_ISA_COUNT);
    unsetenv("PHLOEM_ISA");
    assert_string_equal(ph__isa_name(PH_ISA_COUNT), "unknown");
}

static void subnormals_can_be_flushed(void **state)
{
    (void)state;
    uint32_t former = ph__cpu_float_control();
    volatile float tiny = FLT_MIN;
    ph__cpu_flush_subnormals();
    if (ph__cpu_float_control() == former)
        test_skip("this processor's float control is not known here");
    volatile float half = tiny * .5f;
    float flushed = half;
    ph__cpu_set_float_control(former);
    half = tiny * .5f;
    assert_true(flushed == 0);
    assert_true(half > 0);
}

static void there_is_a_processor(void **state)
{
    (void)state;
    assert_true(ph__cpu_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_lowers_the_isa),
        cmocka_unit_test(an_unknown_isa_is_refused),
        cmocka_unit_test(subnormals_can_be_flushed),
        cmocka_unit_test(there_is_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
