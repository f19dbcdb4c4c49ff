#include "train/ranks/host_memory.h"

#include <stdlib.h>

#include "comm/collective/comm.h"
#include "train/ranks/memory_check.h"

struct need {
    uint64_t needed_bytes, available_bytes;
};

/* Of the machine of rank `first`. What was free is the most that any of its ranks saw: later ones saw what others had taken. */
static ph_status check_machine(const struct ph_comm *comm, const struct need *needs, size_t first)
{
    const size_t num_ranks = ph_comm_world_size(comm);
    uint64_t needed_bytes = 0, available_bytes = 0;
    char needed[32], available[32];
    size_t num_local = 0;
    for (size_t rank = first; rank < num_ranks; rank++) {
        if (!ph__comm_are_neighbours(comm, rank, first))
            continue;
        num_local++;
        needed_bytes += needs[rank].needed_bytes;
        if (needs[rank].available_bytes > available_bytes)
            available_bytes = needs[rank].available_bytes;
    }
    if (needed_bytes <= available_bytes)
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "the %zu ranks on %s need %s together (parameters, optimizer slots, batches); %s are free", num_local,
        ph__comm_machine_name(comm, first), ph__bytes_text(needed_bytes, needed),
        ph__bytes_text(available_bytes, available));
}

ph_status ph__host_memory_check(
    struct ph_comm *comm, const struct ph_train_memory *memory, uint64_t available_bytes)
{
    const size_t num_ranks = ph_comm_world_size(comm);
    const struct need own = {.needed_bytes = ph__memory_limit(memory) - memory->baseline_bytes,
        .available_bytes = available_bytes};
    struct need *needs = calloc(num_ranks, sizeof *needs);
    if (needs == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu ranks", num_ranks);
    ph_status status = ph__comm_gather_once(comm, "memory that ranks need", &own, sizeof own, needs);
    for (size_t rank = 0; rank < num_ranks && status == PH_OK; rank++)
        status = check_machine(comm, needs, rank);
    free(needs);
    return status;
}
