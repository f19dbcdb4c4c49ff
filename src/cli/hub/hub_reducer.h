/* Sums of dense gradients at a parameter hub, for trainings by parallel.sync: hub.
 *
 * A bucket is a key of a synchronous service without an optimizer: what is pulled is the sum in the order of
 * the ranks, with the bits of an AllReduce. The first rank draws the service's nonce and creates it, and the
 * others hear of it by the communicator, which a rank also moves on while it waits for the hub: others may
 * need it for something else, and this is how it hears of their ends. Used by the thread that trains. */
#ifndef PH_CLI_HUB_REDUCER_H
#define PH_CLI_HUB_REDUCER_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_patience.h"
#include "phloem/hub.h"
#include "phloem/train.h"

/* What all ranks need to know to meet there. */
struct cli_hub_meeting {
    uint64_t nonce;                 /* 0: there is no service yet */
    char name[PH_HUB_MAX_NAME + 1]; /* "": drawn when it is created */
};

struct cli_hub_reducer {
    struct ph_reducer table; /* for the job; its context is this struct, which stays where it is */
    struct ph_comm *comm;
    struct ph_hub_options options;
    struct cli_hub_meeting meeting;
    struct ph_hub_client *client; /* NULL: not connected */
    struct ph__patience patience;
};

/* Asks nobody yet: the table's open does. Settings' texts and comm are borrowed until fini. PH_ERROR_CONFIG:
 * parallel.hub is missing, or parallel.hub_job too long. */
ph_status cli_hub_reducer_init(
    struct cli_hub_reducer *reducer, const struct ph_parallel_settings *settings, struct ph_comm *comm);

/* `status` is what the training has ended with. In good order: the ranks leave, and the first one takes the
 * service away. Else whoever comes first does, which ends what the others wait for; the last error stays as
 * it is. */
void cli_hub_reducer_fini(struct cli_hub_reducer *reducer, ph_status status);

#endif
