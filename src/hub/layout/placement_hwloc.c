/* Describes this machine by hwloc and the system's list of interfaces. hwloc knows where an interface is
 * attached, but lists no virtual ones, such as the loopback and those of containers. Drivers tell the kind of
 * an interface (ethtool's requests, netdevice(7)): nothing else is bound to work in a container. The only
 * file that uses hwloc. */
#include "hub/layout/placement.h"

#include <arpa/inet.h>
#include <errno.h>
#include <hwloc.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"

static ph_status hwloc_failed(const char *what)
{
    return ph_fail(PH_ERROR_BUG, "hwloc cannot read %s: %s", what, strerror(errno));
}

/* ---- units ---- */

/* Returns the first node of an object's memory: some objects have several, of fast and of slow memory. */
static uint32_t node_of(hwloc_obj_t object)
{
    const int node = hwloc_bitmap_first(object->nodeset);
    return node >= 0 ? (uint32_t)node : PH_NOWHERE;
}

static ph_status add_units_in(
    hwloc_topology_t topology, hwloc_const_cpuset_t set, struct ph__machine *machine)
{
    const size_t count = (size_t)hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    machine->units = calloc(count + 1, sizeof *machine->units);
    if (machine->units == NULL)
        return ph__out_of_memory("%zu processors", count);
    for (hwloc_obj_t unit = NULL;
         (unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != NULL;) {
        if (!hwloc_bitmap_isset(set, unit->os_index))
            continue;
        const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
        machine->units[machine->num_units++] = (struct ph__machine_unit){.processor = unit->os_index,
            .core = core != NULL ? core->logical_index : unit->logical_index,
            .node = node_of(unit)};
    }
    return PH_OK;
}

static ph_status add_units(hwloc_topology_t topology, struct ph__machine *machine)
{
    const hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set == NULL)
        return ph__out_of_memory("a set of processors");
    const ph_status status = hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_THREAD) == 0
                                 ? add_units_in(topology, set, machine)
                                 : hwloc_failed("this thread's affinity");
    hwloc_bitmap_free(set);
    return status;
}

/* ---- interfaces ---- */

/* Returns the node that hwloc finds the interface attached to; PH_NOWHERE if hwloc does not list it or finds
 * it on a machine of several nodes. */
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

/* Asks the driver of the interface; returns false without an answer. */
static bool ask_driver(const char *name, void *question)
{
    struct ifreq request = {.ifr_data = question};
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0)
        return false;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%.*s", IFNAMSIZ - 1, name);
    const bool is_answered = ioctl(any, SIOCETHTOOL, &request) == 0;
    close(any);
    return is_answered;
}

static bool is_bridge(const char *name)
{
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    return ask_driver(name, &driver) && strcmp(driver.driver, "bridge") == 0;
}

static uint32_t interface_speed(const char *name)
{
    struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
    if (!ask_driver(name, &settings))
        return 0;
    const uint32_t speed_mbit = (uint32_t)settings.speed_hi << 16 | settings.speed;
    return speed_mbit != (uint32_t)SPEED_UNKNOWN ? speed_mbit : 0;
}

/* Gives a numeric address of an interface that is up, to which one can connect without naming the interface.
 * false: the entry has none. */
