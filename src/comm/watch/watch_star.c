/* The watch once all have come: see watch.h. Rank 0 and the others differ in two things. Rank 0 passes a new
 * notice on to all others. Another rank's own notice does not count until rank 0 has sent one back: of
 * several ranks that fail at once, one is the first for all. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "comm/watch/watch_state.h"

#define LAST_WORD_MS 1000 /* to send a last notice, and to receive rank 0's first */
#define KEPT_BYTES 1024   /* bytes of the last error's text, at most */

/* ---- connections ---- */

ph_status ph__watch_stream_create(int socket, struct ph__control_stream **stream_out)
{
    PH_TRY(ph__control_stream_create(socket, stream_out));
    ph__control_stream_limit(*stream_out, PH_WATCH_MAX_BODY);
    ph__control_stream_refuse_descriptors(*stream_out);
    return PH_OK;
}

ph_status ph__watch_say(
    struct ph__control_stream *stream, enum ph__watch_frame type, const void *body, size_t size)
{
    PH_TRY(ph__control_stream_put(stream, (uint16_t)type, body, size, NULL, 0));
    return ph__control_stream_flush(stream);
}

static void close_peer(struct ph__watch_peer *peer)
{
    ph__event_source_remove(peer->source);
    ph__control_stream_destroy(peer->stream);
    peer->source = NULL;
    peer->stream = NULL;
}

/* Sends as much as the socket takes; the rest goes when there is room. A broken connection is detected by its
 * reader, so that frames from before the peer's end are read. */
static void flush_peer(struct ph__watch_peer *peer)
{
    (void)ph__control_stream_flush(peer->stream);
    const uint32_t writes = ph__control_stream_has_output(peer->stream) ? EPOLLOUT : 0;
    if (ph__event_source_change(peer->source, EPOLLIN | writes) != PH_OK)
        close_peer(peer);
}

/* Sends a frame. A peer that cannot be told is cut off: the closed connection tells it. */
static void send_to(struct ph__watch_peer *peer, enum ph__watch_frame type, const void *body, size_t size)
{
    if (peer->stream == NULL || peer->has_left)
        return;
    if (ph__control_stream_put(peer->stream, (uint16_t)type, body, size, NULL, 0) == PH_OK)
        flush_peer(peer);
    else
        close_peer(peer);
}

void ph__watch_star_send(
    struct ph__watch_star *star, enum ph__watch_frame type, const void *body, size_t size)
{
    for (size_t i = 0; i < star->num_peers; i++)
        send_to(&star->peers[i], type, body, size);
}

/* ---- notices ---- */

