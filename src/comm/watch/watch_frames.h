/* Frames of the connections of a watch: control frames (net/control_stream.h), and the proofs of the first
 * three.
 *
 *     rank r -> rank 0   HELLO      identity, and a nonce
 *     rank 0 -> rank r   CHALLENGE  identity, a nonce, and rank 0's proof
 *     rank r -> rank 0   PROOF      the rank's proof
 *     rank 0 -> rank r   WELCOME    the proof was right
 *     rank 0 -> all      BEGIN      all ranks have come
 *     either way         NOTICE     a rank has died or failed
 *     either way         LEAVE      the job is over for the sender
 *
 * Readers check a frame for consistency, no more: PH_ERROR_PEER. Pure functions; any thread. */
#ifndef PH_COMM_WATCH_FRAMES_H
#define PH_COMM_WATCH_FRAMES_H

#include "comm/watch/watch.h"
#include "net/authenticate.h"
#include "net/wire.h"

#define PH_WATCH_HOST_BYTES 65 /* of a host's name with its NUL: longer names are cut */
#define PH_WATCH_MAX_BODY 600  /* bytes of the largest frame */

enum ph__watch_frame {
    PH_WATCH_HELLO = 1,
    PH_WATCH_CHALLENGE,
    PH_WATCH_PROOF,
    PH_WATCH_WELCOME,
    PH_WATCH_BEGIN,
    PH_WATCH_NOTICE,
    PH_WATCH_LEAVE
};

/* A rank's process, named in errors for people who look for it. */
struct ph__watch_who {
    uint32_t rank;
    uint64_t process;
    char host[PH_WATCH_HOST_BYTES];
};

struct ph__watch_hello {
    struct ph__watch_who who;
    unsigned char nonce[PH_NONCE_BYTES];
};

struct ph__watch_answer { /* CHALLENGE */
    struct ph__watch_who who;
    unsigned char nonce[PH_NONCE_BYTES];
    unsigned char proof[PH_PROOF_BYTES];
};

/* Describes this process, as the given rank. */
struct ph__watch_who ph__watch_self(size_t rank);

void ph__watch_put_hello(struct ph__wire_writer *writer, const struct ph__watch_hello *hello);
/* Reads a hello, which names a rank from 1 below world_size. */
ph_status ph__watch_get_hello(
    const void *body, size_t size, size_t world_size, struct ph__watch_hello *hello_out);

void ph__watch_put_answer(struct ph__wire_writer *writer, const struct ph__watch_answer *answer);
ph_status ph__watch_get_answer(const void *body, size_t size, struct ph__watch_answer *answer_out);

/* Writes a notice; bytes of its text that are no plain character become '?'. */
void ph__watch_put_notice(struct ph__wire_writer *writer, const struct ph__comm_notice *notice);
ph_status ph__watch_get_notice(
    const void *body, size_t size, size_t world_size, struct ph__comm_notice *notice_out);

/* Makes rank 0's answer to a hello. */
ph_status ph__watch_challenge(const struct ph__secret *secret, const void *hello, size_t hello_size,
    size_t world_size, struct ph__challenge *challenge_out, struct ph__watch_answer *answer_out);
/* Checks on another rank the proof of rank 0, called `peer` in errors, in the answer to its hello, and makes
 * the rank's own proof. */
ph_status ph__watch_prove(const struct ph__secret *secret, const void *hello, size_t hello_size,
    const struct ph__watch_answer *answer, const char *peer, unsigned char proof_out[PH_PROOF_BYTES]);

#endif
