/* What a scoring server answers, and what becomes of requests in flight. */
#include "unit/serve/server/scoring_server_case.h"

#include <stdatomic.h>

#include "base/format/json.h"
#include "phloem/serve.h"

enum {
    NUM_COLUMNS = 7,
    NUM_CLIENTS = 8,
    NUM_REQUESTS = 20,    /* of each client */
    LONG_US = 3000000000, /* a batch waits: requests stay in the queue */
};

static float wanted[NUM_ROWS]; /* what ph_session_score says of user, price, city, shop and seen */

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

static int make_scored_repository(void **state)
{
    make_repository(state);
    score_rows(run_folder);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server_describes_itself_and_its_models),
        TEST(scores_are_those_of_a_session_bit_for_bit),
        TEST(an_error_says_what_is_wrong),
        TEST(metrics_count_what_is_done),
        TEST(a_server_that_stops_answers_what_is_in_flight),
        TEST(requests_that_last_too_long_are_cancelled_at_the_end),
        TEST(a_client_that_goes_cancels_its_request),
        TEST(a_request_that_is_late_is_refused),
        TEST(many_clients_are_served_at_once),
    };
    return cmocka_run_group_tests(tests, make_scored_repository, NULL);
}
