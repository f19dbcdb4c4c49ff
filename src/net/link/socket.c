#include "net/link/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text/number.h"
#include "base/thread/clock.h"

#define BACKLOG 256
#define KEEPALIVE_IDLE_S 1
#define KEEPALIVE_PROBES 3
#define USER_TIMEOUT_MS 4000
#define RETRY_MS 20               /* between two tries for a listener */
#define FIRST_SHARE_NS 250000000u /* first time limit of each address of a name; doubles with each round */

/* ---- addresses ---- */

struct host_port {
    char host[PH_ADDRESS_BYTES]; /* without the brackets of IPv6 */
    const char *port;            /* borrowed from the address */
};

static ph_status split(const char *address, struct host_port *parts_out)
{
    int64_t port;
    const char *colon = strrchr(address, ':');
    const size_t host_bytes = colon != NULL ? (size_t)(colon - address) : 0;
    const bool is_bracketed = host_bytes > 2 && address[0] == '[' && address[host_bytes - 1] == ']';
    if (host_bytes == 0 || colon[1] == '\0' || strlen(address) >= PH_ADDRESS_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "'%s' is not an address: write host:port", address);
    if (!ph__integer_parse(colon + 1, &port) || port < 0 || port > UINT16_MAX)
        return ph_fail(PH_ERROR_CONFIG, "'%s': '%s' is not a port: ports are 0 to 65535", address, colon + 1);
    memcpy(parts_out->host, address + is_bracketed, host_bytes - 2 * (size_t)is_bracketed);
    parts_out->host[host_bytes - 2 * (size_t)is_bracketed] = '\0';
    parts_out->port = colon + 1;
    return PH_OK;
}

struct patience {
    struct ph__wait wait;
    int watched; /* readable input here ends the wait, too; -1: only the deadline does */
};

/* Pauses before another try. Returns false when the wait is over. */
static bool may_try_again(struct patience *patience)
{
    struct pollfd watched = {.fd = patience->watched, .events = POLLIN};
    return ph__wait_ms(&patience->wait) > 0 && poll(&watched, 1, RETRY_MS) <= 0;
}

static ph_status look_up(
    const char *address, bool is_for_listening, struct patience *patience, struct addrinfo **found_out)
{
    struct host_port parts;
    int error;
    PH_TRY(split(address, &parts));
    const struct addrinfo wanted = {
        .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (is_for_listening ? AI_PASSIVE : 0)};
    do
        error = getaddrinfo(parts.host, parts.port, &wanted, found_out);
    while (error == EAI_AGAIN && may_try_again(patience));
    if (error != 0)
        return ph_fail(PH_ERROR_PEER, "'%s': %s", address, gai_strerror(error));
    return PH_OK;
}

/* ---- a new socket ---- */

static void set(int socket, int level, int option, int value)
{
    setsockopt(
        socket, level, option, &value, sizeof value); /* a hint: without it, some things are noticed later */
}

/* Tries CUBIC, then Reno: not every process may use CUBIC, but every one may use Reno. */
void ph__socket_avoid_pacing(int socket, const struct sockaddr *address)
{
    static const char pacing[] = "bbr" /* and its versions */, cubic[] = "cubic", reno[] = "reno";
    char chosen[16] = ""; /* TCP_CA_NAME_MAX */
    socklen_t size = sizeof chosen;
    if (!ph__is_loopback(address) || getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, chosen, &size) != 0 ||
        strncmp(chosen, pacing, sizeof pacing - 1) != 0)
        return;
    if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, cubic, sizeof cubic - 1) != 0)
        (void)setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof reno - 1);
}

static void set_up_tcp(int socket)
{
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_IDLE_S);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

static int make_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* ---- TCP ---- */

static int listen_at(const struct addrinfo *place)
{
    const int listening = make_socket(place->ai_family);
    if (listening < 0)
        return -1;
    set(listening, SOL_SOCKET, SO_REUSEADDR, 1);
    ph__socket_avoid_pacing(listening, place->ai_addr);
    if (bind(listening, place->ai_addr, place->ai_addrlen) == 0 && listen(listening, BACKLOG) == 0)
        return listening;
    const int error = errno;
    close(listening);
    errno = error;
    return -1;
}

