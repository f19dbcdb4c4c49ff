#include "serve/server/tracing.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/json.h"
#include "base/format/message.h"
#include "base/text/number.h"

#define DEFAULT_RATE 1000
#define CHROME_EVENTS ((size_t)1 << 16)

ph_status ph__tracing_init(
    struct ph__tracing *tracing, const char *file, const char *chrome_path, uint64_t rate)
{
    const bool has_chrome = chrome_path != NULL && chrome_path[0] != '\0';
    *tracing = (struct ph__tracing){.file = file != NULL ? file : "",
        .chrome_path = chrome_path,
        .rate = rate > 0 ? rate : DEFAULT_RATE,
        .count = -1};
    tracing->has_timestamps = has_chrome || tracing->file[0] != '\0';
    return has_chrome ? ph__trace_create(CHROME_EVENTS, &tracing->chrome) : PH_OK;
}

static void close_file(struct ph__tracing *tracing)
{
    if (tracing->output == NULL)
        return;
    fputs("\n]\n", tracing->output);
    fclose(tracing->output);
    tracing->output = NULL;
}

ph_status ph__tracing_fini(struct ph__tracing *tracing)
{
    ph_status status = PH_OK;
    close_file(tracing);
    if (tracing->chrome != NULL)
        status = ph__trace_write(tracing->chrome, tracing->chrome_path);
    ph__trace_destroy(tracing->chrome);
    tracing->chrome = NULL;
    return status;
}

/* ---- traces ---- */

bool ph__tracing_samples(struct ph__tracing *tracing)
{
    if (!tracing->has_timestamps || tracing->count == 0 ||
        (tracing->file[0] == '\0' && tracing->chrome == NULL))
        return false;
    return tracing->num_requests++ % tracing->rate == 0;
}

static void write_file(struct ph__tracing *tracing, const struct ph__request_trace *request)
{
    const struct ph__work_times *work = &request->work;
    const struct {
        const char *name;
        uint64_t ns;
    } stamps[] = {
        {"HTTP_RECV_START", request->arrived_ns},
        {"HTTP_RECV_END", request->received_ns},
        {"REQUEST_START", request->received_ns},
        {"QUEUE_START", work->queued},
        {"COMPUTE_START", work->begun},
        {"COMPUTE_INPUT_END", work->encoded},
        {"COMPUTE_OUTPUT_START", work->scored},
        {"COMPUTE_END", work->done},
        {"REQUEST_END", request->answered_ns},
        {"HTTP_SEND_START", request->answered_ns},
        {"HTTP_SEND_END", request->sent_ns},
    };
    if (tracing->output == NULL) {
        tracing->output = fopen(tracing->file, "we");
        if (tracing->output == NULL)
            return;
        fputs("[", tracing->output);
    } else {
        fputs(",", tracing->output);
    }
    fprintf(tracing->output, "\n{\"id\":%" PRIu64 ",\"model_name\":", tracing->num_traces);
    ph__json_print_text(tracing->output, request->model, strlen(request->model));
    fprintf(tracing->output, ",\"model_version\":%" PRIu64 "},{\"id\":%" PRIu64 ",\"timestamps\":[",
        request->version, tracing->num_traces);
    for (size_t i = 0, num_written = 0; i < sizeof stamps / sizeof *stamps; i++)
        if (stamps[i].ns > 0)
            fprintf(tracing->output, "%s{\"name\":\"%s\",\"ns\":%" PRIu64 "}", num_written++ > 0 ? "," : "",
                stamps[i].name, stamps[i].ns);
    fputs("]}", tracing->output);
    if (tracing->log_frequency > 0 && tracing->num_traces % tracing->log_frequency == 0)
        fflush(tracing->output);
}

static void add_chrome(struct ph__tracing *tracing, const struct ph__request_trace *request)
{
    const struct ph__work_times *work = &request->work;
    const struct {
        const char *name;
        uint64_t start_ns, end_ns;
    } spans[] = {
        {"request", request->arrived_ns, request->sent_ns},
        {"receive", request->arrived_ns, request->received_ns},
        {"queue", work->queued, work->begun},
        {"encode", work->begun, work->encoded},
        {"score", work->encoded, work->scored},
        {"answer", work->scored, work->done},
        {"send", request->answered_ns, request->sent_ns},
    };
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (spans[i].start_ns > 0 && spans[i].end_ns >= spans[i].start_ns)
            ph__trace_add(tracing->chrome, spans[i].name, "serve", (uint32_t)(tracing->num_traces % 64),
                spans[i].start_ns, spans[i].end_ns - spans[i].start_ns);
}

void ph__tracing_add(struct ph__tracing *tracing, const struct ph__request_trace *request)
{
    tracing->num_traces++;
    tracing->count -= tracing->count > 0;
    if (tracing->chrome != NULL)
        add_chrome(tracing, request);
    if (tracing->file[0] != '\0')
        write_file(tracing, request);
}

