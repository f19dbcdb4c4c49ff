/* Checks that a job fits into memory, alone and beside other ranks of its machine. Errors give the sum. */
#ifndef PH_TRAIN_MEMORY_CHECK_H
#define PH_TRAIN_MEMORY_CHECK_H

#include "base/text/number.h"
#include "phloem/comm.h"
#include "phloem/train.h"

/* PH_ERROR_MEMORY with the sum when parameters, slots, plan and allowance exceed available_bytes. */
ph_status ph__memory_check(const struct ph_train_memory *memory, uint64_t available_bytes);

/* Reports a plan so large that there is no memory even to lay it out: the rest of the sum, with the recorded
 * error as the plan's part. Passes any other status on. */
ph_status ph__memory_plan_failed(
    ph_status status, const struct ph_train_memory *memory, uint64_t available_bytes);

/* Returns the most bytes that the run may use: baseline + parameters + slots + plan + allowance. */
uint64_t ph__memory_limit(const struct ph_train_memory *memory);

/* Checks that the ranks of each machine, which may fit one by one, fit into its memory together. All ranks
 * call it, each with its need and the memory that was free before it took any. PH_ERROR_MEMORY on all of
 * them, with the sum, when a machine has too little. */
ph_status ph__host_memory_check(
    struct ph_comm *comm, const struct ph_train_memory *memory, uint64_t available_bytes);

#endif
