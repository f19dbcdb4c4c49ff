/* What a socket says of its addresses. */
#include "net/socket.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/socket_kind.h"
#include "support/test_support.h"

static void an_ipv4_address_is_one_place_or_all(void **state)
{
    (void)state;
    assert_kind("127.0.0.1:0", false, true, true);
    assert_kind("127.1.2.3:0", false, true, true);
    assert_kind("0.0.0.0:0", true, false, true);
    assert_false(ph__socket_is_wildcard(-1));
    assert_false(ph__socket_is_ipv4(-1));
}

static void hosts_are_addresses_in_digits(void **state)
{
    (void)state;
    static const char *const hosts[] = {"192.0.2.1", "::1", "2001:db8::ffff:1", "::ffff:192.0.2.1",
        "2001:0db8:1111:2222:3333:4444:192.168.100.100"};
    static const char *const others[] = {"", "localhost", "192.0.2", "192.0.2.256", "192.0.2.1:80", "[::1]",
        "fe80::1%lo", "2001:db8:::1", " 192.0.2.1", "192.0.2.1 "};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_true(strlen(hosts[i]) < PH_HOST_BYTES);
        assert_true(ph__is_host(hosts[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(ph__is_host(others[i]));
}

static void the_other_end_keeps_its_port_at_another_host(void **state)
{
    (void)state;
    char address[PH_ADDRESS_BYTES], wanted[PH_ADDRESS_BYTES];
    int connected, listening;
    assert_ok(ph__socket_listen("127.0.0.1:0", &listening));
    assert_ok(ph__socket_address(listening, address));
    assert_ok(ph__socket_connect(address, 1000, &connected));
    const char *port = strrchr(address, ':') + 1;
    snprintf(wanted, sizeof wanted, "192.0.2.7:%s", port);
    char found[PH_ADDRESS_BYTES];
    assert_ok(ph__socket_peer_at(connected, "192.0.2.7", found));
    assert_string_equal(found, wanted);
    snprintf(wanted, sizeof wanted, "[2001:db8::7]:%s", port);
    assert_ok(ph__socket_peer_at(connected, "2001:db8::7", found));
    assert_string_equal(found, wanted);
    assert_fails(ph__socket_peer_at(listening, "192.0.2.7", found), PH_ERROR_PEER, "cannot be told");
    close(connected);
    close(listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_address_is_one_place_or_all),
        cmocka_unit_test(hosts_are_addresses_in_digits),
        cmocka_unit_test(the_other_end_keeps_its_port_at_another_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
