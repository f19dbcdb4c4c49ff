/* What there is on this machine, by hwloc and the system's list of interfaces: hwloc knows where an interface is attached,
 * but lists no virtual ones, such as the loopback and those of containers. The only file that knows hwloc. */
#include "hub/placement.h"

#include <errno.h>
#include <hwloc.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static ph_status hwloc_failed(const char *what)
{
    return ph_fail(PH_ERROR_BUG, "hwloc cannot tell %s: %s", what, strerror(errno));
}

/* ---- units ---------------------------------------------------------------------------------------------------- */

/* The node on which an object's memory belongs first: some have several, of fast memory and of slow. */
static uint32_t node_of(hwloc_obj_t object)
{
    const int node = hwloc_bitmap_first(object->nodeset);
    return node >= 0 ? (uint32_t)node : PH_NOWHERE;
}

static ph_status add_units_in(hwloc_topology_t topology, hwloc_const_cpuset_t set, struct ph_machine *machine)
{
    const size_t count = (size_t)hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    machine->units = calloc(count + 1, sizeof *machine->units);
    if (machine->units == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu processors", count);
    for (hwloc_obj_t unit = NULL;
         (unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != NULL;) {
        if (!hwloc_bitmap_isset(set, unit->os_index))
            continue;
        const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
        machine->units[machine->num_units++] = (struct ph_machine_unit){.processor = unit->os_index,
            .core = core != NULL ? core->logical_index : unit->logical_index,
            .node = node_of(unit)};
    }
    return PH_OK;
}

static ph_status add_units(hwloc_topology_t topology, struct ph_machine *machine)
{
    const hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a set of processors");
    const ph_status status = hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_THREAD) == 0
                                 ? add_units_in(topology, set, machine)
                                 : hwloc_failed("this thread's affinity");
    hwloc_bitmap_free(set);
    return status;
}

/* ---- interfaces ----------------------------------------------------------------------------------------------- */

/* Where hwloc finds it attached; PH_NOWHERE where it does not know it, or finds it attached to several nodes' machine. */
static uint32_t interface_node(hwloc_topology_t topology, const char *name)
{
    for (hwloc_obj_t device = NULL; (device = hwloc_get_next_osdev(topology, device)) != NULL;) {
        if (device->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || strcmp(device->name, name) != 0)
            continue;
        const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, device);
        const bool is_somewhere = place->parent != NULL || hwloc_bitmap_weight(place->nodeset) == 1;
        return is_somewhere ? node_of(place) : PH_NOWHERE;
    }
    return PH_NOWHERE;
}

/* Up, and with an address that can be connected to without naming the interface. */
static bool is_usable(const struct ifaddrs *entry)
{
    const unsigned wanted = IFF_UP | IFF_RUNNING;
    if ((entry->ifa_flags & wanted) != wanted || entry->ifa_addr == NULL)
        return false;
    if (entry->ifa_addr->sa_family == AF_INET)
        return true;
    const struct sockaddr_in6 *address = (const void *)entry->ifa_addr;
    return entry->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

static bool is_listed(const struct ph_machine *machine, const char *name)
{
    for (size_t i = 0; i < machine->num_interfaces; i++)
        if (strcmp(machine->interfaces[i].name, name) == 0)
            return true;
    return false;
}

/* An interface has as many entries as addresses, and may call further ones eth0:1. */
static ph_status add_interface(
    hwloc_topology_t topology, const struct ifaddrs *entry, struct ph_machine *machine, size_t *capacity)
{
    struct ph_machine_interface interface = {.is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0};
    snprintf(
        interface.name, sizeof interface.name, "%.*s", (int)strcspn(entry->ifa_name, ":"), entry->ifa_name);
    if (is_listed(machine, interface.name))
        return PH_OK;
    interface.node = interface_node(topology, interface.name);
    void *interfaces = machine->interfaces;
    const ph_status status =
        ph__array_reserve(&interfaces, capacity, machine->num_interfaces + 1, sizeof interface);
    machine->interfaces = interfaces;
    if (status == PH_OK)
        machine->interfaces[machine->num_interfaces++] = interface;
    return status;
}

static ph_status add_interfaces(hwloc_topology_t topology, struct ph_machine *machine)
{
    struct ifaddrs *entries = NULL;
    size_t capacity = 0;
    if (getifaddrs(&entries) != 0)
        return ph_fail(PH_ERROR_BUG, "the system cannot tell its network interfaces: %s", strerror(errno));
    ph_status status = PH_OK;
    for (const struct ifaddrs *entry = entries; status == PH_OK && entry != NULL; entry = entry->ifa_next)
        if (is_usable(entry))
            status = add_interface(topology, entry, machine, &capacity);
    freeifaddrs(entries);
    return status;
}

/* ---- the machine ---------------------------------------------------------------------------------------------- */

/* Plugins that may be installed beside hwloc: what asks accelerators and displays for themselves takes long, and nothing
 * here needs it; of the cards hwloc finds by itself what its libpciaccess would tell, which leaks. */
static void leave_out_components(hwloc_topology_t topology)
{
    static const char *const names[] = {"cuda", "gl", "levelzero", "nvml", "opencl", "pci", "rsmi"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, names[i]);
}

static ph_status describe(hwloc_topology_t topology, struct ph_machine *machine)
{
    leave_out_components(topology);
    if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
        hwloc_topology_load(topology) != 0)
        return hwloc_failed("what this machine is made of");
    PH_TRY(add_units(topology, machine));
    return add_interfaces(topology, machine);
}

ph_status ph__machine_detect(struct ph_machine *machine_out)
{
    struct ph_machine machine = {0};
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0)
        return hwloc_failed("what this machine is made of");
    const ph_status status = describe(topology, &machine);
    hwloc_topology_destroy(topology);
    if (status != PH_OK) {
        ph__machine_fini(&machine);
        return status;
    }
    *machine_out = machine;
    return PH_OK;
}

ph_status ph__placement_pin_self(uint32_t processor)
{
    const size_t count = (size_t)processor + 1;
    cpu_set_t *set = CPU_ALLOC(count);
    if (set == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a set of %zu processors", count);
    CPU_ZERO_S(CPU_ALLOC_SIZE(count), set);
    CPU_SET_S(processor, CPU_ALLOC_SIZE(count), set);
    const bool is_pinned = sched_setaffinity(0, CPU_ALLOC_SIZE(count), set) == 0;
    const int error = errno;
    CPU_FREE(set);
    if (!is_pinned)
        return ph_fail(
            PH_ERROR_USAGE, "a thread cannot be pinned to processor %u: %s", processor, strerror(error));
    return PH_OK;
}
