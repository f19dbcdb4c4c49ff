/* A scoring server in a thread, over a repository, against clients of HTTP over plain sockets. */
#include "unit/serve/repository/repository_folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/format/json.h"
#include "base/thread/clock.h"
#include "phloem/serve.h"
#include "phloem/server.h"

enum {
    DEADLINE_MS = 60000,
    NUM_COLUMNS = 7,
    NUM_CLIENTS = 8,
    NUM_REQUESTS = 20, /* of each client */
    MAX_TEXT = 1 << 20,
    LONG_US = 3000000000, /* a batch waits: requests stay in the queue */
};

static char repository[512];
static float wanted[NUM_ROWS]; /* what ph_session_score says of user, price, city, shop and seen */
static struct ph_server_options options;
static struct ph_server *server;
static pthread_t thread;
static ph_status run_status;
static bool is_running;

/* ---- rows ---- */

static unsigned num_items(size_t row)
{
    return (unsigned)row % 4;
}

static int64_t item(size_t row, unsigned i)
{
    return ((int64_t)row * 5 + i * 7) % 30;
}

static void score_rows(const char *folder)
{
    static char users[NUM_ROWS][16];
    static int64_t seen[NUM_ROWS][4];
    static struct ph_cell cells[NUM_ROWS][NUM_COLUMNS];
    const struct ph_session_options settings = {.size = sizeof settings, .max_batch = 64, .num_threads = 1};
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(folder, &settings, &session));
    for (size_t row = 0; row < NUM_ROWS; row++) {
        for (size_t i = 0; i < NUM_COLUMNS; i++)
            cells[row][i] = (struct ph_cell){.kind = PH_CELL_BLANK};
        for (unsigned i = 0; i < num_items(row); i++)
            seen[row][i] = item(row, i);
        const int length = snprintf(users[row], sizeof users[row], "u%zu", row * 5 % 23);
        cells[row][1] = (struct ph_cell){.kind = PH_CELL_REAL, .real = (double)row * 0.25 - 11};
        cells[row][2] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = users[row], .length = (size_t)length};
        cells[row][3] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)row * 11 % 101 - 50};
        cells[row][4] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)row * 7 % 50};
        cells[row][6] =
            (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = seen[row], .count = num_items(row)};
    }
    assert_ok(ph_session_score(session, NUM_ROWS, cells[0], wanted));
    ph_session_close(session);
}

/* Writes the request of rows [first, first + count). */
static size_t write_request(char *text, size_t first, size_t count)
{
    size_t size = 0, num_seen = 0;
#define ADD(...) size += (size_t)snprintf(text + size, MAX_TEXT - size, __VA_ARGS__)
#define EACH(...)                                        \
    for (size_t row = first; row < first + count; row++) \
    ADD(__VA_ARGS__)
#define COMMA (row > first ? "," : "")
    ADD("{\"id\":\"%zu\",\"inputs\":[{\"name\":\"user\",\"datatype\":\"BYTES\",\"shape\":[%zu],\"data\":[",
        first, count);
    EACH("%s\"u%zu\"", COMMA, row * 5 % 23);
    ADD("]},{\"name\":\"price\",\"datatype\":\"FP64\",\"shape\":[%zu,1],\"data\":[", count);
    EACH("%s%.17g", COMMA, (double)row * 0.25 - 11);
    ADD("]},{\"name\":\"city\",\"datatype\":\"INT64\",\"shape\":[%zu],\"data\":[", count);
    EACH("%s%d", COMMA, (int)(row * 11 % 101) - 50);
    ADD("]},{\"name\":\"shop\",\"datatype\":\"INT32\",\"shape\":[%zu,1],\"data\":[", count);
    EACH("%s[%zu]", COMMA, row * 7 % 50);
    ADD("]},{\"name\":\"seen__offsets\",\"datatype\":\"INT32\",\"shape\":[%zu],\"data\":[0", count + 1);
    EACH(",%zu", num_seen += num_items(row));
    ADD("]},{\"name\":\"seen__values\",\"datatype\":\"INT64\",\"shape\":[%zu],\"data\":[", num_seen);
    num_seen = 0;
    for (size_t row = first; row < first + count; row++)
        for (unsigned i = 0; i < num_items(row); i++)
            ADD("%s%d", num_seen++ > 0 ? "," : "", (int)item(row, i));
    ADD("]}],\"outputs\":[{\"name\":\"probability\"}]}");
    return size;
}

