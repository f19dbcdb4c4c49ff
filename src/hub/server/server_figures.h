/* What a hub can tell of itself at one moment: what its status (server_status.c) and its metrics
 * (server_metrics.c) are written from.
 *
 * Counters belong to the core threads. Each copies its own between two rounds, when it is called (core.h): so
 * they cost nothing while nobody asks, and those of one core thread fit each other. */
#ifndef PH_HUB_SERVER_FIGURES_H
#define PH_HUB_SERVER_FIGURES_H

#include "hub/server/server_state.h"
#include "net/link/link.h"

struct ph__worker_figures {
    const char *transport; /* of its links, static; NULL: it has none now */
    struct ph__link_counters links;
};

struct ph__tenant_figures {
    const struct ph__tenant *tenant;
    struct ph__shard_counters counters; /* since the service was created */
    uint64_t iteration;                 /* updates of the chunk that has the fewest; 0 unless it is running */
    struct ph__worker_figures *workers; /* (num_workers) */
};

struct ph__hub_figures {
    size_t num_tenants;
    struct ph__tenant_figures *tenants;
    struct ph__traffic traffic; /* of all links that there ever were */
    uint64_t used_bytes;        /* memory of all tenants */
    size_t num_connections;     /* now */
    double seconds;             /* that the hub has run */
};

/* PH_ERROR_MEMORY. Borrows the server's tenants until fini. In the control thread. */
ph_status ph__hub_figures_read(struct ph_hub_server *server, struct ph__hub_figures *figures_out);
void ph__hub_figures_fini(struct ph__hub_figures *figures);

#endif
