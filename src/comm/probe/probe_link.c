#include "comm/probe/probe_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"
#include "comm/watch/watch_frames.h"

#define VERSION 1
#define HEAD_BYTES 6

/* ---- bodies ---- */

static ph_status finish(const struct ph__wire_reader *reader, const char *what)
{
    return ph__wire_reader_finish(reader, what) == PH_OK ? PH_OK
                                                         : ph_fail(PH_ERROR_PEER, "%s", ph_error_text());
}

void ph__netprobe_put_ask(struct ph__wire_writer *writer, const struct ph__netprobe_ask *ask)
{
    ph__wire_put_text(writer, ask->address, PH_ADDRESS_BYTES - 1);
    ph__wire_put_u64(writer, ask->id);
    ph__wire_put_u32(writer, ask->num_echoes);
    ph__wire_put_u64(writer, ask->bytes);
    ph__wire_put_u64(writer, ask->max_bytes);
    ph__wire_put_u32(writer, ask->least_us);
    ph__wire_put_u32(writer, ask->num_retries);
    ph__wire_put_u32(writer, ask->limit_ms);
}

ph_status ph__netprobe_get_ask(const void *body, size_t size, struct ph__netprobe_ask *ask_out)
{
    struct ph__wire_reader reader;
    struct ph__netprobe_ask ask;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_text(&reader, PH_ADDRESS_BYTES - 1, ask.address);
    ask.id = ph__wire_get_u64(&reader);
    ask.num_echoes = ph__wire_get_u32(&reader);
    ask.bytes = ph__wire_get_u64(&reader);
    ask.max_bytes = ph__wire_get_u64(&reader);
    ask.least_us = ph__wire_get_u32(&reader);
    ask.num_retries = ph__wire_get_u32(&reader);
    ask.limit_ms = ph__wire_get_u32(&reader);
    PH_TRY(finish(&reader, "ASK"));
    if (ask.num_echoes > PH_NETPROBE_MAX_ECHOES || ask.bytes > ask.max_bytes ||
        ask.max_bytes > PH_NETPROBE_MAX_TRANSFER_BYTES)
        return ph_fail(PH_ERROR_PEER, "ASK: a probe of %u echoes and %llu of at most %llu bytes",
            ask.num_echoes, (unsigned long long)ask.bytes, (unsigned long long)ask.max_bytes);
    *ask_out = ask;
    return PH_OK;
}

void ph__netprobe_put_marks(struct ph__wire_writer *writer, const struct ph__netprobe_mark *marks)
{
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS; i++) {
        ph__wire_put_u64(writer, marks[i].bytes);
        ph__wire_put_u64(writer, marks[i].ns);
    }
}

static void get_marks(struct ph__wire_reader *reader, struct ph__netprobe_mark *marks)
{
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS; i++) {
        marks[i].bytes = ph__wire_get_u64(reader);
        marks[i].ns = ph__wire_get_u64(reader);
    }
}

static ph_status check_marks(const struct ph__netprobe_mark *marks)
{
    bool is_right = marks[PH_NETPROBE_NUM_MARKS - 1].bytes <= PH_NETPROBE_MAX_TRANSFER_BYTES &&
                    marks[PH_NETPROBE_NUM_MARKS - 1].ns <= INT64_MAX;
    for (size_t i = 1; i < PH_NETPROBE_NUM_MARKS; i++)
        is_right &= marks[i].bytes >= marks[i - 1].bytes && marks[i].ns >= marks[i - 1].ns;
    return is_right ? PH_OK : ph_fail(PH_ERROR_PEER, "the marks of a transfer do not ascend");
}

ph_status ph__netprobe_get_marks(const void *body, size_t size, struct ph__netprobe_mark *marks_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    get_marks(&reader, marks_out);
    PH_TRY(finish(&reader, "ARRIVED"));
    return check_marks(marks_out);
}

