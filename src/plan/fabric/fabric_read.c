/* Reads a topology file, and builds the links of its kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/text/name_index.h"
#include "base/text/number.h"
#include "plan/fabric/fabric.h"
#include "plan/fabric/fabric_routes.h"
#include "plan/plan_cost.h"

#define FORMAT_VERSION 1

/* ---- keys ---- */

struct wire {
    double gbits_per_s, latency_us;
};

enum kind { STAR, RACKS, TWO_LAYER, FAT_TREE, LIST, MEASURED };

struct settings {
    int64_t version;
    enum kind kind;
    int64_t hosts, ranks_per_host;
    struct ph__record_list links, pairs, trunks, nodes, slow;
    struct wire host;
    struct {
        int64_t hosts, uplinks;
        struct wire wire;
    } rack;
    struct {
        int64_t pods, edges, aggregations, cores;
        struct wire wire;
    } tree;
    struct ph__plan_machine machine;
    double memory_gb;
    struct ph__fabric_messages messages;
};

struct listed { /* a link of a list */
    const char *from, *to;
    struct wire wire;
};

struct node { /* a host */
    const char *name;
    int64_t group; /* -1: not said */
};

#define MOST_HOSTS 65535
#define MOST_US 1e9
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define WIRE(settings, wire)                                                                               \
    PH_NUMBER_KEY("gbits_per_s", settings, wire.gbits_per_s, TEXT_OF(PH_PLAN_LINK_GBITS_PER_S), 1e-6, 1e6, \
        "Gigabits a second of a link, in each direction."),                                                \
        PH_NUMBER_KEY(                                                                                     \
            "latency_us", settings, wire.latency_us, "5", 0, MOST_US, "Microseconds that each link takes.")
#define TABLE(section_name, keys, size, help_text)                       \
    {                                                                    \
        .section = (section_name), .help = (help_text), .options = keys, \
        .num_options = sizeof keys / sizeof *keys, .settings_size = size \
    }

static const struct ph__option listed_keys[] = {
    PH_TEXT_KEY(
        "from", struct listed, from, NULL, "One end: h0, h1, ... are hosts, other names are switches."),
    PH_TEXT_KEY("to", struct listed, to, NULL, "The other end."),
    WIRE(struct listed, wire),
};
static const struct ph__option_table listed_table = TABLE("", listed_keys, sizeof(struct listed), "A link.");

#define MEASURED(member) struct ph__fabric_measured, member
#define MEASURED_GBITS \
    PH_NUMBER_KEY("gbits_per_s", MEASURED(gbits_per_s), NULL, 1e-6, 1e6, "Gigabits a second.")
static const struct ph__option pair_keys[] = {
    PH_INTEGER_KEY("from", MEASURED(from), NULL, 0, MOST_HOSTS, "Number of the host that sends."),
    PH_INTEGER_KEY("to", MEASURED(to), NULL, 0, MOST_HOSTS, "Number of the host that receives."),
    MEASURED_GBITS,
    PH_NUMBER_KEY("latency_us", MEASURED(latency_us), NULL, 0, MOST_US, "Microseconds of one way."),
};
static const struct ph__option_table pair_table =
    TABLE("", pair_keys, sizeof(struct ph__fabric_measured), "A pair of hosts.");

static const struct ph__option trunk_keys[] = {
    PH_INTEGER_KEY("from", MEASURED(from), NULL, 0, MOST_HOSTS, "Number of the group that sends."),
    PH_INTEGER_KEY("to", MEASURED(to), NULL, 0, MOST_HOSTS, "Number of the group that receives."),
    MEASURED_GBITS,
};
static const struct ph__option_table trunk_table =
    TABLE("", trunk_keys, sizeof(struct ph__fabric_measured), "What flows between two groups share.");

static const struct ph__option node_keys[] = {
    PH_TEXT_KEY("name", struct node, name, NULL, "Name or address of the host."),
    PH_INTEGER_KEY("group", struct node, group, "-1", -1, MOST_HOSTS, "Number of its group, of measured."),
};
static const struct ph__option_table node_table = TABLE("", node_keys, sizeof(struct node), "A host.");

#define SIZES(member) struct ph__fabric_sizes, member
static const struct ph__option sizes_keys[] = {
    PH_INTEGER_KEY("from_bytes", SIZES(from_bytes), NULL, 0, 9e15, "Least size of these messages."),
    PH_NUMBER_KEY("bandwidth", SIZES(bandwidth), "1", 1e-6, 1, "Part of a link's capacity that they use."),
    PH_NUMBER_KEY("latency", SIZES(latency), "1", 0, 1e6, "Their latency, as a multiple of the links'."),
};
static const struct ph__option_table sizes_table =
    TABLE("", sizes_keys, sizeof(struct ph__fabric_sizes), "A range of message sizes.");

