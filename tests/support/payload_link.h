/* A link that carries payloads between two sides in one process, as a socket does, but moves only when its
 * test says so. The hub's side is a struct ph__link; the worker's side is the functions below. One thread.
 *
 * A message to the hub arrives at once, or first its head and later its payload. A message to the worker
 * leaves when the test allows it; a payload that has changed by then ends the process. */
#ifndef PH_TEST_PAYLOAD_LINK_H
#define PH_TEST_PAYLOAD_LINK_H

#include "net/link/link.h"

typedef void (*payload_receiver)(
    void *context, const struct ph__message *message, const void *payload, size_t payload_bytes);

/* Creates a link, destroyed by ph__link_destroy. */
struct ph__link *payload_link_create(struct ph__link_owner owner, payload_receiver receiver, void *context);

/* Sends a message to the hub and copies its payload; !is_whole: the payload arrives with
 * payload_link_complete. */
void payload_link_put(struct ph__link *link, const struct ph__message *message, const void *payload,
    size_t payload_bytes, bool is_whole);
void payload_link_complete(struct ph__link *link);

/* Gives the worker the messages that have left for it. */
void payload_link_receive(struct ph__link *link);

/* Lets `count` more messages leave to the worker, with the hub's next progress; the others wait. */
void payload_link_allow(struct ph__link *link, size_t count);
/* Makes all later sends to the worker fail. */
void payload_link_break(struct ph__link *link);
size_t payload_link_num_waiting(const struct ph__link *link);
/* Counts the waiting messages of this chunk whose payload lies in this copy (ph__message.flags). */
size_t payload_link_num_sending(const struct ph__link *link, uint32_t chunk, uint8_t copy);

#endif