/* Replaces by '?' bytes that the other side would refuse. */
static void put_any_text(struct ph__wire_writer *writer, const char *text, size_t max_bytes)
{
    char plain[PH_NETPROBE_TEXT_BYTES];
    size_t length = strnlen(text, max_bytes);
    for (size_t i = 0; i < length; i++)
        plain[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    plain[length] = '\0';
    ph__wire_put_text(writer, plain, max_bytes);
}

void ph__netprobe_put_answer(struct ph__wire_writer *writer, const struct ph__netprobe_answer *answer)
{
    ph__wire_put_u32(writer, (uint32_t)-answer->status);
    put_any_text(writer, answer->text, PH_NETPROBE_TEXT_BYTES - 1);
    ph__wire_put_u64(writer, answer->latency_ns);
    ph__wire_put_u64(writer, answer->begin_ns);
    ph__wire_put_u64(writer, answer->sent_bytes);
    ph__netprobe_put_marks(writer, answer->marks);
}

ph_status ph__netprobe_get_answer(const void *body, size_t size, struct ph__netprobe_answer *answer_out)
{
    struct ph__wire_reader reader;
    struct ph__netprobe_answer answer;
    ph__wire_reader_init(&reader, body, size);
    const uint32_t status = ph__wire_get_u32(&reader);
    ph__wire_get_text(&reader, PH_NETPROBE_TEXT_BYTES - 1, answer.text);
    answer.latency_ns = ph__wire_get_u64(&reader);
    answer.begin_ns = ph__wire_get_u64(&reader);
    answer.sent_bytes = ph__wire_get_u64(&reader);
    get_marks(&reader, answer.marks);
    PH_TRY(finish(&reader, "ANSWER"));
    PH_TRY(check_marks(answer.marks));
    if (status > -PH_ERROR_DIVERGED || answer.latency_ns > INT64_MAX || answer.begin_ns > INT64_MAX ||
        answer.sent_bytes > PH_NETPROBE_MAX_TRANSFER_BYTES)
        return ph_fail(PH_ERROR_PEER, "ANSWER: a number is out of range");
    answer.status = -(ph_status)status;
    *answer_out = answer;
    return PH_OK;
}

/* ---- bytes ---- */

static ph_status await(const struct ph__netprobe_link *link, short events)
{
    struct ph__wait wait = {.deadline_ns = link->deadline_ns, .stop_signal = link->stop_signal};
    struct pollfd polled = {.fd = link->socket, .events = events};
    int wait_ms;
    do {
        wait_ms = ph__wait_ms(&wait);
        if (poll(&polled, 1, wait_ms) > 0)
            return PH_OK;
    } while (wait_ms > 0);
    return wait.is_stopped ? ph__wait_stopped(&wait) : ph_fail(PH_ERROR_PEER, "%s timed out", link->peer);
}

/* Waits after a call that returned -1, if it would have blocked. */
static ph_status await_after(const struct ph__netprobe_link *link, short events)
{
    if (errno == EINTR)
        return PH_OK;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return await(link, events);
    return ph_fail(PH_ERROR_PEER, "%s: %s", link->peer, strerror(errno));
}

ph_status ph__netprobe_write(const struct ph__netprobe_link *link, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        const ssize_t sent = send(link->socket, at, size, MSG_NOSIGNAL);
        if (sent < 0) {
            PH_TRY(await_after(link, POLLOUT));
            continue;
        }
        at += sent;
        size -= (size_t)sent;
    }
    return PH_OK;
}

ph_status ph__netprobe_read_some(
    const struct ph__netprobe_link *link, void *bytes, size_t capacity, size_t *size_out)
{
    ssize_t got;
    while ((got = recv(link->socket, bytes, capacity, 0)) < 0)
        PH_TRY(await_after(link, POLLIN));
    if (got == 0)
        return ph_fail(PH_ERROR_PEER, "%s has closed the connection", link->peer);
    *size_out = (size_t)got;
    return PH_OK;
}

static ph_status read_all(const struct ph__netprobe_link *link, unsigned char *bytes, size_t size)
{
    size_t got;
    for (; size > 0; bytes += got, size -= got)
        PH_TRY(ph__netprobe_read_some(link, bytes, size, &got));
    return PH_OK;
}

