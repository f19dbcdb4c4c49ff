/* The REST wire: paths, bodies with and without binary data, and answers. */
#include <stdio.h>
#include <string.h>

#include "serve/wire/rest.h"
#include "support/test_support.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- paths ---- */

static void assert_routes(enum ph__rest_method method, const char *path, enum ph__oip_call call,
    const char *model, const char *version)
{
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    enum ph__oip_call found = PH_OIP_NUM_CALLS;
    const enum ph__oip_code code = ph__rest_route(method, path, &arena, &found, &request);
    if (code != PH_OIP_OK)
        fail_msg("%s: %s", path, ph_error_text());
    if (found != call)
        fail_msg("%s: call %d instead of %d", path, (int)found, (int)call);
    assert_true(ph__bytes_are(request.name, model) && ph__bytes_are(request.version, version));
    assert_true(request.parameters.count == 0 && request.settings.count == 0 && !request.is_ready_only);
    ph__arena_fini(&arena);
}

static void assert_no_route(
    enum ph__rest_method method, const char *path, enum ph__oip_code wanted, const char *part)
{
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    enum ph__oip_call found;
    const enum ph__oip_code code = ph__rest_route(method, path, &arena, &found, &request);
    if (code != wanted)
        fail_msg("%s: code %d instead of %d", path, (int)code, (int)wanted);
    if (strstr(ph_error_text(), part) == NULL)
        fail_msg("%s: '%s' lacks '%s'", path, ph_error_text(), part);
    ph__arena_fini(&arena);
}

enum { TAKES_GET = 1, TAKES_POST = 2 };

static const struct {
    const char *path;
    enum ph__oip_call call;
    const char *model, *version;
    unsigned takes;
} paths[] = {
    {"/v2", PH_OIP_CALL_SERVER_METADATA, "", "", TAKES_GET},
    {"/v2/health/live", PH_OIP_CALL_LIVE, "", "", TAKES_GET},
    {"/v2/health/ready", PH_OIP_CALL_READY, "", "", TAKES_GET},
    {"/v2/models/m/ready", PH_OIP_CALL_MODEL_READY, "m", "", TAKES_GET},
    {"/v2/models/m/versions/3/ready", PH_OIP_CALL_MODEL_READY, "m", "3", TAKES_GET},
    {"/v2/models/m", PH_OIP_CALL_MODEL_METADATA, "m", "", TAKES_GET},
    {"/v2/models/m/versions/12", PH_OIP_CALL_MODEL_METADATA, "m", "12", TAKES_GET},
    {"/v2/models/m/config", PH_OIP_CALL_CONFIG, "m", "", TAKES_GET},
    {"/v2/models/m/versions/1/config", PH_OIP_CALL_CONFIG, "m", "1", TAKES_GET},
    {"/v2/models/stats", PH_OIP_CALL_STATISTICS, "", "", TAKES_GET},
    {"/v2/models/m/stats", PH_OIP_CALL_STATISTICS, "m", "", TAKES_GET},
    {"/v2/models/m/versions/1/stats", PH_OIP_CALL_STATISTICS, "m", "1", TAKES_GET},
    {"/v2/models/m/infer", PH_OIP_CALL_INFER, "m", "", TAKES_POST},
    {"/v2/models/m/versions/1/infer", PH_OIP_CALL_INFER, "m", "1", TAKES_POST},
    {"/v2/repository/index", PH_OIP_CALL_INDEX, "", "", TAKES_POST},
    {"/v2/repository/models/m/load", PH_OIP_CALL_LOAD, "m", "", TAKES_POST},
    {"/v2/repository/models/m/unload", PH_OIP_CALL_UNLOAD, "m", "", TAKES_POST},
    {"/v2/trace/setting", PH_OIP_CALL_TRACE, "", "", TAKES_GET | TAKES_POST},
    {"/v2/models/m/trace/setting", PH_OIP_CALL_TRACE, "m", "", TAKES_GET | TAKES_POST},
};

static void every_path_has_its_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        if ((paths[i].takes & TAKES_GET) != 0)
            assert_routes(PH_REST_GET, paths[i].path, paths[i].call, paths[i].model, paths[i].version);
        if ((paths[i].takes & TAKES_POST) != 0)
            assert_routes(PH_REST_POST, paths[i].path, paths[i].call, paths[i].model, paths[i].version);
    }
}

