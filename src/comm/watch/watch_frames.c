/* Frames and proofs of the watch: see watch_frames.h. The transcript of a proof is the other rank's hello and
 * what rank 0 says of itself: who it is, and its nonce. */
#include "comm/watch/watch_frames.h"

#include <string.h>
#include <unistd.h>

#include "base/sum/random_bytes.h"
#include "base/text/utf8.h"

static const char from_a_rank[] = "a message of the watch";

/* ---- texts ---- */

/* Replaces by '?' bytes that are no character or would steer a terminal: the other side refuses them. */
static void make_plain(char *text, size_t capacity)
{
    uint32_t code;
    size_t length = strnlen(text, capacity - 1);
    text[length] = '\0';
    while (length > 0) {
        const size_t taken = ph__utf8_decode(text, length, &code);
        if (taken == 0 || ph__utf8_is_control(code))
            *text = '?';
        const size_t passed = taken > 0 && *text != '?' ? taken : 1;
        text += passed;
        length -= passed;
    }
}

static bool is_error(ph_status status)
{
    switch (status) {
#define ERROR_CASE(name, value, exit_code, message) case name:
        PH_STATUS_LIST(ERROR_CASE)
#undef ERROR_CASE
        return status != PH_OK;
    default:
        return false;
    }
}

static ph_status finish(const struct ph__wire_reader *reader)
{
    return ph__wire_reader_finish(reader, from_a_rank) == PH_OK
               ? PH_OK
               : ph_fail(PH_ERROR_PEER, "%s", ph_error_text());
}

/* ---- who ---- */

struct ph__watch_who ph__watch_self(size_t rank)
{
    struct ph__watch_who who = {.rank = (uint32_t)rank, .process = (uint64_t)getpid()};
    if (gethostname(who.host, sizeof who.host) != 0)
        who.host[0] = '\0';
    make_plain(who.host, sizeof who.host);
    return who;
}

static void put_who(struct ph__wire_writer *writer, const struct ph__watch_who *who)
{
    ph__wire_put_u32(writer, who->rank);
    ph__wire_put_u64(writer, who->process);
    ph__wire_put_text(writer, who->host, PH_WATCH_HOST_BYTES - 1);
}

static void get_who(struct ph__wire_reader *reader, struct ph__watch_who *who)
{
    who->rank = ph__wire_get_u32(reader);
    who->process = ph__wire_get_u64(reader);
    ph__wire_get_text(reader, PH_WATCH_HOST_BYTES - 1, who->host);
}

/* ---- frames ---- */

void ph__watch_put_hello(struct ph__wire_writer *writer, const struct ph__watch_hello *hello)
{
    put_who(writer, &hello->who);
    ph__wire_put_bytes(writer, hello->nonce, sizeof hello->nonce);
}

ph_status ph__watch_get_hello(
    const void *body, size_t size, size_t world_size, struct ph__watch_hello *hello_out)
{
    struct ph__wire_reader reader;
    struct ph__watch_hello hello;
    ph__wire_reader_init(&reader, body, size);
    get_who(&reader, &hello.who);
    ph__wire_get_bytes(&reader, sizeof hello.nonce, hello.nonce);
    PH_TRY(finish(&reader));
    if (hello.who.rank == 0 || hello.who.rank >= world_size)
        return ph_fail(PH_ERROR_PEER, "rank %u cannot join a world of %zu ranks", hello.who.rank, world_size);
    *hello_out = hello;
    return PH_OK;
}

void ph__watch_put_answer(struct ph__wire_writer *writer, const struct ph__watch_answer *answer)
{
    put_who(writer, &answer->who);
    ph__wire_put_bytes(writer, answer->nonce, sizeof answer->nonce);
    ph__wire_put_bytes(writer, answer->proof, sizeof answer->proof);
}

