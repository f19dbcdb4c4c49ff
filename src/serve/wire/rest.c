#include "serve/wire/rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_scan.h"
#include "base/text/number.h"

/* ---- paths ---- */

/* Words of patterns: '*' is a model's name, '#' is "versions/V" or nothing. The first that fits counts. */
static const struct route {
    const char *pattern;
    enum ph__oip_call call;
    unsigned methods; /* of enum ph__rest_method */
} routes[] = {
    {"/v2/models/*/#/infer", PH_OIP_CALL_INFER, PH_REST_POST},
    {"/v2", PH_OIP_CALL_SERVER_METADATA, PH_REST_GET},
    {"/v2/health/live", PH_OIP_CALL_LIVE, PH_REST_GET},
    {"/v2/health/ready", PH_OIP_CALL_READY, PH_REST_GET},
    {"/v2/models/stats", PH_OIP_CALL_STATISTICS, PH_REST_GET},
    {"/v2/repository/index", PH_OIP_CALL_INDEX, PH_REST_POST},
    {"/v2/trace/setting", PH_OIP_CALL_TRACE, PH_REST_GET | PH_REST_POST},
    {"/v2/models/*/#", PH_OIP_CALL_MODEL_METADATA, PH_REST_GET},
    {"/v2/models/*/#/ready", PH_OIP_CALL_MODEL_READY, PH_REST_GET},
    {"/v2/models/*/#/config", PH_OIP_CALL_CONFIG, PH_REST_GET},
    {"/v2/models/*/#/stats", PH_OIP_CALL_STATISTICS, PH_REST_GET},
    {"/v2/models/*/#/trace/setting", PH_OIP_CALL_TRACE, PH_REST_GET | PH_REST_POST},
    {"/v2/models/*/#/speculation", PH_OIP_CALL_SPECULATION, PH_REST_GET | PH_REST_POST},
    {"/v2/repository/models/*/load", PH_OIP_CALL_LOAD, PH_REST_POST},
    {"/v2/repository/models/*/unload", PH_OIP_CALL_UNLOAD, PH_REST_POST},
};

/* Takes "/word" off a path; its bytes are NULL at the path's end. */
static struct ph__bytes take_word(const char **path)
{
    if (**path != '/')
        return (struct ph__bytes){NULL, 0};
    const struct ph__bytes word = {*path + 1, strcspn(*path + 1, "/")};
    *path += 1 + word.size;
    return word;
}

/* Decodes %XX into the arena. Returns false for a percent sign without two digits, and for a NUL. */
static bool decode(struct ph__bytes text, struct ph__arena *arena, struct ph__bytes *to)
{
    char *decoded = ph__arena_alloc(arena, text.size + 1);
    size_t size = 0;
    if (decoded == NULL)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char character = text.bytes[i];
        if (character == '%') {
            const int high = text.size - i < 3 ? -1 : ph__hex_digit(text.bytes[i + 1]);
            const int low = high < 0 ? -1 : ph__hex_digit(text.bytes[i + 2]);
            if (low < 0 || high * 16 + low == 0)
                return false;
            character = (char)(high * 16 + low);
            i += 2;
        }
        decoded[size++] = character;
    }
    *to = (struct ph__bytes){decoded, size};
    return true;
}

/* Takes "/versions/V" off a path where it comes next. Returns false when V is no number. */
static bool take_version(const char **path, struct ph__bytes *version)
{
    const char *behind = *path;
    if (!ph__bytes_are(take_word(&behind), "versions"))
        return true;
    *version = take_word(&behind);
    *path = behind;
    return version->size > 0 && version->size <= 18 && strspn(version->bytes, "0123456789") == version->size;
}

/* Tells whether the pattern fits, and puts model and version into the request. */
static bool fits(
    const char *pattern, const char *path, struct ph__arena *arena, struct ph__oip_request *request)
{
    *request = (struct ph__oip_request){.is_ready_only = false};
    for (;;) {
        struct ph__bytes wanted = take_word(&pattern);
        if (ph__bytes_are(wanted, "#")) {
            if (!take_version(&path, &request->version))
                return false;
            wanted = take_word(&pattern);
        }
        const struct ph__bytes word = take_word(&path);
        if (wanted.bytes == NULL || word.bytes == NULL)
            return wanted.bytes == NULL && word.bytes == NULL && *path == '\0';
        if (ph__bytes_are(wanted, "*")
                ? word.size == 0 || !decode(word, arena, &request->name)
                : word.size != wanted.size || memcmp(word.bytes, wanted.bytes, word.size) != 0)
            return false;
    }
}

enum ph__oip_code ph__rest_route(enum ph__rest_method method, const char *path, struct ph__arena *arena,
    enum ph__oip_call *call_out, struct ph__oip_request *request_out)
{
    const struct route *found = routes, *end = routes + sizeof routes / sizeof *routes;
    while (found < end && !fits(found->pattern, path, arena, request_out))
        found++;
    if (found == end)
        return ph__oip_fail(PH_OIP_NOT_FOUND, "the server has no path '%s'", path);
    *call_out = found->call;
    if ((method & found->methods) == 0)
        return ph__oip_fail(
            PH_OIP_BAD_METHOD, "'%s' takes %s", path, found->methods == PH_REST_GET ? "GET" : "POST");
    return PH_OIP_OK;
}