/* ---- clients: nothing here asserts, so that any thread may use it ---- */

static int connect_to(const char *address)
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

static bool send_all(int client, const char *bytes, size_t size)
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
static bool send_request(
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

static struct answer receive(int client)
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
static struct answer ask_with(
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

static struct answer ask(const char *method_and_path, const char *body)
{
    return ask_with(ph_server_http_address(server), method_and_path, "", body);
}

/* Expects a status, and a body with this part. */
static void expect_with(
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

static void expect(const char *method_and_path, const char *body, int status, const char *part)
{
    expect_with("", method_and_path, body, status, part);
}

/* Tells whether a page of metrics has this line. */
static bool has_metric(const char *line)
{
    struct answer answer = ask_with(ph_server_metrics_address(server), "GET /metrics", "", "");
    const bool has_line = answer.status == 200 && strstr(answer.body, line) != NULL;
    free(answer.text);
    return has_line;
}

#define await(condition)                                                                                   \
    do {                                                                                                   \
        const uint64_t await_until = ph__clock_deadline(DEADLINE_MS);                                      \
        while (!(condition) && ph__clock_ms_until(await_until) > 0)                                        \
            ;                                                                                              \
        if (!(condition))                                                                                  \
            fail_msg("%s:%d: %s did not come true in %d ms", __FILE__, __LINE__, #condition, DEADLINE_MS); \
    } while (0)

/* Tells whether the body has the wanted probabilities of these rows, bit for bit. */
static bool has_probabilities(const char *body, size_t first, size_t count)
{
    struct ph__json *json = NULL;
    bool is_right = false;
    if (ph__json_parse(body, strlen(body), "the answer", PH_ERROR_DATA, &json) != PH_OK)
        return false;
    const struct ph__json *output = ph__json_at(ph__json_get(json, "outputs"), 0);
    const struct ph__json *data = ph__json_get(output, "data");
    is_right = ph__json_size(data) == count &&
               strcmp(ph__json_as_text(ph__json_get(output, "name"), ""), "probability") == 0;
    for (size_t i = 0; i < count && is_right; i++) {
        const float number = (float)ph__json_as_number(ph__json_at(data, i), -1);
        is_right = memcmp(&number, &wanted[first + i], sizeof number) == 0;
    }
    ph__json_destroy(json);
    return is_right;
}

/* ---- the server ---- */

static void *run(void *context)
{
    (void)context;
    run_status = ph_server_run(server, NULL);
    return NULL;
}

static bool is_ready(void)
{
    struct answer answer = ask("GET /v2/health/ready", "");
    const bool is_200 = answer.status == 200;
    free(answer.text);
    return is_200;
}

static void start(void)
{
    assert_ok(ph_server_create(&options, &server));
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    is_running = true;
    await(is_ready());
    assert_true(ph_server_is_settled(server));
}

static void join(void)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    is_running = false;
    assert_ok(run_status);
}

static void stop(void)
{
    ph_server_stop(server);
    join();
}

static int make_repository(void **state)
{
    (void)state;
    char run_folder[512];
    snprintf(run_folder, sizeof run_folder, "%s", make_run_folder("dlrm"));
    snprintf(repository, sizeof repository, "%s", test_fresh_folder());
    put_version(run_folder, repository, "ads", 3);
    put_version(run_folder, repository, "other", 1);
    score_rows(run_folder);
    return 0;
}

static int set_options(void **state)
{
    (void)state;
    ph_server_options_init(&options);
    options.repository = repository;
    options.http_address = options.grpc_address = options.metrics_address = "127.0.0.1:0";
    options.num_threads = 2;
    options.log = PH_SERVER_LOG_NONE;
    return 0;
}

static int drop_server(void **state)
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

/* ---- tests ---- */

static void a_server_describes_itself_and_its_models(void **state)
{
    (void)state;
    start();
    assert_int_not_equal(atoi(strrchr(ph_server_grpc_address(server), ':') + 1), 0);
    expect("GET /v2", "", 200, "\"name\":\"phloem\"");
    expect("GET /v2/health/live", "", 200, "");
    expect("GET /v2/models/ads", "", 200, "\"versions\":[\"3\"]");
    expect("GET /v2/models/ads/versions/3", "", 200,
        "{\"name\":\"user\",\"datatype\":\"BYTES\",\"shape\":[-1,1]}");
    expect("GET /v2/models/ads/ready", "", 200, "");
    expect("GET /v2/models/ads/config", "", 200, "\"max_batch_size\":64");
    expect("POST /v2/repository/index", "{\"ready\":true}", 200, "\"name\":\"other\"");
    expect("GET /v2/models/ads/stats", "", 200, "\"inference_count\":0");
    stop();
}

static void scores_are_those_of_a_session_bit_for_bit(void **state)
{
    static const size_t counts[] = {1, 2, 7, 64, 65, NUM_ROWS};
    static char text[MAX_TEXT];
    (void)state;
    start();
    const int client = connect_to(ph_server_http_address(server)); /* one connection for all */
    assert_true(client >= 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t first = i % 2 == 0 ? 0 : NUM_ROWS - counts[i];
        const size_t size = write_request(text, first, counts[i]);
        assert_true(send_request(client, "POST /v2/models/ads/infer", "", text, size));
        struct answer answer = receive(client);
        if (answer.status != 200 || !has_probabilities(answer.body, first, counts[i]))
            fail_msg("%zu rows, of which the first is to be %.9g: %s", counts[i], (double)wanted[first],
                answer.text);
        assert_non_null(strstr(answer.body, "\"model_name\":\"ads\",\"model_version\":\"3\""));
        free(answer.text);
    }
    close(client);
    assert_true(has_metric("nv_inference_count{model=\"ads\",version=\"3\"} 389\n"));
    assert_true(has_metric("nv_inference_request_success{model=\"ads\",version=\"3\"} 6\n"));
    stop();
}

static void an_error_says_what_is_wrong(void **state)
{
    (void)state;
    options.max_request_bytes = 100000;
    start();
    expect("GET /v2/nothing", "", 404, "/v2/nothing");
    expect("GET /v2/models/none", "", 404, "'none'");
    expect("POST /v2/models/none/infer", "{}", 404, "'none'");
    expect("POST /v2/models/ads/versions/4/infer", "{}", 404, "'4'");
    expect("GET /v2/models/ads/infer", "", 405, "POST");
    expect("POST /v2/models/ads/infer", "{\"inputs\":[", 400, "\"}");
    expect("POST /v2/models/ads/infer", "", 400, "\"}");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"nobody\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}", 400,
        "'nobody'");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[1]}]}", 400, "shop");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[1,1000]}]}", 400,
        "row 1");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}],"
        "\"outputs\":[{\"name\":\"nonsense\"}]}",
        400, "'nonsense'");
    expect("POST /v2/repository/models/ads/load", "", 501, "serve.control");
    expect_with("Content-Encoding: br\r\n", "POST /v2/models/ads/infer", "{}", 501, "'br'");
    static char large[100002];
    memset(large, ' ', 100001);
    expect("POST /v2/models/ads/infer", large, 413, "max_request_bytes");
    stop();
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    options.http_address = "0.0.0.0:0";
    assert_fails(ph_server_create(&options, &server), PH_ERROR_CONFIG, "serve.http_address");
    options.http_address = "nonsense";
    assert_fails(ph_server_create(&options, &server), PH_ERROR_CONFIG, "serve.http_address");
    options.http_address = "127.0.0.1:0";
    options.repository = test_path("none");
    assert_fails(ph_server_create(&options, &server), PH_ERROR_DATA, "none");
    options.repository = repository;
    options.token_file = test_write_file("short.token", "short\n");
    assert_fails(ph_server_create(&options, &server), PH_ERROR_CONFIG, "16");
}

