/* Control connections of the client: addresses of hubs, connecting, proof of the secret, and requests. Each
 * connection is used by the thread that owns it. */
#ifndef PH_HUB_CLIENT_GREET_H
#define PH_HUB_CLIENT_GREET_H

#include <poll.h>
#include <stdint.h>

#include "base/thread/clock.h"
#include "hub/layout/spread.h"
#include "hub/wire/protocol.h"
#include "net/control_stream.h"
#include "phloem/hub.h"

/* ---- the addresses of hubs ---- */

/* Addresses of the hubs that share a job's keys, as ph_hub_options.address lists them; mostly one. */
struct ph__hub_list {
    char *text; /* owned */
    uint16_t num_hubs;
    const char *addresses[PH_HUB_MAX_HUBS]; /* pointers into `text`, in its order */
};

/* Reads "host:port,host:port". PH_ERROR_CONFIG for none or an empty address, PH_ERROR_USAGE for more than
 * PH_HUB_MAX_HUBS; PH_ERROR_MEMORY. */
ph_status ph__hub_list_read(const char *address, struct ph__hub_list *list_out);
void ph__hub_list_fini(struct ph__hub_list *list); /* zeros are fine */

static inline struct ph__hub_share ph__hub_list_share(const struct ph__hub_list *list, uint16_t hub)
{
    return (struct ph__hub_share){.hub = hub, .num_hubs = list->num_hubs};
}

/* Returns the options to reach one hub of the list. */
struct ph_hub_options ph__hub_list_options(
    const struct ph__hub_list *list, uint16_t hub, const struct ph_hub_options *options);

/* Returns the status. With several hubs, names the hub in the text of an error. */
ph_status ph__hub_list_name(const struct ph__hub_list *list, uint16_t hub, ph_status status);

/* ---- connections ---- */

struct ph__timeout ph__client_timeout(const struct ph_hub_options *options); /* limit of each wait */

/* Greets the hub at the other end of the socket, which the stream owns; an error closes it. secret: NULL if
 * the hub has none. */
ph_status ph__client_greet(int socket, const struct ph__secret *secret, struct ph__timeout timeout,
    struct ph__control_stream **stream_out, struct ph__welcome *welcome_out);

/* Connects to the hub and greets it. */
ph_status ph__client_reach(const struct ph_hub_options *options, const struct ph__secret *secret,
    struct ph__control_stream **stream_out, struct ph__welcome *welcome_out);

/* Connects to the hub's local socket, which serves only processes of its own user. way_out is also set on
 * failure, and tells whether another user is the reason. PH_ERROR_PEER. */
ph_status ph__client_reach_local(
    const struct ph__welcome *welcome, uint32_t timeout_ms, int *socket_out, enum ph__way *way_out);

/* Connects for a single request: ph__client_reach() with the secret that the options name. */
ph_status ph__client_reach_once(const struct ph_hub_options *options, struct ph__control_stream **stream_out);

/* Sends a frame and waits for the answer of this type. An ANSWER that is an error, or FAILED, becomes that
 * error. The body is borrowed until the next call on the stream. */
ph_status ph__client_request(struct ph__control_stream *stream, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer, struct ph__timeout timeout,
    struct ph__control_frame *frame_out);

/* Halves of a request: put queues a frame, look_for looks without waiting whether the answer of this type has
 * come. body: NULL: none. A SAVED that comes first is given as it is: look again after taking it. */
ph_status ph__client_put(
    struct ph__control_stream *stream, enum ph__hub_frame type, const struct ph__wire_writer *body);
ph_status ph__client_look_for(struct ph__control_stream *stream, enum ph__hub_frame answer,
    struct ph__control_frame *frame_out, bool *is_there_out);

struct pollfd ph__client_polled(const struct ph__control_stream *stream); /* polled between two looks */

#endif
