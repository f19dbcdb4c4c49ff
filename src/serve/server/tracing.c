#include "serve/server/tracing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/format/message.h"
#include "base/text/number.h"

#define CHROME_EVENTS ((size_t)1 << 16)

static const struct {
    const char *name;
    int64_t least, otherwise;
} table[] = {
#define X(name, text, least, otherwise) {text, least, otherwise},
    PH_TRACE_SETTINGS(X)
#undef X
};

ph_status ph__tracing_init(
    struct ph__tracing *tracing, const char *file, const char *chrome_path, uint64_t rate)
{
    const bool has_chrome = chrome_path != NULL && chrome_path[0] != '\0';
    *tracing = (struct ph__tracing){.file = file != NULL ? file : "", .chrome_path = chrome_path};
    int64_t *values = tracing->all.values;
    for (size_t i = 0; i < PH_NUM_TRACE_SETTINGS; i++)
        values[i] = table[i].otherwise;
    values[PH_TRACE_LEVEL] = has_chrome || tracing->file[0] != '\0';
    if (rate > 0)
        values[PH_TRACE_RATE] = (int64_t)rate;
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
    for (struct ph__trace_settings *settings = tracing->models, *next; settings != NULL; settings = next) {
        next = settings->next;
        free(settings->model);
        free(settings);
    }
    tracing->models = NULL;
    return status;
}

/* Returns a model's own settings, or those of all. */
static struct ph__trace_settings *settings_of(struct ph__tracing *tracing, struct ph__bytes model)
{
    struct ph__trace_settings *settings = tracing->models;
    while (settings != NULL && !ph__bytes_are(model, settings->model))
        settings = settings->next;
    return settings != NULL ? settings : &tracing->all;
}

/* ---- traces ---- */

bool ph__tracing_samples(struct ph__tracing *tracing, const char *model)
{
    struct ph__trace_settings *settings = settings_of(tracing, ph__bytes_of(model));
    if (settings->values[PH_TRACE_LEVEL] == 0 || settings->values[PH_TRACE_COUNT] == 0 ||
        (tracing->file[0] == '\0' && tracing->chrome == NULL))
        return false;
    return settings->num_requests++ % (uint64_t)settings->values[PH_TRACE_RATE] == 0;
}

static void write_file(
    struct ph__tracing *tracing, uint64_t log_frequency, const struct ph__request_trace *request)
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
    if (log_frequency > 0 && tracing->num_traces % log_frequency == 0)
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
    int64_t *values = settings_of(tracing, ph__bytes_of(request->model))->values;
    tracing->num_traces++;
    values[PH_TRACE_COUNT] -= values[PH_TRACE_COUNT] > 0;
    if (tracing->chrome != NULL)
        add_chrome(tracing, request);
    if (tracing->file[0] != '\0')
        write_file(tracing, (uint64_t)values[PH_TRACE_FREQUENCY], request);
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

static enum ph__oip_code read_levels(const struct ph__list *texts, int64_t *has_timestamps)
{
    const struct ph__bytes *levels = texts->items;
    *has_timestamps = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (ph__bytes_are(levels[i], "TIMESTAMPS"))
            *has_timestamps = 1;
        else if (!ph__bytes_are(levels[i], "OFF"))
            return ph__oip_fail(PH_OIP_INVALID, "trace_level '%.*s' is not OFF or TIMESTAMPS",
                (int)levels[i].size, levels[i].bytes);
    }
    return PH_OIP_OK;
}

/* above: what a setting without a value gets; NULL: its default. */
static enum ph__oip_code read_setting(const char *file, const struct ph__oip_setting *setting,
    const int64_t *above, struct ph__trace_settings *settings)
{
    const struct ph__list *texts = &setting->value.texts;
    const struct ph__bytes *first = texts->items;
    size_t i = 0;
    if (ph__bytes_are(setting->key, "trace_file")) {
        if (texts->count > 0 && !ph__bytes_are(*first, file))
            return ph__oip_fail(PH_OIP_INVALID, "trace_file can be set by the server's own config alone");
        return PH_OIP_OK;
    }
    while (i < PH_NUM_TRACE_SETTINGS && !ph__bytes_are(setting->key, table[i].name))
        i++;
    if (i == PH_NUM_TRACE_SETTINGS)
        return ph__oip_fail(PH_OIP_INVALID, "the server has no trace setting '%.*s'", (int)setting->key.size,
            setting->key.bytes);
    settings->is_own[i] = texts->count > 0;
    settings->values[i] = above != NULL ? above[i] : table[i].otherwise;
    if (texts->count == 0)
        return PH_OIP_OK;
    return i == PH_TRACE_LEVEL ? read_levels(texts, &settings->values[i])
                               : read_integer(setting->key, *first, table[i].least, &settings->values[i]);
}

/* Makes settings of a model that has none: those of all. */
static struct ph__trace_settings *add_model(struct ph__tracing *tracing, struct ph__bytes model)
{
    struct ph__trace_settings *settings = malloc(sizeof *settings);
    if (settings == NULL)
        return NULL;
    *settings = tracing->all;
    memset(settings->is_own, 0, sizeof settings->is_own);
    settings->model = strndup(model.bytes, model.size);
    settings->next = tracing->models;
    if (settings->model == NULL) {
        free(settings);
        return NULL;
    }
    tracing->models = settings;
    return settings;
}

/* Gives models the settings of all that are not their own. */
static void follow_all(struct ph__tracing *tracing)
{
    for (struct ph__trace_settings *model = tracing->models; model != NULL; model = model->next)
        for (size_t i = 0; i < PH_NUM_TRACE_SETTINGS; i++)
            if (!model->is_own[i])
                model->values[i] = tracing->all.values[i];
}

enum ph__oip_code ph__tracing_update(
    struct ph__tracing *tracing, struct ph__bytes model, const struct ph__list *settings)
{
    struct ph__trace_settings *to = settings_of(tracing, model);
    const struct ph__oip_setting *items = settings->items;
    if (model.size > 0 && to == &tracing->all && (to = add_model(tracing, model)) == NULL)
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "out of memory");
    const int64_t *above = model.size > 0 ? tracing->all.values : NULL;
    struct ph__trace_settings changed = *to;
    for (size_t i = 0; i < settings->count; i++) {
        const enum ph__oip_code code = read_setting(tracing->file, &items[i], above, &changed);
        if (code != PH_OIP_OK)
            return code;
    }
    *to = changed;
    if (model.size == 0)
        follow_all(tracing);
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

ph_status ph__tracing_list(struct ph__tracing *tracing, struct ph__bytes model, struct ph__arena *arena,
    struct ph__list *settings_out)
{
    const int64_t *values = settings_of(tracing, model)->values;
    *settings_out = (struct ph__list){NULL, 0};
    PH_TRY(add_setting(settings_out, "trace_file", tracing->file, arena));
    PH_TRY(add_setting(
        settings_out, table[PH_TRACE_LEVEL].name, values[PH_TRACE_LEVEL] != 0 ? "TIMESTAMPS" : "OFF", arena));
    for (size_t i = PH_TRACE_LEVEL + 1; i < PH_NUM_TRACE_SETTINGS; i++)
        PH_TRY(
            add_setting(settings_out, table[i].name, ph__arena_printf(arena, "%" PRId64, values[i]), arena));
    return PH_OK;
}
