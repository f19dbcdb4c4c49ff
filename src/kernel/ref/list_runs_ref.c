/* The list of runs of merged slots, the specification. */
#include "kernel/kernel_list.h"

/* Writes every slot as if a run began there; the next slot overwrites those without a run. A branch would be
 * mispredicted about half the time. While a slot is left, the next run's place is free. */
size_t ph__list_runs_ref(
    uint32_t range, size_t count, uint32_t base, uint32_t *lengths, uint32_t *unique, uint32_t *starts)
{
    size_t runs = 0;
    uint32_t start = 0;
    for (uint32_t slot = 0; slot < range && start < count; slot++) {
        const uint32_t length = lengths[slot];
        lengths[slot] = start;
        unique[runs] = base + slot;
        starts[runs] = start;
        runs += length != 0;
        start += length;
    }
    return runs;
}
