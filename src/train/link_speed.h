/* How fast this job's ranks reach each other, for its plan. */
#ifndef PH_TRAIN_LINK_SPEED_H
#define PH_TRAIN_LINK_SPEED_H

#include "phloem/comm.h"
#include "plan/plan.h"

/* All ranks send at once, as they do in a step: to the next one of their host, then to the one of the next host that has their
 * place; the middle of several rounds counts. What has no link – one rank a host, one host, hosts of different sizes – keeps the
 * machine's value. All ranks must call it; each then has what it has seen itself. PH_ERROR_PEER, PH_ERROR_MEMORY. */
ph_status ph__link_speeds_measure(struct ph_comm *comm, struct ph_plan_machine *machine);

#endif
