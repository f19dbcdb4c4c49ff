/* Reads a topology file, and builds the links of its kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/text/name_index.h"
#include "base/text/number.h"
#include "plan/fabric.h"
#include "plan/fabric_routes.h"

#define FORMAT_VERSION 1

/* ---- keys ---- */

struct wire {
    double gbits_per_s, latency_us;
};

enum kind { STAR, RACKS, TWO_LAYER, FAT_TREE, LIST, MEASURED };

struct shape {
    int64_t version;
    enum kind kind;
    int64_t hosts, ranks_per_host;
    struct ph__record_list links, pairs;
};

struct host {
    struct wire wire;
};

struct rack {
    int64_t hosts, uplinks;
    struct wire wire;
};

struct tree {
    int64_t pods, edges, aggregations, cores;
    struct wire wire;
};

struct listed { /* a link of a list */
    const char *from, *to;
    struct wire wire;
};

struct pair { /* measured hosts */
    int64_t from, to;
    struct wire wire;
};

struct machine {
    double memory_bytes_per_s, host_bytes_per_s, memory_gb;
};

#define MOST_HOSTS 65535
#define MOST_US 1e9
#define WIRE(settings)                                                        \
    PH_NUMBER_KEY("gbits_per_s", settings, wire.gbits_per_s, "10", 1e-6, 1e6, \
        "Gigabits a second of a link, in each direction."),                   \
        PH_NUMBER_KEY(                                                        \
            "latency_us", settings, wire.latency_us, "5", 0, MOST_US, "Microseconds that each link takes.")
#define KEYS(section_name, type, keys, help_text)                                \
    {                                                                            \
        .section = (section_name), .help = (help_text), .options = keys,         \
        .num_options = sizeof keys / sizeof *keys, .settings_size = sizeof(type) \
    }

#define LISTED(member) struct listed, member
static const struct ph__option listed_keys[] = {
    PH_TEXT_KEY("from", LISTED(from), NULL, "One end: h0, h1, ... are hosts, other names are switches."),
    PH_TEXT_KEY("to", LISTED(to), NULL, "The other end."),
    WIRE(struct listed),
};
static const struct ph__option_table listed_table = KEYS("", struct listed, listed_keys, "A link.");

#define PAIR(member) struct pair, member
static const struct ph__option pair_keys[] = {
    PH_INTEGER_KEY("from", PAIR(from), NULL, 0, MOST_HOSTS, "Number of the host that sends."),
    PH_INTEGER_KEY("to", PAIR(to), NULL, 0, MOST_HOSTS, "Number of the host that receives."),
    WIRE(struct pair),
};
static const struct ph__option_table pair_table = KEYS("", struct pair, pair_keys, "A pair of hosts.");

#define SHAPE(member) struct shape, member
static const struct ph__option shape_keys[] = {
    PH_INTEGER_KEY("version", SHAPE(version), NULL, FORMAT_VERSION, FORMAT_VERSION, "Version of the format."),
    PH_CHOICE_KEY(
        "kind", SHAPE(kind), NULL, "star|racks|two_layer|fat_tree|list|measured", "Shape of the network."),
    PH_INTEGER_KEY("hosts", SHAPE(hosts), NULL, 1, MOST_HOSTS, "Number of hosts."),
    PH_INTEGER_KEY("ranks_per_host", SHAPE(ranks_per_host), "1", 1, 65536, "Ranks that each host runs."),
    PH_RECORDS_KEY("links", SHAPE(links), "", &listed_table, "Links of kind list."),
    PH_RECORDS_KEY("pairs", SHAPE(pairs), "", &pair_table, "Pairs of hosts of kind measured."),
};
static const struct ph__option_table shape_table = KEYS("", struct shape, shape_keys, "A cluster's network.");

static const struct ph__option host_keys[] = {WIRE(struct host)};
static const struct ph__option_table host_table =
    KEYS("host", struct host, host_keys, "The link between a host and its switch.");

