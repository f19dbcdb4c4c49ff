/* Connecting by a name: this program has getaddrinfo(3) and connect(2) of its own, so that names have the
 * addresses, and these the errors, that are wanted. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/link/socket.h"
#include "support/test_support.h"

enum { TIMEOUT_MS = 60000, AN_HOUR_MS = 3600000, MAX_PLACES = 2, BACKLOG_OF_NONE = 0, MANY = 16 };

static struct {
    struct sockaddr_in addresses[MAX_PLACES];
    size_t num_places;
    unsigned num_look_ups_in_vain; /* before the name is known */
    unsigned num_errors; /* of connect to the last place or a local one, before it is the system's */
    int error;
} world;

/* ---- instead of the system ---- */

int getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted, struct addrinfo **found)
{
    (void)name;
    (void)service;
    (void)wanted;
    if (world.num_look_ups_in_vain > 0) {
        world.num_look_ups_in_vain--;
        return EAI_AGAIN;
    }
    struct addrinfo *places = calloc(MAX_PLACES, sizeof *places);
    assert_non_null(places);
    for (size_t i = 0; i < world.num_places; i++)
        places[i] = (struct addrinfo){.ai_family = AF_INET,
            .ai_socktype = SOCK_STREAM,
            .ai_addr = (struct sockaddr *)&world.addresses[i],
            .ai_addrlen = sizeof world.addresses[i],
            .ai_next = i + 1 < world.num_places ? &places[i + 1] : NULL};
    *found = places;
    return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
    free(found);
}

int connect(int socket, const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_in *last = &world.addresses[world.num_places - 1];
    const bool is_last = address->sa_family == AF_UNIX ||
                         ((const struct sockaddr_in *)(const void *)address)->sin_port == last->sin_port;
    if (world.num_errors > 0 && is_last) {
        world.num_errors--;
        errno = world.error;
        return -1;
    }
    return (int)syscall(SYS_connect, socket, address, size);
}

/* ---- places ---- */

static int listen_at_place(size_t place, int backlog)
{
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in *address = &world.addresses[place];
    socklen_t size = sizeof *address;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listening, (struct sockaddr *)address, size), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)address, &size), 0);
    assert_int_equal(listen(listening, backlog), 0);
    return listening;
}

/* Where nobody answers: more have come than are taken, and whoever comes now hears nothing. */
static int be_black_hole(size_t place, int callers_out[MANY])
{
    const int listening = listen_at_place(place, BACKLOG_OF_NONE);
    for (size_t i = 0; i < MANY; i++) {
        callers_out[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(callers_out[i], (struct sockaddr *)&world.addresses[place], sizeof world.addresses[0]);
    }
    return listening;
}

static void assert_goes_to(int connected, size_t place)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getpeername(connected, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(address.sin_port, world.addresses[place].sin_port);
}

/* ---- tests ---- */

/* Where a server has yet to come. */
static void a_place_that_does_not_answer_leaves_time_for_the_next(void **state)
{
    (void)state;
    int callers[MANY], connected;
    memset(&world, 0, sizeof world);
    world.num_places = 2;
    const int hole = be_black_hole(0, callers);
    const int listening = listen_at_place(1, MANY);
    world.num_errors = 1;
    world.error = ECONNREFUSED;
    assert_ok(ph__socket_connect("two-addresses:80", TIMEOUT_MS, &connected));
    assert_goes_to(connected, 1);
    close(connected);
    for (size_t i = 0; i < MANY; i++)
        close(callers[i]);
    close(hole);
    close(listening);
}

static void a_network_that_is_about_to_start_is_waited_for(void **state)
{
    (void)state;
    static const int errors[] = {EHOSTUNREACH, ENETUNREACH, ECONNREFUSED};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int connected;
        memset(&world, 0, sizeof world);
        world.num_places = 1;
        const int listening = listen_at_place(0, MANY);
        world.num_errors = 3;
        world.error = errors[i];
        assert_ok(ph__socket_connect("starting:80", TIMEOUT_MS, &connected));
        assert_goes_to(connected, 0);
        close(connected);
        close(listening);
    }
}

/* What somebody else says ends the wait, for a place that does not answer and for one that refuses. */
static void who_is_watched_ends_the_wait(void **state)
{
    (void)state;
    int callers[MANY], connected, watched[2];
    memset(&world, 0, sizeof world);
    world.num_places = 1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, watched), 0);
    close(watched[1]);
    const int hole = be_black_hole(0, callers);
    assert_fails(
        ph__socket_connect_while("silent:80", (struct ph__timeout){.ms = AN_HOUR_MS}, watched[0], &connected),
        PH_ERROR_PEER, strerror(ECANCELED));
    for (size_t i = 0; i < MANY; i++)
        close(callers[i]);
    close(hole);
    assert_fails(ph__socket_connect_while(
                     "refusing:80", (struct ph__timeout){.ms = AN_HOUR_MS}, watched[0], &connected),
        PH_ERROR_PEER, strerror(ECONNREFUSED));
    close(watched[0]);
}

static void a_place_among_those_who_wait_at_a_local_socket_is_waited_for(void **state)
{
    (void)state;
    static const char name[] = "phloem-test-socket-connect";
    int listening, connected;
    memset(&world, 0, sizeof world);
    world.num_places = 1;
    assert_ok(ph__socket_listen_local(name, &listening));
    world.num_errors = 3;
    world.error = EAGAIN;
    assert_ok(ph__socket_connect_local(name, TIMEOUT_MS, &connected));
    assert_int_equal(world.num_errors, 0);
    close(connected);
    world.num_errors = 1;
    assert_fails(ph__socket_connect_local(name, 0, &connected), PH_ERROR_PEER, strerror(EAGAIN));
    close(listening);
}

static void what_lasts_is_told_at_once(void **state)
{
    (void)state;
    int connected;
    memset(&world, 0, sizeof world);
    world.num_places = 1;
    world.num_errors = 1;
    world.error = EACCES;
    assert_fails(ph__socket_connect("forbidden:80", TIMEOUT_MS, &connected), PH_ERROR_PEER, strerror(EACCES));
    assert_int_equal(world.num_errors, 0);
}

static void a_name_that_cannot_be_looked_up_yet_is_waited_for(void **state)
{
    (void)state;
    int connected;
    memset(&world, 0, sizeof world);
    world.num_places = 1;
    const int listening = listen_at_place(0, MANY);
    world.num_look_ups_in_vain = 2;
    assert_ok(ph__socket_connect("no-resolver:80", TIMEOUT_MS, &connected));
    close(connected);
    world.num_look_ups_in_vain = 1;
    assert_fails(ph__socket_connect("no-resolver:80", 0, &connected), PH_ERROR_PEER, gai_strerror(EAI_AGAIN));
    close(listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_that_does_not_answer_leaves_time_for_the_next),
        cmocka_unit_test(a_network_that_is_about_to_start_is_waited_for),
        cmocka_unit_test(who_is_watched_ends_the_wait),
        cmocka_unit_test(a_place_among_those_who_wait_at_a_local_socket_is_waited_for),
        cmocka_unit_test(what_lasts_is_told_at_once),
        cmocka_unit_test(a_name_that_cannot_be_looked_up_yet_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