static void another_method_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_no_route(PH_REST_OTHER, paths[i].path, PH_OIP_BAD_METHOD, paths[i].path);
        if (paths[i].takes == TAKES_GET)
            assert_no_route(PH_REST_POST, paths[i].path, PH_OIP_BAD_METHOD, "takes GET");
        if (paths[i].takes == TAKES_POST)
            assert_no_route(PH_REST_GET, paths[i].path, PH_OIP_BAD_METHOD, "takes POST");
    }
}

static void paths_that_go_on_are_refused(void **state)
{
    (void)state;
    static const char *const more[] = {"/", "/x", "//", "/infer/x", "/versions", "/versions/1/x"};
    for (size_t i = 0; i < COUNT(paths); i++)
        for (size_t m = 0; m < COUNT(more); m++) {
            char path[100];
            snprintf(path, sizeof path, "%s%s", paths[i].path, more[m]);
            assert_no_route(PH_REST_GET, path, PH_OIP_NOT_FOUND, path);
        }
}

static void unknown_paths_are_refused(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", "/", "v2", "//v2", "/v1", "/V2", "/v22", "/v2/", "/v2/x",
        "/v2/health", "/v2/health/alive", "/v2/models", "/v2/models/", "/v2/models//infer", "/v2/models/m/",
        "/v2/models/m/infers", "/v2/models/m/inf", "/v2/models/m//infer", "/v2/repository",
        "/v2/repository/models", "/v2/repository/models/", "/v2/repository/models/m",
        "/v2/repository/models/m/infer", "/v2/repository/models//load", "/v2/models/m/load", "/v2/trace",
        "/v2/models/m/trace", "/v2/models/m/trace/settings", "/v2/../v2", "/../v2", "/v2/models/../../v2",
        "/v2/models/m/versions/1/versions/2/infer", "/v2/models/m/versions/1/trace/setting/x",
        "/v2/models/m/a/b/c/d/e/f/g/h/i/j/k", "/v2/%68ealth/live"};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_no_route(PH_REST_GET, unknown[i], PH_OIP_NOT_FOUND, unknown[i]);
        assert_no_route(PH_REST_POST, unknown[i], PH_OIP_NOT_FOUND, unknown[i]);
    }
}

static void names_of_models_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *path, *model;
    } cases[] = {
        {"/v2/models/a%20b/infer", "a b"},
        {"/v2/models/a%2fb/infer", "a/b"},
        {"/v2/models/a%2Fb%c3%A9/infer", "a/b\xc3\xa9"},
        {"/v2/models/%25/infer", "%"},
        {"/v2/models/%2525/infer", "%25"},
        {"/v2/models/a+b/infer", "a+b"},
        {"/v2/models/../infer", ".."},
        {"/v2/models/%2e%2e/infer", ".."},
        {"/v2/models/models/infer", "models"},
        {"/v2/models/infer/infer", "infer"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_routes(PH_REST_POST, cases[i].path, PH_OIP_CALL_INFER, cases[i].model, "");
    assert_routes(PH_REST_POST, "/v2/repository/models/a%2Fb/load", PH_OIP_CALL_LOAD, "a/b", "");
    assert_routes(PH_REST_GET, "/v2/models/versions/versions/7", PH_OIP_CALL_MODEL_METADATA, "versions", "7");
}

static void names_with_bad_escapes_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"%", "%2", "a%", "a%2", "%zz", "%2g", "%g2", "%00", "a%00b", "%-1"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[100];
        snprintf(path, sizeof path, "/v2/models/%s/infer", names[i]);
        assert_no_route(PH_REST_POST, path, PH_OIP_NOT_FOUND, path);
        snprintf(path, sizeof path, "/v2/models/%s", names[i]);
        assert_no_route(PH_REST_GET, path, PH_OIP_NOT_FOUND, path);
    }
}

