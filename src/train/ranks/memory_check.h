/* Checks that a job fits into memory, by itself and beside the other ranks of its machine. Where it does not,
 * the error says the sum. */
#ifndef PH_TRAIN_MEMORY_CHECK_H
#define PH_TRAIN_MEMORY_CHECK_H

#include "base/text/number.h"
#include "phloem/comm.h"
#include "phloem/train.h"

/* PH_ERROR_MEMORY with the sum when parameters, slots, plan and allowance exceed `available_bytes`. */
ph_status ph__memory_check(const struct ph_train_memory *memory, uint64_t available_bytes);

/* For a plan so large that there is no memory even to lay it out: the rest of the sum, and the recorded error
 * as the plan's part. Any other status is passed on. */
ph_status ph__memory_plan_failed(
    ph_status status, const struct ph_train_memory *memory, uint64_t available_bytes);

/* The most that the run may use: baseline + parameters + slots + plan + allowance. */
uint64_t ph__memory_limit(const struct ph_train_memory *memory);

/* Checks that the ranks of each machine fit into its memory together, each of which may fit by itself. All
 * ranks call it, with what each needs and what was free before it took any. PH_ERROR_MEMORY on all of them,
 * with the sum, where a machine has too little. */
ph_status ph__host_memory_check(
    struct ph_comm *comm, const struct ph_train_memory *memory, uint64_t available_bytes);

#endif
