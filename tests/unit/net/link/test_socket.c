/* What a socket says of its addresses, and how it paces. */
#include "net/link/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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
    assert_fails(
        ph__socket_peer_at(listening, "192.0.2.7", found), PH_ERROR_PEER, "cannot read a socket's address");
    close(connected);
    close(listening);
}

static void assert_congestion(int socket, const char *wanted)
{
    char name[16] = "";
    socklen_t size = sizeof name;
    assert_int_equal(getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
    assert_string_equal(name, wanted);
}

/* The congestion control of a socket that had `first`, and avoids pacing on its way to `host`. */
static void assert_avoids(const char *first, const char *host, const char *wanted)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    assert_int_equal(setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, first, (socklen_t)strlen(first)), 0);
    ph__socket_avoid_pacing(made, (const struct sockaddr *)&address);
    assert_congestion(made, wanted);
    close(made);
}

static bool can_have(const char *congestion)
{
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    const bool is_had =
        setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) == 0;
    close(made);
    return is_had;
}

static void over_the_loopback_nobody_paces(void **state)
{
    (void)state;
    assert_avoids("reno", "127.0.0.1", "reno"); /* what does not pace is left as it is */
    if (!can_have("bbr"))
        return;
    assert_avoids("bbr", "127.0.0.1", can_have("cubic") ? "cubic" : "reno");
    assert_avoids("bbr", "192.0.2.1", "bbr");
}

static void neither_end_of_a_connection_over_the_loopback_paces(void **state)
{
    (void)state;
    char address[PH_ADDRESS_BYTES], name[16];
    int ends[3];
    assert_ok(ph__socket_listen("127.0.0.1:0", &ends[0]));
    assert_ok(ph__socket_address(ends[0], address));
    assert_ok(ph__socket_connect(address, 5000, &ends[1]));
    while (ph__socket_accept(ends[0], &ends[2]) == PH_OK && ends[2] < 0) {
    }
    for (size_t i = 0; i < 3; i++) {
        socklen_t size = sizeof name;
        assert_int_equal(getsockopt(ends[i], IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
        assert_string_not_equal(name, "bbr");
        close(ends[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_address_is_one_place_or_all),
        cmocka_unit_test(hosts_are_addresses_in_digits),
        cmocka_unit_test(the_other_end_keeps_its_port_at_another_host),
        cmocka_unit_test(over_the_loopback_nobody_paces),
        cmocka_unit_test(neither_end_of_a_connection_over_the_loopback_paces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