/* ---- bodies ---- */

/* Reads a setting's value: a text, a number as its text, an array of these, or null: none. */
static void read_setting(struct ph__json_scan *scan, struct ph__list *texts)
{
    struct ph__bytes key;
    const enum ph__json_type type = ph__json_scan_type(scan);
    if (type == PH_JSON_TYPE_NULL) {
        ph__json_scan_null(scan);
    } else if (type == PH_JSON_TYPE_ARRAY) {
        ph__json_scan_begin(scan);
        while (ph__json_scan_next(scan, &key))
            read_setting(scan, texts);
    } else {
        struct ph__bytes *text = ph__list_add(texts, sizeof *text, scan->arena);
        const struct ph__bytes value =
            type == PH_JSON_TYPE_STRING ? ph__json_scan_string(scan) : ph__json_scan_skip(scan);
        if (text != NULL)
            *text = value;
    }
}

static ph_status read_settings(struct ph__bytes body, struct ph__arena *arena, struct ph__list *settings)
{
    struct ph__json_scan scan;
    struct ph__bytes key;
    ph__json_scan_init(&scan, body.bytes, body.size, arena);
    if (ph__json_scan_type(&scan) != PH_JSON_TYPE_OBJECT)
        ph__json_scan_fail(&scan, "an object is expected");
    ph__json_scan_begin(&scan);
    while (ph__json_scan_next(&scan, &key)) {
        struct ph__oip_setting *setting = ph__list_add(settings, sizeof *setting, arena);
        if (setting == NULL)
            return PH_ERROR_MEMORY;
        setting->key = key;
        read_setting(&scan, &setting->value.texts);
    }
    return ph__json_scan_finish(&scan);
}

enum ph__oip_code ph__rest_read(
    enum ph__oip_call call, struct ph__bytes body, struct ph__arena *arena, struct ph__oip_request *request)
{
    struct ph__oip_request read;
    if (body.size == 0)
        return PH_OIP_OK;
    if (call == PH_OIP_CALL_TRACE)
        return ph__oip_code_of(read_settings(body, arena, &request->settings));
    const ph_status status =
        ph__message_from_json(ph__oip_request_of(call), body.bytes, body.size, arena, &read);
    request->is_ready_only = read.is_ready_only;
    request->parameters = read.parameters;
    return ph__oip_code_of(status);
}

/* ---- infer ---- */

/* Gives the inputs their bytes behind the JSON, in their order. */
static enum ph__oip_code cut_raw(
    struct ph__bytes rest, struct ph__arena *arena, struct ph__oip_infer_request *request)
{
    const struct ph__oip_tensor *inputs = request->inputs.items;
    const size_t count = request->inputs.count;
    struct ph__bytes *raw = ph__arena_alloc_array(arena, count, sizeof *raw);
    if (raw == NULL)
        return PH_OIP_UNAVAILABLE;
    for (size_t i = 0; i < count; i++) {
        const struct ph__oip_value *size = ph__oip_find_parameter(&inputs[i].parameters, "binary_data_size");
        if (size == NULL)
            continue;
        if (size->choice != PH_OIP_INTEGER || size->integer < 0 || (uint64_t)size->integer > rest.size)
            return ph__oip_fail(PH_OIP_INVALID,
                "input %zu: binary_data_size must be a number of the bytes behind the JSON, %zu are left", i,
                rest.size);
        if (inputs[i].data.size > 0)
            return ph__oip_fail(PH_OIP_INVALID, "input %zu has both data and binary_data_size", i);
        raw[i] = (struct ph__bytes){rest.bytes, (size_t)size->integer};
        rest.bytes += raw[i].size;
        rest.size -= raw[i].size;
    }
    if (rest.size > 0)
        return ph__oip_fail(
            PH_OIP_INVALID, "%zu bytes are left over behind the binary data of the inputs", rest.size);
    request->raw = (struct ph__list){raw, count};
    return PH_OIP_OK;
}

/* Makes a request of rows alone: each line that is not empty is a row. */
static enum ph__oip_code read_lines(
    struct ph__bytes body, struct ph__arena *arena, struct ph__oip_infer_request *request)
{
    struct ph__oip_tensor *input = ph__list_add(&request->inputs, sizeof *input, arena);
    const char *at = body.bytes, *end = body.bytes + body.size;
    if (input == NULL)
        return PH_OIP_UNAVAILABLE;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t size = (size_t)((stop != NULL ? stop : end) - at);
        if (size > 0 && !(size == 1 && *at == '\r')) {
            struct ph__bytes *line = ph__list_add(&input->contents.texts, sizeof *line, arena);
            if (line == NULL)
                return PH_OIP_UNAVAILABLE;
            *line = (struct ph__bytes){at, size};
        }
        at = stop != NULL ? stop + 1 : end;
    }
    int64_t *dim = ph__list_add(&input->shape, sizeof *dim, arena);
    if (dim == NULL)
        return PH_OIP_UNAVAILABLE;
    *dim = (int64_t)input->contents.texts.count;
    input->name = ph__bytes_of("lines");
    input->datatype = ph__bytes_of("BYTES");
    return PH_OIP_OK;
}