ph_status ph__watch_get_answer(const void *body, size_t size, struct ph__watch_answer *answer_out)
{
    struct ph__wire_reader reader;
    struct ph__watch_answer answer;
    ph__wire_reader_init(&reader, body, size);
    get_who(&reader, &answer.who);
    ph__wire_get_bytes(&reader, sizeof answer.nonce, answer.nonce);
    ph__wire_get_bytes(&reader, sizeof answer.proof, answer.proof);
    PH_TRY(finish(&reader));
    if (answer.who.rank != 0)
        return ph_fail(PH_ERROR_PEER, "%s is from rank %u, not from rank 0", from_a_rank, answer.who.rank);
    *answer_out = answer;
    return PH_OK;
}

void ph__watch_put_notice(struct ph__wire_writer *writer, const struct ph__comm_notice *notice)
{
    struct ph__comm_notice plain = *notice;
    make_plain(plain.text, sizeof plain.text);
    ph__wire_put_u32(writer, plain.rank);
    ph__wire_put_u32(writer, (uint32_t)plain.status);
    ph__wire_put_u8(writer, plain.has_died);
    ph__wire_put_text(writer, plain.text, PH_NOTICE_TEXT_BYTES - 1);
}

ph_status ph__watch_get_notice(
    const void *body, size_t size, size_t world_size, struct ph__comm_notice *notice_out)
{
    struct ph__wire_reader reader;
    struct ph__comm_notice notice = {0};
    ph__wire_reader_init(&reader, body, size);
    notice.rank = ph__wire_get_u32(&reader);
    notice.status = (ph_status)ph__wire_get_u32(&reader);
    const uint8_t has_died = ph__wire_get_u8(&reader);
    notice.has_died = has_died != 0;
    ph__wire_get_text(&reader, PH_NOTICE_TEXT_BYTES - 1, notice.text);
    PH_TRY(finish(&reader));
    if (notice.rank >= world_size || !is_error(notice.status) || has_died > 1)
        return ph_fail(PH_ERROR_PEER, "%s names rank %u of %zu with status %d, which is not valid",
            from_a_rank, notice.rank, world_size, notice.status);
    *notice_out = notice;
    return PH_OK;
}

/* ---- proofs ---- */

/* Sums the hello and what rank 0 says before its proof into the transcript. */
static ph_status sum_hellos(const void *hello, size_t hello_size, const struct ph__watch_answer *answer,
    struct ph__challenge *challenge)
{
    unsigned char bytes[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    size_t size;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    put_who(&writer, &answer->who);
    ph__wire_put_bytes(&writer, answer->nonce, sizeof answer->nonce);
    PH_TRY(ph__wire_writer_finish(&writer, from_a_rank, &size));
    return ph__authenticate_transcript(hello, hello_size, bytes, size, challenge->transcript);
}

static ph_status make_challenge(const void *hello, size_t hello_size, size_t world_size,
    const struct ph__watch_answer *answer, struct ph__challenge *challenge)
{
    struct ph__watch_hello greeting;
    PH_TRY(ph__watch_get_hello(hello, hello_size, world_size, &greeting));
    memcpy(challenge->client_nonce, greeting.nonce, PH_NONCE_BYTES);
    memcpy(challenge->server_nonce, answer->nonce, PH_NONCE_BYTES);
    return sum_hellos(hello, hello_size, answer, challenge);
}

ph_status ph__watch_challenge(const struct ph__secret *secret, const void *hello, size_t hello_size,
    size_t world_size, struct ph__challenge *challenge_out, struct ph__watch_answer *answer_out)
{
    answer_out->who = ph__watch_self(0);
    PH_TRY(ph__random_bytes(answer_out->nonce, sizeof answer_out->nonce));
    PH_TRY(make_challenge(hello, hello_size, world_size, answer_out, challenge_out));
    return ph__authenticate_prove(secret, PH_SIDE_SERVER, challenge_out, answer_out->proof);
}

ph_status ph__watch_prove(const struct ph__secret *secret, const void *hello, size_t hello_size,
    const struct ph__watch_answer *answer, const char *peer, unsigned char proof_out[PH_PROOF_BYTES])
{
    struct ph__challenge challenge;
    PH_TRY(make_challenge(hello, hello_size, SIZE_MAX, answer, &challenge));
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_SERVER, &challenge, answer->proof, peer));
    return ph__authenticate_prove(secret, PH_SIDE_CLIENT, &challenge, proof_out);
}
