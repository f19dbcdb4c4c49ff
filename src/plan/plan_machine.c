#include "plan/plan_machine.h"

#include <stddef.h>

#define FIGURE(member) offsetof(struct ph_plan_machine, member)

/* Rows are looked up by one core, since plans must not depend on the number of threads, which is each rank's own. By Little's law a
 * core reads (cache lines under way) (bytes of a line) / latency: 12 x 64 B / 96 ns, by the L1 fill buffers of Ice Lake. */
const struct ph_plan_figure ph__plan_figures[PH_PLAN_NUM_FIGURES] = {
    {"rows at random, each rank", 8e9, "one core of Intel's Ice Lake, memory at 96 ns (assumed)",
        FIGURE(memory_bytes_per_s)},
    {"two ranks of a host, each way", 5e9, "a copy by one core: read, written, at 10 GB/s (assumed)",
        FIGURE(host_bytes_per_s)},
    {"two hosts, each way, all ranks", 1.25e9, "10 Gb/s Ethernet (IEEE 802.3ae)",
        FIGURE(network_bytes_per_s)},
};

double ph__plan_machine_figure(const struct ph_plan_machine *machine, const struct ph_plan_figure *figure)
{
    return *(const double *)(const void *)((const char *)machine + figure->offset);
}

void ph__plan_machine_set(
    struct ph_plan_machine *machine, const struct ph_plan_figure *figure, double bytes_per_s)
{
    *(double *)(void *)((char *)machine + figure->offset) = bytes_per_s;
}

struct ph_plan_machine ph__plan_machine_nominal(uint64_t rank_bytes)
{
    struct ph_plan_machine machine = {.rank_bytes = rank_bytes};
    for (size_t i = 0; i < PH_PLAN_NUM_FIGURES; i++)
        ph__plan_machine_set(&machine, &ph__plan_figures[i], ph__plan_figures[i].nominal);
    return machine;
}
