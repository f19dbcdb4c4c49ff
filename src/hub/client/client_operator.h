/* What is asked of hubs besides phloem/hub.h: its status; and, by a hub's operator, who is its own user on
 * its host, to end a service. */
#ifndef PH_HUB_CLIENT_OPERATOR_H
#define PH_HUB_CLIENT_OPERATOR_H

#include "base/format/json.h"
#include "phloem/hub.h"

/* Asks a hub for its status. service: NULL for all of them, each with its first workers and keys. The
 * document (server_status.c) is the caller's. PH_ERROR_PEER. */
ph_status ph__hub_status(
    const struct ph_hub_options *options, const char *service, struct ph__json **status_out);

/* Ends a service whose nonce nobody knows any more, at once: for all its workers, checkpoint included. Asks
 * every hub of the list, and returns the first error. PH_ERROR_USAGE: there is no such service;
 * PH_ERROR_PEER, also where the hub is another user's or on another host; PH_ERROR_CONFIG. */
ph_status ph__hub_end_service(const struct ph_hub_options *options, const char *service);

#endif
