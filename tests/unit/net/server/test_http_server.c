/* Clients with plain sockets and the server they talk to, in one thread: whoever waits lets the server run.
 */
#include "net/server/http_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link/socket.h"
#include "support/test_support.h"

enum { LARGE_BYTES = 3 << 20, CONNECT_MS = 20000 };

static int log_ends[2]; /* of the pipe that the server's log goes into */
static struct ph__log server_log;
static struct ph__http_server *server;

static ph_status write_text(void *context, struct ph__writer *writer)
{
    return ph__writer_printf(writer, "%s\n", (const char *)context);
}

static ph_status write_many(void *context, struct ph__writer *writer)
{
    for (size_t i = 0; i < *(const size_t *)context; i++)
        PH_TRY(ph__writer_write(writer, "x", 1));
    return PH_OK;
}

static ph_status fail_to_write(void *context, struct ph__writer *writer)
{
    (void)context;
    PH_TRY(ph__writer_printf(writer, "half a page"));
    return ph_fail(PH_ERROR_DATA, "nobody knows");
}

static char hello[] = "hello";
static size_t large_size = LARGE_BYTES, too_large_size = PH_HTTP_MAX_PAGE_BYTES + 1, no_size = 0;

static const struct ph__http_page pages[] = {
    {"/hello", "text/plain; charset=utf-8", write_text, hello},
    {"/large", "application/octet-stream", write_many, &large_size},
    {"/too_large", "text/plain", write_many, &too_large_size},
    {"/nothing", "text/plain", write_many, &no_size},
    {"/failing", "text/plain", fail_to_write, NULL},
};

static struct ph__http_options make_options(void)
{
    return (struct ph__http_options){
        .pages = pages, .num_pages = sizeof pages / sizeof *pages, .log = &server_log};
}

static int start_server(void **state)
{
    (void)state;
    const struct ph__http_options options = make_options();
    if (pipe(log_ends) != 0)
        return -1;
    ph__log_init(&server_log);
    server_log.descriptor = log_ends[1];
    return ph__http_server_create(&options, &server);
}

static int stop_server(void **state)
{
    (void)state;
    ph__http_server_destroy(server);
    close(log_ends[0]);
    return close(log_ends[1]);
}

/* ---- clients ---- */

static int connect_client(void)
{
    int client;
    assert_ok(ph__socket_connect(ph__http_server_address(server), CONNECT_MS, &client));
    return client;
}

/* Waits until the client can read (or write), or a little, and lets the server do what it has to. */
static void wait_for(int client, short events)
{
    struct pollfd descriptors[] = {
        {.fd = ph__http_server_descriptor(server), .events = POLLIN}, {.fd = client, .events = events}};
    const int timeout = ph__http_server_timeout_ms(server);
    assert_true(poll(descriptors, 2, timeout >= 0 && timeout < 10 ? timeout : 10) >= 0);
    assert_ok(ph__http_server_run(server));
}

/* What the server has sent when it closed, or when `until` bytes have come: NUL-terminated, malloc'ed. */
static char *receive(int client, size_t until)
{
    char *text = malloc(LARGE_BYTES + 4096);
    size_t size = 0;
    ssize_t count = 1;
    while (count != 0 && size < until) {
        count = recv(client, text + size, LARGE_BYTES + 4095 - size, MSG_DONTWAIT);
        if (count < 0 && errno == ECONNRESET) /* closed with our bytes unread */
            break;
        assert_true(count >= 0 || errno == EAGAIN);
        size += count > 0 ? (size_t)count : 0;
        if (count < 0)
            wait_for(client, POLLIN);
    }
    text[size] = '\0';
    return text;
}

/* As much of it as the server takes before it closes. */
static void send_all(int client, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = send(client, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN)
            return;
        if (count < 0) {
            wait_for(client, POLLOUT);
            continue;
        }
        bytes += count;
        size -= (size_t)count;
    }
}

