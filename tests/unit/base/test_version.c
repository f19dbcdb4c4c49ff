#include <stdio.h>

#include "phloem/version.h"
#include "support/test_support.h"

static void version_of_the_build_is_the_version_of_the_header(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", PH_VERSION_MAJOR, PH_VERSION_MINOR, PH_VERSION_PATCH);
    assert_string_equal(ph_version(), text);
    assert_int_equal(ph_api_version(), PH_API_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_of_the_build_is_the_version_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
