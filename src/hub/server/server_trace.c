/* A hub's trace: the ways of the first chunks (shard_trace.h), written when the hub stops. */
#include <string.h>

#include "hub/server/server_state.h"

#define MAX_EVENTS \
    ((size_t)1 << 17) /* some 13 MiB; a 64 MiB key is 4 to 5 events for each of 2048 chunks a round */

ph_status ph__server_open_trace(struct ph_hub_server *server)
{
    return server->options.trace_path != NULL ? ph__trace_create(MAX_EVENTS, &server->trace.events) : PH_OK;
}

const char *ph__server_trace_name(struct ph_hub_server *server, const char *job)
{
    struct ph_server_trace *trace = &server->trace;
    if (server->options.is_wide || trace->num_jobs == PH_HUB_MAX_TRACED_JOBS ||
        ph__trace_is_full(trace->events))
        return NULL;
    return strcpy(trace->names[trace->num_jobs++], job);
}

ph_status ph__server_write_trace(struct ph_hub_server *server)
{
    return server->trace.events != NULL ? ph__trace_write(server->trace.events, server->options.trace_path)
                                        : PH_OK;
}
