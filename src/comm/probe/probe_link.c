#include "comm/probe/probe_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"

#define VERSION 1
#define HEAD_BYTES 6
#define LOOK_MS 100 /* between two looks at the signal */

/* ---- bodies ---- */

/* A body is a struct's numbers, first those of marks, and then bytes, or a text. */
#define NUMBERS_BEFORE(type, member) (offsetof(struct ph__netprobe_##type, member) / sizeof(uint64_t))
static const struct shape {
    const char *name;
    size_t num_marks, num_numbers, num_bytes, text_bytes; /* num_numbers: with two for each mark */
} shapes[PH_NETPROBE_NUM_KINDS] = {
    [PH_NETPROBE_HELLO] = {"HELLO", .num_bytes = sizeof(struct ph__netprobe_proof)},
    [PH_NETPROBE_CHALLENGE] = {"CHALLENGE", .num_bytes = sizeof(struct ph__netprobe_proof)},
    [PH_NETPROBE_PROOF] = {"PROOF", .num_bytes = sizeof(struct ph__netprobe_proof)},
    [PH_NETPROBE_WELCOME] = {"WELCOME", 0, 2, 0, 0},
    [PH_NETPROBE_ASK] = {"ASK", 0, NUMBERS_BEFORE(ask, address), 0, PH_ADDRESS_BYTES},
    [PH_NETPROBE_ANSWER] = {"ANSWER", PH_NETPROBE_NUM_MARKS, NUMBERS_BEFORE(answer, error), 0,
        sizeof(struct ph__netprobe_answer) - offsetof(struct ph__netprobe_answer, error)},
    [PH_NETPROBE_ECHO] = {"ECHO", .num_bytes = sizeof(struct ph__netprobe_echo)},
    [PH_NETPROBE_SEND] = {"SEND", 0, 1, 0, 0},
    [PH_NETPROBE_ARRIVED] = {"ARRIVED", PH_NETPROBE_NUM_MARKS, 2 * PH_NETPROBE_NUM_MARKS, 0, 0},
};

void ph__netprobe_put(struct ph__wire_writer *writer, enum ph__netprobe_kind kind, const void *message)
{
    const struct shape *shape = &shapes[kind];
    const char *rest = (const char *)message + shape->num_numbers * sizeof(uint64_t);
    for (size_t i = 0; i < shape->num_numbers; i++)
        ph__wire_put_u64(writer, ((const uint64_t *)message)[i]);
    ph__wire_put_bytes(writer, rest, shape->num_bytes);
    if (shape->text_bytes > 0)
        ph__wire_put_text(writer, rest, shape->text_bytes - 1);
}

ph_status ph__netprobe_get(enum ph__netprobe_kind kind, const void *bytes, size_t size, void *message_out)
{
    const struct shape *shape = &shapes[kind];
    uint64_t *numbers = message_out;
    char *rest = (char *)message_out + shape->num_numbers * sizeof *numbers;
    struct ph__wire_reader reader;
    bool is_right = true;
    ph__wire_reader_init(&reader, bytes, size);
    for (size_t i = 0; i < shape->num_numbers; i++) {
        numbers[i] = ph__wire_get_u64(&reader);
        is_right &=
            numbers[i] <= INT64_MAX && (i < 2 || i >= 2 * shape->num_marks || numbers[i] >= numbers[i - 2]);
    }
    ph__wire_get_bytes(&reader, shape->num_bytes, rest);
    if (shape->text_bytes > 0)
        ph__wire_get_text(&reader, shape->text_bytes - 1, rest);
    if (ph__wire_reader_finish(&reader, shape->name) != PH_OK)
        return ph_fail(PH_ERROR_PEER, "%s", ph_error_text());
    return is_right ? PH_OK : ph_fail(PH_ERROR_PEER, "%s: a number is out of range", shape->name);
}

/* ---- bytes ---- */

static ph_status await(const struct ph__netprobe_link *link, short events)
{
    struct pollfd polled[] = {
        {.fd = link->socket, .events = events}, {.fd = link->watched, .events = POLLIN}};
    int left_ms;
    do {
        if (ph__is_stopped(link->stop_signal))
            return ph_fail(ph__stop_status(link->stop_signal), "stopped by a signal");
        left_ms = ph__clock_ms_until(link->deadline_ns);
        const int wait_ms = link->stop_signal != NULL && left_ms > LOOK_MS ? LOOK_MS : left_ms;
        if (poll(polled, 2, wait_ms) > 0)
            return polled[1].revents == 0 ? PH_OK : ph_fail(PH_ERROR_PEER, "the client has left");
    } while (left_ms > 0);
    return ph_fail(PH_ERROR_PEER, "%s timed out", link->peer);
}

