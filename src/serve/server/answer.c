/* Calls that are answered at once, and who may make which. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <errno.h>

#include "base/file/file.h"
#include "phloem/version.h"
#include "serve/server/scoring_state.h"

/* ---- tokens ---- */

static ph_status read_token(const char *key, const char *path, char token_out[PH_TOKEN_BYTES])
{
    struct ph__arena arena = {0};
    char *text = NULL;
    size_t size = 0;
    token_out[0] = '\0';
    if (path == NULL || path[0] == '\0')
        return PH_OK;
    ph_status status = ph__file_read(&arena, path, 64 << 10, &text, &size);
    while (status == PH_OK && size > 0 && strchr("\r\n ", text[size - 1]) != NULL)
        size--;
    if (status != PH_OK)
        status = ph_fail(PH_ERROR_CONFIG, "serve.%s: %s", key, ph_error_text());
    else if (size < 16 || size >= PH_TOKEN_BYTES)
        status = ph_fail(
            PH_ERROR_CONFIG, "serve.%s: %s: a token has 16 to %d characters", key, path, PH_TOKEN_BYTES - 1);
    else
        memcpy(token_out, text, size), token_out[size] = '\0';
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__tokens_read(const struct ph_server_options *options, struct ph__tokens *tokens_out)
{
    PH_TRY(read_token("token_file", options->token_file, tokens_out->scoring));
    PH_TRY(read_token("admin_token_file", options->admin_token_file, tokens_out->control));
    if (tokens_out->control[0] == '\0')
        memcpy(tokens_out->control, tokens_out->scoring, PH_TOKEN_BYTES);
    return PH_OK;
}

/* Compares in a time that does not tell where the texts differ. */
static bool is_token(struct ph__bytes authorization, const char *token)
{
    static const char scheme[] = "Bearer ";
    const size_t prefix = sizeof scheme - 1, length = strlen(token);
    unsigned char difference = 0;
    if (authorization.size != prefix + length || memcmp(authorization.bytes, scheme, prefix) != 0)
        return false;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(authorization.bytes[prefix + i] ^ token[i]);
    return difference == 0;
}

enum ph__oip_code ph__tokens_check(
    const struct ph__tokens *tokens, enum ph__oip_call call, struct ph__bytes authorization)
{
    const bool is_health = call == PH_OIP_CALL_LIVE || call == PH_OIP_CALL_READY ||
                           call == PH_OIP_CALL_MODEL_READY || call == PH_OIP_CALL_HEALTH;
    const bool is_control = call == PH_OIP_CALL_LOAD || call == PH_OIP_CALL_UNLOAD ||
                            call == PH_OIP_CALL_TRACE || call == PH_OIP_CALL_SPECULATION;
    if (is_health) /* probes have no token */
        return PH_OIP_OK;
    if (tokens->control[0] != '\0' && is_token(authorization, tokens->control))
        return PH_OIP_OK;
    if (!is_control && (tokens->scoring[0] == '\0' || is_token(authorization, tokens->scoring)))
        return PH_OIP_OK;
    if (is_control && tokens->control[0] == '\0')
        return PH_OIP_OK;
    return ph__oip_fail(PH_OIP_UNAUTHENTICATED, "a bearer token is needed: authorization: Bearer TOKEN");
}

/* ---- answers ---- */

static bool is_ready(const struct ph_server *server)
{
    return !server->is_draining && ph__repository_is_settled(server->repository);
}

static enum ph__oip_code answer_model_ready(
    struct ph_server *server, const struct ph__oip_request *request, struct ph__oip_is_true *answer)
{
    struct ph__served *served;
    const enum ph__oip_code code =
        ph__repository_find(server->repository, request->name, request->version, &served);
    answer->is_true = code == PH_OIP_OK && !server->is_draining;
    if (code == PH_OIP_OK)
        ph__repository_release(server->repository, served);
    return code == PH_OIP_UNAVAILABLE || code == PH_OIP_NOT_FOUND ? PH_OIP_OK : code;
}

static enum ph__oip_code answer_server(struct ph__arena *arena, struct ph__oip_server *answer)
{
    static const char *const extensions[] = {"binary_tensor_data", "model_repository", "model_configuration",
        "statistics", "schedule_policy", "parameters", "trace"};
    *answer = (struct ph__oip_server){ph__bytes_of("phloem"), ph__bytes_of(ph_version()), {NULL, 0}};
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        struct ph__bytes *text = ph__list_add(&answer->extensions, sizeof *text, arena);
        if (text == NULL)
            return PH_OIP_UNAVAILABLE;
        *text = ph__bytes_of(extensions[i]);
    }
    return PH_OIP_OK;
}

