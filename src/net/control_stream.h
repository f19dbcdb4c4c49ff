/* Control messages over a connected stream socket, TCP or local: frames of a type and a body, to which a
 * local socket may attach descriptors. Never blocks.
 *
 * A frame is 8 bytes of head – u32 size of the body, u16 type, u16 number of descriptors – and the body
 * (wire.h). What comes is believed only up to PH_CONTROL_MAX_BYTES, or less where that was asked for, and
 * PH_CONTROL_MAX_DESCRIPTORS (of all frames together that wait to be taken). Errors are PH_ERROR_PEER where
 * nothing else is said. One thread at a time. */
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
    int descriptors[PH_CONTROL_MAX_DESCRIPTORS]; /* owned by whoever takes the frame */
};

/* Owns the socket, which must be non-blocking, also where this fails. */
ph_status ph__control_stream_create(int socket, struct ph__control_stream **stream_out);
void ph__control_stream_destroy(struct ph__control_stream *stream); /* NULL is fine */
int ph__control_stream_socket(const struct ph__control_stream *stream);

/* From now on each frame carries a tag behind its body (frame_key.h), and one that comes without the right
 * tag is an error. The keys are owned by the stream. What waits to be sent already goes without; nothing
 * waits to be taken. */
void ph__control_stream_protect(
    struct ph__control_stream *stream, struct ph__frame_key *send_key, struct ph__frame_key *receive_key);

/* Ends the stream and gives its socket and keys (NULL: it had none) away, to be used for something else.
 * PH_ERROR_PEER when something waits to be sent or taken; the stream is destroyed in any case. */
ph_status ph__control_stream_release(struct ph__control_stream *stream, int *socket_out,
    struct ph__frame_key **send_key_out, struct ph__frame_key **receive_key_out);

/* From now on whoever sends descriptors fails, and this process never holds them. */
void ph__control_stream_refuse_descriptors(struct ph__control_stream *stream);
/* From now on a frame that comes with a larger body is an error, and no more is kept of what comes than one
 * such frame takes. At first max_bytes is PH_CONTROL_MAX_BYTES. Memory that was taken for larger frames is
 * given back. */
void ph__control_stream_limit(struct ph__control_stream *stream, size_t max_bytes);

/* Puts a frame behind what waits to be sent. Descriptors are borrowed: the stream keeps copies.
 * PH_ERROR_USAGE beyond the limits; PH_ERROR_PEER when more than PH_CONTROL_MAX_BYTES are waiting already;
 * PH_ERROR_MEMORY, also of descriptors. Nothing was put then. */
ph_status ph__control_stream_put(struct ph__control_stream *stream, uint16_t type, const void *body,
    size_t size, const int *descriptors, size_t num_descriptors);

/* Sends what it can. */
ph_status ph__control_stream_flush(struct ph__control_stream *stream);
bool ph__control_stream_has_output(const struct ph__control_stream *stream);
size_t ph__control_stream_output_bytes(const struct ph__control_stream *stream); /* that wait to be sent */

/* Receives what has come. PH_ERROR_PEER also when the other side has closed; frames that came before can
 * still be taken. */
ph_status ph__control_stream_receive(struct ph__control_stream *stream);

bool ph__control_stream_is_closed(
    const struct ph__control_stream *stream); /* by the other side, as was received */

/* Takes the next whole frame; false: there is none yet. */
ph_status ph__control_stream_take(
    struct ph__control_stream *stream, struct ph__control_frame *frame_out, bool *is_there_out);

void ph__control_frame_close(const struct ph__control_frame *frame); /* its descriptors, which nobody wants */

#endif