enum ph__oip_code ph__rest_read_infer(struct ph__bytes body, const char *header, struct ph__arena *arena,
    struct ph__oip_infer_request *request_out)
{
    int64_t json_size = (int64_t)body.size;
    if (header != NULL &&
        (!ph__integer_parse(header, &json_size) || json_size < 0 || (uint64_t)json_size > body.size))
        return ph__oip_fail(
            PH_OIP_INVALID, PH_REST_HEADER " is '%s', but the body has %zu bytes", header, body.size);
    if (header != NULL && json_size == 0) {
        *request_out = (struct ph__oip_infer_request){.raw = {NULL, 0}};
        return read_lines(body, arena, request_out);
    }
    const ph_status status = ph__message_from_json(
        &ph__oip_infer_request_message, body.bytes, (size_t)json_size, arena, request_out);
    if (status != PH_OK)
        return ph__oip_code_of(status);
    const struct ph__bytes rest = {body.bytes + json_size, body.size - (size_t)json_size};
    return cut_raw(rest, arena, request_out);
}

static bool is_true(const struct ph__oip_value *value)
{
    return value != NULL && value->choice == PH_OIP_BOOL && value->boolean;
}

bool ph__rest_wants_binary(const struct ph__oip_infer_request *request, const struct ph__oip_tensor *output)
{
    const struct ph__oip_value *own =
        output != NULL ? ph__oip_find_parameter(&output->parameters, "binary_data") : NULL;
    return is_true(own != NULL ? own : ph__oip_find_parameter(&request->parameters, "binary_data_output"));
}

/* ---- answers ---- */

/* Returns the texts of a setting; none: there is no such setting. */
static struct ph__list setting_texts(const struct ph__oip_trace *trace, const char *key)
{
    const struct ph__oip_setting *settings = trace->settings.items;
    for (size_t i = 0; i < trace->settings.count; i++)
        if (ph__bytes_are(settings[i].key, key))
            return settings[i].value.texts;
    return (struct ph__list){NULL, 0};
}

static struct ph__bytes setting_text(const struct ph__oip_trace *trace, const char *key)
{
    const struct ph__list texts = setting_texts(trace, key);
    return texts.count > 0 ? *(const struct ph__bytes *)texts.items : (struct ph__bytes){NULL, 0};
}

static void write_trace(const struct ph__oip_trace *trace, struct ph__buffer *body)
{
    const struct ph__oip_trace_settings settings = {
        .file = setting_text(trace, "trace_file"),
        .levels = setting_texts(trace, "trace_level"),
        .rate = setting_text(trace, "trace_rate"),
        .count = setting_text(trace, "trace_count"),
        .log_frequency = setting_text(trace, "log_frequency"),
    };
    ph__message_to_json(&ph__oip_trace_settings_message, &settings, body);
}

/* Writes the list of an index without the object around it. */
static void write_index(const struct ph__oip_index *index, struct ph__buffer *body)
{
    const struct ph__oip_index_entry *entries = index->models.items;
    ph__buffer_append(body, "[", 1);
    for (size_t i = 0; i < index->models.count; i++) {
        if (i > 0)
            ph__buffer_append(body, ",", 1);
        ph__message_to_json(&ph__oip_index_entry_message, &entries[i], body);
    }
    ph__buffer_append(body, "]", 1);
}

void ph__rest_write(enum ph__oip_call call, const void *response, struct ph__buffer *body)
{
    switch (call) {
    case PH_OIP_CALL_SERVER_METADATA:
    case PH_OIP_CALL_MODEL_METADATA:
    case PH_OIP_CALL_STATISTICS:
    case PH_OIP_CALL_SPECULATION:
    case PH_OIP_CALL_INFER:
        ph__message_to_json(ph__oip_response_of(call), response, body);
        break;
    case PH_OIP_CALL_CONFIG:
        ph__message_to_json(
            &ph__oip_config_message, &((const struct ph__oip_config_response *)response)->config, body);
        break;
    case PH_OIP_CALL_INDEX:
        write_index(response, body);
        break;
    case PH_OIP_CALL_TRACE:
        write_trace(response, body);
        break;
    default:
        break; /* the status says it all */
    }
}

void ph__rest_write_error(const char *text, struct ph__buffer *body)
{
    ph__buffer_append_text(body, "{\"error\":");
    ph__json_append_string(body, ph__bytes_of(text));
    ph__buffer_append(body, "}", 1);
}
