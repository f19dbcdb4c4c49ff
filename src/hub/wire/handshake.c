/* Proof of a secret: see protocol.h. The hub's nonce is its answer to the worker's hello: the transcript
 * holds that hello and the nonce. */
#include "hub/wire/protocol.h"

#include <string.h>

#include "base/sum/random_bytes.h"

static ph_status make_challenge(const void *hello, size_t hello_size,
    const unsigned char server_nonce[PH_NONCE_BYTES], struct ph__challenge *challenge)
{
    struct ph__hello greeting;
    PH_TRY(ph__get_hello(hello, hello_size, &greeting));
    memcpy(challenge->client_nonce, greeting.nonce, PH_NONCE_BYTES);
    memcpy(challenge->server_nonce, server_nonce, PH_NONCE_BYTES);
    return ph__authenticate_transcript(
        hello, hello_size, server_nonce, PH_NONCE_BYTES, challenge->transcript);
}

ph_status ph__handshake_challenge(const struct ph__secret *secret, const void *hello, size_t hello_size,
    struct ph__challenge *challenge_out, struct ph__server_challenge *answer_out)
{
    PH_TRY(ph__random_bytes(answer_out->nonce, sizeof answer_out->nonce));
    PH_TRY(make_challenge(hello, hello_size, answer_out->nonce, challenge_out));
    return ph__authenticate_prove(secret, PH_SIDE_SERVER, challenge_out, answer_out->proof);
}

ph_status ph__handshake_prove(const struct ph__secret *secret, const void *hello, size_t hello_size,
    const struct ph__server_challenge *answer, struct ph__challenge *challenge_out,
    unsigned char proof_out[PH_PROOF_BYTES])
{
    PH_TRY(make_challenge(hello, hello_size, answer->nonce, challenge_out));
    PH_TRY(ph__authenticate_check(secret, PH_SIDE_SERVER, challenge_out, answer->proof, "the hub"));
    return ph__authenticate_prove(secret, PH_SIDE_CLIENT, challenge_out, proof_out);
}

static ph_status make_key(const struct ph__secret *secret, enum ph__side sender,
    const struct ph__challenge *challenge, struct ph__frame_key **key_out)
{
    unsigned char bytes[PH_CONNECTION_KEY_BYTES];
    ph_status status = ph__authenticate_key(secret, sender, challenge, bytes);
    if (status == PH_OK)
        status = ph__frame_key_create(bytes, key_out);
    explicit_bzero(bytes, sizeof bytes);
    return status;
}

ph_status ph__handshake_protect(const struct ph__secret *secret, const struct ph__challenge *challenge,
    enum ph__side self, struct ph__control_stream *stream)
{
    const enum ph__side other = self == PH_SIDE_CLIENT ? PH_SIDE_SERVER : PH_SIDE_CLIENT;
    struct ph__frame_key *send_key, *receive_key;
    PH_TRY(make_key(secret, self, challenge, &send_key));
    const ph_status status = make_key(secret, other, challenge, &receive_key);
    if (status != PH_OK) {
        ph__frame_key_destroy(send_key);
        return status;
    }
    ph__control_stream_protect(stream, send_key, receive_key);
    return PH_OK;
}
