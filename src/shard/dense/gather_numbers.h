/* Some numbers of each rank, of which every rank makes the same: for operators, which call it within their run. */
#ifndef PH_SHARD_GATHER_NUMBERS_H
#define PH_SHARD_GATHER_NUMBERS_H

#include "shard/sharding.h"

size_t ph__gather_numbers_bytes(const struct ph_sharding *sharding, size_t count); /* of scratch */
/* own (count); all_out (world_size, count), in scratch. All ranks call it, with the same count, and wait for each other. */
ph_status ph__gather_numbers(const struct ph_sharding *sharding, const struct ph_comm_call *named,
    size_t count, const double *own, double *scratch, const double **all_out);

#endif