static bool usable_host(
    const struct ifaddrs *entry, enum ph__machine_family *family_out, char host_out[PH_HOST_BYTES])
{
    const unsigned wanted = IFF_UP | IFF_RUNNING;
    if ((entry->ifa_flags & wanted) != wanted || entry->ifa_addr == NULL)
        return false;
    if (entry->ifa_addr->sa_family == AF_INET) {
        const struct in_addr *address =
            &((const struct sockaddr_in *)(const void *)entry->ifa_addr)->sin_addr;
        *family_out = PH_IPV4;
        return ntohl(address->s_addr) >> 16 != 0xa9fe && /* 169.254.0.0/16 */
               inet_ntop(AF_INET, address, host_out, PH_HOST_BYTES) != NULL;
    }
    const struct in6_addr *address = &((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr;
    *family_out = PH_IPV6;
    return entry->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(address) &&
           inet_ntop(AF_INET6, address, host_out, PH_HOST_BYTES) != NULL;
}

/* Returns the interface, or NULL if it is not listed. */
static struct ph__machine_interface *find_interface(const struct ph__machine *machine, const char *name)
{
    for (size_t i = 0; i < machine->num_interfaces; i++)
        if (strcmp(machine->interfaces[i].name, name) == 0)
            return &machine->interfaces[i];
    return NULL;
}

static ph_status add_interface(hwloc_topology_t topology, const char *name, unsigned flags,
    struct ph__machine *machine, size_t *capacity)
{
    struct ph__machine_interface interface = {.node = interface_node(topology, name),
        .is_loopback = (flags & IFF_LOOPBACK) != 0,
        .is_indirect = (flags & IFF_POINTOPOINT) != 0 || is_bridge(name),
        .speed_mbit = interface_speed(name)};
    void *interfaces = machine->interfaces;
    const ph_status status =
        ph__array_reserve(&interfaces, capacity, machine->num_interfaces + 1, sizeof interface);
    machine->interfaces = interfaces;
    if (status != PH_OK)
        return status;
    snprintf(interface.name, sizeof interface.name, "%s", name);
    machine->interfaces[machine->num_interfaces++] = interface;
    return PH_OK;
}

/* Adds an entry of the system's list. An interface has an entry for each address, and its further ones may be
 * named eth0:1. The first address of each family is kept. */
static ph_status add_entry(
    hwloc_topology_t topology, const struct ifaddrs *entry, struct ph__machine *machine, size_t *capacity)
{
    char name[sizeof machine->interfaces->name], host[PH_HOST_BYTES];
    enum ph__machine_family family;
    if (!usable_host(entry, &family, host))
        return PH_OK;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(entry->ifa_name, ":"), entry->ifa_name);
    if (find_interface(machine, name) == NULL)
        PH_TRY(add_interface(topology, name, entry->ifa_flags, machine, capacity));
    char *known = find_interface(machine, name)->hosts[family];
    if (known[0] == '\0')
        memcpy(known, host, sizeof host);
    return PH_OK;
}

static ph_status add_interfaces(hwloc_topology_t topology, struct ph__machine *machine)
{
    struct ifaddrs *entries = NULL;
    size_t capacity = 0;
    if (getifaddrs(&entries) != 0)
        return ph_fail(PH_ERROR_BUG, "cannot list the network interfaces: %s", strerror(errno));
    ph_status status = PH_OK;
    for (const struct ifaddrs *entry = entries; status == PH_OK && entry != NULL; entry = entry->ifa_next)
        status = add_entry(topology, entry, machine, &capacity);
    freeifaddrs(entries);
    return status;
}

/* ---- the machine ---- */

/* Leaves out plugins that may be installed beside hwloc. Those that ask accelerators and displays take long
 * and are not needed; libpciaccess, which would tell more about cards, leaks. */
static void leave_out_components(hwloc_topology_t topology)
{
    static const char *const names[] = {"cuda", "gl", "levelzero", "nvml", "opencl", "pci", "rsmi"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, names[i]);
}

static ph_status describe(hwloc_topology_t topology, struct ph__machine *machine)
{
    leave_out_components(topology);
    if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
        hwloc_topology_load(topology) != 0)
        return hwloc_failed("the machine's topology");
    PH_TRY(add_units(topology, machine));
    return add_interfaces(topology, machine);
}

ph_status ph__machine_detect(struct ph__machine *machine_out)
{
    struct ph__machine machine = {0};
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0)
        return hwloc_failed("the machine's topology");
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
        return ph__out_of_memory("a set of %zu processors", count);
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
