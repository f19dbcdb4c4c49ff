#include "train/ranks/memory_check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "comm/collective/comm.h"

static uint64_t sum_needed(const struct ph_train_memory *memory)
{
    return memory->parameter_bytes + memory->slot_bytes + memory->plan_bytes + memory->probe_bytes +
           PH_TRAIN_ALLOWANCE_BYTES;
}

uint64_t ph__memory_limit(const struct ph_train_memory *memory)
{
    return memory->baseline_bytes + sum_needed(memory);
}

ph_status ph__memory_check(const struct ph_train_memory *memory, uint64_t available_bytes)
{
    uint64_t needed = sum_needed(memory);
    if (needed <= available_bytes)
        return PH_OK;
    char sum[32], parameters[32], slots[32], plan[32], probe[48] = "", allowance[32], available[32];
    bool has_plan = memory->plan_bytes > 0; /* parameters and slots are checked before the batch is planned */
    if (memory->probe_bytes > 0)
        snprintf(probe, sizeof probe, " + probe %s", ph__bytes_text(memory->probe_bytes, sum));
    return ph_fail(PH_ERROR_MEMORY,
        "this job needs %s%s: parameters %s + optimizer slots %s + plan of a batch %s%s + allowance %s; %s "
        "are free",
        has_plan ? "" : "at least ", ph__bytes_text(needed, sum),
        ph__bytes_text(memory->parameter_bytes, parameters), ph__bytes_text(memory->slot_bytes, slots),
        has_plan ? ph__bytes_text(memory->plan_bytes, plan) : "(not laid out yet)", probe,
        ph__bytes_text(PH_TRAIN_ALLOWANCE_BYTES, allowance), ph__bytes_text(available_bytes, available));
}

ph_status ph__memory_plan_failed(
    ph_status status, const struct ph_train_memory *memory, uint64_t available_bytes)
{
    char reason[128], parameters[32], slots[32], available[32];
    if (status != PH_ERROR_MEMORY)
        return status;
    snprintf(reason, sizeof reason, "%s", ph_error_text());
    return ph_fail(PH_ERROR_MEMORY,
        "this job needs too much memory: parameters %s + optimizer slots %s + plan of a batch (%s); %s are "
        "free",
        ph__bytes_text(memory->parameter_bytes, parameters), ph__bytes_text(memory->slot_bytes, slots),
        reason, ph__bytes_text(available_bytes, available));
}

/* ---- the ranks of a machine ---- */

struct need {
    uint64_t needed_bytes, available_bytes;
};

/* Checks the machine of rank `first`. Takes the most memory that any of its ranks saw free: later ranks saw
 * less, since others had taken theirs. */
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
        return ph__out_of_memory("%zu ranks", num_ranks);
    ph_status status = ph__comm_gather_once(comm, "memory that ranks need", &own, sizeof own, needs);
    for (size_t rank = 0; rank < num_ranks && status == PH_OK; rank++)
        status = check_machine(comm, needs, rank);
    free(needs);
    return status;
}
