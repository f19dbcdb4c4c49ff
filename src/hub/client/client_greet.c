/* Reaches hubs and sends requests; see client_greet.h. */
#include "hub/client/client_greet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sum/random_bytes.h"
#include "hub/wire/protocol.h"
#include "net/link/socket.h"

/* ---- the addresses of hubs ---- */

static ph_status cut(const char *address, struct ph__hub_list *list)
{
    for (char *rest = list->text, *one; (one = strsep(&rest, ",")) != NULL;) {
        if (*one == '\0')
            return ph_fail(PH_ERROR_CONFIG, "the hub's address is missing in '%s'", address);
        if (list->num_hubs == PH_HUB_MAX_HUBS)
            return ph_fail(PH_ERROR_USAGE, "an address can name at most %d hubs", PH_HUB_MAX_HUBS);
        list->addresses[list->num_hubs++] = one;
    }
    return PH_OK;
}

ph_status ph__hub_list_read(const char *address, struct ph__hub_list *list_out)
{
    struct ph__hub_list list = {0};
    if (address == NULL)
        return ph_fail(PH_ERROR_CONFIG, "the hub's address is missing: give host:port");
    list.text = strdup(address);
    if (list.text == NULL)
        return ph__out_of_memory("the addresses of hubs");
    const ph_status status = cut(address, &list);
    if (status != PH_OK) {
        ph__hub_list_fini(&list);
        return status;
    }
    *list_out = list;
    return PH_OK;
}

void ph__hub_list_fini(struct ph__hub_list *list)
{
    free(list->text);
    *list = (struct ph__hub_list){0};
}

struct ph_hub_options ph__hub_list_options(
    const struct ph__hub_list *list, uint16_t hub, const struct ph_hub_options *options)
{
    struct ph_hub_options one = *options;
    one.address = list->addresses[hub];
    return one;
}

ph_status ph__hub_list_name(const struct ph__hub_list *list, uint16_t hub, ph_status status)
{
    char text[PH_HUB_MAX_TEXT + 1];
    if (status == PH_OK || list->num_hubs == 1)
        return status;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(status, "hub %s: %s", list->addresses[hub], text);
}

/* ---- connections ---- */

#define DEFAULT_TIMEOUT_MS 60000

struct ph__timeout ph__client_timeout(const struct ph_hub_options *options)
{
    return (struct ph__timeout){.ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS,
        .stop_signal = options->stop_signal};
}

/* ---- requests ---- */

static struct ph__timeout connect_timeout_of(const struct ph_hub_options *options)
{
    struct ph__timeout timeout = ph__client_timeout(options);
    if (options->connect_timeout_ms > 0)
        timeout.ms = options->connect_timeout_ms;
    return timeout;
}

struct pollfd ph__client_polled(const struct ph__control_stream *stream)
{
    const bool has_output = ph__control_stream_has_output(stream);
    return (struct pollfd){
        .fd = ph__control_stream_socket(stream), .events = (short)(has_output ? POLLIN | POLLOUT : POLLIN)};
}

/* Sends what it can, and takes a frame if one has come, even if the hub has closed the connection: the frame
 * may say why. */
static ph_status exchange(
    struct ph__control_stream *stream, struct ph__control_frame *frame_out, bool *is_there_out)
{
    const ph_status sent = ph__control_stream_flush(stream);
    const ph_status received = ph__control_stream_receive(stream);
    PH_TRY(ph__control_stream_take(stream, frame_out, is_there_out));
    if (*is_there_out)
        return PH_OK;
    PH_TRY(sent);
    return received;
}

static ph_status await_frame(
    struct ph__control_stream *stream, struct ph__timeout timeout, struct ph__control_frame *frame_out)
{
    struct ph__wait wait = ph__wait_begin(timeout);
    for (;;) {
        bool is_there;
        PH_TRY(exchange(stream, frame_out, &is_there));
        if (is_there)
            return PH_OK;
        const int wait_ms = ph__wait_ms(&wait);
        if (wait_ms == 0 && wait.is_stopped)
            return ph__wait_stopped(&wait);
        if (wait_ms == 0)
            return ph_fail(PH_ERROR_PEER, "the hub timed out");
        struct pollfd polled = ph__client_polled(stream);
        poll(&polled, 1, wait_ms);
    }
}

/* Checks the type of an answer; returns its error, if any. Closes descriptors, except a layout's. */
static ph_status check_answer(const struct ph__control_frame *frame, enum ph__hub_frame wanted)
{
    struct ph__answer answer;
    if (frame->type != wanted || wanted != PH_FRAME_LAYOUT)
        ph__control_frame_close(frame);
    if (frame->type == wanted && wanted != PH_FRAME_ANSWER)
        return PH_OK;
    if (frame->type != PH_FRAME_ANSWER && frame->type != PH_FRAME_FAILED)
        return ph_fail(PH_ERROR_PEER, "the hub answered with an unexpected message of type %u", frame->type);
    PH_TRY(frame->type == PH_FRAME_FAILED ? ph__get_failure(frame->body, frame->size, &answer)
                                          : ph__get_answer(frame->body, frame->size, &answer));
    if (answer.status != PH_OK)
        return ph_fail(answer.status, "%s", answer.text);
    return wanted == PH_FRAME_ANSWER ? PH_OK
                                     : ph_fail(PH_ERROR_PEER, "the hub sent an answer without its content");
}

ph_status ph__client_put(
    struct ph__control_stream *stream, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    size_t size = 0;
    if (body != NULL)
        PH_TRY(ph__wire_writer_finish(body, "message", &size));
    return ph__control_stream_put(stream, (uint16_t)type, body != NULL ? body->bytes : NULL, size, NULL, 0);
}