static void tokens_say_who_may_do_what(void **state)
{
    static const char scoring[] = "Authorization: Bearer scoring-0123456789\r\n";
    static const char control[] = "Authorization: Bearer control-0123456789\r\n";
    static const char body[] =
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}";
    (void)state;
    options.control = PH_CONTROL_EXPLICIT;
    options.load = "ads";
    char path[600];
    snprintf(path, sizeof path, "%s", test_write_file("scoring.token", "scoring-0123456789\n"));
    options.token_file = path;
    options.admin_token_file = test_write_file("control.token", "control-0123456789");
    start();
    expect("GET /v2/health/ready", "", 200, "");
    expect("GET /v2/models/ads/ready", "", 200, "");
    expect("POST /v2/models/ads/infer", body, 401, "token");
    expect("GET /v2/models/ads", "", 401, "token");
    expect("GET /", "", 404, "'/'");
    expect("POST /v2/repository/models/other/load", "", 401, "token");
    expect_with("Authorization: Bearer scoring-012345678X\r\n", "GET /v2/models/ads", "", 401, "token");
    expect_with("Authorization: Bearer scoring-01234567890\r\n", "GET /v2/models/ads", "", 401, "token");
    expect_with(scoring, "POST /v2/models/ads/infer", body, 200, "\"probability\"");
    expect_with(scoring, "POST /v2/repository/models/other/load", "", 401, "token");
    expect_with(scoring, "POST /v2/models/other/infer", body, 503, "not ready");
    expect_with(control, "POST /v2/repository/models/other/load", "", 200, "");
    expect_with(scoring, "POST /v2/models/other/infer", body, 200, "\"probability\"");
    expect_with(control, "POST /v2/repository/models/none/load", "", 400, "'none'");
    expect_with(control, "POST /v2/repository/models/other/unload", "", 200, "");
    expect_with(scoring, "POST /v2/models/other/infer", body, 503, "not ready");
    expect_with(control, "POST /v2/models/ads/infer", body, 200, "\"probability\"");
    stop();
}

