/* The addresses at which rank 0 may be found. */
#include <string.h>

#include "comm/watch/watch_state.h"
#include "support/test_support.h"

static bool has(char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES], size_t num_hosts, const char *host)
{
    for (size_t i = 0; i < num_hosts; i++) {
        if (strcmp(hosts[i], host) == 0)
            return true;
    }
    return false;
}

static void a_host_is_its_own_loopback(void **state)
{
    (void)state;
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    assert_ok(ph__watch_hosts(true, hosts, &num_hosts));
    assert_true(has(hosts, num_hosts, "127.0.0.1"));
}

static void other_hosts_are_told_no_address_that_leads_them_astray(void **state)
{
    (void)state;
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    assert_ok(ph__watch_hosts(false, hosts, &num_hosts));
    for (size_t i = 0; i < num_hosts; i++) {
        assert_true(ph__is_host(hosts[i]));
        assert_int_not_equal(strncmp(hosts[i], "127.", 4), 0);
        assert_int_not_equal(strncmp(hosts[i], "fe80:", 5), 0);
        assert_string_not_equal(hosts[i], "::1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_its_own_loopback),
        cmocka_unit_test(other_hosts_are_told_no_address_that_leads_them_astray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
