/* What a hub's operator asks of it: its own user, on its host. */
#ifndef PH_HUB_CLIENT_OPERATOR_H
#define PH_HUB_CLIENT_OPERATOR_H

#include "phloem/hub.h"

/* Ends a service whose nonce nobody knows any more, at once: for all its workers, checkpoint included. Asks every hub of the list, and
 * returns the first error. PH_ERROR_USAGE: there is no such service; PH_ERROR_PEER, also where the hub is another user's or on
 * another host; PH_ERROR_CONFIG. */
ph_status ph__hub_end_service(const struct ph_hub_options *options, const char *service);

#endif
