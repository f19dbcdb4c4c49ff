/* Control connections of a hub: greeting, proof, and then the requests of workers (server_jobs.c). */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "hub/server/server_state.h"
#include "hub/wire/protocol.h"

#define PROCESS_ENDED "the process has ended" /* all that a closed connection tells */
#define FRAMES_A_TURN 4                       /* frames taken of a connection a turn */
#define GREETING_BYTES 512 /* most of a frame before the welcome, other versions' included */

/* ---- the log ---- */

/* Numbers and logs the connection. */
static void log_opened(struct ph_session *session)
{
    session->number = session->server->counts.connections++;
    PH_LOG(session->server->log, PH_LOG_INFO, "connection_opened",
        ph__log_count("connection", session->number), ph__log_text("peer", session->peer));
}

static void log_closed(const struct ph_session *session)
{
    PH_LOG(
        session->server->log, PH_LOG_INFO, "connection_closed", ph__log_count("connection", session->number));
}

/* event: "connection_broken" or "connection_silent". */
static void log_lost(const struct ph_session *session, const char *event, const char *why)
{
    PH_LOG(session->server->log, PH_LOG_WARNING, event, ph__log_count("connection", session->number),
        ph__log_text("peer", session->peer), ph__log_text("reason", why));
}

static void log_refused(struct ph_session *session, const char *why)
{
    session->server->counts.refused_requests++;
    PH_LOG(session->server->log, PH_LOG_WARNING, "request_refused",
        ph__log_count("connection", session->number), ph__log_text("reason", why));
}

/* Has the connection closed at the end of the turn. Only the first reason is kept. */
static void end(struct ph_session *session, const char *why)
{
    if (!session->is_closing)
        snprintf(session->why, sizeof session->why, "%s", why);
    session->is_closing = true;
}

/* Ends a connection that nothing can be sent over. The reason is that the peer's process has ended, if so. */
static void end_sending(struct ph_session *session)
{
    struct pollfd process = {.fd = session->process, .events = POLLIN}; /* poll ignores -1 */
    const bool has_ended = poll(&process, 1, 0) == 1;
    end(session, has_ended ? PROCESS_ENDED : ph_error_text());
}

void ph__session_send(struct ph_session *session, enum ph__hub_frame type, const struct ph__wire_writer *body,
    const int *descriptors, size_t num_descriptors)
{
    size_t size = 0;
    ph_status status = PH_OK;
    if (!ph__control_stream_has_output(session->stream))
        session->moved_ns = ph__clock_ns();
    if (body != NULL)
        status = ph__wire_writer_finish(body, "message", &size);
    if (status == PH_OK)
        status = ph__control_stream_put(session->stream, (uint16_t)type, body != NULL ? body->bytes : NULL,
            size, descriptors, num_descriptors);
    if (status == PH_OK)
        status = ph__control_stream_flush(session->stream);
    if (status == PH_OK && ph__control_stream_has_output(session->stream))
        status = ph__event_source_change(session->source, EPOLLOUT);
    if (status != PH_OK)
        end_sending(session);
}

static void send_answer(struct ph_session *session, ph_status status)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, status, status == PH_OK ? "" : ph_error_text());
    ph__session_send(session, PH_FRAME_ANSWER, &writer, NULL, 0);
}

void ph__session_answer(struct ph_session *session, ph_status status)
{
    if (status != PH_OK)
        log_refused(session, ph_error_text());
    send_answer(session, status);
}

/* ---- greeting ---- */

static void send_challenge(struct ph_session *session, const struct ph__server_challenge *challenge)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_server_challenge(&writer, challenge);
    ph__session_send(session, PH_FRAME_CHALLENGE, &writer, NULL, 0);
}

static void welcome(struct ph_session *session)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__welcome welcome;
    memcpy(welcome.local_socket, session->server->local_socket, sizeof welcome.local_socket);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_welcome(&writer, &welcome);
    session->state = PH_SESSION_READY;
    ph__control_stream_limit(session->stream, PH_HUB_MAX_BODY);
    ph__session_send(session, PH_FRAME_WELCOME, &writer, NULL, 0);
}

static ph_status greet(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__hello hello;
    struct ph__server_challenge challenge;
    if (frame->type != PH_FRAME_HELLO)
        return ph_fail(PH_ERROR_PEER, "the peer did not begin with a greeting");
    PH_TRY(ph__get_hello(frame->body, frame->size, &hello));
    if (session->server->secret == NULL) {
        welcome(session);
        return PH_OK;
    }
    PH_TRY(ph__handshake_challenge(
        session->server->secret, frame->body, frame->size, &session->challenge, &challenge));
    session->state = PH_SESSION_PROVING;
    send_challenge(session, &challenge);
    return PH_OK;
}

static ph_status check_proof(struct ph_session *session, const struct ph__control_frame *frame)
{
    unsigned char proof[PH_PROOF_BYTES];
    const struct ph__secret *secret = session->server->secret;
    if (frame->type != PH_FRAME_PROOF)
        return ph_fail(PH_ERROR_PEER, "the hub requires a secret, and the peer did not prove that it has it");
    PH_TRY(ph__get_proof(frame->body, frame->size, proof));
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_CLIENT, &session->challenge, proof, "the peer"));
    PH_TRY(ph__handshake_protect(secret, &session->challenge, PH_SIDE_SERVER, session->stream));
    welcome(session);
    return PH_OK;
}

/* ---- frames ---- */

static ph_status take_frame(struct ph_session *session, const struct ph__control_frame *frame)
{
    if (session->state == PH_SESSION_GREETING)
        return greet(session, frame);
    if (session->state == PH_SESSION_PROVING)
        return check_proof(session, frame);
    return ph__server_request(session, frame);
}

