/* Finds rank 0 and joins its watch: see watch.h. An address that does not answer, or where a stranger answers
 * (each host may have a bridge of the same address), must not use up the time of the next one: each address
 * has a share of the time, which doubles in every round. A rank that rank 0 has welcomed waits until rank 0
 * says that all have come. */
#include <assert.h>
#include <poll.h>
#include <string.h>

#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "comm/watch/watch_state.h"
#include "net/link/socket.h"

#define FIRST_SHARE_MS 250u
#define RETRY_MS 20            /* pause before all addresses are tried anew */
#define VERDICT_NS 2000000000u /* time for rank 0's report of missing ranks to arrive */

struct visit { /* to rank 0, or to a stranger at its address */
    const struct ph__watch_options *options;
    struct ph__secret secret;
    uint64_t deadline_ns;
    const char *address; /* being tried */
    struct ph__control_stream *stream;
    struct ph__watch_who host; /* rank 0, once it has proved itself */
};

/* ---- frames ---- */

/* Waits for the next frame; of several that have come each call takes one. */
static ph_status await_frame(struct visit *visit, uint64_t deadline_ns, struct ph__control_frame *frame_out)
{
    struct pollfd polled = {.fd = ph__control_stream_socket(visit->stream), .events = POLLIN};
    bool is_there;
    ph_status received = PH_OK;
    for (;;) {
        PH_TRY(ph__control_stream_take(visit->stream, frame_out, &is_there));
        if (is_there)
            return PH_OK;
        if (received != PH_OK)
            return received;
        if (ph__clock_ns() >= deadline_ns)
            return ph_fail(PH_ERROR_PEER, "%s timed out without an answer from rank 0", visit->address);
        if (poll(&polled, 1, ph__clock_ms_until(deadline_ns)) > 0)
            received = ph__control_stream_receive(visit->stream);
    }
}

static ph_status await(
    struct visit *visit, uint64_t deadline_ns, enum ph__watch_frame type, struct ph__control_frame *frame_out)
{
    PH_TRY(await_frame(visit, deadline_ns, frame_out));
    if (frame_out->type != type)
        return ph_fail(PH_ERROR_PEER, "%s sent a message that rank 0 does not send", visit->address);
    return PH_OK;
}

/* ---- one address ---- */

/* Exchanges proofs. The peer has a share of the time until it has proved itself; then it is rank 0, and the
 * rank waits for it until the deadline. */
static ph_status greet(struct visit *visit, uint64_t share_end_ns)
{
    unsigned char body[PH_WATCH_MAX_BODY], proof[PH_PROOF_BYTES];
    struct ph__watch_hello hello = {.who = ph__watch_self(visit->options->rank)};
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    struct ph__watch_answer answer;
    PH_TRY(ph__random_bytes(hello.nonce, sizeof hello.nonce));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_hello(&writer, &hello);
    PH_TRY(ph__watch_say(visit->stream, PH_WATCH_HELLO, body, writer.used));
    PH_TRY(await(visit, share_end_ns, PH_WATCH_CHALLENGE, &frame));
    PH_TRY(ph__watch_get_answer(frame.body, frame.size, &answer));
    PH_TRY(ph__watch_prove(&visit->secret, body, writer.used, &answer, visit->address, proof));
    PH_TRY(ph__watch_say(visit->stream, PH_WATCH_PROOF, proof, sizeof proof));
    PH_TRY(await(visit, visit->deadline_ns, PH_WATCH_WELCOME, &frame));
    visit->host = answer.who;
    return PH_OK;
}

static ph_status visit_address(struct visit *visit, const char *address, uint32_t share_ms)
{
    const uint64_t share_end_ns = ph__clock_deadline(share_ms);
    int socket;
    visit->address = address;
    PH_TRY(ph__socket_connect(address, share_ms, &socket));
    PH_TRY(ph__watch_stream_create(socket, &visit->stream));
    const ph_status status = greet(visit, share_end_ns);
    if (status != PH_OK) {
        ph__control_stream_destroy(visit->stream);
        visit->stream = NULL;
    }
    return status;
}

/* ---- all addresses ---- */

static uint32_t share_of(const struct visit *visit, uint32_t share_ms)
{
    const uint32_t left_ms = (uint32_t)ph__clock_ms_until(visit->deadline_ns);
    return share_ms < left_ms ? share_ms : left_ms;
}

