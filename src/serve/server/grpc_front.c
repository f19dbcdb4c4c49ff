/* The gRPC wire: calls become requests, and answers become messages. */
#include <string.h>

#include "base/thread/clock.h"
#include "serve/server/fronts.h"
#include "serve/server/infer.h"

#define MAX_STREAM_REQUESTS 1024 /* of one stream in flight */

static struct ph__call_state *state_of(struct ph__grpc_call *call)
{
    return *ph__grpc_call_user(call);
}

static void finish(struct ph__grpc_call *call, enum ph__oip_code code)
{
    ph__grpc_finish(call, ph__oip_grpc_code(code), code == PH_OIP_OK ? "" : ph_error_text());
}

/* ---- calls begin ---- */

static void begin(void *context, struct ph__grpc_call *call)
{
    struct ph_server *server = context;
    struct ph__call_state *state = ph__call_state_take(server);
    const struct ph__bytes path = ph__grpc_call_path(call);
    *ph__grpc_call_user(call) = state;
    enum ph__oip_code code = state != NULL ? PH_OIP_OK : PH_OIP_UNAVAILABLE;
    if (code == PH_OIP_OK) {
        state->call = ph__oip_find_rpc(path);
        if (state->call == PH_OIP_NUM_CALLS)
            code =
                ph__oip_fail(PH_OIP_UNSUPPORTED, "the server has no call '%.*s'", (int)path.size, path.bytes);
        else
            code = ph__tokens_check(&server->tokens, state->call, ph__grpc_call_authorization(call));
    }
    if (code != PH_OIP_OK)
        finish(call, code);
}

/* ---- scoring ---- */

static void link_infer(struct ph__call_state *state, struct ph__infer *infer)
{
    infer->next_of_call = state->infers;
    state->infers = infer;
    state->num_infers++;
}

static void unlink_infer(struct ph__call_state *state, const struct ph__infer *infer)
{
    struct ph__infer **place = &state->infers;
    while (*place != infer)
        place = &(*place)->next_of_call;
    *place = infer->next_of_call;
    state->num_infers--;
}

/* Tells a stream's client that one of its requests has failed. */
static void send_error(
    struct ph__grpc_call *call, const struct ph__oip_infer_request *request, const char *text)
{
    struct ph__call_state *state = state_of(call);
    const struct ph__oip_stream_response response = {
        .error_message = ph__bytes_of(text), .response = {.id = request->id}};
    ph__buffer_clear(&state->body);
    ph__message_to_protobuf(&ph__oip_stream_response_message, &response, &state->body);
    ph__grpc_send(call, state->body.bytes, state->body.size);
}

static void end_stream_if_done(struct ph__grpc_call *call)
{
    const struct ph__call_state *state = state_of(call);
    if (state->call == PH_OIP_CALL_STREAM && state->is_half_closed && state->num_infers == 0)
        ph__grpc_finish(call, 0, "");
}

void ph__grpc_answer_infer(struct ph__infer *infer)
{
    struct ph__grpc_call *call = infer->front;
    struct ph__call_state *state = state_of(call);
    const bool is_scored = infer->work.code == PH_OIP_OK;
    unlink_infer(state, infer);
    if (is_scored)
        ph__grpc_send(call, infer->answer.bytes, infer->answer.size);
    if (infer->wire == PH_WIRE_GRPC)
        ph__grpc_finish(call, ph__oip_grpc_code(infer->work.code), is_scored ? "" : infer->work.error);
    else if (!is_scored)
        send_error(call, &infer->request, infer->work.error);
    ph__infer_trace(infer);
    ph__infer_give_back(infer);
    end_stream_if_done(call);
}

static enum ph__oip_code put(struct ph__grpc_call *call, struct ph__infer *infer)
{
    const struct ph__call_state *state = state_of(call);
    const ph_status status = ph__message_from_protobuf(
        &ph__oip_infer_request_message, infer->body.bytes, infer->body.size, &infer->arena, &infer->request);
    if (status != PH_OK)
        return ph__oip_code_of(status);
    if (state->server->is_draining)
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "the server is shutting down");
    if (state->num_infers >= MAX_STREAM_REQUESTS)
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "the stream has %d requests in flight", MAX_STREAM_REQUESTS);
    const struct ph__oip_request model = {
        .name = infer->request.model_name, .version = infer->request.model_version};
    const uint64_t timeout_ns = infer->wire == PH_WIRE_GRPC ? ph__grpc_call_timeout_ns(call) : UINT64_MAX;
    return ph__infer_put(infer, &model, timeout_ns, infer->body.size);
}

