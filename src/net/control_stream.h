/* Control messages over a connected stream socket, TCP or local: frames of a type and a body, to which a
 * local socket may attach descriptors. Never blocks.
 *
 * A frame is 8 bytes of head – u32 size of the body, u16 type, u16 number of descriptors – and the body
 * (wire.h). Received bodies are limited to PH_CONTROL_MAX_BYTES, or less by ph__control_stream_limit, and the
 * descriptors of all frames that wait to be taken to PH_CONTROL_MAX_DESCRIPTORS. Errors are PH_ERROR_PEER
 * unless stated otherwise. One thread at a time. */
#ifndef PH_NET_CONTROL_STREAM_H
#define PH_NET_CONTROL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/frame_key.h"
#include "phloem/status.h"

#define PH_CONTROL_MAX_BYTES ((size_t)8 << 20)
#define PH_CONTROL_MAX_DESCRIPTORS 250 /* Linux sends 253 with one message */

struct ph__control_stream;

struct ph__control_frame {
    uint16_t type;
    const void *body; /* borrowed until the next call on the stream */
    size_t size;
    size_t num_descriptors;
    int descriptors[PH_CONTROL_MAX_DESCRIPTORS]; /* owned by the caller that takes the frame */
};

/* Creates a stream, which owns the non-blocking socket, also after an error. */
ph_status ph__control_stream_create(int socket, struct ph__control_stream **stream_out);
void ph__control_stream_destroy(struct ph__control_stream *stream); /* NULL is fine */
int ph__control_stream_socket(const struct ph__control_stream *stream);

/* Makes each frame carry a tag behind its body (frame_key.h) from now on; a received frame without the right
 * tag is an error. The stream owns the keys. Frames that already wait to be sent go without; none may wait to
 * be taken. */
void ph__control_stream_protect(
    struct ph__control_stream *stream, struct ph__frame_key *send_key, struct ph__frame_key *receive_key);

/* Ends the stream and gives its socket and keys (NULL: none) to the caller. PH_ERROR_PEER when frames wait to
 * be sent or taken. The stream is destroyed in any case. */
ph_status ph__control_stream_release(struct ph__control_stream *stream, int *socket_out,
    struct ph__frame_key **send_key_out, struct ph__frame_key **receive_key_out);

/* Makes received descriptors an error from now on; this process never holds them. */
void ph__control_stream_refuse_descriptors(struct ph__control_stream *stream);
/* Limits received bodies to max_bytes from now on, PH_CONTROL_MAX_BYTES at first; a larger one is an error.
 * Buffers no more input than one such frame takes, and frees memory that was taken for larger frames. */
void ph__control_stream_limit(struct ph__control_stream *stream, size_t max_bytes);

/* Queues a frame. Descriptors are borrowed: the stream keeps copies. Queues nothing after an error:
 * PH_ERROR_USAGE beyond the limits; PH_ERROR_PEER when more than PH_CONTROL_MAX_BYTES wait already;
 * PH_ERROR_MEMORY, also for want of descriptors. */
ph_status ph__control_stream_put(struct ph__control_stream *stream, uint16_t type, const void *body,
    size_t size, const int *descriptors, size_t num_descriptors);

/* Sends as much as the socket takes. */
ph_status ph__control_stream_flush(struct ph__control_stream *stream);
bool ph__control_stream_has_output(const struct ph__control_stream *stream);
size_t ph__control_stream_output_bytes(const struct ph__control_stream *stream); /* that wait to be sent */

/* Receives the bytes that have arrived. PH_ERROR_PEER also when the other side has closed; frames that
 * arrived before can still be taken. */
ph_status ph__control_stream_receive(struct ph__control_stream *stream);

bool ph__control_stream_is_closed(
    const struct ph__control_stream *stream); /* by the other side, as far as received */

/* Takes the next whole frame; *is_there_out is false when there is none yet. */
ph_status ph__control_stream_take(
    struct ph__control_stream *stream, struct ph__control_frame *frame_out, bool *is_there_out);

void ph__control_frame_close(const struct ph__control_frame *frame); /* closes its descriptors, unused */

#endif
