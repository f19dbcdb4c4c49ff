#include "unit/kernel/kernel_test.h"

#include "kernel/kernel_list.h"

static void every_table_has_every_kernel(void **state)
{
    (void)state;
    for (int isa = 0; isa < PH_ISA_COUNT; isa++) {
        const struct ph__kernels *kernels = ph__kernels_for((enum ph__isa)isa);
#define CHECK(name, avx2, avx512) assert_true(kernels->name != NULL);
        PH_KERNEL_LIST(CHECK)
#undef CHECK
    }
}

static void an_isa_is_served_by_its_own_table_or_a_lower_one(void **state)
{
    (void)state;
    enum ph__isa best;
    assert_ok(ph__cpu_isa(&best));
    assert_int_equal(ph__kernels_for(PH_ISA_REF)->isa, PH_ISA_REF);
    assert_int_equal(ph__kernels_for(best)->isa, best);
    for (int isa = 0; isa < PH_ISA_COUNT; isa++)
        assert_true((int)ph__kernels_for((enum ph__isa)isa)->isa <= isa);
}

static void the_reference_table_is_plain_c(void **state)
{
    (void)state;
    const struct ph__kernels *kernels = ph__kernels_for(PH_ISA_REF);
#define CHECK(name, avx2, avx512) assert_true(kernels->name == ph__##name##_ref);
    PH_KERNEL_LIST(CHECK)
#undef CHECK
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_has_every_kernel),
        cmocka_unit_test(an_isa_is_served_by_its_own_table_or_a_lower_one),
        cmocka_unit_test(the_reference_table_is_plain_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