static void score(struct ph__grpc_call *call, struct ph__buffer *message)
{
    struct ph__call_state *state = state_of(call);
    const enum ph__infer_wire wire = state->call == PH_OIP_CALL_STREAM ? PH_WIRE_STREAM : PH_WIRE_GRPC;
    struct ph__infer *infer = ph__infer_take(state->server, wire, call, state->begun_ns);
    if (infer == NULL) {
        finish(call, ph__oip_fail(PH_OIP_UNAVAILABLE, "out of memory"));
        return;
    }
    const struct ph__buffer former = infer->body;
    infer->body = *message; /* the request points into it */
    *message = former;
    memset(&infer->request, 0, sizeof infer->request);
    const enum ph__oip_code code = put(call, infer);
    if (code == PH_OIP_OK) {
        link_infer(state, infer);
        return;
    }
    if (wire == PH_WIRE_STREAM)
        send_error(call, &infer->request, ph_error_text());
    else
        finish(call, code);
    ph__infer_give_back(infer);
}

/* ---- other calls ---- */

static void loaded(void *context, enum ph__oip_code code)
{
    struct ph__grpc_call *call = context;
    if (code == PH_OIP_OK)
        ph__grpc_send(call, "", 0);
    finish(call, code);
}

static enum ph__oip_code answer(struct ph__grpc_call *call, const struct ph__buffer *message)
{
    struct ph__call_state *state = state_of(call);
    struct ph__oip_request request;
    union ph__oip_answer result;
    enum ph__oip_code code = ph__oip_code_of(ph__message_from_protobuf(
        ph__oip_request_of(state->call), message->bytes, message->size, &state->arena, &request));
    if (code != PH_OIP_OK)
        return code;
    if (state->call == PH_OIP_CALL_LOAD)
        return ph__server_load(state->server, &request, loaded, call);
    code = ph__server_answer(state->server, state->call, &request, &state->arena, &result);
    if (code != PH_OIP_OK)
        return code;
    ph__buffer_clear(&state->body);
    ph__message_to_protobuf(ph__oip_response_of(state->call), &result, &state->body);
    if (state->body.has_failed)
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "out of memory");
    ph__grpc_send(call, state->body.bytes, state->body.size);
    ph__grpc_finish(call, 0, "");
    return PH_OIP_OK;
}

static void message(void *context, struct ph__grpc_call *call, struct ph__buffer *bytes)
{
    struct ph__call_state *state = state_of(call);
    (void)context;
    const bool is_second = state->has_message && state->call != PH_OIP_CALL_STREAM;
    state->has_message = true;
    if (is_second) {
        finish(call, ph__oip_fail(PH_OIP_INVALID, "the call takes one message"));
        return;
    }
    if (state->call == PH_OIP_CALL_STREAM)
        state->begun_ns = ph__clock_ns();
    if (state->call == PH_OIP_CALL_INFER || state->call == PH_OIP_CALL_STREAM) {
        score(call, bytes);
        return;
    }
    const enum ph__oip_code code = answer(call, bytes);
    if (code != PH_OIP_OK)
        finish(call, code);
}

static void half_closed(void *context, struct ph__grpc_call *call)
{
    struct ph__call_state *state = state_of(call);
    (void)context;
    state->is_half_closed = true;
    if (!state->has_message && state->call != PH_OIP_CALL_STREAM)
        finish(call, ph__oip_fail(PH_OIP_INVALID, "the call has no message"));
    end_stream_if_done(call);
}

static void end(void *context, struct ph__grpc_call *call, bool was_cancelled)
{
    struct ph_server *server = context;
    struct ph__call_state *state = state_of(call);
    (void)was_cancelled;
    if (state == NULL)
        return;
    while (state->infers != NULL) {
        struct ph__infer *infer = state->infers;
        state->infers = infer->next_of_call;
        ph__infer_abandon(infer);
    }
    if (state->call == PH_OIP_CALL_LOAD)
        ph__repository_forget(server->repository, call);
    ph__call_state_give_back(state);
}

struct ph__grpc_handler ph__grpc_handler(struct ph_server *server)
{
    return (struct ph__grpc_handler){
        .begin = begin, .message = message, .half_closed = half_closed, .end = end, .context = server};
}