/* ---- settings ---- */

static enum ph__oip_code read_integer(struct ph__bytes key, struct ph__bytes text, int64_t least, int64_t *to)
{
    char digits[PH_INTEGER_TEXT_BYTES];
    int64_t number = 0;
    if (text.size < sizeof digits) {
        memcpy(digits, text.bytes, text.size);
        digits[text.size] = '\0';
    }
    if (text.size >= sizeof digits || !ph__integer_parse(digits, &number) || number < least)
        return ph__oip_fail(PH_OIP_INVALID, "'%.*s': '%.*s' is not an integer from %" PRId64 " on",
            (int)key.size, key.bytes, (int)text.size, text.bytes, least);
    *to = number;
    return PH_OIP_OK;
}

static enum ph__oip_code read_levels(const struct ph__list *texts, bool *has_timestamps)
{
    const struct ph__bytes *levels = texts->items;
    *has_timestamps = false;
    for (size_t i = 0; i < texts->count; i++) {
        if (ph__bytes_are(levels[i], "TIMESTAMPS"))
            *has_timestamps = true;
        else if (!ph__bytes_are(levels[i], "OFF"))
            return ph__oip_fail(PH_OIP_INVALID, "trace_level '%.*s' is not OFF or TIMESTAMPS",
                (int)levels[i].size, levels[i].bytes);
    }
    return PH_OIP_OK;
}

static enum ph__oip_code read_setting(struct ph__tracing *tracing, const struct ph__oip_setting *setting)
{
    const struct ph__list *texts = &setting->value.texts;
    const struct ph__bytes *first = texts->items;
    int64_t number = 0;
    enum ph__oip_code code = PH_OIP_OK;
    if (ph__bytes_are(setting->key, "trace_file")) {
        if (texts->count > 0 && !ph__bytes_are(*first, tracing->file))
            return ph__oip_fail(PH_OIP_INVALID, "trace_file can be set by the server's own config alone");
    } else if (ph__bytes_are(setting->key, "trace_level")) {
        code = read_levels(texts, &tracing->has_timestamps);
    } else if (ph__bytes_are(setting->key, "trace_rate")) {
        number = DEFAULT_RATE;
        if (texts->count > 0)
            code = read_integer(setting->key, *first, 1, &number);
        tracing->rate = (uint64_t)number;
    } else if (ph__bytes_are(setting->key, "trace_count")) {
        number = -1;
        if (texts->count > 0)
            code = read_integer(setting->key, *first, -1, &number);
        tracing->count = number;
    } else if (ph__bytes_are(setting->key, "log_frequency")) {
        if (texts->count > 0)
            code = read_integer(setting->key, *first, 0, &number);
        tracing->log_frequency = (uint64_t)number;
    } else {
        code = ph__oip_fail(PH_OIP_INVALID, "the server has no trace setting '%.*s'", (int)setting->key.size,
            setting->key.bytes);
    }
    return code;
}

enum ph__oip_code ph__tracing_update(struct ph__tracing *tracing, const struct ph__list *settings)
{
    struct ph__tracing changed = *tracing;
    const struct ph__oip_setting *items = settings->items;
    enum ph__oip_code code = PH_OIP_OK;
    for (size_t i = 0; i < settings->count && code == PH_OIP_OK; i++)
        code = read_setting(&changed, &items[i]);
    if (code != PH_OIP_OK)
        return code;
    *tracing = changed;
    return PH_OIP_OK;
}

static ph_status add_setting(
    struct ph__list *settings, const char *key, const char *text, struct ph__arena *arena)
{
    struct ph__oip_setting *setting = ph__list_add(settings, sizeof *setting, arena);
    struct ph__bytes *value =
        setting != NULL ? ph__list_add(&setting->value.texts, sizeof *value, arena) : NULL;
    if (value == NULL || text == NULL)
        return PH_ERROR_MEMORY;
    setting->key = ph__bytes_of(key);
    *value = ph__bytes_of(text);
    return PH_OK;
}

ph_status ph__tracing_list(
    const struct ph__tracing *tracing, struct ph__arena *arena, struct ph__list *settings_out)
{
    *settings_out = (struct ph__list){NULL, 0};
    PH_TRY(add_setting(settings_out, "trace_file", tracing->file, arena));
    PH_TRY(add_setting(settings_out, "trace_level", tracing->has_timestamps ? "TIMESTAMPS" : "OFF", arena));
    PH_TRY(
        add_setting(settings_out, "trace_rate", ph__arena_printf(arena, "%" PRIu64, tracing->rate), arena));
    PH_TRY(
        add_setting(settings_out, "trace_count", ph__arena_printf(arena, "%" PRId64, tracing->count), arena));
    return add_setting(
        settings_out, "log_frequency", ph__arena_printf(arena, "%" PRIu64, tracing->log_frequency), arena);
}
