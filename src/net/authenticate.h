/* Two sides of a connection prove to each other that they know the same secret, without telling it:
 *
 *     client -> server   hello, with the client's nonce
 *     server -> client   hello, with the server's nonce; the server's proof
 *     client -> server   the client's proof
 *
 * A proof is HMAC-SHA-256(secret, who proves | client's nonce | server's nonce | sum of both hellos). So it
 * fits this connection alone (fresh nonces: nothing can be replayed), cannot be sent back to who made it (the
 * sides' names), and covers all that both have said (a hello changed on the way shows). The keys that frames
 * are then authenticated with (frame_key.h) are made in the same manner, one a direction, and differ for each
 * connection. The exchange is the mutual authentication in three passes of ISO/IEC 9798-4, with both hellos
 * under the sums.
 *
 * Nothing is encrypted: whoever reads along sees gradients, but cannot take part or change them unseen. A
 * server proves itself first, to anyone who asks; so secrets must be drawn by chance. Pure functions; any
 * thread. */
#ifndef PH_NET_AUTHENTICATE_H
#define PH_NET_AUTHENTICATE_H

#include <stddef.h>

#include "phloem/status.h"

/* ---- the secret ---- */

/* A secret that both sides of a connection were given in a file: what proves to each that the other belongs
 * to it. */

#define PH_SECRET_MIN_BYTES 16
#define PH_SECRET_MAX_BYTES 1024

struct ph__secret {
    size_t size;
    unsigned char bytes[PH_SECRET_MAX_BYTES];
};

/* The bytes of a file, without the line end that an editor leaves behind the last of them. PH_ERROR_CONFIG
 * naming the path when it cannot be read, is too short or too long, or when its mode lets anyone but its
 * owner at it. The bytes should be drawn by chance: whoever has seen a handshake can try secrets as fast as
 * he can compute. */
ph_status ph__secret_read(const char *path, struct ph__secret *secret_out);

/* Wipes it. */
void ph__secret_fini(struct ph__secret *secret);

/* ---- the proofs ---- */

#define PH_NONCE_BYTES 32
#define PH_PROOF_BYTES 32
#define PH_TRANSCRIPT_BYTES 32
#define PH_CONNECTION_KEY_BYTES 32

enum ph__side { PH_SIDE_CLIENT, PH_SIDE_SERVER };

/* What both sides know before either has proved anything. Each fills its own nonce by ph__random_bytes, anew
 * for every connection. */
struct ph__challenge {
    unsigned char client_nonce[PH_NONCE_BYTES];
    unsigned char server_nonce[PH_NONCE_BYTES];
    unsigned char transcript[PH_TRANSCRIPT_BYTES];
};

/* The transcript: of the hellos as they went over the wire, without the proof. */
ph_status ph__authenticate_transcript(const void *client_hello, size_t client_hello_size,
    const void *server_hello, size_t server_hello_size, unsigned char transcript_out[PH_TRANSCRIPT_BYTES]);

/* The proof that `side` sends. */
ph_status ph__authenticate_prove(const struct ph__secret *secret, enum ph__side side,
    const struct ph__challenge *challenge, unsigned char proof_out[PH_PROOF_BYTES]);

/* Whether `proof` is what `side`, the other one, had to send: else PH_ERROR_PEER, naming `peer`. */
ph_status ph__authenticate_check(const struct ph__secret *secret, enum ph__side side,
    const struct ph__challenge *challenge, const unsigned char proof[PH_PROOF_BYTES], const char *peer);

/* The key of what `sender` sends from now on: only for a connection whose proofs were right on this side. To
 * be wiped by explicit_bzero when its ph__frame_key is made. */
ph_status ph__authenticate_key(const struct ph__secret *secret, enum ph__side sender,
    const struct ph__challenge *challenge, unsigned char key_out[PH_CONNECTION_KEY_BYTES]);

#endif
