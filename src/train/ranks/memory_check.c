#include "train/ranks/memory_check.h"

#include <stdbool.h>
#include <stdio.h>

static uint64_t sum_needed(const struct ph_train_memory *memory)
{
    return memory->parameter_bytes + memory->slot_bytes + memory->plan_bytes + PH_TRAIN_ALLOWANCE_BYTES;
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
    char sum[32], parameters[32], slots[32], plan[32], allowance[32], available[32];
    bool has_plan = memory->plan_bytes > 0; /* parameters and slots are checked before the batch is planned */
    return ph_fail(PH_ERROR_MEMORY,
        "this job needs %s%s: parameters %s + optimizer slots %s + plan of a batch %s + allowance %s; %s are "
        "free",
        has_plan ? "" : "at least ", ph__bytes_text(needed, sum),
        ph__bytes_text(memory->parameter_bytes, parameters), ph__bytes_text(memory->slot_bytes, slots),
        has_plan ? ph__bytes_text(memory->plan_bytes, plan) : "(not laid out yet)",
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
        "this job needs more than there is: parameters %s + optimizer slots %s + plan of a batch (%s); %s "
        "are free",
        ph__bytes_text(memory->parameter_bytes, parameters), ph__bytes_text(memory->slot_bytes, slots),
        reason, ph__bytes_text(available_bytes, available));
}