#define RACK(member) struct rack, member
static const struct ph__option rack_keys[] = {
    PH_INTEGER_KEY("hosts", RACK(hosts), "16", 1, MOST_HOSTS, "Hosts of a rack."),
    PH_INTEGER_KEY("uplinks", RACK(uplinks), "1", 1, 4096,
        "Links from a rack to the core; of two_layer: number of spines, with one link each."),
    WIRE(struct rack),
};
static const struct ph__option_table rack_table =
    KEYS("rack", struct rack, rack_keys, "Racks and their uplinks, of racks and two_layer.");

#define TREE(member) struct tree, member
static const struct ph__option tree_keys[] = {
    PH_INTEGER_KEY("pods", TREE(pods), "4", 1, 4096, "Number of pods."),
    PH_INTEGER_KEY("edges", TREE(edges), "2", 1, 4096, "Edge switches of a pod."),
    PH_INTEGER_KEY("aggregations", TREE(aggregations), "2", 1, 4096, "Aggregation switches of a pod."),
    PH_INTEGER_KEY("cores", TREE(cores), "4", 1, 4096, "Core switches: a multiple of aggregations."),
    WIRE(struct tree),
};
static const struct ph__option_table tree_table =
    KEYS("fat_tree", struct tree, tree_keys, "A fat tree's switches and the links between them.");

#define MACHINE(member) struct machine, member
static const struct ph__option machine_keys[] = {
    PH_NUMBER_KEY("memory_bytes_per_s", MACHINE(memory_bytes_per_s), "8e9", 1, 1e15,
        "Bytes a second of rows that one rank reads at random."),
    PH_NUMBER_KEY("host_bytes_per_s", MACHINE(host_bytes_per_s), "5e9", 1, 1e15,
        "Bytes a second between two ranks of a host, each way."),
    PH_NUMBER_KEY("memory_gb", MACHINE(memory_gb), "0", 0, 1e9,
        "Memory of a host, in 10^9 bytes, which its ranks share. 0: not limited."),
};
static const struct ph__option_table machine_table =
    KEYS("machine", struct machine, machine_keys, "Figures of each host.");

#define SIZES(member) struct ph__fabric_sizes, member
static const struct ph__option sizes_keys[] = {
    PH_INTEGER_KEY("from_bytes", SIZES(from_bytes), NULL, 0, 9e15, "Least size of these messages."),
    PH_NUMBER_KEY("bandwidth", SIZES(bandwidth), "1", 1e-6, 1, "Part of a link's capacity that they use."),
    PH_NUMBER_KEY("latency", SIZES(latency), "1", 0, 1e6, "Their latency, as a multiple of the links'."),
};
static const struct ph__option_table sizes_table =
    KEYS("", struct ph__fabric_sizes, sizes_keys, "A range of message sizes.");

#define MESSAGES(member) struct ph__fabric_messages, member
static const struct ph__option messages_keys[] = {
    PH_NUMBER_KEY("send_us", MESSAGES(send_us), "1", 0, MOST_US, "A rank's time to send a message."),
    PH_NUMBER_KEY("receive_us", MESSAGES(receive_us), "1", 0, MOST_US, "A rank's time to receive a message."),
    PH_NUMBER_KEY("host_latency_us", MESSAGES(host_latency_us), "1", 0, MOST_US,
        "Microseconds that a message between two ranks of a host takes."),
    PH_INTEGER_KEY("eager_bytes", MESSAGES(eager_bytes), "65536", 0, 9e15,
        "Messages of at least as many bytes wait until the receiver asks for them."),
    PH_RECORDS_KEY("sizes", MESSAGES(sizes), "", &sizes_table,
        "Ranges of message sizes, ascending. Smaller messages than the first have factors of 1."),
};
static const struct ph__option_table messages_table =
    KEYS("messages", struct ph__fabric_messages, messages_keys, "Costs of a message.");

struct settings {
    struct shape shape;
    struct host host;
    struct rack rack;
    struct tree tree;
    struct machine machine;
};

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