static void versions_are_digits(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "x", "1x", "-1", "+1", "1.0", "%31", "1 ", "1000000000000000000", "..", "latest"};
    assert_routes(PH_REST_POST, "/v2/models/m/versions/0/infer", PH_OIP_CALL_INFER, "m", "0");
    assert_routes(PH_REST_POST, "/v2/models/m/versions/999999999999999999/infer", PH_OIP_CALL_INFER, "m",
        "999999999999999999");
    for (size_t i = 0; i < COUNT(bad); i++) {
        char path[100];
        snprintf(path, sizeof path, "/v2/models/m/versions/%s/infer", bad[i]);
        assert_no_route(PH_REST_POST, path, PH_OIP_NOT_FOUND, path);
    }
}

/* ---- bodies ---- */

static enum ph__oip_code read_body(
    enum ph__oip_call call, const char *body, struct ph__arena *arena, struct ph__oip_request *request)
{
    *request = (struct ph__oip_request){.name = ph__bytes_of("m"), .version = ph__bytes_of("1")};
    const enum ph__oip_code code = ph__rest_read(call, ph__bytes_of(body), arena, request);
    assert_true(ph__bytes_are(request->name, "m") && ph__bytes_are(request->version, "1"));
    return code;
}

static void empty_bodies_are_read(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    for (int call = 0; call < PH_OIP_CALL_INFER; call++)
        assert_int_equal(read_body((enum ph__oip_call)call, "", &arena, &request), PH_OIP_OK);
    ph__arena_fini(&arena);
}

static void an_index_may_want_what_is_ready_alone(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    assert_int_equal(read_body(PH_OIP_CALL_INDEX, "{\"ready\":true}", &arena, &request), PH_OIP_OK);
    assert_true(request.is_ready_only);
    assert_int_equal(read_body(PH_OIP_CALL_INDEX, " {} ", &arena, &request), PH_OIP_OK);
    assert_false(request.is_ready_only);
    assert_int_equal(read_body(PH_OIP_CALL_INDEX, "{\"ready\":1}", &arena, &request), PH_OIP_INVALID);
    assert_int_equal(read_body(PH_OIP_CALL_INDEX, "{\"ready\":true", &arena, &request), PH_OIP_INVALID);
    assert_int_equal(read_body(PH_OIP_CALL_INDEX, "ready", &arena, &request), PH_OIP_INVALID);
    ph__arena_fini(&arena);
}

static void a_load_has_parameters(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    assert_int_equal(read_body(PH_OIP_CALL_LOAD,
                         "{\"parameters\":{\"config\":\"{\\\"max_batch_size\\\":4}\",\"file:1/x\":\"QQ==\","
                         "\"n\":3,\"yes\":true}}",
                         &arena, &request),
        PH_OIP_OK);
    assert_int_equal(request.parameters.count, 4);
    const struct ph__oip_value *config = ph__oip_find_parameter(&request.parameters, "config");
    assert_true(config->choice == PH_OIP_TEXT && ph__bytes_are(config->text, "{\"max_batch_size\":4}"));
    assert_true(ph__bytes_are(ph__oip_find_parameter(&request.parameters, "file:1/x")->text, "QQ=="));
    assert_true(ph__oip_find_parameter(&request.parameters, "n")->integer == 3);
    assert_true(ph__oip_find_parameter(&request.parameters, "yes")->boolean);
    assert_null(ph__oip_find_parameter(&request.parameters, "conf"));
    assert_int_equal(read_body(PH_OIP_CALL_LOAD, "{\"parameters\":[]}", &arena, &request), PH_OIP_INVALID);
    assert_int_equal(read_body(PH_OIP_CALL_UNLOAD, "{}", &arena, &request), PH_OIP_OK);
    ph__arena_fini(&arena);
}

