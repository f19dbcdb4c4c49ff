/* Asking a hub for its status. */
#ifndef PH_HUB_CLIENT_STATUS_H
#define PH_HUB_CLIENT_STATUS_H

#include "base/format/json.h"
#include "phloem/hub.h"

/* service: NULL for all of them, each with its first workers and keys. The document (server_status.c) is the caller's.
 * PH_ERROR_PEER. */
ph_status ph__hub_status(
    const struct ph_hub_options *options, const char *service, struct ph_json **status_out);

#endif
