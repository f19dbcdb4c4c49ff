#include "shard/dense/gather_numbers.h"

/* The numbers, and by rank how many bytes they are. */
size_t ph__gather_numbers_bytes(const struct ph_sharding *sharding, size_t count)
{
    return sharding->world_size * (count * sizeof(double) + sizeof(uint64_t));
}

ph_status ph__gather_numbers(const struct ph_sharding *sharding, const struct ph_comm_call *named,
    size_t count, const double *own, double *scratch, const double **all_out)
{
    uint64_t *bytes = (uint64_t *)(scratch + sharding->world_size * count), ticket;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        bytes[rank] = count * sizeof *own;
    PH_TRY(ph__comm_all_gather_start(
        sharding->comm, named, ph__comm_world(sharding->comm), own, bytes, scratch, &ticket));
    PH_TRY(ph__comm_wait(sharding->comm, ticket));
    *all_out = scratch;
    return PH_OK;
}