static void trace_settings_may_be_texts_numbers_and_lists(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    assert_int_equal(read_body(PH_OIP_CALL_TRACE,
                         "{\"trace_level\":[\"TIMESTAMPS\",\"TENSORS\"],\"trace_rate\":\"7\","
                         "\"trace_count\":-1,\"log_frequency\":null}",
                         &arena, &request),
        PH_OIP_OK);
    const struct ph__oip_setting *settings = request.settings.items;
    assert_int_equal(request.settings.count, 4);
    const struct ph__bytes *levels = settings[0].value.texts.items;
    assert_true(ph__bytes_are(settings[0].key, "trace_level") && settings[0].value.texts.count == 2);
    assert_true(ph__bytes_are(levels[0], "TIMESTAMPS") && ph__bytes_are(levels[1], "TENSORS"));
    assert_true(ph__bytes_are(*(const struct ph__bytes *)settings[1].value.texts.items, "7"));
    assert_true(ph__bytes_are(*(const struct ph__bytes *)settings[2].value.texts.items, "-1"));
    assert_true(ph__bytes_are(settings[3].key, "log_frequency") && settings[3].value.texts.count == 0);
    static const char *const bad[] = {
        "{\"trace_level\":}", "{\"trace_level\"", "7", "[\"trace_rate\"]", "{}x"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(read_body(PH_OIP_CALL_TRACE, bad[i], &arena, &request), PH_OIP_INVALID);
    ph__arena_fini(&arena);
}

/* ---- infer ---- */

#define PLAIN(name, data) "{\"name\":\"" name "\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[" data "]}"
#define BINARY(name, size)                                                                                  \
    "{\"name\":\"" name "\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":{\"binary_data_size\":" size \
    "}}"

/* Reads JSON with the binary data behind it; the header says how long the JSON is. */
static enum ph__oip_code read_infer(
    const char *json, const char *binary, struct ph__arena *arena, struct ph__oip_infer_request *request)
{
    static char body[2000], header[20];
    const size_t size = (size_t)snprintf(body, sizeof body, "%s%s", json, binary);
    assert_true(size < sizeof body);
    snprintf(header, sizeof header, "%zu", strlen(json));
    return ph__rest_read_infer((struct ph__bytes){body, size}, header, arena, request);
}

static void assert_refuses_infer(const char *json, const char *binary, const char *part)
{
    struct ph__arena arena = {0};
    struct ph__oip_infer_request request;
    assert_int_equal(read_infer(json, binary, &arena, &request), PH_OIP_INVALID);
    if (strstr(ph_error_text(), part) == NULL)
        fail_msg("'%s' lacks '%s'", ph_error_text(), part);
    ph__arena_fini(&arena);
}

static void a_body_without_a_header_is_json(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__oip_infer_request request;
    const struct ph__bytes body =
        ph__bytes_of("{\"id\":\"7\",\"parameters\":{\"timeout\":5},\"inputs\":[" PLAIN("a", "1") "," PLAIN(
            "b", "2") "],\"outputs\":[{\"name\":\"probability\"}]}");
    assert_int_equal(ph__rest_read_infer(body, NULL, &arena, &request), PH_OIP_OK);
    const struct ph__oip_tensor *inputs = request.inputs.items, *outputs = request.outputs.items;
    const struct ph__bytes *raw = request.raw.items;
    assert_true(request.inputs.count == 2 && request.outputs.count == 1);
    assert_true(ph__bytes_are(request.id, "7") && ph__bytes_are(outputs[0].name, "probability"));
    assert_true(ph__bytes_are(inputs[0].name, "a") && ph__bytes_are(inputs[0].data, "[1]"));
    assert_true(ph__bytes_are(inputs[1].name, "b") && ph__bytes_are(inputs[1].data, "[2]"));
    assert_int_equal(ph__oip_find_parameter(&request.parameters, "timeout")->integer, 5);
    for (size_t i = 0; i < request.raw.count; i++)
        assert_null(raw[i].bytes);
    assert_int_equal(
        ph__rest_read_infer(ph__bytes_of("{\"inputs\":"), NULL, &arena, &request), PH_OIP_INVALID);
    assert_int_equal(ph__rest_read_infer(ph__bytes_of(""), NULL, &arena, &request), PH_OIP_INVALID);
    ph__arena_fini(&arena);
}

static void binary_data_is_cut_in_the_order_of_inputs(void **state)
{
    (void)state;
    static const char json[] =
        "{\"inputs\":[" BINARY("a", "3") "," PLAIN("b", "9") "," BINARY("c", "0") "," BINARY("d", "4") "]}";
    struct ph__arena arena = {0};
    struct ph__oip_infer_request request;
    assert_int_equal(read_infer(json, "abc1234", &arena, &request), PH_OIP_OK);
    const struct ph__bytes *raw = request.raw.items;
    const struct ph__oip_tensor *inputs = request.inputs.items;
    assert_true(request.inputs.count == 4 && request.raw.count == 4);
    assert_true(ph__bytes_are(raw[0], "abc") && ph__bytes_are(raw[3], "1234"));
    assert_true(raw[1].bytes == NULL && ph__bytes_are(inputs[1].data, "[9]"));
    assert_true(raw[2].bytes != NULL && raw[2].size == 0);
    ph__arena_fini(&arena);
}

static void binary_data_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "3") "]}", "ab", "2 are left");
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "3") "]}", "", "0 are left");
    assert_refuses_infer(
        "{\"inputs\":[" BINARY("a", "1") "," BINARY("b", "3") "]}", "abc", "input 1: binary_data_size");
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "-1") "]}", "abc", "input 0: binary_data_size");
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "9223372036854775807") "]}", "abc", "binary_data_size");
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "\"3\"") "]}", "abc", "binary_data_size");
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "3.0") "]}", "abc", "binary_data_size");
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "true") "]}", "a", "binary_data_size");
}

