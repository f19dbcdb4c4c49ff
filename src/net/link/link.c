#include "net/link/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

ph_status ph__link_watch(const struct ph__link *link, int epoll)
{
    struct epoll_event event = {.events = link->transport->events | EPOLLET};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, link->descriptor, &event) != 0)
        return ph_fail(PH_ERROR_MEMORY, "a connection cannot be watched: %s", strerror(errno));
    return PH_OK;
}

void ph__link_destroy(struct ph__link *link)
{
    if (link != NULL)
        link->transport->destroy(link);
}

/* ---- counters ---- */

void ph__link_counters_add(struct ph__link_counters *sum, const struct ph__link_counters *part)
{
    sum->messages_sent += part->messages_sent;
    sum->messages_received += part->messages_received;
    sum->payload_bytes_sent += part->payload_bytes_sent;
    sum->payload_bytes_received += part->payload_bytes_received;
    sum->system_calls += part->system_calls;
    sum->doorbells += part->doorbells;
}

void ph__traffic_add(
    struct ph__traffic *traffic, const char *transport, const struct ph__link_counters *counters)
{
    size_t i = 0;
    while (i < traffic->num_transports && strcmp(traffic->transports[i], transport) != 0)
        i++;
    assert(i < PH_MAX_TRANSPORTS);
    if (i == traffic->num_transports)
        traffic->transports[traffic->num_transports++] = transport;
    ph__link_counters_add(&traffic->counters[i], counters);
}

void ph__traffic_merge(struct ph__traffic *traffic, const struct ph__traffic *part)
{
    for (size_t i = 0; i < part->num_transports; i++)
        ph__traffic_add(traffic, part->transports[i], &part->counters[i]);
}
