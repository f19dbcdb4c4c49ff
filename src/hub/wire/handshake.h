/* The proof of a secret, between greeting and welcome (net/authenticate.h), as both sides of a control connection do it. */
#ifndef PH_HUB_HANDSHAKE_H
#define PH_HUB_HANDSHAKE_H

#include "hub/wire/protocol.h"
#include "net/control_stream.h"

/* The hub has a greeting: makes what it answers. */
ph_status ph__handshake_challenge(const struct ph_secret *secret, const void *hello, size_t hello_size,
    struct ph_challenge *challenge_out, struct ph_server_challenge *answer_out);

/* The worker has the hub's answer to its own greeting: checks the hub's proof and makes its own. */
ph_status ph__handshake_prove(const struct ph_secret *secret, const void *hello, size_t hello_size,
    const struct ph_server_challenge *answer, struct ph_challenge *challenge_out,
    unsigned char proof_out[PH_PROOF_BYTES]);

/* Both have proved what they know: frames of the stream carry tags from now on. */
ph_status ph__handshake_protect(const struct ph_secret *secret, const struct ph_challenge *challenge,
    enum ph_side self, struct ph_control_stream *stream);

#endif
