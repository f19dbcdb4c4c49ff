/* What has moved over links, added up by their transport. */
#ifndef PH_HUB_TRAFFIC_H
#define PH_HUB_TRAFFIC_H

#include <stddef.h>

#include "net/link/link.h"

#define PH_MAX_TRANSPORTS 4

struct ph_traffic { /* zero-initialised: none */
    size_t num_transports;
    const char *transports[PH_MAX_TRANSPORTS]; /* names; static */
    struct ph_link_counters counters[PH_MAX_TRANSPORTS];
};

void ph__link_counters_add(struct ph_link_counters *sum, const struct ph_link_counters *part);
void ph__traffic_add(
    struct ph_traffic *traffic, const char *transport, const struct ph_link_counters *counters);
void ph__traffic_merge(struct ph_traffic *traffic, const struct ph_traffic *part);

#endif
