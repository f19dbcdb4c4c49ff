#include "net/authenticate.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/sum/digest.h"
#include "base/sum/hmac.h"
#include "net/wire.h"

#define LABEL_BYTES 32
static_assert(PH_DIGEST_BYTES == PH_TRANSCRIPT_BYTES, "a transcript is a digest");
static_assert(PH_HMAC_BYTES == PH_PROOF_BYTES && PH_HMAC_BYTES == PH_CONNECTION_KEY_BYTES, "both are HMACs");

/* Versioned, so that another protocol with the same secret cannot be made to say the same. By the side that sends. */
static const char proof_labels[2][LABEL_BYTES] = {"phloem 1 proof of client", "phloem 1 proof of server"};
static const char key_labels[2][LABEL_BYTES] = {"phloem 1 key of client", "phloem 1 key of server"};

static ph_status add_hello(struct ph_digest *digest, const void *hello, size_t size)
{
    unsigned char bytes[sizeof(uint64_t)];
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__wire_put_u64(&writer, size);
    PH_TRY(ph__digest_update(digest, bytes, sizeof bytes));
    return ph__digest_update(digest, hello, size);
}

/* The sizes stand before the hellos: no byte can move from one to the other. */
ph_status ph__authenticate_transcript(const void *client_hello, size_t client_hello_size,
    const void *server_hello, size_t server_hello_size, unsigned char transcript_out[PH_TRANSCRIPT_BYTES])
{
    struct ph_digest *digest = NULL;
    PH_TRY(ph__digest_create(&digest));
    ph_status status = add_hello(digest, client_hello, client_hello_size);
    if (status == PH_OK)
        status = add_hello(digest, server_hello, server_hello_size);
    if (status == PH_OK)
        status = ph__digest_finish_bytes(digest, transcript_out);
    ph__digest_destroy(digest);
    return status;
}

/* HMAC(secret, label | client's nonce | server's nonce | transcript): each part has its size. */
static ph_status make_sum(const struct ph_secret *secret, const char label[LABEL_BYTES],
    const struct ph_challenge *challenge, unsigned char sum_out[PH_HMAC_BYTES])
{
    unsigned char message[LABEL_BYTES + 2 * PH_NONCE_BYTES + PH_TRANSCRIPT_BYTES], *at = message;
    memcpy(at, label, LABEL_BYTES);
    memcpy(at += LABEL_BYTES, challenge->client_nonce, PH_NONCE_BYTES);
    memcpy(at += PH_NONCE_BYTES, challenge->server_nonce, PH_NONCE_BYTES);
    memcpy(at + PH_NONCE_BYTES, challenge->transcript, PH_TRANSCRIPT_BYTES);
    return ph__hmac_sha256(secret->bytes, secret->size, message, sizeof message, sum_out);
}

ph_status ph__authenticate_prove(const struct ph_secret *secret, enum ph_side side,
    const struct ph_challenge *challenge, unsigned char proof_out[PH_PROOF_BYTES])
{
    return make_sum(secret, proof_labels[side], challenge, proof_out);
}

ph_status ph__authenticate_check(const struct ph_secret *secret, enum ph_side side,
    const struct ph_challenge *challenge, const unsigned char proof[PH_PROOF_BYTES], const char *peer)
{
    unsigned char wanted[PH_PROOF_BYTES];
    PH_TRY(ph__authenticate_prove(secret, side, challenge, wanted));
    const bool is_right = ph__secrets_are_equal(wanted, proof, sizeof wanted);
    explicit_bzero(wanted, sizeof wanted);
    return is_right ? PH_OK : ph_fail(PH_ERROR_PEER, "%s: its secret is not the one given here", peer);
}

ph_status ph__authenticate_key(const struct ph_secret *secret, enum ph_side sender,
    const struct ph_challenge *challenge, unsigned char key_out[PH_CONNECTION_KEY_BYTES])
{
    return make_sum(secret, key_labels[sender], challenge, key_out);
}
