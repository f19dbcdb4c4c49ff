/* Asserts the kind of address that a listening socket reports. */
#ifndef PH_TEST_SOCKET_KIND_H
#define PH_TEST_SOCKET_KIND_H

#include <unistd.h>

#include "net/link/socket.h"
#include "support/test_support.h"

static inline void assert_kind(const char *address, bool is_wildcard, bool is_loopback, bool is_ipv4)
{
    int listening;
    assert_ok(ph__socket_listen(address, &listening));
    assert_int_equal(ph__socket_is_wildcard(listening), is_wildcard);
    assert_int_equal(ph__socket_is_loopback(listening), is_loopback);
    assert_int_equal(ph__socket_is_ipv4(listening), is_ipv4);
    close(listening);
}

#endif