#define SLOW(member) struct ph__fabric_slow, member
static const struct ph__option slow_keys[] = {
    PH_INTEGER_KEY("rank", SLOW(rank), NULL, 0, 9e15, "Number of the rank."),
    PH_NUMBER_KEY("factor", SLOW(factor), "2", 1e-3, 1e3, "Time of its computations, as a multiple."),
};
static const struct ph__option_table slow_table =
    TABLE("", slow_keys, sizeof(struct ph__fabric_slow), "A rank that is slower than the others.");

#define OF(member) struct settings, member
static const struct ph__option network_keys[] = {
    PH_INTEGER_KEY("version", OF(version), NULL, FORMAT_VERSION, FORMAT_VERSION, "Version of the format."),
    PH_CHOICE_KEY(
        "kind", OF(kind), NULL, "star|racks|two_layer|fat_tree|list|measured", "Shape of the network."),
    PH_INTEGER_KEY("hosts", OF(hosts), NULL, 1, MOST_HOSTS, "Number of hosts."),
    PH_INTEGER_KEY("ranks_per_host", OF(ranks_per_host), "1", 1, 65536, "Ranks that each host runs."),
    PH_RECORDS_KEY("links", OF(links), "", &listed_table, "Links of kind list."),
    PH_RECORDS_KEY("pairs", OF(pairs), "", &pair_table, "Pairs of hosts of kind measured."),
    PH_RECORDS_KEY("trunks", OF(trunks), "", &trunk_table, "Links between groups of kind measured."),
    PH_RECORDS_KEY("nodes", OF(nodes), "", &node_table, "Names and groups of all hosts, in their order."),
    PH_RECORDS_KEY("slow", OF(slow), "", &slow_table, "Ranks that a simulation makes slower, or faster."),
};

static const struct ph__option host_keys[] = {WIRE(struct settings, host)};

static const struct ph__option rack_keys[] = {
    PH_INTEGER_KEY("hosts", OF(rack.hosts), "16", 1, MOST_HOSTS, "Hosts of a rack."),
    PH_INTEGER_KEY("uplinks", OF(rack.uplinks), "1", 1, 4096,
        "Links from a rack to the core; of two_layer: number of spines, with one link each."),
    WIRE(struct settings, rack.wire),
};

static const struct ph__option tree_keys[] = {
    PH_INTEGER_KEY("pods", OF(tree.pods), "4", 1, 4096, "Number of pods."),
    PH_INTEGER_KEY("edges", OF(tree.edges), "2", 1, 4096, "Edge switches of a pod."),
    PH_INTEGER_KEY("aggregations", OF(tree.aggregations), "2", 1, 4096, "Aggregation switches of a pod."),
    PH_INTEGER_KEY("cores", OF(tree.cores), "4", 1, 4096, "Core switches: a multiple of aggregations."),
    WIRE(struct settings, tree.wire),
};