static void send_notice(struct ph__watch_star *star, const struct ph__comm_notice *notice)
{
    unsigned char body[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_notice(&writer, notice);
    assert(writer.fault == NULL);
    ph__watch_star_send(star, PH_WATCH_NOTICE, body, writer.used);
}

void ph__watch_star_note(struct ph__watch_star *star, const struct ph__comm_notice *notice)
{
    assert(notice->status != PH_OK && notice->rank < star->world_size);
    if (star->has_notice)
        return;
    star->notice = *notice;
    star->has_notice = true;
    if (star->rank == 0)
        send_notice(star, notice);
}

/* Handles the end of a peer's connection; reason NULL: the peer has closed it. */
static void lose(struct ph__watch_peer *peer, const char *reason)
{
    const struct ph__watch_who *who = &peer->who;
    struct ph__comm_notice notice = {.rank = who->rank, .status = PH_ERROR_PEER, .has_died = true};
    close_peer(peer);
    if (peer->has_left)
        return;
    snprintf(notice.text, sizeof notice.text, "rank %u (process %llu on %s) %s%s", who->rank,
        (unsigned long long)who->process, who->host,
        reason != NULL ? "cannot be reached: " : "ended unexpectedly", reason != NULL ? reason : "");
    ph__watch_star_note(peer->star, &notice);
}

static ph_status obey(struct ph__watch_peer *peer, const struct ph__control_frame *frame)
{
    struct ph__comm_notice notice;
    if (frame->type == PH_WATCH_LEAVE && frame->size == 0) {
        peer->has_left = true;
        return PH_OK;
    }
    if (frame->type != PH_WATCH_NOTICE)
        return ph_fail(PH_ERROR_PEER, "the watch received a frame of the unknown type %u", frame->type);
    PH_TRY(ph__watch_get_notice(frame->body, frame->size, peer->star->world_size, &notice));
    ph__watch_star_note(peer->star, &notice);
    return PH_OK;
}

/* Obeys all frames received, also those from before the connection's end. */
static ph_status obey_all(struct ph__watch_peer *peer)
{
    struct ph__control_frame frame;
    bool is_there = true;
    const ph_status received = ph__control_stream_receive(peer->stream);
    char reason[PH_NOTICE_TEXT_BYTES];
    snprintf(reason, sizeof reason, "%s", ph_error_text());
    while (peer->stream != NULL && is_there) {
        PH_TRY(ph__control_stream_take(peer->stream, &frame, &is_there));
        if (is_there)
            PH_TRY(obey(peer, &frame));
    }
    return received == PH_OK ? PH_OK : ph_fail(received, "%s", reason);
}

static void hear(void *context, uint32_t events)
{
    struct ph__watch_peer *peer = context;
    if ((events & EPOLLOUT) != 0)
        flush_peer(peer);
    if (peer->stream != NULL && obey_all(peer) != PH_OK && peer->stream != NULL)
        lose(peer, ph__control_stream_is_closed(peer->stream) ? NULL : ph_error_text());
}

/* ---- turns ---- */

static void keep_error(char text_out[KEPT_BYTES])
{
    snprintf(text_out, KEPT_BYTES, "%s", ph_error_text());
}

static void restore_error(const char *text)
{
    if (strcmp(text, ph_error_text()) != 0)
        (void)ph_fail(PH_OK, "%s", text);
}

void ph__watch_star_turn(struct ph__watch_star *star, int timeout_ms)
{
    char error[KEPT_BYTES];
    keep_error(error);
    if (ph__event_loop_run(star->loop, timeout_ms) != PH_OK) { /* our bug: nothing more would be received */
        struct ph__comm_notice notice = {.rank = (uint32_t)star->rank, .status = PH_ERROR_BUG};
        snprintf(notice.text, sizeof notice.text, "%s", ph_error_text());
        ph__watch_star_note(star, &notice);
    }
    restore_error(error);
}

static bool has_output(const struct ph__watch_star *star)
{
    for (size_t i = 0; i < star->num_peers; i++) {
        if (star->peers[i].stream != NULL && ph__control_stream_has_output(star->peers[i].stream))
            return true;
    }
    return false;
}

static void flush_until(struct ph__watch_star *star, uint64_t deadline_ns)
{
    while (has_output(star) && ph__clock_ns() < deadline_ns)
        ph__watch_star_turn(star, ph__clock_ms_until(deadline_ns));
}

/* ---- the table ---- */

static bool look(void *context, struct ph__comm_notice *notice_out)
{
    struct ph__watch_star *star = context;
    ph__watch_star_turn(star, 0);
    if (star->has_notice)
        *notice_out = star->notice;
    return star->has_notice;
}

/* Returns true when rank 0 is there to send a notice back. */
static bool may_be_answered(const struct ph__watch_star *star)
{
    return star->rank != 0 && star->peers[0].stream != NULL && !star->peers[0].has_left;
}

static void tell(void *context, const struct ph__comm_notice *notice)
{
    struct ph__watch_star *star = context;
    const uint64_t deadline_ns = ph__clock_deadline(LAST_WORD_MS);
    char error[KEPT_BYTES];
    keep_error(error);
    ph__watch_star_turn(star, 0); /* another rank's notice may be here */
    if (!star->has_notice && star->rank != 0)
        send_notice(star, notice);
    while (!star->has_notice && may_be_answered(star) && ph__clock_ns() < deadline_ns)
        ph__watch_star_turn(star, ph__clock_ms_until(deadline_ns));
    ph__watch_star_note(star, notice);
    flush_until(star, deadline_ns);
    restore_error(error);
}

/* Closes the star. Pending input is read first: the system would reset a connection that has some, and lose
 * the output on its way. */
static void close_star(void *context, bool is_clean)
{
    struct ph__watch_star *star = context;
    char error[KEPT_BYTES];
    keep_error(error);
    ph__watch_star_turn(star, 0);
    if (is_clean && !star->has_notice)
        ph__watch_star_send(star, PH_WATCH_LEAVE, NULL, 0);
    flush_until(star, ph__clock_deadline(LAST_WORD_MS));
    ph__watch_star_destroy(star);
    restore_error(error);
}

struct ph__comm_watch ph__watch_star_table(struct ph__watch_star *star)
{
    return (struct ph__comm_watch){.context = star, .look = look, .tell = tell, .close = close_star};
}

/* ---- creation ---- */

ph_status ph__watch_star_create(size_t rank, size_t world_size, struct ph__watch_star **star_out)
{
    struct ph__watch_star *star = calloc(1, sizeof *star);
    if (star == NULL)
        return ph__out_of_memory("the watch of %zu ranks", world_size);
    star->rank = rank;
    star->world_size = world_size;
    star->num_peers = rank == 0 ? world_size : 1;
    star->peers = calloc(star->num_peers, sizeof *star->peers);
    const ph_status status = star->peers != NULL ? ph__event_loop_create(&star->loop)
                                                 : ph__out_of_memory("the watch of %zu ranks", world_size);
    if (status != PH_OK) {
        ph__watch_star_destroy(star);
        return status;
    }
    *star_out = star;
    return PH_OK;
}

void ph__watch_star_destroy(struct ph__watch_star *star)
{
    if (star == NULL)
        return;
    for (size_t i = 0; star->peers != NULL && i < star->num_peers; i++)
        close_peer(&star->peers[i]);
    ph__event_loop_destroy(star->loop);
    free(star->peers);
    free(star);
}

ph_status ph__watch_star_add(
    struct ph__watch_star *star, const struct ph__watch_who *who, struct ph__control_stream *stream)
{
    assert(who->rank < star->num_peers && star->peers[who->rank].stream == NULL);
    struct ph__watch_peer *peer = &star->peers[who->rank];
    struct ph__event_source *source;
    const ph_status status =
        ph__event_loop_add(star->loop, ph__control_stream_socket(stream), EPOLLIN, hear, peer, &source);
    if (status != PH_OK) {
        ph__control_stream_destroy(stream);
        return status;
    }
    *peer = (struct ph__watch_peer){.star = star, .who = *who, .stream = stream, .source = source};
    hear(peer, EPOLLIN); /* no event would tell of what the stream has received already */
    return PH_OK;
}
