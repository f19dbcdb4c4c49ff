/* The key of one direction of a connection: each frame carries a tag of 8 bytes that only an owner of the key
 * can compute.
 *
 * A tag covers the frame's header, its payload, the boundary between them, and the number of earlier frames.
 * A frame that was changed, left out, sent twice, out of order, or back to its sender does not match. The tag
 * is the first half of a GMAC over AES-256 (base/sum/digest.h) whose nonce is the frame's number and the size
 * of its header. Numbers are counted here, and keys are made for one connection and direction
 * (authenticate.h), so that no nonce repeats.
 *
 * Why GMAC: among the algorithms of OpenSSL 3, SipHash is several times slower where the processor has AES
 * and carry-less multiplication; Poly1305, as fast, needs a key of its own for each message; GMAC needs only
 * a number. `./run bench hub bench_frame_key` measures sealing and checking against memcpy. Strength of 8
 * bytes: a frame of n 16-byte blocks is forged with a chance of n / 2^64 a try, and there is one try a key,
 * since after one wrong tag every tag is wrong: end the connection then.
 *
 * Only create allocates. One thread at a time for each key. */
#ifndef PH_NET_FRAME_KEY_H
#define PH_NET_FRAME_KEY_H

#include <stddef.h>

#include "net/authenticate.h"
#include "phloem/status.h"

#define PH_FRAME_TAG_BYTES 8

struct ph__frame_key;

/* Copies the key's bytes; destroy wipes them. */
ph_status ph__frame_key_create(
    const unsigned char bytes[PH_CONNECTION_KEY_BYTES], struct ph__frame_key **key_out);
void ph__frame_key_destroy(struct ph__frame_key *key); /* NULL is fine */

/* Checks a received frame: begin takes its header, add its payload in pieces of any size (or none), and check
 * compares the tag behind it. Each begin counts one frame, on either side. */
ph_status ph__frame_begin(struct ph__frame_key *key, const void *header, size_t size);
ph_status ph__frame_add(struct ph__frame_key *key, const void *payload, size_t size);
/* Fails with PH_ERROR_PEER naming `peer` when the tag is wrong, and at every later frame. */
ph_status ph__frame_check(
    struct ph__frame_key *key, const unsigned char tag[PH_FRAME_TAG_BYTES], const char *peer);

/* Computes the tag of a whole frame, to be sent behind it. */
ph_status ph__frame_mac(struct ph__frame_key *key, const void *header, size_t header_size,
    const void *payload, size_t payload_size, unsigned char tag_out[PH_FRAME_TAG_BYTES]);

#endif
