/* Figures of a hub at one moment, of which server_status.c and server_metrics.c are written.
 *
 * Counters belong to the core threads. Each core thread copies its own between two rounds, when called
 * (core.h): counters cost nothing until they are read, and those of one core thread are consistent. */
#ifndef PH_HUB_SERVER_FIGURES_H
#define PH_HUB_SERVER_FIGURES_H

#include "hub/server/server_state.h"
#include "net/link/link.h"

struct ph__worker_figures {
    const char *transport; /* transport of its links, static; NULL without links */
    struct ph__link_counters links;
};

struct ph__tenant_figures {
    const struct ph__tenant *tenant;
    struct ph__shard_counters counters; /* counts since the service was created */
    uint64_t iteration;                 /* updates of the chunk with the fewest; 0 unless running */
    struct ph__worker_figures *workers; /* (num_workers) */
};

struct ph__hub_figures {
    size_t num_tenants;
    struct ph__tenant_figures *tenants;
    struct ph__traffic traffic; /* traffic of all links, past ones included */
    uint64_t used_bytes;        /* memory of all tenants */
    size_t num_connections;     /* open now */
    double seconds;             /* time since the hub started */
};

/* Reads all figures. Borrows the server's tenants until fini. Control thread. PH_ERROR_MEMORY. */
ph_status ph__hub_figures_read(struct ph_hub_server *server, struct ph__hub_figures *figures_out);
void ph__hub_figures_fini(struct ph__hub_figures *figures);

#endif