/* The whole answer to some bytes; the connection ends with it. The client sends no more only when the server
 * has seen these: libmicrohttpd overlooks an end that comes together with the last bytes, until the
 * connection has idled too long. */
static char *ask_bytes(const char *bytes, size_t size)
{
    const int client = connect_client();
    wait_for(client, 0); /* is accepted */
    send_all(client, bytes, size);
    wait_for(client, 0);
    shutdown(client, SHUT_WR);
    char *answer = receive(client, SIZE_MAX);
    close(client);
    return answer;
}

static char *ask(const char *request)
{
    return ask_bytes(request, strlen(request));
}

#define CLOSING " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"

static void expect(const char *request, const char *first_line, const char *part, const char *body)
{
    char *answer = ask(request);
    const char *head_end = strstr(answer, "\r\n\r\n");
    if (strncmp(answer, first_line, strlen(first_line)) != 0 || strstr(answer, part) == NULL ||
        head_end == NULL || strcmp(head_end + 4, body) != 0)
        fail_msg("to \"%s\": \"%s\"", request, answer);
    free(answer);
}

static void expect_still_serving(void)
{
    expect("GET /hello" CLOSING, "HTTP/1.1 200 OK\r\n", "Content-Length: 6\r\n", "hello\n");
}

/* ---- answers ---- */

static void a_page_is_given_to_who_gets_its_path(void **state)
{
    (void)state;
    expect("GET /hello" CLOSING, "HTTP/1.1 200 OK\r\n", "Content-Type: text/plain; charset=utf-8\r\n",
        "hello\n");
    expect("GET /hello?name[]=x" CLOSING, "HTTP/1.1 200 OK\r\n", "", "hello\n");
    expect("GET /nothing" CLOSING, "HTTP/1.1 200 OK\r\n", "Content-Length: 0\r\n", "");
    char *answer = ask("GET /large" CLOSING);
    assert_non_null(strstr(answer, "Content-Length: 3145728\r\n"));
    assert_int_equal(strspn(strstr(answer, "\r\n\r\n") + 4, "x"), LARGE_BYTES);
    free(answer);
}

static void other_paths_and_methods_are_refused(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW", "get"};
    static const char *const paths[] = {"/", "/hell", "/hello/", "//hello", "/hello/../hello", "/HELLO"};
    char request[200];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(request, sizeof request, "GET %s" CLOSING, paths[i]);
        expect(request, "HTTP/1.1 404 Not Found\r\n", "", "not found\n");
    }
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        snprintf(request, sizeof request, "%s /hello" CLOSING, methods[i]);
        expect(request, "HTTP/1.1 405 Method Not Allowed\r\n", "Allow: GET\r\n", "only GET\n");
    }
    expect("HEAD /hello" CLOSING, "HTTP/1.1 405 Method Not Allowed\r\n", "Allow: GET\r\n", "");
    expect("POST /hello HTTP/1.1\r\nHost: here\r\nContent-Length: 6\r\n\r\nhello\n", "HTTP/1.1 405",
        "Allow: GET\r\n", "only GET\n");
}

static void a_page_that_fails_is_logged_and_not_told(void **state)
{
    (void)state;
    char line[1000];
    expect(
        "GET /failing" CLOSING, "HTTP/1.1 500 Internal Server Error\r\n", "", "the page could not be made\n");
    ssize_t size = read(log_ends[0], line, sizeof line - 1);
    line[size > 0 ? size : 0] = '\0';
    assert_non_null(
        strstr(line, "level=warning event=http_page_failed path=/failing error=\"nobody knows\"\n"));
    expect("GET /too_large" CLOSING, "HTTP/1.1 500 Internal Server Error\r\n", "",
        "the page could not be made\n");
    size = read(log_ends[0], line, sizeof line - 1);
    line[size > 0 ? size : 0] = '\0';
    assert_non_null(strstr(line, "path=/too_large error=\"/too_large: more than 4194304 bytes\"\n"));
}