ph_status ph__socket_listen(const char *address, int *socket_out)
{
    struct patience none = {.watched = -1};
    struct addrinfo *found;
    PH_TRY(look_up(address, true, &none, &found));
    int listening = -1, error = 0;
    for (const struct addrinfo *place = found; place != NULL && listening < 0; place = place->ai_next) {
        listening = listen_at(place);
        error = error == 0 ? errno : error;
    }
    freeaddrinfo(found);
    if (listening < 0)
        return ph_fail(PH_ERROR_PEER, "cannot listen at '%s': %s", address, strerror(error));
    *socket_out = listening;
    return PH_OK;
}

/* Waits until the socket is connected. Returns 0 or the error. */
static int finish_connect(int socket, struct patience *patience)
{
    struct pollfd polled[2] = {
        {.fd = socket, .events = POLLOUT}, {.fd = patience->watched, .events = POLLIN}};
    int error = 0, count, wait_ms;
    socklen_t size = sizeof error;
    do {
        wait_ms = ph__wait_ms(&patience->wait);
        count = poll(polled, 2, wait_ms);
    } while ((count < 0 && errno == EINTR) || (count == 0 && wait_ms > 0));
    if (count < 0)
        return errno;
    if (polled[0].revents == 0)
        return count == 0 ? ETIMEDOUT : ECANCELED;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/* Tells whether a connection leads to itself. Where no server listens, a connection can still succeed, when
 * its own end is given the very port that it connects to. */
static bool is_with_itself(int socket)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_size = sizeof here, there_size = sizeof there;
    return getsockname(socket, (struct sockaddr *)&here, &here_size) == 0 &&
           getpeername(socket, (struct sockaddr *)&there, &there_size) == 0 && here_size == there_size &&
           memcmp(&here, &there, here_size) == 0;
}

static int connect_to(const struct addrinfo *place, struct patience *patience, int *error_out)
{
    const int connected = make_socket(place->ai_family);
    if (connected < 0) {
        *error_out = errno;
        return -1;
    }
    ph__socket_avoid_pacing(connected, place->ai_addr);
    int error = connect(connected, place->ai_addr, place->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) /* a signal does not end the attempt */
        error = finish_connect(connected, patience);
    if (error == 0 && is_with_itself(connected))
        error = ECONNREFUSED;
    if (error == 0) {
        set_up_tcp(connected);
        return connected;
    }
    close(connected);
    *error_out = error;
    return -1;
}

enum { NO_ERROR, LASTING, PASSING, STARTING }; /* prospects of another try */

/* Returns the prospects of an error. Passing errors may soon be over, as when a network is starting, or are
 * time limits of an address. */
static int prospect_of(int error)
{
    if (error == ECONNREFUSED) /* a server may yet start there */
        return STARTING;
    if (error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT)
        return PASSING;
    return error != 0 ? LASTING : NO_ERROR;
}

/* Connects to one of the places. Of several, each has share_ns, so that a place that does not reply leaves
 * time for those behind it. The error is the first one with the best prospects. */
static int connect_to_any(
    const struct addrinfo *places, uint64_t share_ns, struct patience *patience, int *error_out)
{
    int connected = -1, error = 0;
    *error_out = 0;
    for (const struct addrinfo *place = places; place != NULL && connected < 0; place = place->ai_next) {
        const uint64_t now_ns = ph__clock_ns(), deadline_ns = patience->wait.deadline_ns;
        const bool has_share =
            places->ai_next != NULL && now_ns < deadline_ns && deadline_ns - now_ns > share_ns;
        if (has_share)
            patience->wait.deadline_ns = now_ns + share_ns;
        connected = connect_to(place, patience, &error);
        if (!patience->wait.is_stopped)
            patience->wait.deadline_ns = deadline_ns;
        if (connected < 0 && prospect_of(error) > prospect_of(*error_out))
            *error_out = error;
    }
    return connected;
}