/* Returns true while an answer is pending or not fully sent. */
static bool is_busy(const struct ph_session *session)
{
    return session->question != 0 || ph__control_stream_has_output(session->stream);
}

/* Takes a few of the frames that have come, since other connections wait too; none while the peer does not
 * read its answers. */
static ph_status take_frames(struct ph_session *session)
{
    struct ph__control_frame frame;
    bool is_there = true;
    session->has_more = false;
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        if (session->is_closing || is_busy(session))
            return PH_OK;
        PH_TRY(ph__control_stream_take(session->stream, &frame, &is_there));
        if (!is_there)
            return PH_OK;
        PH_TRY(take_frame(session, &frame));
    }
    session->has_more = !session->is_closing;
    return PH_OK;
}

static ph_status send_rest(struct ph_session *session)
{
    PH_TRY(ph__control_stream_flush(session->stream));
    session->moved_ns = ph__clock_ns();
    return ph__control_stream_has_output(session->stream) ? PH_OK
                                                          : ph__event_source_change(session->source, EPOLLIN);
}

/* Receives, and takes the frames that came before a close. A closed connection is no error. */
static ph_status receive(struct ph_session *session)
{
    char text[PH_HUB_MAX_TEXT + 1];
    const ph_status received = ph__control_stream_receive(session->stream);
    snprintf(text, sizeof text, "%s", ph_error_text());
    PH_TRY(take_frames(session));
    if (received == PH_OK || session->stream == NULL || ph__control_stream_is_closed(session->stream))
        return PH_OK;
    return ph_fail(received, "%s", text);
}

static void break_off(struct ph_session *session, ph_status status)
{
    end(session, ph_error_text());
    send_answer(session, status); /* tells a peer that still reads the reason */
}

static void happened(void *context, uint32_t events)
{
    struct ph_session *session = context;
    if (session->is_closing)
        return;
    if ((events & EPOLLOUT) != 0 && send_rest(session) != PH_OK) {
        end_sending(session);
        return;
    }
    const ph_status status = receive(session);
    if (status != PH_OK) {
        session->server->counts.broken_connections++;
        log_lost(session, "connection_broken", ph_error_text());
    }
    if (session->stream == NULL)
        return; /* the connection has become a link */
    if (status != PH_OK)
        break_off(session, status);
    else if (ph__control_stream_is_closed(session->stream) && !session->has_more && session->question == 0)
        end(session, PROCESS_ENDED); /* otherwise the close is noticed again after the frames before it */
}

bool ph__server_has_more(const struct ph_hub_server *server)
{
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next)
        if (session->has_more || session->question != 0)
            return true;
    return false;
}

void ph__server_go_on(struct ph_hub_server *server)
{
    for (struct ph_session *session = server->sessions; session != NULL; session = session->next)
        if (session->has_more && session->question == 0)
            happened(session, 0);
}

/* ---- strangers ---- */

void ph__session_detach(struct ph_session *session)
{
    session->tenant = NULL;
    session->stranger_ns = ph__clock_ns();
    ph__control_stream_limit(session->stream, PH_HUB_MAX_BODY);
}

void ph__session_give_up(struct ph_session *session, const char *why)
{
    session->server->counts.silent_connections++;
    log_lost(session, "connection_silent", why);
    send_answer(session, ph_fail(PH_ERROR_PEER, "%s", why));
    session->is_closing = true;
}

/* ---- the other side's process ---- */

/* Ends the session of a process that has ended. Its socket does not tell: a forked child may hold a copy. */
static void process_ended(void *context, uint32_t events)
{
    struct ph_session *session = context;
    (void)events;
    ph__event_source_remove(session->process_source);
    session->process_source = NULL;
    end(session, PROCESS_ENDED);
}

static ph_status watch_process(struct ph_session *session, int socket)
{
    session->process = ph__socket_peer_process(socket);
    if (session->process < 0)
        return PH_OK;
    return ph__event_loop_add(
        session->server->loop, session->process, EPOLLIN, process_ended, session, &session->process_source);
}

/* ---- life ---- */

static void free_session(struct ph_session *session)
{
    ph__event_source_remove(session->process_source);
    ph__event_source_remove(session->source);
    if (session->process >= 0)
        close(session->process);
    ph__control_stream_destroy(session->stream);
    free(session);
}

ph_status ph__session_open(struct ph_hub_server *server, int socket, bool is_local)
{
    struct ph_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        close(socket);
        return ph__out_of_memory("a connection");
    }
    session->server = server;
    session->is_local = is_local;
    session->is_of_host = is_local || ph__socket_is_loopback(socket);
    session->process = -1;
    session->moved_ns = session->stranger_ns = ph__clock_ns();
    ph_status status = ph__control_stream_create(socket, &session->stream);
    if (status == PH_OK) {
        ph__control_stream_refuse_descriptors(session->stream); /* workers send none */
        ph__control_stream_limit(session->stream, GREETING_BYTES);
        status = ph__event_loop_add(server->loop, socket, EPOLLIN, happened, session, &session->source);
    }
    if (status == PH_OK && is_local)
        status = watch_process(session, socket);
    if (status != PH_OK) {
        free_session(session);
        return status;
    }
    session->next = server->sessions;
    server->sessions = session;
    if (is_local || ph__socket_peer(socket, session->peer) != PH_OK)
        snprintf(session->peer, sizeof session->peer, "local");
    log_opened(session);
    return PH_OK;
}

void ph__session_close(struct ph_session *session)
{
    struct ph_session **link = &session->server->sessions;
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    ph__server_session_ends(session);
    log_closed(session);
    free_session(session);
}
