/* What a scoring server lets its clients change, and whom. */
#include "unit/serve/server/scoring_server_case.h"

#include "base/format/json.h"

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
    expect("POST /v2/models/ads/infer", ONE_ROW, 401, "token");
    expect("GET /v2/models/ads", "", 401, "token");
    expect("GET /", "", 404, "'/'");
    expect("POST /v2/repository/models/other/load", "", 401, "token");
    expect_with("Authorization: Bearer scoring-012345678X\r\n", "GET /v2/models/ads", "", 401, "token");
    expect_with("Authorization: Bearer scoring-01234567890\r\n", "GET /v2/models/ads", "", 401, "token");
    expect_with(scoring, "POST /v2/models/ads/infer", ONE_ROW, 200, "\"probability\"");
    expect_with(scoring, "POST /v2/repository/models/other/load", "", 401, "token");
    expect_with(scoring, "POST /v2/models/other/infer", ONE_ROW, 503, "not ready");
    expect_with(control, "POST /v2/repository/models/other/load", "", 200, "");
    expect_with(scoring, "POST /v2/models/other/infer", ONE_ROW, 200, "\"probability\"");
    expect_with(control, "POST /v2/repository/models/none/load", "", 400, "'none'");
    expect_with(control, "POST /v2/repository/models/other/unload", "", 200, "");
    expect_with(scoring, "POST /v2/models/other/infer", ONE_ROW, 503, "not ready");
    expect_with(control, "POST /v2/models/ads/infer", ONE_ROW, 200, "\"probability\"");
    stop();
}

/* ---- loads ---- */

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
    const int client = connect_to(ph_server_http_address(server));
    assert_true(client >= 0);
    for (size_t i = 0; i < num_requests; i++) {
        assert_true(send_request(client, method_and_path, "", ONE_ROW, strlen(ONE_ROW)));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(impossible_options_are_refused),
        TEST(tokens_say_who_may_do_what),
        TEST(a_load_may_bring_a_config),
        TEST(trace_settings_are_of_all_models_or_of_one),
        TEST(one_in_rate_requests_is_traced_until_count),
    };
    return cmocka_run_group_tests(tests, make_repository, NULL);
}
