/* Links over TCP. Each message is a frame of 24 bytes and its payload, sent from where it lies and received
 * where the owner wants it, by as few system calls as a stream allows: many frames with one sendmsg, a
 * payload and the next frame's head with one recvmsg.
 *
 * The sending kernel does not copy a payload that lies in a registered region: its pages go out as they are
 * (sendfile(2)) and are read when the other side takes them. So an owner that registers memory must not write
 * a payload before the other side has replied to it – owner.sent says only that the link itself has finished
 * with it – and must move the link in threads that block SIGPIPE.
 *
 * A link does not limit how long the other side leaves its input unread: TCP_USER_TIMEOUT is switched off. A
 * connection that is always emptied, such as the control connection, has to notice that the other host is
 * gone.
 *
 * With keys, each frame carries a tag (frame_key.h), and arrives only when the tag is right. Little-endian on
 * the wire. */
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

size_t ph__tcp_link_bytes(size_t capacity); /* memory, without keys */

/* Creates a link. PH_ERROR_MEMORY; the caller then keeps socket and keys. */
ph_status ph__tcp_link_create(const struct ph__tcp_link_options *options, struct ph__link **link_out);

/* Encodes and decodes the head of a frame, for the link and its fuzz target. PH_ERROR_PEER for bytes that are
 * no head. */
void ph__tcp_frame_encode(
    const struct ph__message *message, uint32_t payload_bytes, unsigned char head_out[PH_TCP_FRAME_BYTES]);
ph_status ph__tcp_frame_decode(const unsigned char head[PH_TCP_FRAME_BYTES], struct ph__message *message_out,
    uint32_t *payload_bytes_out);

#endif