ph_status ph__client_request(struct ph__control_stream *stream, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer, struct ph__timeout timeout,
    struct ph__control_frame *frame_out)
{
    frame_out->type = 0;
    PH_TRY(ph__client_put(stream, type, body));
    PH_TRY(await_frame(stream, timeout, frame_out));
    return check_answer(frame_out, answer);
}

ph_status ph__client_look_for(struct ph__control_stream *stream, enum ph__hub_frame answer,
    struct ph__control_frame *frame_out, bool *is_there_out)
{
    PH_TRY(exchange(stream, frame_out, is_there_out));
    if (*is_there_out && frame_out->type == PH_FRAME_SAVED) {
        ph__control_frame_close(frame_out);
        return PH_OK;
    }
    return *is_there_out ? check_answer(frame_out, answer) : PH_OK;
}

/* ---- greeting ---- */

static ph_status say_hello(struct ph__control_stream *stream, const struct ph__wire_writer *hello,
    bool has_secret, struct ph__timeout timeout, struct ph__control_frame *frame_out)
{
    const enum ph__hub_frame wanted = has_secret ? PH_FRAME_CHALLENGE : PH_FRAME_WELCOME;
    const ph_status status = ph__client_request(stream, PH_FRAME_HELLO, hello, wanted, timeout, frame_out);
    if (status == PH_OK || frame_out->type != (has_secret ? PH_FRAME_WELCOME : PH_FRAME_CHALLENGE))
        return status;
    return ph_fail(PH_ERROR_CONFIG, has_secret ? "the hub has no secret: give it one, or leave out "
                                                 "secret_file (--secret-file)"
                                               : "the hub requires a secret: name its file by "
                                                 "secret_file (--secret-file)");
}

static ph_status prove(struct ph__control_stream *stream, const struct ph__secret *secret,
    const struct ph__wire_writer *hello, struct ph__timeout timeout, struct ph__control_frame *frame)
{
    struct ph__server_challenge answer;
    struct ph__challenge challenge;
    unsigned char proof[PH_PROOF_BYTES];
    PH_TRY(ph__get_server_challenge(frame->body, frame->size, &answer));
    PH_TRY(ph__handshake_prove(secret, hello->bytes, hello->used, &answer, &challenge, proof));
    PH_TRY(ph__control_stream_put(stream, PH_FRAME_PROOF, proof, sizeof proof, NULL, 0));
    PH_TRY(ph__handshake_protect(secret, &challenge, PH_SIDE_CLIENT, stream));
    PH_TRY(await_frame(stream, timeout, frame));
    return check_answer(frame, PH_FRAME_WELCOME);
}

static ph_status greet(struct ph__control_stream *stream, const struct ph__secret *secret,
    struct ph__timeout timeout, struct ph__welcome *welcome_out)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    struct ph__hello hello = {.api_version = PH_HUB_API_VERSION};
    PH_TRY(ph__random_bytes(hello.nonce, sizeof hello.nonce));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_hello(&writer, &hello);
    PH_TRY(say_hello(stream, &writer, secret != NULL, timeout, &frame));
    if (secret != NULL)
        PH_TRY(prove(stream, secret, &writer, timeout, &frame));
    return ph__get_welcome(frame.body, frame.size, welcome_out);
}

ph_status ph__client_greet(int socket, const struct ph__secret *secret, struct ph__timeout timeout,
    struct ph__control_stream **stream_out, struct ph__welcome *welcome_out)
{
    struct ph__control_stream *stream;
    PH_TRY(ph__control_stream_create(socket, &stream));
    const ph_status status = greet(stream, secret, timeout, welcome_out);
    if (status != PH_OK) {
        ph__control_stream_destroy(stream);
        return status;
    }
    *stream_out = stream;
    return PH_OK;
}

ph_status ph__client_reach(const struct ph_hub_options *options, const struct ph__secret *secret,
    struct ph__control_stream **stream_out, struct ph__welcome *welcome_out)
{
    int socket;
    PH_TRY(ph__socket_connect_while(options->address, connect_timeout_of(options), -1, &socket));
    return ph__client_greet(socket, secret, ph__client_timeout(options), stream_out, welcome_out);
}

ph_status ph__client_reach_local(
    const struct ph__welcome *welcome, uint32_t timeout_ms, int *socket_out, enum ph__way *way_out)
{
    int socket;
    *way_out = PH_WAY_UNREACHED;
    PH_TRY(ph__socket_connect_local(welcome->local_socket, timeout_ms, &socket));
    if (!ph__socket_is_same_user(socket)) {
        close(socket);
        *way_out = PH_WAY_OTHER_USER;
        return ph_fail(PH_ERROR_PEER, "the hub runs as another user");
    }
    *way_out = PH_WAY_SHARED;
    *socket_out = socket;
    return PH_OK;
}

ph_status ph__client_reach_once(const struct ph_hub_options *options, struct ph__control_stream **stream_out)
{
    struct ph__secret secret;
    struct ph__welcome welcome;
    if (options->address == NULL)
        return ph_fail(PH_ERROR_CONFIG, "the hub's address is missing: give host:port");
    if (options->secret_file == NULL)
        return ph__client_reach(options, NULL, stream_out, &welcome);
    PH_TRY(ph__secret_read(options->secret_file, &secret));
    const ph_status status = ph__client_reach(options, &secret, stream_out, &welcome);
    ph__secret_fini(&secret);
    return status;
}