/* Tries each address once. PH_ERROR_PEER: rank 0 was at none of them; the error text is that of the last. */
static ph_status visit_any(
    struct visit *visit, const struct ph__watch_invitation *invitation, uint32_t share_ms)
{
    ph_status status = PH_ERROR_PEER;
    for (uint32_t i = 0; i < invitation->num_addresses && status == PH_ERROR_PEER; i++)
        status = visit_address(visit, invitation->addresses[i], share_of(visit, share_ms));
    return status;
}

static ph_status find(struct visit *visit, const struct ph__watch_invitation *invitation)
{
    const uint32_t timeout_ms = visit->options->timeout_ms;
    uint32_t share_ms = FIRST_SHARE_MS;
    ph_status status;
    while ((status = visit_any(visit, invitation, share_ms)) == PH_ERROR_PEER) {
        if (ph__clock_ns() >= visit->deadline_ns)
            return ph_fail(status, "rank %zu could not join the watch of rank 0 within %g s: %s",
                visit->options->rank, timeout_ms / 1e3, ph_error_text());
        poll(NULL, 0, RETRY_MS);
        if (share_ms < timeout_ms)
            share_ms *= 2;
    }
    return status;
}

/* ---- until all have come ---- */

static ph_status await_others(struct visit *visit)
{
    struct ph__control_frame frame;
    struct ph__comm_notice notice;
    const ph_status status = await_frame(visit, visit->deadline_ns + VERDICT_NS, &frame);
    if (status != PH_OK && ph__control_stream_is_closed(visit->stream))
        return ph_fail(status, "rank 0 (process %llu on %s) ended before all ranks had joined",
            (unsigned long long)visit->host.process, visit->host.host);
    PH_TRY(status);
    if (frame.type == PH_WATCH_BEGIN && frame.size == 0)
        return PH_OK;
    if (frame.type != PH_WATCH_NOTICE)
        return ph_fail(PH_ERROR_PEER, "%s sent a message that rank 0 does not send", visit->address);
    PH_TRY(ph__watch_get_notice(frame.body, frame.size, visit->options->world_size, &notice));
    return ph_fail(notice.status, "%s", notice.text);
}

static ph_status make_star(struct visit *visit, struct ph__comm_watch *watch_out)
{
    struct ph__control_stream *stream = visit->stream;
    struct ph__watch_star *star;
    PH_TRY(ph__watch_star_create(visit->options->rank, visit->options->world_size, &star));
    visit->stream = NULL;
    const ph_status status = ph__watch_star_add(star, &visit->host, stream);
    if (status != PH_OK) {
        ph__watch_star_destroy(star);
        return status;
    }
    *watch_out = ph__watch_star_table(star);
    return PH_OK;
}

static ph_status check(const struct ph__watch_invitation *invitation)
{
    if (invitation->status != PH_OK)
        return ph_fail(invitation->status, "%.*s", (int)sizeof invitation->text, invitation->text);
    bool is_right = invitation->num_addresses > 0 && invitation->num_addresses <= PH_WATCH_MAX_ADDRESSES;
    for (uint32_t i = 0; is_right && i < invitation->num_addresses; i++)
        is_right = memchr(invitation->addresses[i], '\0', PH_ADDRESS_BYTES) != NULL;
    return is_right ? PH_OK : ph_fail(PH_ERROR_PEER, "rank 0's invitation to its watch is damaged");
}

ph_status ph__watch_join(const struct ph__watch_options *options,
    const struct ph__watch_invitation *invitation, struct ph__comm_watch *watch_out)
{
    assert(options->rank > 0 && options->rank < options->world_size);
    struct visit visit = {.options = options,
        .secret.size = PH_WATCH_SECRET_BYTES,
        .deadline_ns = ph__clock_deadline(options->timeout_ms)};
    PH_TRY(check(invitation));
    memcpy(visit.secret.bytes, invitation->secret, PH_WATCH_SECRET_BYTES);
    ph_status status = find(&visit, invitation);
    ph__secret_fini(&visit.secret);
    if (status == PH_OK)
        status = await_others(&visit);
    if (status == PH_OK)
        status = make_star(&visit, watch_out);
    ph__control_stream_destroy(visit.stream);
    return status;
}
