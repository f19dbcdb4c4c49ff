/* Whether the ranks of a machine fit into its memory together, each of which may fit by itself. */
#ifndef PH_TRAIN_HOST_MEMORY_H
#define PH_TRAIN_HOST_MEMORY_H

#include "phloem/comm.h"
#include "phloem/train.h"

/* All ranks call it, with what each needs, and with what was free before it took any. PH_ERROR_MEMORY on all of them, with the
 * sum, where a machine has too little. */
ph_status ph__host_memory_check(
    struct ph_comm *comm, const struct ph_train_memory *memory, uint64_t available_bytes);

#endif
