/* The two wires of a server, as its loop sees them. */
#ifndef PH_SERVE_FRONTS_H
#define PH_SERVE_FRONTS_H

#include "serve/server/scoring_state.h"

/* Functions for the servers of net/, with this server as their context. */
struct ph__http_handler ph__rest_handler(struct ph_server *server);
struct ph__grpc_handler ph__grpc_handler(struct ph_server *server);

#endif
