/* The verbs of `phloem topology` that have a file each; verb_topology.c chooses. argv[0] is the verb. */
#ifndef PH_CLI_TOPOLOGY_VERBS_H
#define PH_CLI_TOPOLOGY_VERBS_H

#include "phloem/status.h"

ph_status cli_topology_probe(int argc, char **argv);
ph_status cli_topology_agent(int argc, char **argv);
ph_status cli_topology_order(int argc, char **argv);
ph_status cli_topology_show(int argc, char **argv);

/* Prints what a topology file says of the ways between hosts, and writes it as a page; NULL: no page. */
ph_status cli_topology_print(const char *path, const char *page);

#endif
