/* Exchanges: requests that a handler answers, at once, later or never. Clients and server share one thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "net/link/socket.h"
#include "net/server/http_server.h"
#include "support/test_support.h"

enum { MAX_BODY = 1 << 20, CLIENT_TIMEOUT_MS = 600, CONNECT_MS = 20000 };

/* ---- the handler: echoes bodies, by its path at once, later, or not at all ---- */

static struct ph__http_server *server;
static struct ph__http_exchange *waiting; /* the exchange of /later */
static char waiting_body[64];
static size_t num_begun, num_ended, num_cancelled;
static uint64_t announced;

static void refuse(struct ph__http_exchange *exchange)
{
    const struct ph__http_answer answer = {
        .status = 503, .headers = {{"Retry-After", "1"}}, .body = ph__bytes_of("{\"error\":\"full\"}")};
    ph__http_answer(exchange, &answer);
}

static void begin(void *context, struct ph__http_exchange *exchange, uint64_t body_bytes)
{
    assert_ptr_equal(context, &server);
    assert_null(*ph__http_exchange_user(exchange));
    *ph__http_exchange_user(exchange) = &num_begun;
    num_begun++;
    announced = body_bytes;
    if (strcmp(ph__http_exchange_path(exchange), "/full") == 0)
        refuse(exchange);
}

static void echo(struct ph__http_exchange *exchange, struct ph__bytes body)
{
    const struct ph__http_answer answer = {
        .status = 200, .headers = {{"Content-Type", "text/plain"}, {"X-Echo", "yes"}}, .body = body};
    ph__http_answer(exchange, &answer);
}

static void handle(void *context, struct ph__http_exchange *exchange, struct ph__bytes body)
{
    (void)context;
    if (strcmp(ph__http_exchange_path(exchange), "/later") == 0) {
        waiting = exchange;
        assert_true(body.size < sizeof waiting_body);
        memcpy(waiting_body, body.bytes, body.size);
        return;
    }
    if (strcmp(ph__http_exchange_path(exchange), "/header") == 0) {
        const char *header = ph__http_exchange_header(exchange, "x-name");
        body = ph__bytes_of(header != NULL ? header : ph__http_exchange_method(exchange));
    }
    echo(exchange, body);
}

static void end(void *context, struct ph__http_exchange *exchange, bool was_cancelled)
{
    (void)context;
    assert_ptr_equal(*ph__http_exchange_user(exchange), &num_begun);
    num_ended++;
    num_cancelled += was_cancelled;
    if (waiting == exchange)
        waiting = NULL;
}

static const struct ph__http_handler handler = {begin, handle, end, &server};

static int start_server(void **state)
{
    const struct ph__http_options options = {.handler = &handler,
        .max_connections = 64,
        .max_body_bytes = MAX_BODY,
        .client_timeout_ms = CLIENT_TIMEOUT_MS,
        .idle_timeout_ms = 2 * CLIENT_TIMEOUT_MS};
    (void)state;
    num_begun = num_ended = num_cancelled = 0;
    return ph__http_server_create(&options, &server);
}

static int stop_server(void **state)
{
    (void)state;
    ph__http_server_destroy(server);
    server = NULL;
    return num_begun == num_ended ? 0 : -1;
}

/* ---- clients ---- */

static int connect_client(void)
{
    int client;
    assert_ok(ph__socket_connect(ph__http_server_address(server), CONNECT_MS, &client));
    return client;
}

/* Lets the server do what it has to, for up to this long. */
static void run_for(int ms)
{
    const uint64_t deadline = ph__clock_deadline((uint32_t)ms);
    do {
        struct pollfd descriptor = {.fd = ph__http_server_descriptor(server), .events = POLLIN};
        const int timeout = ph__http_server_timeout_ms(server), left = ph__clock_ms_until(deadline);
        assert_true(poll(&descriptor, 1, timeout >= 0 && timeout < left ? timeout : left) >= 0);
        assert_ok(ph__http_server_run(server));
    } while (ph__clock_ms_until(deadline) > 0);
}

static void send_bytes(int client, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = send(client, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN)
            return;
        bytes += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
        run_for(1);
    }
}

static void send_text(int client, const char *text)
{
    send_bytes(client, text, strlen(text));
}