static void one_connection_asks_many_times(void **state)
{
    (void)state;
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: here\r\n\r\n";
    static const char twice[] = "GET /hello HTTP/1.1\r\nHost: here\r\n\r\nGET /hello" CLOSING;
    const int client = connect_client();
    size_t size = 0;
    for (int i = 0; i < 3; i++) {
        send_all(client, request, strlen(request));
        char *answer = receive(client, size > 0 ? size : 1);
        assert_memory_equal(answer, "HTTP/1.1 200 OK\r\n", 17);
        size = strlen(answer);
        free(answer);
    }
    send_all(client, twice, strlen(twice));
    char *answer = receive(client, SIZE_MAX);
    assert_non_null(strstr(answer, "hello\nHTTP/1.1 200 OK\r\n"));
    free(answer);
    close(client);
}

/* ---- bad clients ---- */

/* Refused or left without an answer, but never given a page. */
static void expect_no_page(const char *bytes, size_t size)
{
    char *answer = ask_bytes(bytes, size);
    const bool is_refusal = strncmp(answer, "HTTP/1.1 4", 10) == 0 ||
                            strncmp(answer, "HTTP/1.0 4", 10) == 0 ||
                            strncmp(answer, "HTTP/1.1 505 ", 13) == 0;
    if (answer[0] != '\0' && !is_refusal)
        fail_msg("\"%.100s\" is answered \"%.100s\"", bytes, answer);
    free(answer);
    expect_still_serving();
}

