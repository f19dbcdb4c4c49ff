/* Echoes bytes over plain TCP; see echo.h. */
#include "echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "figures.h"
#include "net/link/socket.h"
#include "worker_process.h"

enum { PIECE_BYTES = 64 << 10 /* stays in a cache */ };

struct echo_options {
    size_t num_workers, bytes;
    in_port_t port; /* network order; for workers */
};

static void check(bool is_fine, const char *what)
{
    if (!is_fine)
        bench_check(ph_fail(PH_ERROR_PEER, "plain TCP: %s: %s", what, strerror(errno)));
}

static void *memory(size_t bytes)
{
    void *pointer;
    bench_check(ph__memory_alloc(bytes, "plain TCP", &pointer));
    return pointer;
}

/* Makes a socket with the hub's congestion control. */
static int make_socket(const struct sockaddr_in *address)
{
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    check(made >= 0, "socket");
    ph__socket_avoid_pacing(made, (const struct sockaddr *)address);
    return made;
}

/* ---- the side that sends back ---- */

static void *send_back(void *context)
{
    const int connected = *(int *)context;
    char *piece = memory(PIECE_BYTES);
    for (ssize_t count; (count = recv(connected, piece, PIECE_BYTES, 0)) > 0;)
        for (ssize_t sent = 0, now; sent < count; sent += now) {
            now = send(connected, piece + sent, (size_t)(count - sent), MSG_NOSIGNAL);
            check(now > 0, "send");
        }
    close(connected);
    return NULL;
}

static void echo_server(void *context, int from, int to)
{
    const struct echo_options *options = context;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    static int connected[ECHO_MAX_WORKERS];
    pthread_t threads[ECHO_MAX_WORKERS];
    char order;
    const int listening = make_socket(&address);
    check(bind(listening, (struct sockaddr *)&address, size) == 0 &&
              listen(listening, ECHO_MAX_WORKERS) == 0 &&
              getsockname(listening, (struct sockaddr *)&address, &size) == 0,
        "listen");
    child_answer(to, &address.sin_port, sizeof address.sin_port);
    for (size_t i = 0; i < options->num_workers; i++) {
        connected[i] = accept(listening, NULL, NULL);
        check(connected[i] >= 0, "accept");
        check(pthread_create(&threads[i], NULL, send_back, &connected[i]) == 0, "thread");
    }
    while (child_has_order(from, &order, sizeof order)) {
    }
    for (size_t i = 0; i < options->num_workers; i++)
        pthread_join(threads[i], NULL);
}

/* ---- the side that begins ---- */

/* Returns the bytes moved without waiting. Ends the program on an error. */
static size_t move(ssize_t count, const char *what)
{
    check(count > 0 || (count < 0 && errno == EAGAIN), what);
    return count > 0 ? (size_t)count : 0;
}

static double exchange(int connected, const char *out, char *in, size_t bytes)
{
    const double start = ph__clock_seconds();
    for (size_t sent = 0, received = 0; received < bytes;) {
        struct pollfd polled = {.fd = connected, .events = (short)(POLLIN | (sent < bytes ? POLLOUT : 0))};
        poll(&polled, 1, -1);
        if ((polled.revents & POLLOUT) != 0 && sent < bytes)
            sent += move(send(connected, out + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL), "send");
        if ((polled.revents & ~POLLOUT) != 0)
            received += move(recv(connected, in + received, bytes - received, MSG_DONTWAIT), "receive");
    }
    return ph__clock_seconds() - start;
}

static void echo_worker(void *context, int from, int to)
{
    const struct echo_options *options = context;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = options->port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int connected = make_socket(&address), on = 1;
    char *out = memory(options->bytes), *in = memory(options->bytes), order;
    memset(out, 1, options->bytes);
    memset(in, 1, options->bytes);
    check(connect(connected, (const struct sockaddr *)&address, sizeof address) == 0, "connect");
    setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (child_has_order(from, &order, sizeof order)) {
        const double seconds = exchange(connected, out, in, options->bytes);
        child_answer(to, &seconds, sizeof seconds);
    }
    close(connected);
}

struct echo echo_start(size_t num_workers, size_t bytes)
{
    struct echo_options options = {.num_workers = num_workers, .bytes = bytes};
    struct echo echo = {
        .num_workers = num_workers, .server = child_start("bench echo", echo_server, &options)};
    child_hear(&echo.server, &options.port, sizeof options.port);
    for (size_t i = 0; i < num_workers; i++)
        echo.workers[i] = child_start("bench sender", echo_worker, &options);
    echo_seconds(&echo); /* the first exchange is slower */
    return echo;
}

void echo_end(struct echo *echo)
{
    if (echo->num_workers == 0)
        return;
    for (size_t i = 0; i < echo->num_workers; i++)
        child_end(&echo->workers[i]);
    child_end(&echo->server);
    *echo = (struct echo){0};
}

double echo_seconds(const struct echo *echo)
{
    double seconds, most = 0;
    for (size_t i = 0; i < echo->num_workers; i++)
        child_tell(&echo->workers[i], "", 1);
    for (size_t i = 0; i < echo->num_workers; i++) {
        child_hear(&echo->workers[i], &seconds, sizeof seconds);
        most = seconds > most ? seconds : most;
    }
    return most;
}