/* Adds a switch; returns its node. */
static size_t add_switch(struct building *building)
{
    return building->fabric->num_nodes++;
}

static ph_status build_star(struct building *building)
{
    const size_t middle = add_switch(building);
    for (size_t host = 0; host < building->fabric->num_hosts; host++)
        PH_TRY(add_both(building, host, middle, building->settings->host.wire));
    return PH_OK;
}

/* Adds the hosts of a rack, which has `count` of them but for the last one. */
static ph_status add_hosts(struct building *building, size_t first, size_t count, size_t leaf)
{
    for (size_t host = first; host < ph__min(first + count, building->fabric->num_hosts); host++)
        PH_TRY(add_both(building, host, leaf, building->settings->host.wire));
    return PH_OK;
}

static ph_status build_racks(struct building *building)
{
    const struct rack *rack = &building->settings->rack;
    const size_t num_spines = building->settings->shape.kind == RACKS ? 1 : (size_t)rack->uplinks;
    const size_t first_spine = building->fabric->num_nodes;
    building->fabric->num_nodes += num_spines;
    for (size_t host = 0; host < building->fabric->num_hosts; host += (size_t)rack->hosts) {
        const size_t leaf = add_switch(building);
        PH_TRY(add_hosts(building, host, (size_t)rack->hosts, leaf));
        for (size_t i = 0; i < (size_t)rack->uplinks; i++)
            PH_TRY(add_both(building, leaf, first_spine + i % num_spines, rack->wire));
    }
    return PH_OK;
}

static ph_status build_pod(struct building *building, size_t pod, size_t first_core, size_t hosts_per_edge)
{
    const struct tree *tree = &building->settings->tree;
    const size_t num_edges = (size_t)tree->edges, num_aggregations = (size_t)tree->aggregations;
    const size_t cores_each = (size_t)tree->cores / num_aggregations;
    const size_t first_aggregation = building->fabric->num_nodes;
    building->fabric->num_nodes += num_aggregations;
    for (size_t i = 0; i < num_aggregations; i++)
        for (size_t k = 0; k < cores_each; k++)
            PH_TRY(add_both(building, first_aggregation + i, first_core + i * cores_each + k, tree->wire));
    for (size_t edge = 0; edge < num_edges; edge++) {
        const size_t leaf = add_switch(building);
        PH_TRY(add_hosts(building, (pod * num_edges + edge) * hosts_per_edge, hosts_per_edge, leaf));
        for (size_t i = 0; i < num_aggregations; i++)
            PH_TRY(add_both(building, leaf, first_aggregation + i, tree->wire));
    }
    return PH_OK;
}

static ph_status build_tree(struct building *building)
{
    const struct tree *tree = &building->settings->tree;
    const size_t num_edges = (size_t)(tree->pods * tree->edges), first_core = building->fabric->num_nodes;
    if (tree->cores % tree->aggregations != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: fat_tree.cores must be a multiple of fat_tree.aggregations, %lld", building->path,
            (long long)tree->aggregations);
    building->fabric->num_nodes += (size_t)tree->cores;
    for (size_t pod = 0; pod < (size_t)tree->pods; pod++)
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
    const struct ph__record_list *links = &building->settings->shape.links;
    struct ph__name_index switches = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < links->count && status == PH_OK; i++)
        status = build_listed(building, &switches, (const struct listed *)links->items + i);
    ph__name_index_fini(&switches);
    return status;
}

/* Gives each host a node that its flows leave by and one that they come by, and each pair a link between
 * these. */
