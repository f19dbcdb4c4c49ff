/* The agent of a host: lets others measure the way to this host, and measures the way to other agents for a
 * controller. Threads of its own, one for each connection; they end with it. */
#ifndef PH_COMM_PROBE_AGENT_H
#define PH_COMM_PROBE_AGENT_H

#include "comm/probe/probe_link.h"

struct ph__netprobe_agent;

/* Listens at an address and answers from now on. secret: borrowed as long as the agent lives; NULL: none, for
 * a loopback address alone. PH_ERROR_CONFIG for an invalid address, and for one that other hosts reach
 * without a secret; PH_ERROR_PEER when it cannot be listened at; PH_ERROR_MEMORY. */
ph_status ph__netprobe_agent_create(
    const char *address, const struct ph__secret *secret, struct ph__netprobe_agent **agent_out);
/* Ends all connections. NULL is fine. */
void ph__netprobe_agent_destroy(struct ph__netprobe_agent *agent);

const char *ph__netprobe_agent_address(const struct ph__netprobe_agent *agent); /* "host:port" */

#endif
