#include "comm/probe/probe_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sum/random_bytes.h"
#include "base/text/utf8.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"

#define MAGIC 0x42525050u /* "PPRB" */
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

/* ---- proofs ---- */

static void put_hello(struct ph__wire_writer *writer, const unsigned char nonce[PH_NONCE_BYTES])
{
    ph__wire_put_u32(writer, MAGIC);
    ph__wire_put_u16(writer, VERSION);
    ph__wire_put_bytes(writer, nonce, PH_NONCE_BYTES);
}

static ph_status get_hello(const struct ph__netprobe_message *hello, unsigned char nonce_out[PH_NONCE_BYTES])
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, hello->body, hello->size);
    const uint32_t magic = ph__wire_get_u32(&reader);
    const uint16_t version = ph__wire_get_u16(&reader);
    ph__wire_get_bytes(&reader, PH_NONCE_BYTES, nonce_out);
    PH_TRY(finish(&reader, "HELLO"));
    if (magic != MAGIC || version != VERSION)
        return ph_fail(PH_ERROR_PEER, "HELLO: this is version %u of the probe, not %u", VERSION, version);
    return PH_OK;
}

/* What an agent's proof covers, besides the hello: it stands before the proof in a CHALLENGE. */
static void put_self(struct ph__wire_writer *writer, const unsigned char nonce[PH_NONCE_BYTES],
    const struct ph__netprobe_who *who)
{
    ph__wire_put_bytes(writer, nonce, PH_NONCE_BYTES);
    ph__wire_put_u64(writer, who->id);
    put_any_text(writer, who->name, PH_NETPROBE_NAME_BYTES - 1);
}

static ph_status transcribe(
    const void *hello, size_t hello_size, const void *self, size_t self_size, struct ph__challenge *challenge)
{
    return ph__authenticate_transcript(hello, hello_size, self, self_size, challenge->transcript);
}

/* Reads a challenge; *self_size_out: how much of it stands before the proof. */
static ph_status get_challenge(const struct ph__netprobe_message *message, struct ph__challenge *challenge,
    struct ph__netprobe_who *who_out, unsigned char proof_out[PH_PROOF_BYTES], size_t *self_size_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, message->body, message->size);
    ph__wire_get_bytes(&reader, PH_NONCE_BYTES, challenge->server_nonce);
    who_out->id = ph__wire_get_u64(&reader);
    ph__wire_get_text(&reader, PH_NETPROBE_NAME_BYTES - 1, who_out->name);
    *self_size_out = reader.at;
    ph__wire_get_bytes(&reader, PH_PROOF_BYTES, proof_out);
    return finish(&reader, "CHALLENGE");
}

ph_status ph__netprobe_greet(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, struct ph__netprobe_who *who_out)
{
    unsigned char hello[64], proof[PH_PROOF_BYTES];
    struct ph__wire_writer writer;
    struct ph__challenge challenge;
    struct ph__netprobe_message message;
    size_t self_size;
    PH_TRY(ph__random_bytes(challenge.client_nonce, sizeof challenge.client_nonce));
    ph__wire_writer_init(&writer, hello, sizeof hello);
    put_hello(&writer, challenge.client_nonce);
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_HELLO, hello, writer.used));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_CHALLENGE, &message));
    PH_TRY(get_challenge(&message, &challenge, who_out, proof, &self_size));
    PH_TRY(transcribe(hello, writer.used, message.body, self_size, &challenge));
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_SERVER, &challenge, proof, link->peer));
    PH_TRY(ph__authenticate_prove(secret, PH_SIDE_CLIENT, &challenge, proof));
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_PROOF, proof, sizeof proof));
    return ph__netprobe_expect(link, PH_NETPROBE_WELCOME, &message);
}

ph_status ph__netprobe_admit(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, const struct ph__netprobe_who *who)
{
    unsigned char self[256], proof[PH_PROOF_BYTES];
    struct ph__wire_writer writer;
    struct ph__challenge challenge;
    struct ph__netprobe_message message;
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_HELLO, &message));
    PH_TRY(get_hello(&message, challenge.client_nonce));
    PH_TRY(ph__random_bytes(challenge.server_nonce, sizeof challenge.server_nonce));
    ph__wire_writer_init(&writer, self, sizeof self);
    put_self(&writer, challenge.server_nonce, who);
    PH_TRY(transcribe(message.body, message.size, self, writer.used, &challenge));
    PH_TRY(ph__authenticate_prove(secret, PH_SIDE_SERVER, &challenge, proof));
    ph__wire_put_bytes(&writer, proof, sizeof proof);
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_CHALLENGE, self, writer.used));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_PROOF, &message));
    if (message.size != PH_PROOF_BYTES)
        return ph_fail(PH_ERROR_PEER, "PROOF: %zu bytes instead of %d", message.size, PH_PROOF_BYTES);
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_CLIENT, &challenge, message.body, link->peer));
    return ph__netprobe_say(link, PH_NETPROBE_WELCOME, NULL, 0);
}
