/* Sums dense gradients at a parameter hub, for trainings with parallel.sync: hub.
 *
 * A bucket is a key of a synchronous service without an optimizer: pulling it gives the sum in the order of
 * the ranks, with the bits of an AllReduce. The first rank draws the service's nonce, creates the service,
 * and tells the others by the communicator. A rank that waits for the hub also keeps the communicator moving:
 * others may need it for something else, and it reports their ends. Used by the thread that trains. */
#ifndef PH_CLI_HUB_REDUCER_H
#define PH_CLI_HUB_REDUCER_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_patience.h"
#include "phloem/hub.h"
#include "phloem/train.h"

/* Name and nonce by which all ranks meet at the service. */
struct cli_hub_meeting {
    uint64_t nonce;                 /* 0: there is no service yet */
    char name[PH_HUB_MAX_NAME + 1]; /* "": drawn when the service is created */
};

struct cli_hub_reducer {
    struct ph_reducer table; /* for the job; its context is this struct, which may not be moved */
    struct ph_comm *comm;
    struct ph_hub_options options;
    struct cli_hub_meeting meeting;
    struct ph_hub_client *client; /* NULL: not connected */
    struct ph__patience patience;
};

/* Initialises the reducer, but contacts no hub: the table's open does. Settings' texts and comm are borrowed
 * until fini. PH_ERROR_CONFIG: parallel.hub is missing, or parallel.hub_job too long. */
ph_status cli_hub_reducer_init(
    struct cli_hub_reducer *reducer, const struct ph_parallel_settings *settings, struct ph_comm *comm);

/* Ends the reducer. status: the result of the training. After PH_OK the ranks leave, and the first one
 * destroys the service. After a failure whichever rank comes first destroys it, which ends the waits of the
 * others; the last error stays as it is. */
void cli_hub_reducer_fini(struct cli_hub_reducer *reducer, ph_status status);

#endif