/* Describes a version that serves, by one of the functions of served.h. */
static enum ph__oip_code answer_model(struct ph_server *server, enum ph__oip_call call,
    const struct ph__oip_request *request, struct ph__arena *arena, union ph__oip_answer *answer)
{
    struct ph__served *served;
    ph_status status;
    enum ph__oip_code code =
        ph__repository_find(server->repository, request->name, request->version, &served);
    if (code != PH_OIP_OK)
        return code;
    if (call == PH_OIP_CALL_CONFIG)
        status = ph__served_config(served, arena, &answer->config.config);
    else
        status = ph__served_metadata(served, arena, &answer->model);
    ph__repository_release(server->repository, served);
    if (status == PH_OK && call == PH_OIP_CALL_MODEL_METADATA)
        return ph__repository_versions(server->repository, request->name, arena, &answer->model.versions);
    return ph__oip_code_of(status);
}

struct statistics_visit {
    const struct ph__oip_request *request;
    struct ph__arena *arena;
    struct ph__oip_statistics *answer;
    ph_status status;
};

static void add_statistics(void *context, struct ph__served *served)
{
    struct statistics_visit *visit = context;
    const struct ph__oip_request *request = visit->request;
    if (visit->status != PH_OK || (request->name.size > 0 && !ph__bytes_are(request->name, served->model)) ||
        (request->version.size > 0 && !ph__bytes_are(request->version, served->version_text)))
        return;
    struct ph__oip_model_statistics *statistics =
        ph__list_add(&visit->answer->models, sizeof *statistics, visit->arena);
    visit->status =
        statistics != NULL ? ph__served_statistics(served, visit->arena, statistics) : PH_ERROR_MEMORY;
}

static enum ph__oip_code answer_statistics(struct ph_server *server, const struct ph__oip_request *request,
    struct ph__arena *arena, struct ph__oip_statistics *answer)
{
    struct statistics_visit visit = {request, arena, answer, PH_OK};
    *answer = (struct ph__oip_statistics){{NULL, 0}};
    ph__repository_visit(server->repository, add_statistics, &visit);
    if (visit.status == PH_OK && answer->models.count == 0 && request->name.size > 0) {
        struct ph__served *served;
        enum ph__oip_code code =
            ph__repository_find(server->repository, request->name, request->version, &served);
        if (code == PH_OIP_OK)
            ph__repository_release(server->repository, served);
        return code;
    }
    return ph__oip_code_of(visit.status);
}

/* Carries out one parameter of a request to a speculation. */
static ph_status command(struct ph__speculator *speculator, const struct ph__oip_parameter *parameter)
{
    const bool is_item = ph__bytes_are(parameter->key, "forget_item");
    const struct ph__oip_value *value = &parameter->value;
    if (ph__bytes_are(parameter->key, "worker") && value->choice == PH_OIP_BOOL) {
        ph__speculator_switch(speculator, value->boolean);
        return PH_OK;
    }
    if ((is_item || ph__bytes_are(parameter->key, "forget_user")) && value->choice == PH_OIP_TEXT)
        return ph__speculator_forget(speculator, value->text, is_item);
    return ph_fail(PH_ERROR_DATA,
        "'%.*s': a speculation takes the parameters forget_user and forget_item, texts, and worker, a bool",
        (int)parameter->key.size, parameter->key.bytes);
}

static ph_status answer_speculator(struct ph__speculator *speculator, const struct ph__oip_request *request,
    struct ph__oip_speculation *answer)
{
    const struct ph__oip_parameter *parameters = request->parameters.items;
    struct ph__speculator_figures figures;
    if (speculator == NULL)
        return ph_fail(PH_ERROR_DATA, "the model has no speculation: set speculation.teacher in serve.yaml");
    for (size_t i = 0; i < request->parameters.count; i++)
        PH_TRY(command(speculator, &parameters[i]));
    ph__speculator_figures(speculator, &figures);
    *answer = (struct ph__oip_speculation){.none = figures.rungs[PH_RUNG_none],
        .pair = figures.rungs[PH_RUNG_pair],
        .user = figures.rungs[PH_RUNG_user],
        .near = figures.rungs[PH_RUNG_near],
        .orders = figures.orders,
        .waiting = figures.waiting,
        .worker = figures.is_on > 0};
    return PH_OK;
}

