#include "support/fuzz_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/fuzz_support.h"

/* Waits for a connection that a signal has left on its way: libFuzzer's timer interrupts each second. */
static bool is_connected(int client)
{
    struct pollfd waited = {client, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    while (poll(&waited, 1, -1) < 0)
        fuzz_require(errno == EINTR);
    return getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

int fuzz_connect(const char *address)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    const int no_delay = 1, port = atoi(strrchr(address, ':') + 1);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fuzz_require(connect(client, (const struct sockaddr *)&to, sizeof to) == 0 ||
                 (errno == EINTR && is_connected(client)));
    fuzz_require(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    fuzz_require(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay) == 0);
    return client;
}