/* ---- traces ---- */

static void trace_settings_are_of_all_models_or_of_one(void **state)
{
    (void)state;
    options.trace_file = test_path("settings.json");
    options.trace_rate = 2;
    start();
    expect("GET /v2/trace/setting", "", 200,
        "\"trace_level\":[\"TIMESTAMPS\"],\"trace_rate\":\"2\",\"trace_count\":\"-1\",\"log_frequency\":"
        "\"0\"");
    expect("POST /v2/models/ads/trace/setting", "{\"trace_rate\":3}", 200, "\"trace_rate\":\"3\"");
    expect("GET /v2/models/other/trace/setting", "", 200, "\"trace_rate\":\"2\"");
    expect("POST /v2/trace/setting", "{\"trace_rate\":\"5\",\"trace_level\":[\"OFF\"]}", 200,
        "\"trace_level\":[\"OFF\"],\"trace_rate\":\"5\"");
    expect("GET /v2/models/other/trace/setting", "", 200, "\"trace_rate\":\"5\"");
    expect("GET /v2/models/ads/trace/setting", "", 200, "\"trace_level\":[\"OFF\"],\"trace_rate\":\"3\"");
    expect("POST /v2/models/ads/trace/setting", "{\"trace_count\":9,\"trace_rate\":0}", 400, "'trace_rate'");
    expect("POST /v2/models/ads/trace/setting", "{\"trace_level\":[\"ALL\"]}", 400, "'ALL'");
    expect("POST /v2/models/ads/trace/setting", "{\"trace_file\":\"/elsewhere\"}", 400, "trace_file");
    expect("POST /v2/models/ads/trace/setting", "{\"trace_mode\":\"triton\"}", 400, "'trace_mode'");
    expect("POST /v2/models/none/trace/setting", "{}", 404, "'none'");
    expect("POST /v2/models/ads/trace/setting", "{\"trace_rate\":null}", 200,
        "\"trace_rate\":\"5\",\"trace_count\":\"-1\"");
    expect("POST /v2/trace/setting", "{\"trace_rate\":null}", 200, "\"trace_rate\":\"1000\"");
    expect("GET /v2/models/ads/trace/setting", "", 200, "\"trace_rate\":\"1000\"");
    stop();
}

