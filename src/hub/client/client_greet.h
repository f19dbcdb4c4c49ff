/* A control connection from its other end: the addresses of hubs, reaching one, proving that both know the
 * secret, and asking. Used by the files of the client, each call by the thread that the connection belongs
 * to. */
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

/* The addresses of the hubs that share a job's keys, as ph_hub_options.address lists them; mostly there is
 * one. */
struct ph__hub_list {
    char *text; /* owned */
    uint16_t num_hubs;
    const char *addresses[PH_HUB_MAX_HUBS]; /* in the order of the list, in `text` */
};

/* "host:port,host:port". PH_ERROR_CONFIG for none or an empty one, PH_ERROR_USAGE for more than
 * PH_HUB_MAX_HUBS; PH_ERROR_MEMORY. */
ph_status ph__hub_list_read(const char *address, struct ph__hub_list *list_out);
void ph__hub_list_fini(struct ph__hub_list *list); /* one of zeros is fine */

static inline struct ph__hub_share ph__hub_list_share(const struct ph__hub_list *list, uint16_t hub)
{
    return (struct ph__hub_share){.hub = hub, .num_hubs = list->num_hubs};
}

/* The options to reach one of them. */
struct ph_hub_options ph__hub_list_options(
    const struct ph__hub_list *list, uint16_t hub, const struct ph_hub_options *options);

/* Returns the status. An error that one of several hubs has caused says which: in ph_error_text(). */
ph_status ph__hub_list_name(const struct ph__hub_list *list, uint16_t hub, ph_status status);

/* ---- connections ---- */

struct ph__timeout ph__client_timeout(const struct ph_hub_options *options); /* of each wait */

/* Greets the hub at the other end of the socket, which is the stream's from now on, or closed. secret: NULL
 * without. */
ph_status ph__client_greet(int socket, const struct ph__secret *secret, struct ph__timeout timeout,
    struct ph__control_stream **stream_out, struct ph__welcome *welcome_out);

/* Connects to the hub and greets it. */
ph_status ph__client_reach(const struct ph_hub_options *options, const struct ph__secret *secret,
    struct ph__control_stream **stream_out, struct ph__welcome *welcome_out);

/* Connects to the local socket that a hub has told, which serves its own user's processes alone. way_out is
 * also set where that fails: whether another user is why. PH_ERROR_PEER */
ph_status ph__client_reach_local(
    const struct ph__welcome *welcome, uint32_t timeout_ms, int *socket_out, enum ph__way *way_out);

/* As ph__client_reach(), with the secret that the options name: a connection to ask one thing over. */
ph_status ph__client_reach_once(const struct ph_hub_options *options, struct ph__control_stream **stream_out);

/* Sends a frame and waits for the answer of this type; an ANSWER that is an error, or FAILED, is that error.
 * The body is borrowed until the next call on the stream. */
ph_status ph__client_request(struct ph__control_stream *stream, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer, struct ph__timeout timeout,
    struct ph__control_frame *frame_out);

/* The halves of a request: puts a frame, and looks whether the answer of this type has come, without waiting.
 * body: NULL: none. A SAVED that comes before is there as it is: look again when it was taken. */
ph_status ph__client_put(
    struct ph__control_stream *stream, enum ph__hub_frame type, const struct ph__wire_writer *body);
ph_status ph__client_look_for(struct ph__control_stream *stream, enum ph__hub_frame answer,
    struct ph__control_frame *frame_out, bool *is_there_out);

struct pollfd ph__client_polled(const struct ph__control_stream *stream); /* to wait between two looks */

#endif