static void bytes_left_over_are_refused(void **state)
{
    (void)state;
    assert_refuses_infer("{\"inputs\":[" BINARY("a", "3") "]}", "abcd", "1 bytes are left over");
    assert_refuses_infer("{\"inputs\":[" PLAIN("a", "3") "]}", "x", "1 bytes are left over");
    assert_refuses_infer("{\"inputs\":[]}", "xy", "2 bytes are left over");
}

static void an_input_has_data_or_binary_data(void **state)
{
    (void)state;
    assert_refuses_infer("{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1],"
                         "\"parameters\":{\"binary_data_size\":1}}]}",
        "x", "input 0 has both data and binary_data_size");
}

static void headers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "-1", "x", "", "1x", "15", "99999999999999999999", "0x2", "1e1", "2.0"};
    const struct ph__bytes body = ph__bytes_of("{\"inputs\":[]} ");
    struct ph__arena arena = {0};
    struct ph__oip_infer_request request;
    assert_int_equal(body.size, 14);
    assert_int_equal(ph__rest_read_infer(body, "14", &arena, &request), PH_OIP_OK);
    for (size_t i = 0; i < COUNT(headers); i++) {
        assert_int_equal(ph__rest_read_infer(body, headers[i], &arena, &request), PH_OIP_INVALID);
        assert_non_null(strstr(ph_error_text(), PH_REST_HEADER));
    }
    assert_int_equal(ph__rest_read_infer(body, "5", &arena, &request), PH_OIP_INVALID); /* cuts the JSON */
    ph__arena_fini(&arena);
}