static void what_is_not_http_is_refused(void **state)
{
    (void)state;
    static const char *const requests[] = {"", "\r\n\r\n", "GET\r\n\r\n", "GET /hello\r\n\r\n",
        "GET /hello HTTP/9.9\r\n\r\n", "GET /hello HTTP/1.1\r\nHost",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "GET /hello HTTP/1.1\r\nHost: here\r\nContent-Length: -1\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nabcde"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        expect_no_page(requests[i], strlen(requests[i]));
    static const char zeros[1000];
    expect_no_page(zeros, sizeof zeros);
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    static char request[SIZE];
    memset(request, 'a', SIZE);
    expect_no_page(request, SIZE);
    memcpy(request, "GET /hello?", 11);
    expect_no_page(request, SIZE);
    memcpy(request, "GET /hello HTTP/1.1\r\nHost: ", 27);
    expect_no_page(request, SIZE);
    memset(request, '\n', SIZE);
    for (size_t at = 0; at + 6 <= SIZE; at += 6)
        memcpy(request + at, "a: b\r\n", 6);
    memcpy(request, "GET /hello HTTP/1.1\r\nA: bb\r\nA:", 30);
    expect_no_page(request, SIZE);
}

/* In the middle of a request, and of an answer, with and without having read some of it. */
static void a_client_that_hangs_up_takes_nothing_with_it(void **state)
{
    (void)state;
    static const char request[] = "GET /large" CLOSING;
    for (size_t sent = 0; sent <= strlen(request); sent += 9)
        for (size_t until = 0; until <= 1; until++) {
            const int client = connect_client();
            send_all(client, request, sent);
            wait_for(client, 0);
            if (sent > strlen(request) - 9)
                free(receive(client, until));
            close(client);
            expect_still_serving();
        }
}

static void several_clients_are_served_at_once(void **state)
{
    (void)state;
    enum { NUM_CLIENTS = 8 };
    static const char request[] = "GET /hello" CLOSING;
    int clients[NUM_CLIENTS];
    for (size_t c = 0; c < NUM_CLIENTS; c++)
        clients[c] = connect_client();
    for (size_t at = 0; at < strlen(request); at++)
        for (size_t c = 0; c < NUM_CLIENTS; c++) {
            send_all(clients[c], request + at, 1);
            if (at % 7 == c % 7)
                wait_for(clients[c], 0);
        }
    for (size_t c = 0; c < NUM_CLIENTS; c++) {
        char *answer = receive(clients[c], SIZE_MAX);
        assert_non_null(strstr(answer, "\r\n\r\nhello\n"));
        free(answer);
        close(clients[c]);
    }
}

/* Those beyond the limit wait, or are sent away, until others have gone. */
static void clients_beyond_the_limit_harm_nobody_for_long(void **state)
{
    (void)state;
    enum { NUM_CLIENTS = 50 };
    int clients[NUM_CLIENTS];
    for (size_t c = 0; c < NUM_CLIENTS; c++) {
        clients[c] = connect_client();
        wait_for(clients[c], 0);
    }
    for (size_t c = 0; c < NUM_CLIENTS; c++)
        close(clients[c]);
    expect_still_serving();
}

/* ---- the server itself ---- */

static void nothing_is_left_of_a_server_and_its_connections(void **state)
{
    (void)state;
    const size_t before = test_count_descriptors();
    struct ph__http_server *main_server = server;
    const struct ph__http_options options = make_options();
    int clients[3];
    assert_ok(ph__http_server_create(&options, &server));
    for (size_t c = 0; c < 3; c++) {
        clients[c] = connect_client();
        send_all(clients[c], "GET /large" CLOSING, c * 10);
        wait_for(clients[c], 0);
    }
    ph__http_server_destroy(server);
    server = main_server;
    for (size_t c = 0; c < 3; c++)
        close(clients[c]);
    assert_int_equal(test_count_descriptors(), before);
    ph__http_server_destroy(NULL);
}

static void only_loopback_hears_unless_told_otherwise(void **state)
{
    (void)state;
    struct ph__http_options options = make_options();
    struct ph__http_server *other = NULL;
    char address[32];
    int client;
    assert_memory_equal(ph__http_server_address(server), "127.0.0.1:", 10);
    snprintf(address, sizeof address, "127.0.0.2%s", strrchr(ph__http_server_address(server), ':'));
    assert_fails(ph__socket_connect(address, 0, &client), PH_ERROR_PEER, address);
    options.address = "127.0.0.2:0";
    assert_ok(ph__http_server_create(&options, &other));
    assert_memory_equal(ph__http_server_address(other), "127.0.0.2:", 10);
    assert_ok(ph__socket_connect(ph__http_server_address(other), CONNECT_MS, &client));
    close(client);
    ph__http_server_destroy(other);
}

static void an_address_that_cannot_be_listened_at_is_named(void **state)
{
    (void)state;
    struct ph__http_options options = make_options();
    struct ph__http_server *other = NULL;
    options.address = ph__http_server_address(server);
    assert_fails(ph__http_server_create(&options, &other), PH_ERROR_PEER, options.address);
    options.address = "192.0.2.1:0"; /* RFC 5737: nobody's */
    assert_fails(ph__http_server_create(&options, &other), PH_ERROR_PEER, "192.0.2.1:0");
    options.address = "127.0.0.1";
    assert_fails(ph__http_server_create(&options, &other), PH_ERROR_CONFIG, "127.0.0.1");
    assert_null(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_given_to_who_gets_its_path),
        cmocka_unit_test(other_paths_and_methods_are_refused),
        cmocka_unit_test(a_page_that_fails_is_logged_and_not_told),
        cmocka_unit_test(one_connection_asks_many_times),
        cmocka_unit_test(what_is_not_http_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(a_client_that_hangs_up_takes_nothing_with_it),
        cmocka_unit_test(several_clients_are_served_at_once),
        cmocka_unit_test(clients_beyond_the_limit_harm_nobody_for_long),
        cmocka_unit_test(nothing_is_left_of_a_server_and_its_connections),
        cmocka_unit_test(only_loopback_hears_unless_told_otherwise),
        cmocka_unit_test(an_address_that_cannot_be_listened_at_is_named),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
