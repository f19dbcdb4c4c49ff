/* Links over TCP: each message is a frame of 24 bytes and its payload, sent from where it lies and received
 * to where the owner wants it, by as few system calls as a stream allows: many frames with one sendmsg, a
 * payload and the next frame's head with one recvmsg.
 *
 * A payload that lies in a registered region is not even copied by the sending kernel: its pages go out as
 * they are (sendfile(2)), and are read when the other side takes them. So who registers memory promises not
 * to write a payload before the other side has answered it – owner.sent says only that the link itself has
 * done with it – and moves the link in threads that block SIGPIPE.
 *
 * How long the other side leaves what was sent to it is no error of a link: TCP_USER_TIMEOUT is taken off the
 * socket. That its host is gone, a connection that nobody leaves full has to tell.
 *
 * With keys each frame carries a tag (frame_key.h), and arrives only when the tag fits. Little-endian on the
 * wire. */
#ifndef PH_NET_TCP_LINK_H
#define PH_NET_TCP_LINK_H

#include "net/frame_key.h"
#include "net/link/link.h"
#include "net/link/region.h"

#define PH_TCP_FRAME_BYTES 24

struct ph__tcp_link_options {
    int socket;      /* connected and non-blocking; owned by the link from now on */
    size_t capacity; /* messages that may wait to be sent, a power of two */
    struct ph__frame_key *send_key, *receive_key; /* both, owned from now on, or NULL */
    const struct ph__region *registered;          /* borrowed until destroy; NULL: none */
    struct ph__link_owner owner;
};

size_t ph__tcp_link_bytes(size_t capacity); /* of memory, without keys */

/* PH_ERROR_MEMORY; socket and keys are then the caller's. */
ph_status ph__tcp_link_create(const struct ph__tcp_link_options *options, struct ph__link **link_out);

/* The head of a frame, as bytes: what the fuzz target and the link share. PH_ERROR_PEER for what is none. */
void ph__tcp_frame_encode(
    const struct ph__message *message, uint32_t payload_bytes, unsigned char head_out[PH_TCP_FRAME_BYTES]);
ph_status ph__tcp_frame_decode(const unsigned char head[PH_TCP_FRAME_BYTES], struct ph__message *message_out,
    uint32_t *payload_bytes_out);

#endif
