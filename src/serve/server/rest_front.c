/* The REST wire: exchanges of HTTP become calls, and answers become bodies. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file/compress.h"
#include "base/thread/clock.h"
#include "serve/server/fronts.h"
#include "serve/server/infer.h"
#include "serve/wire/rest.h"

#define SMALL_BODY_BYTES ((uint64_t)64 << 10) /* read even when refused, so that connections stay */
#define JSON "application/json"
#define BINARY "application/octet-stream"

static struct ph__call_state *state_of(struct ph__http_exchange *exchange)
{
    return *ph__http_exchange_user(exchange);
}

/* ---- answers ---- */

static void answer(struct ph__http_exchange *exchange, unsigned status, struct ph__bytes body)
{
    struct ph__http_answer answer = {.status = status, .headers = {{"Content-Type", JSON}}, .body = body};
    if (status == 503)
        answer.headers[1] = (struct ph__http_header){"Retry-After", "1"};
    if (status == 401)
        answer.headers[1] = (struct ph__http_header){"WWW-Authenticate", "Bearer"};
    ph__http_answer(exchange, &answer);
}

static void answer_error(struct ph__http_exchange *exchange, enum ph__oip_code code, const char *text)
{
    static const char no_memory[] = "{\"error\":\"out of memory\"}";
    struct ph__call_state *state = state_of(exchange);
    if (state == NULL) {
        answer(exchange, 503, ph__bytes_of(no_memory));
        return;
    }
    ph__buffer_clear(&state->body);
    ph__rest_write_error(text, &state->body);
    answer(exchange, ph__oip_http_status(code),
        state->body.has_failed ? ph__bytes_of(no_memory) : ph__buffer_bytes(&state->body));
}

/* Answers a call whose status may say it all. */
static void answer_call(
    struct ph__http_exchange *exchange, enum ph__oip_call call, const union ph__oip_answer *result)
{
    struct ph__call_state *state = state_of(exchange);
    const bool is_question =
        call == PH_OIP_CALL_LIVE || call == PH_OIP_CALL_READY || call == PH_OIP_CALL_MODEL_READY;
    ph__buffer_clear(&state->body);
    ph__rest_write(call, result, &state->body);
    if (state->body.has_failed)
        answer_error(exchange, PH_OIP_UNAVAILABLE, "out of memory");
    else
        answer(exchange, is_question && !result->is_true.is_true ? 400 : 200, ph__buffer_bytes(&state->body));
}

void ph__rest_answer_infer(struct ph__infer *infer)
{
    struct ph__http_exchange *exchange = infer->front;
    struct ph__call_state *state = state_of(exchange);
    struct ph__http_answer scored = {
        .status = 200, .headers = {{"Content-Type", infer->has_binary ? BINARY : JSON}}};
    if (infer->work.code != PH_OIP_OK) {
        answer_error(exchange, infer->work.code, infer->work.error);
        return;
    }
    size_t num_headers = 1;
    if (infer->has_binary) {
        snprintf(state->header_length, sizeof state->header_length, "%zu", infer->json_bytes);
        scored.headers[num_headers++] = (struct ph__http_header){PH_REST_HEADER, state->header_length};
    }
    if (infer->packing != PH_PACKED_NOT)
        scored.headers[num_headers] = (struct ph__http_header){
            "Content-Encoding", infer->packing == PH_PACKED_GZIP ? "gzip" : "deflate"};
    scored.body = ph__buffer_bytes(&infer->answer);
    ph__http_answer(exchange, &scored);
}

/* ---- requests ---- */

static enum ph__rest_method method_of(const struct ph__http_exchange *exchange)
{
    const char *method = ph__http_exchange_method(exchange);
    if (strcmp(method, "GET") == 0)
        return PH_REST_GET;
    return strcmp(method, "POST") == 0 ? PH_REST_POST : PH_REST_OTHER;
}

/* Says what is known before the body is there: whether there is such a call, whether the client may make it,
 * and whether there is room for it. */
static enum ph__oip_code admit(
    struct ph_server *server, struct ph__http_exchange *exchange, uint64_t body_bytes)
{
    struct ph__call_state *state = state_of(exchange);
    struct ph__served *served;
    const char *authorization = ph__http_exchange_header(exchange, "authorization");
    enum ph__oip_code code = ph__rest_route(
        method_of(exchange), ph__http_exchange_path(exchange), &state->arena, &state->call, &state->request);
    if (code == PH_OIP_OK)
        code = ph__tokens_check(&server->tokens, state->call, ph__bytes_of(authorization));
    if (code == PH_OIP_OK && body_bytes != UINT64_MAX && body_bytes > server->options.max_request_bytes)
        code = ph__oip_fail(PH_OIP_TOO_LARGE,
            "a body of %" PRIu64 " bytes exceeds serve.max_request_bytes, %" PRIu64, body_bytes,
            server->options.max_request_bytes);
    if (code != PH_OIP_OK || state->call != PH_OIP_CALL_INFER)
        return code;
    if (server->is_draining)
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "the server is shutting down");
    code = ph__repository_find(server->repository, state->request.name, state->request.version, &served);
    if (code != PH_OIP_OK)
        return code;
    code = ph__queue_admit(served->queue, body_bytes != UINT64_MAX ? body_bytes : 0, UINT64_MAX);
    if (code != PH_OIP_OK)
        ph__served_book(served, &(struct ph__work){.code = code}, ph__clock_ns());
    ph__repository_release(server->repository, served);
    return code;
}

