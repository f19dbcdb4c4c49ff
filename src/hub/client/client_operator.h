/* Requests to hubs besides those of phloem/hub.h: a hub's status; and for the hub's operator, its own user on
 * its host, the end of a service. */
#ifndef PH_HUB_CLIENT_OPERATOR_H
#define PH_HUB_CLIENT_OPERATOR_H

#include "base/format/json.h"
#include "phloem/hub.h"

/* Asks a hub for its status. service: NULL for all, each with its first workers and keys. The caller owns the
 * document (server_status.c). PH_ERROR_PEER. */
ph_status ph__hub_status(
    const struct ph_hub_options *options, const char *service, struct ph__json **status_out);

/* Ends a service whose nonce is lost, at once: for all its workers, checkpoint included. Asks every hub of
 * the list, and returns the first error. PH_ERROR_USAGE: the service does not exist; PH_ERROR_PEER, also
 * where the hub is another user's or on another host; PH_ERROR_CONFIG. */
ph_status ph__hub_end_service(const struct ph_hub_options *options, const char *service);

#endif