ph_status ph__socket_connect_while(
    const char *address, struct ph__timeout timeout, int watched, int *socket_out)
{
    struct patience patience = {.wait = ph__wait_begin(timeout), .watched = watched};
    struct addrinfo *found;
    int connected, error;
    uint64_t share_ns = FIRST_SHARE_NS;
    const ph_status looked_up = look_up(address, false, &patience, &found);
    if (looked_up != PH_OK)
        return patience.wait.is_stopped ? ph__wait_stopped(&patience.wait) : looked_up;
    do {
        connected = connect_to_any(found, share_ns, &patience, &error);
        if (share_ns < patience.wait.deadline_ns) /* the route may be slow */
            share_ns *= 2;
    } while (connected < 0 && prospect_of(error) > LASTING && may_try_again(&patience));
    freeaddrinfo(found);
    if (connected < 0 && patience.wait.is_stopped)
        return ph__wait_stopped(&patience.wait);
    if (connected < 0)
        return ph_fail(PH_ERROR_PEER, "'%s' cannot be reached: %s", address, strerror(error));
    *socket_out = connected;
    return PH_OK;
}

ph_status ph__socket_connect(const char *address, uint32_t timeout_ms, int *socket_out)
{
    return ph__socket_connect_while(address, (struct ph__timeout){.ms = timeout_ms}, -1, socket_out);
}

ph_status ph__socket_accept(int listening, int *socket_out)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof peer;
    const int connected = accept4(listening, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connected < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        return ph_fail(PH_ERROR_MEMORY, "cannot accept a connection: %s", strerror(errno));
    if (connected >= 0 && peer.ss_family != AF_UNIX)
        set_up_tcp(connected);
    *socket_out = connected;
    return PH_OK;
}

/* ---- local ---- */

static ph_status local_address(const char *name, struct sockaddr_un *address, socklen_t *size_out)
{
    const size_t length = strlen(name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || length + 1 > sizeof address->sun_path)
        return ph_fail(PH_ERROR_CONFIG, "'%s' is not a name of a local socket", name);
    memcpy(address->sun_path + 1, name, length); /* the NUL before it makes it abstract */
    *size_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return PH_OK;
}

ph_status ph__socket_listen_local(const char *name, int *socket_out)
{
    struct sockaddr_un address;
    socklen_t size;
    PH_TRY(local_address(name, &address, &size));
    const int listening = make_socket(AF_UNIX);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, size) != 0 ||
        listen(listening, BACKLOG) != 0) {
        const int error = errno;
        if (listening >= 0)
            close(listening);
        return ph_fail(PH_ERROR_PEER, "cannot listen at local socket '%s': %s", name, strerror(error));
    }
    *socket_out = listening;
    return PH_OK;
}

static int connect_to_local(const struct sockaddr_un *address, socklen_t size, int *error_out)
{
    const int connected = make_socket(AF_UNIX);
    if (connected >= 0 && connect(connected, (const struct sockaddr *)address, size) == 0)
        return connected;
    *error_out = errno;
    if (connected >= 0)
        close(connected);
    return -1;
}

ph_status ph__socket_connect_local(const char *name, uint32_t timeout_ms, int *socket_out)
{
    const struct ph__timeout timeout = {.ms = timeout_ms};
    struct patience patience = {.wait = ph__wait_begin(timeout), .watched = -1};
    struct sockaddr_un address;
    socklen_t size;
    int connected, error;
    PH_TRY(local_address(name, &address, &size));
    do
        connected = connect_to_local(&address, size, &error);
    while (connected < 0 && error == EAGAIN && may_try_again(&patience)); /* the listener's queue is full */
    if (connected < 0)
        return ph_fail(PH_ERROR_PEER, "the hub's local socket cannot be reached: %s", strerror(error));
    *socket_out = connected;
    return PH_OK;
}

bool ph__socket_is_same_user(int socket)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

int ph__socket_peer_process(int socket)
{
    struct ucred who;
    socklen_t size = sizeof who;
    int process = -1;
#ifdef SO_PEERPIDFD
    socklen_t process_size = sizeof process;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &process_size) == 0)
        return process;
#endif
    /* The number could be another process's by now, but then the socket reports the end of the first one. */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid > 0)
        process = (int)syscall(SYS_pidfd_open, who.pid, 0);
    return process;
}