static enum ph__oip_code answer_speculation(
    struct ph_server *server, const struct ph__oip_request *request, struct ph__oip_speculation *answer)
{
    struct ph__served *served;
    const enum ph__oip_code code =
        ph__repository_find(server->repository, request->name, request->version, &served);
    if (code != PH_OIP_OK)
        return code;
    const ph_status status = answer_speculator(served->speculator, request, answer);
    ph__repository_release(server->repository, served);
    return ph__oip_code_of(status);
}

/* Changes the settings, if the request has any, and lists them: of all models, or of the one it names. */
static enum ph__oip_code answer_trace(struct ph_server *server, const struct ph__oip_request *request,
    struct ph__arena *arena, struct ph__oip_trace *answer)
{
    struct ph__list versions = {NULL, 0};
    enum ph__oip_code code = PH_OIP_OK;
    if (request->name.size > 0)
        code = ph__repository_versions(server->repository, request->name, arena, &versions);
    if (code == PH_OIP_OK && request->settings.count > 0)
        code = ph__tracing_update(&server->tracing, request->name, &request->settings);
    if (code != PH_OIP_OK)
        return code;
    return ph__oip_code_of(ph__tracing_list(&server->tracing, request->name, arena, &answer->settings));
}

enum ph__oip_code ph__server_answer(struct ph_server *server, enum ph__oip_call call,
    const struct ph__oip_request *request, struct ph__arena *arena, union ph__oip_answer *answer_out)
{
    switch (call) {
    case PH_OIP_CALL_LIVE:
        answer_out->is_true.is_true = true;
        return PH_OIP_OK;
    case PH_OIP_CALL_READY:
        answer_out->is_true.is_true = is_ready(server);
        return PH_OIP_OK;
    case PH_OIP_CALL_HEALTH:
        answer_out->health.status = is_ready(server) ? 1 : 2;
        return PH_OIP_OK;
    case PH_OIP_CALL_MODEL_READY:
        return answer_model_ready(server, request, &answer_out->is_true);
    case PH_OIP_CALL_SERVER_METADATA:
        return answer_server(arena, &answer_out->server);
    case PH_OIP_CALL_MODEL_METADATA:
    case PH_OIP_CALL_CONFIG:
        return answer_model(server, call, request, arena, answer_out);
    case PH_OIP_CALL_STATISTICS:
        return answer_statistics(server, request, arena, &answer_out->statistics);
    case PH_OIP_CALL_INDEX:
        answer_out->index = (struct ph__oip_index){{NULL, 0}};
        return ph__oip_code_of(ph__repository_index(
            server->repository, request->is_ready_only, arena, &answer_out->index.models));
    case PH_OIP_CALL_TRACE:
        return answer_trace(server, request, arena, &answer_out->trace);
    case PH_OIP_CALL_SPECULATION:
        return answer_speculation(server, request, &answer_out->speculation);
    case PH_OIP_CALL_UNLOAD:
        return ph__repository_unload(server->repository, request->name);
    default:
        return ph__oip_fail(PH_OIP_UNSUPPORTED, "the server does not support this call");
    }
}

enum ph__oip_code ph__server_load(struct ph_server *server, const struct ph__oip_request *request,
    ph__repository_loaded *loaded, void *context)
{
    const struct ph__oip_parameter *parameters = request->parameters.items;
    struct ph__bytes config = {NULL, 0};
    for (size_t i = 0; i < request->parameters.count; i++) {
        if (!ph__bytes_are(parameters[i].key, "config") || parameters[i].value.choice != PH_OIP_TEXT)
            return ph__oip_fail(PH_OIP_UNSUPPORTED,
                "'%.*s': models are loaded as they are in the repository; only 'config', a text, is taken",
                (int)parameters[i].key.size, parameters[i].key.bytes);
        config = parameters[i].value.text;
    }
    return ph__repository_load(server->repository, request->name, config, loaded, context);
}