/* Makes requests one behind the other. */
static void send_rows(const char *method_and_path, size_t num_requests)
{
    static const char row[] =
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}";
    const int client = connect_to(ph_server_http_address(server));
    assert_true(client >= 0);
    for (size_t i = 0; i < num_requests; i++) {
        assert_true(send_request(client, method_and_path, "", row, strlen(row)));
        struct answer answer = receive(client);
        assert_int_equal(answer.status, 200);
        free(answer.text);
    }
    close(client);
}

static void one_in_rate_requests_is_traced_until_count(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s", test_path("trace.json"));
    options.trace_file = path;
    options.trace_rate = 5;
    start();
    expect("POST /v2/models/ads/trace/setting", "{\"trace_rate\":1,\"trace_count\":3}", 200, "");
    send_rows("POST /v2/models/ads/infer", 7);
    send_rows("POST /v2/models/other/infer", 6); /* the first, and the sixth */
    expect("GET /v2/models/ads/trace/setting", "", 200, "\"trace_count\":\"0\"");
    stop();
    struct ph__json *traces;
    size_t num_ads = 0, num_others = 0;
    assert_ok(ph__json_read(path, PH_ERROR_DATA, MAX_TEXT, &traces));
    for (size_t i = 0; i < ph__json_size(traces); i += 2) {
        const char *model = ph__json_as_text(ph__json_get(ph__json_at(traces, i), "model_name"), "");
        const struct ph__json *stamps = ph__json_get(ph__json_at(traces, i + 1), "timestamps");
        num_ads += strcmp(model, "ads") == 0;
        num_others += strcmp(model, "other") == 0;
        assert_int_equal(ph__json_size(stamps), 11);
        for (size_t s = 1; s < 11; s++)
            assert_true(ph__json_as_integer(ph__json_get(ph__json_at(stamps, s), "ns"), -1) >=
                        ph__json_as_integer(ph__json_get(ph__json_at(stamps, s - 1), "ns"), -1));
    }
    ph__json_destroy(traces);
    assert_true(num_ads == 3 && num_others == 2);
}

static void a_load_may_bring_a_config(void **state)
{
    static const char path[] = "POST /v2/repository/models/ads/load";
    (void)state;
    options.control = PH_CONTROL_EXPLICIT;
    start();
    expect(path, "{\"parameters\":{\"config\":\"{\\\"max_batch_size\\\":7}\"}}", 200, "");
    expect("GET /v2/models/ads/config", "", 200, "\"max_batch_size\":7,");
    expect(path, "{\"parameters\":{\"config\":\"{\\\"parameters\\\":{}}\"}}", 400, "'parameters'");
    expect(path, "{\"parameters\":{\"config\":7}}", 501, "'config'");
    expect(path, "{\"parameters\":{\"file:1/model\":\"AAAA\"}}", 501, "'file:1/model'");
    expect("GET /v2/models/ads/config", "", 200, "\"max_batch_size\":7,");
    expect(path, "", 200, "");
    expect("GET /v2/models/ads/config", "", 200, "\"max_batch_size\":64,");
    stop();
}

static void metrics_count_what_is_done(void **state)
{
    (void)state;
    start();
    assert_true(has_metric("nv_inference_request_success{model=\"ads\",version=\"3\"} 0\n"));
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[3],\"data\":[1,2,3]}]}", 200, "");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1000]}]}", 400, "");
    assert_true(has_metric("nv_inference_request_success{model=\"ads\",version=\"3\"} 1\n"));
    assert_true(has_metric("nv_inference_count{model=\"ads\",version=\"3\"} 3\n"));
    assert_true(has_metric("nv_inference_request_failure{model=\"ads\",version=\"3\",reason=\"OTHER\"} 1\n"));
    assert_true(has_metric("nv_inference_request_success{model=\"other\",version=\"1\"} 0\n"));
    stop();
}

/* ---- requests in flight ---- */

#define ONE_ROW "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}"
#define ONE_WAITS "nv_inference_pending_request_count{model=\"ads\",version=\"3\"} 1\n"

/* Sends a request that waits in the queue. */
static int begin_request(void)
{
    const int client = connect_to(ph_server_http_address(server));
    assert_true(client >= 0);
    assert_true(send_request(client, "POST /v2/models/ads/infer", "", ONE_ROW, strlen(ONE_ROW)));
    await(has_metric(ONE_WAITS));
    return client;
}

