#include "hub/wire/traffic.h"

#include <assert.h>
#include <string.h>

void ph__link_counters_add(struct ph_link_counters *sum, const struct ph_link_counters *part)
{
    sum->messages_sent += part->messages_sent;
    sum->messages_received += part->messages_received;
    sum->payload_bytes_sent += part->payload_bytes_sent;
    sum->payload_bytes_received += part->payload_bytes_received;
    sum->system_calls += part->system_calls;
    sum->doorbells += part->doorbells;
}

void ph__traffic_add(
    struct ph_traffic *traffic, const char *transport, const struct ph_link_counters *counters)
{
    size_t i = 0;
    while (i < traffic->num_transports && strcmp(traffic->transports[i], transport) != 0)
        i++;
    assert(i < PH_MAX_TRANSPORTS);
    if (i == traffic->num_transports)
        traffic->transports[traffic->num_transports++] = transport;
    ph__link_counters_add(&traffic->counters[i], counters);
}

void ph__traffic_merge(struct ph_traffic *traffic, const struct ph_traffic *part)
{
    for (size_t i = 0; i < part->num_transports; i++)
        ph__traffic_add(traffic, part->transports[i], &part->counters[i]);
}
