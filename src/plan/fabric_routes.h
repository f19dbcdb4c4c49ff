/* The routes of a cluster whose links are known. For fabric_read.c. */
#ifndef PH_PLAN_FABRIC_ROUTES_H
#define PH_PLAN_FABRIC_ROUTES_H

#include "plan/fabric.h"

/* Orders the links by the node that they come from, and finds the distances to all hosts. PH_ERROR_CONFIG:
 * two hosts of the file `path` have no way between them. */
ph_status ph__fabric_find_routes(struct ph__fabric *fabric, const char *path);

#endif
