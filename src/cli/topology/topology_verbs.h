/* The verbs of `phloem topology` that have a file each; verb_topology.c chooses. argv[0] is the verb. */
#ifndef PH_CLI_TOPOLOGY_VERBS_H
#define PH_CLI_TOPOLOGY_VERBS_H

#include "phloem/status.h"

ph_status cli_topology_order(int argc, char **argv);

#endif