#define RATE(member, nominal, name, source) \
    PH_NUMBER_KEY(#member, OF(machine.member), #nominal, 1, 1e15, "Bytes a second: " name "."),
static const struct ph__option machine_keys[] = {
    PH_PLAN_HOST_RATE_LIST(RATE) PH_NUMBER_KEY("memory_gb", OF(memory_gb), "0", 0, 1e9,
        "Memory of a host, in 10^9 bytes, which its ranks share. 0: not known."),
};

static const struct ph__option messages_keys[] = {
    PH_NUMBER_KEY("send_us", OF(messages.send_us), "1", 0, MOST_US, "A rank's time to send a message."),
    PH_NUMBER_KEY(
        "receive_us", OF(messages.receive_us), "1", 0, MOST_US, "A rank's time to receive a message."),
    PH_NUMBER_KEY("host_latency_us", OF(messages.host_latency_us), "1", 0, MOST_US,
        "Microseconds that a message between two ranks of a host takes."),
    PH_INTEGER_KEY("eager_bytes", OF(messages.eager_bytes), "65536", 0, 9e15,
        "Messages of at least as many bytes wait until the receiver asks for them."),
    PH_RECORDS_KEY("sizes", OF(messages.sizes), "", &sizes_table,
        "Ranges of message sizes, ascending. Smaller messages than the first have factors of 1."),
};

/* Sections of one struct settings, which no section clears for itself: their settings_size is 0. */
static const struct ph__option_table tables[] = {
    TABLE("", network_keys, 0, "A cluster's network."),
    TABLE("host", host_keys, 0, "The link between a host and its switch."),
    TABLE("rack", rack_keys, 0, "Racks and their uplinks, of racks and two_layer."),
    TABLE("fat_tree", tree_keys, 0, "A fat tree's switches and the links between them."),
    TABLE("machine", machine_keys, 0, "Figures of each host."),
    TABLE("messages", messages_keys, 0, "Costs of a message."),
};
#define NUM_TABLES (sizeof tables / sizeof *tables)

/* ---- links ---- */

struct building {
    const char *path;
    const struct settings *settings;
    struct ph__fabric *fabric;
    size_t capacity; /* of fabric->links */
};

static ph_status add_link(struct building *building, size_t from, size_t to, struct wire wire)
{
    struct ph__fabric *fabric = building->fabric;
    PH_TRY(ph__array_reserve(
        (void **)&fabric->links, &building->capacity, fabric->num_links + 1, sizeof *fabric->links));
    fabric->links[fabric->num_links++] =
        (struct ph__fabric_link){(uint32_t)from, (uint32_t)to, wire.gbits_per_s / 8, wire.latency_us * 1e3};
    return PH_OK;
}

static ph_status add_both(struct building *building, size_t a, size_t b, struct wire wire)
{
    PH_TRY(add_link(building, a, b, wire));
    return add_link(building, b, a, wire);
}

/* Adds the hosts below a switch, which has `count` of them but for the last one. */
static ph_status add_hosts(struct building *building, size_t first, size_t count, size_t leaf)
{
    for (size_t host = first; host < ph__min(first + count, building->fabric->num_hosts); host++)
        PH_TRY(add_both(building, host, leaf, building->settings->host));
    return PH_OK;
}

static ph_status build_star(struct building *building)
{
    return add_hosts(building, 0, building->fabric->num_hosts, building->fabric->num_nodes++);
}

static ph_status build_racks(struct building *building)
{
    const size_t hosts = (size_t)building->settings->rack.hosts;
    const size_t num_uplinks = (size_t)building->settings->rack.uplinks;
    const size_t num_spines = building->settings->kind == RACKS ? 1 : num_uplinks;
    const size_t first_spine = building->fabric->num_nodes;
    building->fabric->num_nodes += num_spines;
    for (size_t host = 0; host < building->fabric->num_hosts; host += hosts) {
        const size_t leaf = building->fabric->num_nodes++;
        PH_TRY(add_hosts(building, host, hosts, leaf));
        for (size_t i = 0; i < num_uplinks; i++)
            PH_TRY(add_both(building, leaf, first_spine + i % num_spines, building->settings->rack.wire));
    }
    return PH_OK;
}

static ph_status build_pod(struct building *building, size_t pod, size_t first_core, size_t hosts_per_edge)
{
    const struct settings *settings = building->settings;
    const size_t num_edges = (size_t)settings->tree.edges;
    const size_t num_aggregations = (size_t)settings->tree.aggregations;
    const size_t cores_each = (size_t)settings->tree.cores / num_aggregations;
    const size_t first_aggregation = building->fabric->num_nodes;
    building->fabric->num_nodes += num_aggregations;
    for (size_t i = 0; i < num_aggregations; i++)
        for (size_t k = 0; k < cores_each; k++)
            PH_TRY(add_both(
                building, first_aggregation + i, first_core + i * cores_each + k, settings->tree.wire));
    for (size_t edge = 0; edge < num_edges; edge++) {
        const size_t leaf = building->fabric->num_nodes++;
        PH_TRY(add_hosts(building, (pod * num_edges + edge) * hosts_per_edge, hosts_per_edge, leaf));
        for (size_t i = 0; i < num_aggregations; i++)
            PH_TRY(add_both(building, leaf, first_aggregation + i, settings->tree.wire));
    }
    return PH_OK;
}

static ph_status build_tree(struct building *building)
{
    const struct settings *settings = building->settings;
    const size_t num_pods = (size_t)settings->tree.pods, first_core = building->fabric->num_nodes;
    const size_t num_edges = num_pods * (size_t)settings->tree.edges;
    if (settings->tree.cores % settings->tree.aggregations != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: fat_tree.cores must be a multiple of fat_tree.aggregations, %lld", building->path,
            (long long)settings->tree.aggregations);
    building->fabric->num_nodes += (size_t)settings->tree.cores;
    for (size_t pod = 0; pod < num_pods; pod++)
        PH_TRY(build_pod(building, pod, first_core, ph__divide_up(building->fabric->num_hosts, num_edges)));
    return PH_OK;
}

/* ---- links one by one ---- */

/* Gives the node of a name: a host's number, or that of a switch, which its first mention adds. */
static ph_status find_node(
    struct building *building, struct ph__name_index *switches, const char *name, size_t *node_out)
{
    const size_t num_hosts = building->fabric->num_hosts;
    int64_t host;
    if (name[0] == 'h' && ph__integer_parse(name + 1, &host)) {
        *node_out = (size_t)host;
        return host >= 0 && (size_t)host < num_hosts
                   ? PH_OK
                   : ph_fail(PH_ERROR_CONFIG, "%s: links: '%s' is not a host: must be h0 to h%zu",
                         building->path, name, num_hosts - 1);
    }
    const size_t found = ph__name_index_find(switches, name);
    *node_out = num_hosts + (found != PH_NO_NAME ? found : switches->count);
    if (found != PH_NO_NAME)
        return PH_OK;
    building->fabric->num_nodes++;
    return ph__name_index_add(switches, name);
}

static ph_status build_listed(
    struct building *building, struct ph__name_index *switches, const struct listed *link)
{
    size_t from, to;
    PH_TRY(find_node(building, switches, link->from, &from));
    PH_TRY(find_node(building, switches, link->to, &to));
    if (from == to)
        return ph_fail(PH_ERROR_CONFIG, "%s: links: a link joins '%s' to itself", building->path, link->from);
    return add_both(building, from, to, link->wire);
}

static ph_status build_list(struct building *building)
{
    const struct ph__record_list *links = &building->settings->links;
    struct ph__name_index switches = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < links->count && status == PH_OK; i++)
        status = build_listed(building, &switches, (const struct listed *)links->items + i);
    ph__name_index_fini(&switches);
    return status;
}

