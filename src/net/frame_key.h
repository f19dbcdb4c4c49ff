/* The key of one direction of a connection: each frame goes with a tag of 8 bytes that nobody else can make.
 *
 * A tag covers the frame's header, its payload, where the one ends and the other begins, and how many frames
 * went before it: a frame that was changed, left out, sent twice, out of order, or back to its sender does
 * not fit. It is the first half of a GMAC over AES-256 (base/sum/digest.h) whose nonce is the frame's number
 * and the size of its header; numbers are counted here and keys are made for one connection and direction
 * (authenticate.h), so that no nonce comes twice.
 *
 * Why GMAC: of what OpenSSL 3 offers, SipHash is several times slower where the processor has AES and
 * carry-less multiplication, and Poly1305, as fast, wants a key of its own for each message; GMAC wants only
 * a number. What sealing and checking cost beside memcpy is what `./run bench hub bench_frame_key` prints.
 * What 8 bytes promise: a frame of n 16-byte blocks is forged with a chance of n / 2^64 a try, and there is
 * one try a key, since after one wrong tag nothing fits any more: end the connection then.
 *
 * Nothing is allocated but by create. One thread at a time for each key. */
#ifndef PH_NET_FRAME_KEY_H
#define PH_NET_FRAME_KEY_H

#include <stddef.h>

#include "net/authenticate.h"
#include "phloem/status.h"

#define PH_FRAME_TAG_BYTES 8

struct ph__frame_key;

/* The key's bytes are copied, and wiped by destroy. */
ph_status ph__frame_key_create(
    const unsigned char bytes[PH_CONNECTION_KEY_BYTES], struct ph__frame_key **key_out);
void ph__frame_key_destroy(struct ph__frame_key *key); /* NULL is fine */

/* A frame as it comes: its header, its payload in pieces of any size (or none), and then the check of the tag
 * that came behind it. Each begin counts one frame, on either side. */
ph_status ph__frame_begin(struct ph__frame_key *key, const void *header, size_t size);
ph_status ph__frame_add(struct ph__frame_key *key, const void *payload, size_t size);
/* PH_ERROR_PEER naming `peer` when the tag does not fit, and from then on always. */
ph_status ph__frame_check(
    struct ph__frame_key *key, const unsigned char tag[PH_FRAME_TAG_BYTES], const char *peer);

/* Gives the tag of a whole frame, to be sent behind it. */
ph_status ph__frame_mac(struct ph__frame_key *key, const void *header, size_t header_size,
    const void *payload, size_t payload_size, unsigned char tag_out[PH_FRAME_TAG_BYTES]);

#endif