/* Reads an answer until `part` has come, or the server closes: malloc'ed. */
static char *receive(int client, const char *part)
{
    char *text = calloc(1, 2 * MAX_BODY);
    size_t size = 0;
    const uint64_t deadline = ph__clock_deadline(20000);
    while (strstr(text, part) == NULL && ph__clock_ms_until(deadline) > 0) {
        const ssize_t count = recv(client, text + size, 2 * MAX_BODY - 1 - size, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno == ECONNRESET))
            break;
        size += count > 0 ? (size_t)count : 0;
        if (count < 0)
            run_for(2);
    }
    return text;
}

static void expect(int client, const char *first_line, const char *part)
{
    char *answer = receive(client, part);
    if (strncmp(answer, first_line, strlen(first_line)) != 0 || strstr(answer, part) == NULL)
        fail_msg("\"%.200s\" has no \"%s\"", answer, part);
    free(answer);
}

static void expect_closed(int client)
{
    char byte;
    const uint64_t deadline = ph__clock_deadline(20000);
    ssize_t count;
    while ((count = recv(client, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN &&
           ph__clock_ms_until(deadline) > 0)
        run_for(5);
    assert_true(count == 0 || (count < 0 && errno == ECONNRESET));
    close(client);
}

/* ---- tests ---- */

static void a_body_is_handled_whole_and_the_connection_stays(void **state)
{
    (void)state;
    const int client = connect_client();
    send_text(client, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nab");
    run_for(5);
    send_text(client, "cde");
    expect(client, "HTTP/1.1 200", "X-Echo: yes\r\n");
    assert_int_equal(announced, 5);
    send_text(client, "POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3\r\nxyz\r\n4\r\n1234\r\n0\r\n\r\n");
    expect(client, "HTTP/1.1 200", "xyz1234");
    assert_true(announced == UINT64_MAX);
    send_text(client, "GET /header HTTP/1.1\r\nHost: here\r\nX-Name: value of it\r\n\r\n");
    expect(client, "HTTP/1.1 200", "value of it");
    assert_int_equal(announced, 0);
    send_text(client, "BREW /header HTTP/1.1\r\nHost: here\r\n\r\n");
    expect(client, "HTTP/1.1 200", "BREW");
    close(client);
    run_for(20);
    assert_int_equal(num_ended, 4);
    assert_int_equal(num_cancelled, 0);
}

static void a_large_body_comes_back(void **state)
{
    (void)state;
    static char body[MAX_BODY - 5];
    const int client = connect_client();
    memset(body, 'x', sizeof body);
    memcpy(body + sizeof body - 4, "done", 4);
    send_text(client, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 1048571\r\n\r\n");
    send_bytes(client, body, sizeof body);
    expect(client, "HTTP/1.1 200", "xdone");
    close(client);
}

/* Nothing tells the driver that an answer waits to be sent but the server's own timeout. */
static void an_answer_that_is_given_at_once_is_due_at_once(void **state)
{
    (void)state;
    const int client = connect_client();
    static const char request[] = "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nnow";
    char answer[1000];
    assert_int_equal(send(client, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    while (recv(client, answer, sizeof answer, MSG_DONTWAIT) < 0) {
        struct pollfd descriptor = {.fd = ph__http_server_descriptor(server), .events = POLLIN};
        const int timeout = ph__http_server_timeout_ms(server), count = poll(&descriptor, 1, timeout);
        assert_true(count > 0 || timeout == 0);
        assert_ok(ph__http_server_run(server));
    }
    assert_memory_equal(answer, "HTTP/1.1 200", 12);
    close(client);
}

static void an_answer_may_come_later(void **state)
{
    (void)state;
    const int client = connect_client(), other = connect_client();
    send_text(client, "POST /later HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab");
    run_for(20);
    assert_non_null(waiting);
    assert_int_equal(ph__http_server_num_exchanges(server), 1);
    send_text(other, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nother");
    expect(other, "HTTP/1.1 200", "other");
    run_for(2 * CLIENT_TIMEOUT_MS); /* however long that takes */
    assert_non_null(waiting);
    echo(waiting, ph__bytes_of("answer"));
    expect(client, "HTTP/1.1 200", "answer");
    run_for(10);
    assert_null(waiting);
    assert_int_equal(ph__http_server_num_exchanges(server), 0);
    close(client);
    close(other);
}

static void a_client_that_goes_cancels_its_exchange(void **state)
{
    (void)state;
    const int client = connect_client();
    send_text(client, "POST /later HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab");
    run_for(20);
    assert_non_null(waiting);
    close(client);
    run_for(50);
    assert_null(waiting);
    assert_int_equal(num_cancelled, 1);
    assert_int_equal(ph__http_server_num_exchanges(server), 0);
    const int half = connect_client();
    send_text(half, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf");
    close(half);
    run_for(50);
    assert_int_equal(num_cancelled, 2);
}

static void a_refused_body_is_not_read(void **state)
{
    (void)state;
    const int client = connect_client();
    send_text(client, "POST /full HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n");
    expect(client, "HTTP/1.1 503", "{\"error\":\"full\"}");
    expect_closed(client);
    assert_int_equal(num_cancelled, 0);
}

static void a_body_beyond_the_limit_ends_the_connection(void **state)
{
    (void)state;
    static char body[MAX_BODY + 1];
    const int client = connect_client();
    memset(body, 'x', sizeof body);
    send_text(client, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 1048577\r\n\r\n");
    send_bytes(client, body, sizeof body);
    expect_closed(client);
    run_for(10);
    assert_int_equal(num_cancelled, 1);
}

static void slow_and_idle_clients_are_cut_off(void **state)
{
    (void)state;
    const int slow_head = connect_client(), slow_body = connect_client(), idle = connect_client();
    const uint64_t start = ph__clock_ns();
    send_text(idle, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nidle");
    expect(idle, "HTTP/1.1 200", "idle");
    send_text(slow_head, "POST /echo HTTP/1.1\r\nHost");
    send_text(slow_body, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n");
    for (size_t i = 0; i < 80 && ph__clock_ns() - start < 5 * CLIENT_TIMEOUT_MS * 1000000ull; i++) {
        (void)!send(slow_head, "a", 1, MSG_NOSIGNAL);
        (void)!send(slow_body, "a", 1, MSG_NOSIGNAL);
        run_for(CLIENT_TIMEOUT_MS / 10);
    }
    expect_closed(slow_head);
    expect_closed(slow_body);
    expect_closed(idle);
    run_for(10);
    assert_int_equal(num_cancelled, 1);
}

static void a_server_that_drains_answers_what_it_has(void **state)
{
    (void)state;
    const int client = connect_client(), idle = connect_client();
    send_text(idle, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nidle");
    expect(idle, "HTTP/1.1 200", "idle");
    send_text(client, "POST /later HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab");
    run_for(20);
    ph__http_server_drain(server);
    expect_closed(idle);
    assert_non_null(waiting);
    echo(waiting, ph__bytes_of("last"));
    expect(client, "HTTP/1.1 200", "last");
    expect_closed(client);
}

static void a_destroyed_server_ends_its_exchanges(void **state)
{
    (void)state;
    const int client = connect_client();
    send_text(client, "POST /later HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab");
    run_for(20);
    assert_non_null(waiting);
    ph__http_server_destroy(server);
    server = NULL;
    assert_int_equal(num_cancelled, 1);
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_body_is_handled_whole_and_the_connection_stays, start_server, stop_server),
        cmocka_unit_test_setup_teardown(a_large_body_comes_back, start_server, stop_server),
        cmocka_unit_test_setup_teardown(
            an_answer_that_is_given_at_once_is_due_at_once, start_server, stop_server),
        cmocka_unit_test_setup_teardown(an_answer_may_come_later, start_server, stop_server),
        cmocka_unit_test_setup_teardown(a_client_that_goes_cancels_its_exchange, start_server, stop_server),
        cmocka_unit_test_setup_teardown(a_refused_body_is_not_read, start_server, stop_server),
        cmocka_unit_test_setup_teardown(
            a_body_beyond_the_limit_ends_the_connection, start_server, stop_server),
        cmocka_unit_test_setup_teardown(slow_and_idle_clients_are_cut_off, start_server, stop_server),
        cmocka_unit_test_setup_teardown(a_server_that_drains_answers_what_it_has, start_server, stop_server),
        cmocka_unit_test_setup_teardown(a_destroyed_server_ends_its_exchanges, start_server, stop_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