/* Waits after a call that returned -1, if it would have blocked. */
static ph_status await_after(const struct ph__netprobe_link *link, short events)
{
    if (errno == EINTR)
        return PH_OK;
    return errno == EAGAIN ? await(link, events)
                           : ph_fail(PH_ERROR_PEER, "%s: %s", link->peer, strerror(errno));
}

ph_status ph__netprobe_write(const struct ph__netprobe_link *link, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t sent = send(link->socket, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent < 0)
            PH_TRY(await_after(link, POLLOUT));
        done += sent > 0 ? (size_t)sent : 0;
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
    const struct ph__netprobe_link *link, enum ph__netprobe_kind kind, const void *message)
{
    unsigned char bytes[HEAD_BYTES + PH_NETPROBE_MAX_BODY];
    struct ph__wire_writer head, body;
    size_t size;
    ph__wire_writer_init(&body, bytes + HEAD_BYTES, PH_NETPROBE_MAX_BODY);
    ph__netprobe_put(&body, kind, message);
    PH_TRY(ph__wire_writer_finish(&body, shapes[kind].name, &size));
    ph__wire_writer_init(&head, bytes, HEAD_BYTES);
    ph__wire_put_u32(&head, (uint32_t)size);
    ph__wire_put_u16(&head, (uint16_t)kind);
    return ph__netprobe_write(link, bytes, HEAD_BYTES + size);
}

ph_status ph__netprobe_hear(const struct ph__netprobe_link *link, struct ph__netprobe_body *body_out)
{
    unsigned char head[HEAD_BYTES];
    struct ph__wire_reader reader;
    PH_TRY(read_all(link, head, sizeof head));
    ph__wire_reader_init(&reader, head, sizeof head);
    body_out->size = ph__wire_get_u32(&reader);
    body_out->kind = ph__wire_get_u16(&reader);
    if (body_out->size > sizeof body_out->bytes)
        return ph_fail(PH_ERROR_PEER, "%s does not speak the protocol of phloem topology agent", link->peer);
    return read_all(link, body_out->bytes, body_out->size);
}

ph_status ph__netprobe_expect(
    const struct ph__netprobe_link *link, enum ph__netprobe_kind kind, void *message_out)
{
    struct ph__netprobe_body body;
    PH_TRY(ph__netprobe_hear(link, &body));
    if (body.kind != kind)
        return ph_fail(PH_ERROR_PEER, "%s sent message %d where %s was expected", link->peer, body.kind,
            shapes[kind].name);
    return ph__netprobe_get(kind, body.bytes, body.size, message_out);
}

/* ---- proofs ---- */

static const struct ph__secret no_secret = {.size = PH_SECRET_MIN_BYTES};

static ph_status make_challenge(const struct ph__netprobe_proof *client,
    const struct ph__netprobe_proof *agent, struct ph__challenge *challenge)
{
    memcpy(challenge->client_nonce, client->nonce, PH_NONCE_BYTES);
    memcpy(challenge->server_nonce, agent->nonce, PH_NONCE_BYTES);
    return ph__authenticate_transcript(
        client->nonce, PH_NONCE_BYTES, agent->nonce, PH_NONCE_BYTES, challenge->transcript);
}

ph_status ph__netprobe_greet(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, uint64_t *id_out)
{
    struct ph__netprobe_proof own = {.proof = {0}}, agent;
    struct ph__netprobe_welcome welcome;
    struct ph__challenge challenge;
    secret = secret != NULL ? secret : &no_secret;
    PH_TRY(ph__random_bytes(own.nonce, sizeof own.nonce));
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_HELLO, &own));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_CHALLENGE, &agent));
    PH_TRY(make_challenge(&own, &agent, &challenge));
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_SERVER, &challenge, agent.proof, link->peer));
    PH_TRY(ph__authenticate_prove(secret, PH_SIDE_CLIENT, &challenge, own.proof));
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_PROOF, &own));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_WELCOME, &welcome));
    *id_out = welcome.id;
    return welcome.version == VERSION
               ? PH_OK
               : ph_fail(PH_ERROR_PEER, "%s runs another version of phloem", link->peer);
}

ph_status ph__netprobe_admit(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, uint64_t id)
{
    struct ph__netprobe_proof own, client;
    struct ph__challenge challenge;
    secret = secret != NULL ? secret : &no_secret;
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_HELLO, &client));
    PH_TRY(ph__random_bytes(own.nonce, sizeof own.nonce));
    PH_TRY(make_challenge(&client, &own, &challenge));
    PH_TRY(ph__authenticate_prove(secret, PH_SIDE_SERVER, &challenge, own.proof));
    PH_TRY(ph__netprobe_say(link, PH_NETPROBE_CHALLENGE, &own));
    PH_TRY(ph__netprobe_expect(link, PH_NETPROBE_PROOF, &client));
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_CLIENT, &challenge, client.proof, link->peer));
    return ph__netprobe_say(link, PH_NETPROBE_WELCOME, &(struct ph__netprobe_welcome){VERSION, id});
}
