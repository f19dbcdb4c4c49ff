/* A scoring server in a thread, over a repository, and clients of HTTP over plain sockets. */
#ifndef PH_TEST_SCORING_SERVER_CASE_H
#define PH_TEST_SCORING_SERVER_CASE_H

#include "unit/serve/repository/repository_folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "base/thread/clock.h"
#include "phloem/server.h"

enum { DEADLINE_MS = 60000, MAX_TEXT = 1 << 20 };

static char run_folder[512]; /* which versions are copies of */
static char repository[512]; /* ads/3 and other/1 */
static struct ph_server_options options;
static struct ph_server *server;
static pthread_t thread;
static ph_status run_status;
static bool is_running;

/* A request of one row. */
#define ONE_ROW "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}"

/* ---- clients: nothing here asserts, so that any thread may use it ---- */

static inline int connect_to(const char *address)
{
    const struct timeval patience = {.tv_sec = DEADLINE_MS / 1000};
    const uint16_t port = (uint16_t)atoi(strrchr(address, ':') + 1);
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client >= 0 && (setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
                           connect(client, (const struct sockaddr *)&to, sizeof to) != 0)) {
        close(client);
        return -1;
    }
    return client;
}

static inline bool send_all(int client, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = send(client, bytes, size, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

/* Sends a request; headers end with \r\n, each. */
static inline bool send_request(
    int client, const char *method_and_path, const char *headers, const char *body, size_t size)
{
    char head[1000];
    const int length = snprintf(head, sizeof head,
        "%s HTTP/1.1\r\nHost: here\r\nContent-Length: %zu\r\n%s\r\n", method_and_path, size, headers);
    return send_all(client, head, (size_t)length) && send_all(client, body, size);
}

struct answer {
    int status;        /* 0: none came */
    char *text, *body; /* text: the head and the body, malloc'ed */
};

static inline struct answer receive(int client)
{
    struct answer answer = {.text = calloc(1, MAX_TEXT)};
    size_t size = 0, wanted_size = SIZE_MAX;
    while (answer.text != NULL && size < wanted_size && size < MAX_TEXT - 1) {
        const ssize_t count = recv(client, answer.text + size, MAX_TEXT - 1 - size, 0);
        if (count <= 0)
            return answer;
        size += (size_t)count;
        char *end = strstr(answer.text, "\r\n\r\n");
        const char *length = strcasestr(answer.text, "content-length:");
        if (end == NULL || length == NULL || length > end)
            continue;
        answer.body = end + 4;
        wanted_size = (size_t)(answer.body - answer.text) + strtoul(length + 15, NULL, 10);
    }
    if (answer.text != NULL)
        answer.status = atoi(answer.text + 9);
    return answer;
}

/* Makes one request over a connection of its own. */
static inline struct answer ask_with(
    const char *address, const char *method_and_path, const char *headers, const char *body)
{
    struct answer answer = {0};
    const int client = connect_to(address);
    if (client >= 0 && send_request(client, method_and_path, headers, body, strlen(body)))
        answer = receive(client);
    if (client >= 0)
        close(client);
    return answer;
}

static inline struct answer ask(const char *method_and_path, const char *body)
{
    return ask_with(ph_server_http_address(server), method_and_path, "", body);
}

/* Expects a status, and a body with this part. */
static inline void expect_with(
    const char *headers, const char *method_and_path, const char *body, int status, const char *part)
{
    struct answer answer = ask_with(ph_server_http_address(server), method_and_path, headers, body);
    if (answer.status != status || strstr(answer.body, part) == NULL)
        fail_msg("%s: \"%s\", not %d with \"%s\"", method_and_path, answer.text != NULL ? answer.text : "",
            status, part);
    if (status >= 400 && part[0] != '\0')
        assert_int_equal(strncmp(answer.body, "{\"error\":\"", 10), 0);
    free(answer.text);
}

static inline void expect(const char *method_and_path, const char *body, int status, const char *part)
{
    expect_with("", method_and_path, body, status, part);
}

/* Tells whether a page of metrics has this line. */
static inline bool has_metric(const char *line)
{
    struct answer answer = ask_with(ph_server_metrics_address(server), "GET /metrics", "", "");
    const bool has_line = answer.status == 200 && strstr(answer.body, line) != NULL;
    free(answer.text);
    return has_line;
}

/* Asks with pauses: a worker of the lowest priority gets no processor beside one that asks all the time. */
#define await(condition)                                                                                   \
    do {                                                                                                   \
        const uint64_t await_until = ph__clock_deadline(DEADLINE_MS);                                      \
        while (!(condition) && ph__clock_ms_until(await_until) > 0)                                        \
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);                                       \
        if (!(condition))                                                                                  \
            fail_msg("%s:%d: %s did not come true in %d ms", __FILE__, __LINE__, #condition, DEADLINE_MS); \
    } while (0)

/* ---- the server ---- */

static inline void *run(void *context)
{
    (void)context;
    run_status = ph_server_run(server, NULL);
    return NULL;
}

static inline bool is_ready(void)
{
    struct answer answer = ask("GET /v2/health/ready", "");
    const bool is_200 = answer.status == 200;
    free(answer.text);
    return is_200;
}

static inline void start(void)
{
    assert_ok(ph_server_create(&options, &server));
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    is_running = true;
    await(is_ready());
    assert_true(ph_server_is_settled(server));
}

static inline void join(void)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    is_running = false;
    assert_ok(run_status);
}

static inline void stop(void)
{
    ph_server_stop(server);
    join();
}

static inline int make_repository(void **state)
{
    (void)state;
    snprintf(run_folder, sizeof run_folder, "%s", make_run_folder("dlrm"));
    snprintf(repository, sizeof repository, "%s", test_fresh_folder());
    put_version(run_folder, repository, "ads", 3);
    put_version(run_folder, repository, "other", 1);
    return 0;
}

static inline int set_options(void **state)
{
    (void)state;
    ph_server_options_init(&options);
    options.repository = repository;
    options.http_address = options.grpc_address = options.metrics_address = "127.0.0.1:0";
    options.num_threads = 2;
    options.log = PH_SERVER_LOG_NONE;
    return 0;
}

static inline int drop_server(void **state)
{
    (void)state;
    if (is_running) {
        ph_server_stop(server);
        pthread_join(thread, NULL);
        is_running = false;
    }
    ph_server_destroy(server);
    server = NULL;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_options, drop_server)

#endif