/* ---- names and groups of hosts ---- */

static ph_status take_node(struct building *building, size_t host, const struct node *node)
{
    struct ph__fabric *fabric = building->fabric;
    for (size_t other = 0; other < host; other++)
        if (strcmp(fabric->names[other], node->name) == 0)
            return ph_fail(PH_ERROR_CONFIG, "%s: nodes[%zu]: '%s' is the name of nodes[%zu], too",
                building->path, host, node->name, other);
    if (node->group >= (int64_t)fabric->num_hosts)
        return ph_fail(PH_ERROR_CONFIG, "%s: nodes[%zu]: group %lld: must be below the number of hosts, %zu",
            building->path, host, (long long)node->group, fabric->num_hosts);
    fabric->names[host] = node->name;
    fabric->groups[host] = node->group > 0 ? (uint32_t)node->group : 0;
    fabric->num_groups = ph__max(fabric->num_groups, (size_t)fabric->groups[host] + 1);
    return PH_OK;
}

static ph_status take_nodes(struct building *building)
{
    struct ph__fabric *fabric = building->fabric;
    const struct ph__record_list *nodes = &building->settings->nodes;
    fabric->names = ph__arena_alloc_array(&fabric->arena, fabric->num_hosts, sizeof *fabric->names);
    fabric->groups = ph__arena_alloc_array(&fabric->arena, fabric->num_hosts, sizeof *fabric->groups);
    if (fabric->names == NULL || fabric->groups == NULL)
        return PH_ERROR_MEMORY;
    if (nodes->count != 0 && nodes->count != fabric->num_hosts)
        return ph_fail(PH_ERROR_CONFIG, "%s: nodes: has %zu hosts: must have all %zu, or none",
            building->path, nodes->count, fabric->num_hosts);
    for (size_t host = 0; host < fabric->num_hosts; host++) {
        struct node node = {ph__arena_printf(&fabric->arena, "h%zu", host), 0};
        if (node.name == NULL)
            return PH_ERROR_MEMORY;
        if (nodes->count > 0)
            node = ((const struct node *)nodes->items)[host];
        PH_TRY(take_node(building, host, &node));
    }
    return PH_OK;
}

/* Numbers the switches that hosts have their first links to. */
static ph_status group_by_switch(struct ph__fabric *fabric)
{
    uint32_t *numbers = calloc(fabric->num_nodes, sizeof *numbers); /* 1 + the group; 0: none yet */
    if (numbers == NULL)
        return ph__out_of_memory("groups of %zu hosts", fabric->num_hosts);
    fabric->num_groups = 0;
    for (size_t host = 0; host < fabric->num_hosts; host++) {
        const bool has_link = fabric->first_links[host + 1] > fabric->first_links[host];
        const size_t leaf = has_link ? fabric->links[fabric->first_links[host]].to : host;
        if (numbers[leaf] == 0)
            numbers[leaf] = (uint32_t)++fabric->num_groups;
        fabric->groups[host] = numbers[leaf] - 1;
    }
    free(numbers);
    return PH_OK;
}