static void begin(void *context, struct ph__http_exchange *exchange, uint64_t body_bytes)
{
    struct ph_server *server = context;
    struct ph__call_state *state = ph__call_state_take(server);
    *ph__http_exchange_user(exchange) = state;
    if (state == NULL) {
        answer_error(exchange, PH_OIP_UNAVAILABLE, "");
        return;
    }
    state->refused = admit(server, exchange, body_bytes);
    if (state->refused == PH_OIP_OK)
        return;
    snprintf(state->error, sizeof state->error, "%s", ph_error_text());
    if (body_bytes > SMALL_BODY_BYTES)
        answer_error(exchange, state->refused, state->error);
}

/* Gives the body as it was before compression. */
static enum ph__oip_code unpack(
    struct ph_server *server, struct ph__http_exchange *exchange, struct ph__bytes *body)
{
    const char *encoding = ph__http_exchange_header(exchange, "content-encoding");
    struct ph__call_state *state = state_of(exchange);
    if (encoding == NULL || strcmp(encoding, "identity") == 0)
        return PH_OIP_OK;
    if (strcmp(encoding, "gzip") != 0 && strcmp(encoding, "deflate") != 0)
        return ph__oip_fail(PH_OIP_UNSUPPORTED, "content-encoding '%s': only gzip and deflate", encoding);
    ph__buffer_clear(&state->body);
    const ph_status status =
        ph__inflate(body->bytes, body->size, server->options.max_request_bytes, &state->body);
    *body = ph__buffer_bytes(&state->body);
    return ph__oip_code_of(status);
}

/* Returns the compression that the client takes. */
static enum ph__infer_packing packing_of(const struct ph__http_exchange *exchange)
{
    const char *accepted = ph__http_exchange_header(exchange, "accept-encoding");
    if (accepted == NULL)
        return PH_PACKED_NOT;
    if (strstr(accepted, "gzip") != NULL)
        return PH_PACKED_GZIP;
    return strstr(accepted, "deflate") != NULL ? PH_PACKED_DEFLATE : PH_PACKED_NOT;
}

static enum ph__oip_code score(
    struct ph_server *server, struct ph__http_exchange *exchange, struct ph__bytes body)
{
    struct ph__call_state *state = state_of(exchange);
    struct ph__infer *infer = ph__infer_take(server, PH_WIRE_REST, exchange, state->begun_ns);
    if (infer == NULL)
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "out of memory");
    infer->packing = packing_of(exchange);
    enum ph__oip_code code = ph__rest_read_infer(
        body, ph__http_exchange_header(exchange, PH_REST_HEADER), &infer->arena, &infer->request);
    if (code == PH_OIP_OK)
        code = ph__infer_put(infer, &state->request, UINT64_MAX, body.size);
    if (code == PH_OIP_OK)
        state->infers = infer;
    else
        ph__infer_give_back(infer);
    return code;
}

static void loaded(void *context, enum ph__oip_code code)
{
    struct ph__http_exchange *exchange = context;
    if (code == PH_OIP_OK)
        answer(exchange, 200, ph__bytes_of(""));
    else
        answer_error(exchange, code, ph_error_text());
}

static void handle(void *context, struct ph__http_exchange *exchange, struct ph__bytes body)
{
    struct ph_server *server = context;
    struct ph__call_state *state = state_of(exchange);
    union ph__oip_answer result;
    if (state->refused != PH_OIP_OK) {
        answer_error(exchange, state->refused, state->error);
        return;
    }
    enum ph__oip_code code = unpack(server, exchange, &body);
    if (code == PH_OIP_OK && state->call == PH_OIP_CALL_INFER) {
        code = score(server, exchange, body);
        if (code != PH_OIP_OK)
            answer_error(exchange, code, ph_error_text());
        return;
    }
    if (code == PH_OIP_OK)
        code = ph__rest_read(state->call, body, &state->arena, &state->request);
    if (code == PH_OIP_OK && state->call == PH_OIP_CALL_LOAD) {
        code = ph__server_load(server, &state->request, loaded, exchange);
        if (code == PH_OIP_OK)
            return; /* answered when it is loaded */
    } else if (code == PH_OIP_OK) {
        code = ph__server_answer(server, state->call, &state->request, &state->arena, &result);
    }
    if (code == PH_OIP_OK)
        answer_call(exchange, state->call, &result);
    else
        answer_error(exchange, code, ph_error_text());
}

static void end(void *context, struct ph__http_exchange *exchange, bool was_cancelled)
{
    struct ph_server *server = context;
    struct ph__call_state *state = state_of(exchange);
    if (state == NULL)
        return;
    if (state->infers != NULL && was_cancelled && !state->infers->is_collected)
        ph__infer_abandon(state->infers);
    else if (state->infers != NULL) {
        ph__infer_trace(state->infers);
        ph__infer_give_back(state->infers);
    }
    if (state->call == PH_OIP_CALL_LOAD)
        ph__repository_forget(server->repository, exchange);
    ph__call_state_give_back(state);
}

struct ph__http_handler ph__rest_handler(struct ph_server *server)
{
    return (struct ph__http_handler){.begin = begin, .handle = handle, .end = end, .context = server};
}