static void a_server_that_stops_answers_what_is_in_flight(void **state)
{
    (void)state;
    options.model.max_queue_delay_us = 2000000;
    start();
    const int client = begin_request();
    ph_server_stop(server);
    struct answer answer = receive(client);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "\"probability\""));
    free(answer.text);
    close(client);
    join();
    assert_int_equal(connect_to(ph_server_http_address(server)), -1);
}

static void requests_that_last_too_long_are_cancelled_at_the_end(void **state)
{
    (void)state;
    options.model.max_queue_delay_us = LONG_US;
    options.drain_timeout_ms = 100;
    start();
    const int client = begin_request();
    stop();
    ph_server_destroy(server);
    server = NULL;
    struct answer answer = receive(client);
    assert_int_equal(answer.status, 0);
    free(answer.text);
    close(client);
}

static void a_client_that_goes_cancels_its_request(void **state)
{
    (void)state;
    options.model.max_queue_delay_us = LONG_US;
    start();
    close(begin_request());
    await(has_metric("nv_inference_request_failure{model=\"ads\",version=\"3\",reason=\"CANCELED\"} 1\n"));
    assert_false(has_metric(ONE_WAITS));
    expect("GET /v2/models/ads/stats", "", 200, "\"fail\":{\"count\":1");
    stop();
}

static void a_request_that_is_late_is_refused(void **state)
{
    (void)state;
    options.model.max_queue_delay_us = 200000;
    start();
    expect("POST /v2/models/ads/infer",
        "{\"parameters\":{\"timeout\":20000},\"inputs\":"
        "[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}",
        503, "\"}");
    assert_true(
        has_metric("nv_inference_request_failure{model=\"ads\",version=\"3\",reason=\"REJECTED\"} 1\n"));
    stop();
}

/* ---- many clients ---- */

static atomic_size_t num_right;

static void *send_requests(void *context)
{
    const size_t index = *(const size_t *)context;
    char *text = malloc(MAX_TEXT);
    const int client = connect_to(ph_server_http_address(server));
    for (size_t i = 0; i < NUM_REQUESTS && text != NULL && client >= 0; i++) {
        const size_t first = (index * 31 + i * 17) % 150, count = 1 + (index + i * 13) % 100;
        const size_t size = write_request(text, first, count);
        if (!send_request(client, "POST /v2/models/ads/infer", "", text, size))
            break;
        struct answer answer = receive(client);
        num_right += answer.status == 200 && has_probabilities(answer.body, first, count);
        free(answer.text);
    }
    if (client >= 0)
        close(client);
    free(text);
    return NULL;
}

static void many_clients_are_served_at_once(void **state)
{
    (void)state;
    pthread_t threads[NUM_CLIENTS];
    size_t indices[NUM_CLIENTS];
    num_right = 0;
    start();
    for (size_t i = 0; i < NUM_CLIENTS; i++) {
        indices[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send_requests, &indices[i]), 0);
    }
    for (size_t i = 0; i < NUM_CLIENTS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(num_right, NUM_CLIENTS * NUM_REQUESTS);
    assert_true(has_metric("nv_inference_request_success{model=\"ads\",version=\"3\"} 160\n"));
    stop();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_options, drop_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server_describes_itself_and_its_models),
        TEST(scores_are_those_of_a_session_bit_for_bit),
        TEST(an_error_says_what_is_wrong),
        TEST(impossible_options_are_refused),
        TEST(tokens_say_who_may_do_what),
        TEST(trace_settings_are_of_all_models_or_of_one),
        TEST(one_in_rate_requests_is_traced_until_count),
        TEST(a_load_may_bring_a_config),
        TEST(metrics_count_what_is_done),
        TEST(a_server_that_stops_answers_what_is_in_flight),
        TEST(requests_that_last_too_long_are_cancelled_at_the_end),
        TEST(a_client_that_goes_cancels_its_request),
        TEST(a_request_that_is_late_is_refused),
        TEST(many_clients_are_served_at_once),
    };
    return cmocka_run_group_tests(tests, make_repository, NULL);
}