static void a_header_of_0_means_lines(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        size_t count;
        const char *lines[3];
    } cases[] = {
        {"", 0, {NULL}},
        {"\n\n\r\n", 0, {NULL}},
        {"1,a", 1, {"1,a"}},
        {"1,a\n", 1, {"1,a"}},
        {"1,a\n2,b\n\n3,c", 3, {"1,a", "2,b", "3,c"}},
        {"\n{\"inputs\":[]}\n", 1, {"{\"inputs\":[]}"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ph__arena arena = {0};
        struct ph__oip_infer_request request;
        assert_int_equal(ph__rest_read_infer(ph__bytes_of(cases[i].body), "0", &arena, &request), PH_OIP_OK);
        assert_true(request.inputs.count == 1 && request.outputs.count == 0 && request.raw.count == 0);
        const struct ph__oip_tensor *input = request.inputs.items;
        const struct ph__bytes *lines = input->contents.texts.items;
        assert_true(ph__bytes_are(input->name, "lines") && ph__bytes_are(input->datatype, "BYTES"));
        assert_true(
            input->shape.count == 1 && *(const int64_t *)input->shape.items == (int64_t)cases[i].count);
        assert_int_equal(input->contents.texts.count, cases[i].count);
        for (size_t line = 0; line < cases[i].count; line++)
            assert_true(ph__bytes_are(lines[line], cases[i].lines[line]));
        ph__arena_fini(&arena);
    }
}

static void an_output_is_binary_by_its_own_parameter_or_the_requests(void **state)
{
    (void)state;
    static const struct {
        const char *parameters, *own;
        bool is_binary;
    } cases[] = {
        {"{}", "{}", false},
        {"{}", "{\"binary_data\":true}", true},
        {"{\"binary_data_output\":true}", "{}", true},
        {"{\"binary_data_output\":true}", "{\"binary_data\":false}", false},
        {"{\"binary_data_output\":false}", "{\"binary_data\":true}", true},
        {"{\"binary_data_output\":1}", "{}", false},
        {"{\"binary_data\":true}", "{\"binary_data_output\":true}", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[300];
        struct ph__arena arena = {0};
        struct ph__oip_infer_request request;
        snprintf(body, sizeof body,
            "{\"parameters\":%s,\"inputs\":[],\"outputs\":[{\"name\":\"o\",\"parameters\":%s}]}",
            cases[i].parameters, cases[i].own);
        assert_int_equal(ph__rest_read_infer(ph__bytes_of(body), NULL, &arena, &request), PH_OIP_OK);
        assert_int_equal(ph__rest_wants_binary(&request, request.outputs.items), cases[i].is_binary);
        ph__arena_fini(&arena);
    }
    struct ph__arena arena = {0};
    struct ph__oip_infer_request request;
    assert_int_equal(ph__rest_read_infer(ph__bytes_of("{\"parameters\":{\"binary_data_output\":true}}"), NULL,
                         &arena, &request),
        PH_OIP_OK);
    assert_true(ph__rest_wants_binary(&request, NULL)); /* an output that the request does not name */
    ph__arena_fini(&arena);
}

/* ---- answers ---- */

static void assert_writes(enum ph__oip_call call, const void *response, const char *wanted)
{
    struct ph__buffer body = {0};
    ph__rest_write(call, response, &body);
    ph__buffer_append(&body, "", 1);
    assert_string_equal((const char *)body.bytes, wanted);
    ph__buffer_fini(&body);
}

static void an_index_is_an_array(void **state)
{
    (void)state;
    struct ph__oip_index_entry entries[] = {
        {ph__bytes_of("m"), ph__bytes_of("1"), ph__bytes_of("READY"), {NULL, 0}},
        {ph__bytes_of("n\""), ph__bytes_of("2"), ph__bytes_of("UNAVAILABLE"), ph__bytes_of("no file")}};
    struct ph__oip_index index = {{NULL, 0}};
    assert_writes(PH_OIP_CALL_INDEX, &index, "[]");
    index.models = (struct ph__list){entries, 2};
    struct ph__buffer body = {0};
    ph__rest_write(PH_OIP_CALL_INDEX, &index, &body);
    ph__buffer_append(&body, "", 1);
    const char *text = (const char *)body.bytes;
    assert_true(strncmp(text, "[{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\"", 42) == 0);
    assert_non_null(
        strstr(text, "},{\"name\":\"n\\\"\",\"version\":\"2\",\"state\":\"UNAVAILABLE\",\"reason\":\"no "
                     "file\"}]"));
    ph__buffer_fini(&body);
}

static void a_config_is_the_object_alone(void **state)
{
    (void)state;
    int64_t one[] = {1}, any[] = {-1};
    struct ph__oip_config_tensor inputs[] = {
        {.name = ph__bytes_of("price"), .data_type = 11, .dims = {one, 1}, .is_optional = true},
        {.name = ph__bytes_of("topics__values"),
            .data_type = 13,
            .dims = {any, 1},
            .allow_ragged_batch = true,
            .is_optional = true}};
    struct ph__oip_config_tensor outputs[] = {
        {.name = ph__bytes_of("probability"), .data_type = 11, .dims = {one, 1}}};
    const struct ph__oip_config_response response = {{.name = ph__bytes_of("m"),
        .platform = ph__bytes_of("phloem"),
        .max_batch_size = 64,
        .inputs = {inputs, 2},
        .outputs = {outputs, 1},
        .batching = {100}}};
    assert_writes(PH_OIP_CALL_CONFIG, &response,
        "{\"name\":\"m\",\"platform\":\"phloem\",\"max_batch_size\":64,\"input\":["
        "{\"name\":\"price\",\"data_type\":\"TYPE_FP32\",\"dims\":[1],\"allow_ragged_batch\":false,"
        "\"optional\":true},"
        "{\"name\":\"topics__values\",\"data_type\":\"TYPE_STRING\",\"dims\":[-1],"
        "\"allow_ragged_batch\":true,\"optional\":true}],"
        "\"output\":[{\"name\":\"probability\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}],"
        "\"dynamic_batching\":{\"max_queue_delay_microseconds\":100}}");
}

static void trace_settings_are_texts_by_their_names(void **state)
{
    (void)state;
    struct ph__bytes levels[] = {ph__bytes_of("TIMESTAMPS"), ph__bytes_of("TENSORS")};
    struct ph__bytes rate[] = {ph__bytes_of("1000")}, file[] = {ph__bytes_of("trace.json")};
    struct ph__oip_setting settings[] = {
        {ph__bytes_of("trace_rate"), {{rate, 1}}},
        {ph__bytes_of("trace_level"), {{levels, 2}}},
        {ph__bytes_of("trace_file"), {{file, 1}}},
        {ph__bytes_of("other"), {{rate, 1}}},
    };
    const struct ph__oip_trace trace = {{settings, COUNT(settings)}}, empty = {{NULL, 0}};
    assert_writes(PH_OIP_CALL_TRACE, &trace,
        "{\"trace_file\":\"trace.json\",\"trace_level\":[\"TIMESTAMPS\",\"TENSORS\"],\"trace_rate\":\"1000\","
        "\"trace_count\":\"\",\"log_frequency\":\"\"}");
    assert_writes(PH_OIP_CALL_TRACE, &empty,
        "{\"trace_file\":\"\",\"trace_level\":[],\"trace_rate\":\"\",\"trace_count\":\"\",\"log_frequency\":"
        "\"\"}");
}

static void answers_that_are_a_status_have_no_body(void **state)
{
    (void)state;
    const struct ph__oip_is_true is_true = {true};
    static const enum ph__oip_call calls[] = {
        PH_OIP_CALL_LIVE, PH_OIP_CALL_READY, PH_OIP_CALL_MODEL_READY, PH_OIP_CALL_LOAD, PH_OIP_CALL_UNLOAD};
    for (size_t i = 0; i < COUNT(calls); i++)
        assert_writes(calls[i], &is_true, "");
}

static void an_error_is_an_object(void **state)
{
    (void)state;
    struct ph__buffer body = {0};
    ph__rest_write_error("row 1: 'x'\n\"y\"", &body);
    ph__buffer_append(&body, "", 1);
    assert_string_equal((const char *)body.bytes, "{\"error\":\"row 1: 'x'\\u000a\\\"y\\\"\"}");
    ph__buffer_fini(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_has_its_call),
        cmocka_unit_test(another_method_is_refused),
        cmocka_unit_test(paths_that_go_on_are_refused),
        cmocka_unit_test(unknown_paths_are_refused),
        cmocka_unit_test(names_of_models_are_decoded),
        cmocka_unit_test(names_with_bad_escapes_are_refused),
        cmocka_unit_test(versions_are_digits),
        cmocka_unit_test(empty_bodies_are_read),
        cmocka_unit_test(an_index_may_want_what_is_ready_alone),
        cmocka_unit_test(a_load_has_parameters),
        cmocka_unit_test(trace_settings_may_be_texts_numbers_and_lists),
        cmocka_unit_test(a_body_without_a_header_is_json),
        cmocka_unit_test(binary_data_is_cut_in_the_order_of_inputs),
        cmocka_unit_test(binary_data_that_does_not_fit_is_refused),
        cmocka_unit_test(bytes_left_over_are_refused),
        cmocka_unit_test(an_input_has_data_or_binary_data),
        cmocka_unit_test(headers_that_do_not_fit_are_refused),
        cmocka_unit_test(a_header_of_0_means_lines),
        cmocka_unit_test(an_output_is_binary_by_its_own_parameter_or_the_requests),
        cmocka_unit_test(an_index_is_an_array),
        cmocka_unit_test(a_config_is_the_object_alone),
        cmocka_unit_test(trace_settings_are_texts_by_their_names),
        cmocka_unit_test(answers_that_are_a_status_have_no_body),
        cmocka_unit_test(an_error_is_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
