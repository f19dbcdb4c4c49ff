/* phloem plan --learn: measures what sets of tables cost this machine, simulates exchanges, and leaves the
 * nets that have learnt both in a folder (train/cost). */
#ifndef PH_CLI_PLAN_LEARN_H
#define PH_CLI_PLAN_LEARN_H

#include <stddef.h>

#include "phloem/kernel.h"
#include "phloem/status.h"

struct cli_plan_learning {
    const char *folder;
    const char *locality; /* file of locality statistics; NULL: power laws */
    const char *topology; /* file; NULL: hosts of 8 ranks on 10 Gb/s Ethernet */
    size_t num_sets;      /* of tables, to be measured */
    size_t batch_size, num_threads;
    enum ph_optimizer_kind optimizer; /* of the tables */
};

/* Prints progress and what was learnt. The folder also gets topology.yaml, for whose links the exchanges
 * were learnt. Errors of its parts; PH_ERROR_USAGE: too few sets. */
ph_status cli_plan_learn(const struct cli_plan_learning *learning);

#endif