/* ---- the file ---- */

static ph_status check_sizes(const char *path, const struct ph__record_list *sizes)
{
    const struct ph__fabric_sizes *items = sizes->items;
    for (size_t i = 1; i < sizes->count; i++)
        if (items[i].from_bytes <= items[i - 1].from_bytes)
            return ph_fail(PH_ERROR_CONFIG, "%s: messages.sizes[%zu]: from_bytes must be above %lld", path, i,
                (long long)items[i - 1].from_bytes);
    return PH_OK;
}

static ph_status check_slow(const char *path, const struct settings *settings)
{
    const struct ph__fabric_slow *slow = settings->slow.items;
    const int64_t room = settings->hosts * settings->ranks_per_host;
    for (size_t i = 0; i < settings->slow.count; i++)
        if (slow[i].rank >= room)
            return ph_fail(PH_ERROR_CONFIG, "%s: slow[%zu]: rank %lld is beyond the cluster's %lld ranks",
                path, i, (long long)slow[i].rank, (long long)room);
    return PH_OK;
}

static ph_status read_all(const char *path, struct ph__fabric *fabric)
{
    static ph_status (*const build[])(struct building *) = {
        build_star, build_racks, build_racks, build_tree, build_list};
    struct settings settings = {0};
    struct ph__section sections[NUM_TABLES];
    struct building building = {.path = path, .settings = &settings, .fabric = fabric};
    for (size_t i = 0; i < NUM_TABLES; i++)
        sections[i] = (struct ph__section){&tables[i], &settings};
    PH_TRY(ph__config_read(path, NULL, 0, sections, NUM_TABLES, &fabric->arena));
    PH_TRY(check_sizes(path, &settings.messages.sizes));
    PH_TRY(check_slow(path, &settings));
    fabric->num_hosts = fabric->num_nodes = (size_t)settings.hosts;
    fabric->ranks_per_host = (size_t)settings.ranks_per_host;
    fabric->host_bytes = (uint64_t)(settings.memory_gb * 1e9);
    fabric->machine = settings.machine;
    fabric->messages = settings.messages;
    fabric->slow = settings.slow;
    PH_TRY(take_nodes(&building));
    if (settings.kind == MEASURED)
        return ph__fabric_measure(fabric, path, &settings.pairs, &settings.trunks);
    PH_TRY(build[settings.kind](&building));
    PH_TRY(ph__fabric_find_routes(fabric, path));
    return group_by_switch(fabric);
}

ph_status ph__fabric_read(const char *path, struct ph__fabric *fabric_out)
{
    struct ph__fabric fabric = {0};
    const ph_status status = read_all(path, &fabric);
    if (status == PH_OK)
        *fabric_out = fabric;
    else
        ph__fabric_fini(&fabric);
    return status;
}

/* ---- the planner's figures ---- */

/* Completes the topology and the figures of its hosts, which the cluster must have. Ranks that fill no host
 * share one. */
static ph_status describe(struct ph__fabric *fabric, const char *path, struct ph__topology *topology)
{
    const size_t room = fabric->num_hosts * fabric->ranks_per_host;
    const size_t world_size = topology->world_size > 0 ? topology->world_size : room;
    const size_t num_local = ph__min(fabric->ranks_per_host, world_size);
    if (world_size > room)
        return ph_fail(
            PH_ERROR_CONFIG, "%s: the cluster has room for %zu ranks, not %zu", path, room, world_size);
    if (topology->ranks_per_host > 0 && topology->ranks_per_host != num_local)
        return ph_fail(PH_ERROR_CONFIG, "%s: parallel.ranks_per_host must be %zu, not %zu", path, num_local,
            topology->ranks_per_host);
    if (world_size % num_local != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: the number of ranks, %zu, must be a multiple of ranks_per_host, %zu", path, world_size,
            num_local);
    *topology = (struct ph__topology){world_size, num_local};
    fabric->machine.rank_bytes = fabric->host_bytes / num_local;
    return ph__fabric_all_to_all(fabric, world_size / num_local, &fabric->machine.network_bytes_per_s);
}

ph_status ph__fabric_machine(
    const char *path, struct ph__topology *topology, struct ph__plan_machine *machine_out)
{
    struct ph__fabric fabric;
    PH_TRY(ph__fabric_read(path, &fabric));
    const ph_status status = describe(&fabric, path, topology);
    if (status == PH_OK)
        *machine_out = fabric.machine;
    ph__fabric_fini(&fabric);
    return status;
}
