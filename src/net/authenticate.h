/* Mutual authentication: two sides of a connection prove that they know the same secret, without revealing
 * it.
 *
 *     client -> server   hello, with the client's nonce
 *     server -> client   hello, with the server's nonce; the server's proof
 *     client -> server   the client's proof
 *
 * A proof is HMAC-SHA-256(secret, prover's side | client's nonce | server's nonce | sum of both hellos). So a
 * proof fits this connection alone (its nonces are fresh: no replay), cannot be sent back to its prover (it
 * names the side), and covers both hellos (a hello changed on the way shows). The keys that authenticate
 * later frames (frame_key.h) are made in the same way, one a direction, and differ for each connection. The
 * exchange is the mutual authentication in three passes of ISO/IEC 9798-4, with both hellos under the sums.
 *
 * Nothing is encrypted: an eavesdropper sees gradients, but cannot take part or change them unnoticed. A
 * server proves itself first, to any client; so secrets must be random. Pure functions; any thread. */
#ifndef PH_NET_AUTHENTICATE_H
#define PH_NET_AUTHENTICATE_H

#include <stddef.h>

#include "phloem/status.h"

/* ---- the secret ---- */

/* A secret that both sides of a connection read from a file. It proves to each side that the other belongs to
 * it. */

#define PH_SECRET_MIN_BYTES 16
#define PH_SECRET_MAX_BYTES 1024

struct ph__secret {
    size_t size;
    unsigned char bytes[PH_SECRET_MAX_BYTES];
};

/* Reads a secret from a file, without the line end that an editor leaves at its end. PH_ERROR_CONFIG naming
 * the path when the file cannot be read, is too short or too long, or when its mode gives others than its
 * owner access. The bytes should be random: an eavesdropper of a handshake can try secrets as fast as
 * hardware computes. */
ph_status ph__secret_read(const char *path, struct ph__secret *secret_out);

/* Wipes the secret. */
void ph__secret_fini(struct ph__secret *secret);

/* ---- the proofs ---- */

#define PH_NONCE_BYTES 32
#define PH_PROOF_BYTES 32
#define PH_TRANSCRIPT_BYTES 32
#define PH_CONNECTION_KEY_BYTES 32

enum ph__side { PH_SIDE_CLIENT, PH_SIDE_SERVER };

/* Data that both sides know before either has proved anything. Each side fills its own nonce by
 * ph__random_bytes, anew for every connection. */
struct ph__challenge {
    unsigned char client_nonce[PH_NONCE_BYTES];
    unsigned char server_nonce[PH_NONCE_BYTES];
    unsigned char transcript[PH_TRANSCRIPT_BYTES];
};

/* Sums the hellos as they went over the wire, without the proof. */
ph_status ph__authenticate_transcript(const void *client_hello, size_t client_hello_size,
    const void *server_hello, size_t server_hello_size, unsigned char transcript_out[PH_TRANSCRIPT_BYTES]);

/* Computes the proof that `side` sends. */
ph_status ph__authenticate_prove(const struct ph__secret *secret, enum ph__side side,
    const struct ph__challenge *challenge, unsigned char proof_out[PH_PROOF_BYTES]);

/* Checks the proof that the peer, on `side`, has sent: PH_ERROR_PEER naming `peer` when it is wrong. */
ph_status ph__authenticate_check(const struct ph__secret *secret, enum ph__side side,
    const struct ph__challenge *challenge, const unsigned char proof[PH_PROOF_BYTES], const char *peer);

/* Computes the key for frames from `sender`, only for a connection whose proofs this side has checked. The
 * caller wipes it by explicit_bzero once its ph__frame_key exists. */
ph_status ph__authenticate_key(const struct ph__secret *secret, enum ph__side sender,
    const struct ph__challenge *challenge, unsigned char key_out[PH_CONNECTION_KEY_BYTES]);

#endif