static ph_status build_measured(struct building *building)
{
    const struct ph__record_list *pairs = &building->settings->shape.pairs;
    const size_t num_hosts = building->fabric->num_hosts;
    struct wire *fastest = calloc(2 * num_hosts, sizeof *fastest);
    ph_status status = fastest != NULL ? PH_OK : ph__out_of_memory("%zu hosts", num_hosts);
    building->fabric->num_nodes += 2 * num_hosts;
    for (size_t i = 0; i < pairs->count && status == PH_OK; i++) {
        const struct pair *pair = (const struct pair *)pairs->items + i;
        const size_t from = (size_t)pair->from, to = (size_t)pair->to;
        if (from >= num_hosts || to >= num_hosts || from == to) {
            status = ph_fail(PH_ERROR_CONFIG, "%s: pairs[%zu]: must be two different hosts of 0 to %zu",
                building->path, i, num_hosts - 1);
            break;
        }
        fastest[2 * from].gbits_per_s = fmax(fastest[2 * from].gbits_per_s, pair->wire.gbits_per_s);
        fastest[2 * to + 1].gbits_per_s = fmax(fastest[2 * to + 1].gbits_per_s, pair->wire.gbits_per_s);
        status = add_link(building, num_hosts + 2 * from, num_hosts + 2 * to + 1, pair->wire);
    }
    for (size_t host = 0; host < num_hosts && status == PH_OK; host++) {
        status = add_link(building, host, num_hosts + 2 * host, fastest[2 * host]);
        if (status == PH_OK)
            status = add_link(building, num_hosts + 2 * host + 1, host, fastest[2 * host + 1]);
    }
    free(fastest);
    return status;
}

/* ---- the file ---- */

static ph_status build(struct building *building)
{
    switch (building->settings->shape.kind) {
    case STAR:
        return build_star(building);
    case RACKS:
    case TWO_LAYER:
        return build_racks(building);
    case FAT_TREE:
        return build_tree(building);
    case LIST:
        return build_list(building);
    case MEASURED:
        return build_measured(building);
    }
    return PH_OK;
}

static ph_status check_sizes(const char *path, const struct ph__record_list *sizes)
{
    const struct ph__fabric_sizes *items = sizes->items;
    for (size_t i = 1; i < sizes->count; i++)
        if (items[i].from_bytes <= items[i - 1].from_bytes)
            return ph_fail(PH_ERROR_CONFIG, "%s: messages.sizes[%zu]: from_bytes must be above %lld", path, i,
                (long long)items[i - 1].from_bytes);
    return PH_OK;
}

/* Gives what a planner needs: the rates of the slowest host, and a rank's share of the memory. */
static void describe_machine(const struct machine *machine, struct ph__fabric *fabric)
{
    double slowest = (double)INFINITY;
    for (size_t host = 0; host < fabric->num_hosts; host++) {
        double sum = 0;
        for (size_t i = fabric->first_links[host]; i < fabric->first_links[host + 1]; i++)
            sum += fabric->links[i].bytes_per_ns;
        slowest = fmin(slowest, sum);
    }
    fabric->host_bytes = (uint64_t)(machine->memory_gb * 1e9);
    fabric->machine = (struct ph__plan_machine){.memory_bytes_per_s = machine->memory_bytes_per_s,
        .host_bytes_per_s = machine->host_bytes_per_s,
        .network_bytes_per_s = slowest > 0 ? slowest * 1e9 : machine->host_bytes_per_s,
        .rank_bytes = fabric->host_bytes / fabric->ranks_per_host};
}

static ph_status read_all(const char *path, struct ph__fabric *fabric)
{
    struct settings settings;
    const struct ph__section sections[] = {{&shape_table, &settings.shape}, {&host_table, &settings.host},
        {&rack_table, &settings.rack}, {&tree_table, &settings.tree}, {&machine_table, &settings.machine},
        {&messages_table, &fabric->messages}};
    struct building building = {.path = path, .settings = &settings, .fabric = fabric};
    PH_TRY(ph__config_read(path, NULL, 0, sections, sizeof sections / sizeof *sections, &fabric->arena));
    PH_TRY(check_sizes(path, &fabric->messages.sizes));
    fabric->num_hosts = fabric->num_nodes = (size_t)settings.shape.hosts;
    fabric->ranks_per_host = (size_t)settings.shape.ranks_per_host;
    PH_TRY(build(&building));
    PH_TRY(ph__fabric_find_routes(fabric, path));
    describe_machine(&settings.machine, fabric);
    return PH_OK;
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