/* ---- messages ---- */

ph_status ph__netprobe_say(
    const struct ph__netprobe_link *link, enum ph__netprobe_kind kind, const void *body, size_t size)
{
    unsigned char bytes[HEAD_BYTES + PH_NETPROBE_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__wire_put_u32(&writer, (uint32_t)size);
    ph__wire_put_u16(&writer, (uint16_t)kind);
    ph__wire_put_bytes(&writer, body, size);
    PH_TRY(ph__wire_writer_finish(&writer, "message of a probe", &size));
    return ph__netprobe_write(link, bytes, size);
}

ph_status ph__netprobe_hear(const struct ph__netprobe_link *link, struct ph__netprobe_message *message_out)
{
    unsigned char head[HEAD_BYTES];
    struct ph__wire_reader reader;
    PH_TRY(read_all(link, head, sizeof head));
    ph__wire_reader_init(&reader, head, sizeof head);
    message_out->size = ph__wire_get_u32(&reader);
    message_out->kind = ph__wire_get_u16(&reader);
    if (message_out->size > PH_NETPROBE_MAX_BODY)
        return ph_fail(PH_ERROR_PEER, "%s does not speak the protocol of phloem topology agent", link->peer);
    return read_all(link, message_out->body, message_out->size);
}

ph_status ph__netprobe_expect(const struct ph__netprobe_link *link, enum ph__netprobe_kind kind,
    struct ph__netprobe_message *message_out)
{
    PH_TRY(ph__netprobe_hear(link, message_out));
    if (message_out->kind != kind)
        return ph_fail(
            PH_ERROR_PEER, "%s sent message %u where %d was expected", link->peer, message_out->kind, kind);
    return PH_OK;
}

/* ---- proofs: the agent is rank 0 of a watch of two ---- */

#define WORLD_SIZE 2

ph_status ph__netprobe_greet(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, uint64_t *id_out)
{
    unsigned char body[PH_WATCH_MAX_BODY], proof[PH_PROOF_BYTES];
    struct ph__watch_hello hello = {.who = ph__watch_self(1)};
    struct ph__wire_writer writer;
    struct ph__wire_reader reader;
    struct ph__netprobe_message message;
    struct ph__watch_answer answer;
    PH_TRY(ph__random_bytes(hello.nonce, sizeof hello.nonce));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_hello(&writer, &hello);
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_HELLO, body, writer.used));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_CHALLENGE, &message));
    PH_TRY(ph__watch_get_answer(message.body, message.size, &answer));
    PH_TRY(ph__watch_prove(secret, body, writer.used, &answer, link->peer, proof));
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_PROOF, proof, sizeof proof));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_WELCOME, &message));
    ph__wire_reader_init(&reader, message.body, message.size);
    const uint64_t version = ph__wire_get_u64(&reader);
    *id_out = ph__wire_get_u64(&reader);
    PH_TRY(finish(&reader, "WELCOME"));
    return version == VERSION ? PH_OK
                              : ph_fail(PH_ERROR_PEER, "%s runs another version of phloem", link->peer);
}

ph_status ph__netprobe_admit(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, uint64_t id)
{
    unsigned char body[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__challenge challenge;
    struct ph__netprobe_message message;
    struct ph__watch_answer answer;
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_HELLO, &message));
    PH_TRY(ph__watch_challenge(secret, message.body, message.size, WORLD_SIZE, &challenge, &answer));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_answer(&writer, &answer);
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_CHALLENGE, body, writer.used));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_PROOF, &message));
    if (message.size != PH_PROOF_BYTES)
        return ph_fail(PH_ERROR_PEER, "PROOF: %zu bytes instead of %d", message.size, PH_PROOF_BYTES);
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_CLIENT, &challenge, message.body, link->peer));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__wire_put_u64(&writer, VERSION);
    ph__wire_put_u64(&writer, id);
    return ph__netprobe_say(link, PH_NETPROBE_WELCOME, body, writer.used);
}
