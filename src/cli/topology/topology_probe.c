/* phloem topology probe --out FILE: measures the network between hosts that run agents, or between the hosts
 * of ranks that a launcher has started: the first rank of each then runs an agent in its own process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "cli/arguments.h"
#include "cli/stop_signal.h"
#include "cli/topology/topology_files.h"
#include "cli/topology/topology_verbs.h"
#include "cli/with_ranks.h"
#include "comm/collective/comm.h"
#include "comm/probe/probe_agent.h"
#include "comm/watch/watch_state.h"
#include "phloem/config.h"
#include "plan/fabric/host_groups.h"

#define MOST_HOSTS 1024
#define SAVE_MS 2000 /* between two times that FILE.part is written, */
#define SAVE_REST 10 /* and so many times what the first of them took */

struct probing {
    const char *hosts_text, *secret_file, *page;
    bool is_resumed;
    struct ph__secret secret;
    struct ph__netprobe_options options;
    struct ph__meanwhile others; /* ranks that wait for this one */
    struct ph__arena arena;      /* holds addresses and names */
    struct ph__netprobe_host *hosts;
    size_t num_hosts, capacity;
    struct cli_topology_files file;
    uint64_t save_ns; /* FILE.part is written then */
};

/* ---- the command line ---- */

static ph_status parse(int argc, char **argv, struct probing *probing, bool *is_done)
{
    const char *seconds = "300", *bytes = "1e12", *share = ".5", *echoes = "100";
    double most_bytes, num_echoes;
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &probing->file.path, "FILE", "topology file to write (required)"},
        {"--hosts", CLI_TEXT, &probing->hosts_text, "HOST:PORT,...",
            "addresses of the hosts' agents (phloem topology agent), as all hosts reach them. Default: the "
            "hosts on which mpirun has started ranks of this command"},
        {"--secret-file", CLI_TEXT, &probing->secret_file, "FILE", "secret of the agents"},
        {"--page", CLI_TEXT, &probing->page, "FILE", "also writes a page that draws the network"},
        {"--seconds", CLI_TEXT, &seconds, "N", "longest time of the probe; default: 300"},
        {"--bytes", CLI_TEXT, &bytes, "N", "most bytes that the probe sends; default: 1e12"},
        {"--share", CLI_TEXT, &share, "N", "most of the time that links are in use; default: .5"},
        {"--echoes", CLI_TEXT, &echoes, "N", "echoes of each pair of hosts, for the latency; default: 100"},
        {"--resume", CLI_SWITCH, &probing->is_resumed, NULL,
            "goes on from FILE.part, which a probe that was stopped leaves"},
    };
    const struct cli_command command = {"topology probe",
        "topology probe --hosts node1:4712,node2:4712 --secret-file secret --out cluster.yaml",
        "Measures latency and bandwidth between each two hosts, groups the hosts, and measures what groups\n"
        "share. Hosts run phloem topology agent, or ranks of this command: mpirun phloem topology probe.",
        "", 0, 0, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (probing->file.path == NULL)
        return ph_fail(PH_ERROR_USAGE, "topology probe requires --out FILE");
    PH_TRY(cli_number_parse("--seconds", seconds, 1e-3, 1e7, &probing->options.seconds));
    PH_TRY(cli_number_parse("--bytes", bytes, 1, 1e18, &most_bytes));
    PH_TRY(cli_number_parse("--share", share, .001, 1, &probing->options.share));
    PH_TRY(cli_number_parse("--echoes", echoes, 3, PH_NETPROBE_MAX_ECHOES, &num_echoes));
    probing->options.bytes = (uint64_t)most_bytes;
    probing->options.num_echoes = (uint32_t)num_echoes;
    probing->file.part_path = ph__arena_printf(&probing->arena, "%s.part", probing->file.path);
    return probing->file.part_path != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- hosts ---- */

static ph_status add_host(struct probing *probing, const char *name, const char *addresses)
{
    if (probing->num_hosts == MOST_HOSTS)
        return ph_fail(PH_ERROR_USAGE, "a probe has at most %d hosts", MOST_HOSTS);
    PH_TRY(ph__array_reserve(
        (void **)&probing->hosts, &probing->capacity, probing->num_hosts + 1, sizeof *probing->hosts));
    probing->hosts[probing->num_hosts++] = (struct ph__netprobe_host){.name = name, .addresses = addresses};
    return PH_OK;
}

/* Adds the hosts of --hosts, by the addresses of their agents. */
static ph_status add_listed(struct probing *probing)
{
    char *left = ph__arena_strdup(&probing->arena, probing->hosts_text), *address;
    if (left == NULL)
        return PH_ERROR_MEMORY;
    while ((address = strsep(&left, ",")) != NULL) {
        const char *colon = strrchr(address, ':');
        if (colon == NULL || colon == address || strlen(address) >= PH_ADDRESS_BYTES)
            return ph_fail(PH_ERROR_USAGE, "'%s' is not an address of an agent: write HOST:PORT", address);
        const bool is_bracketed = address[0] == '[' && colon[-1] == ']';
        const char *name = ph__arena_printf(
            &probing->arena, "%.*s", (int)(colon - address) - 2 * is_bracketed, address + is_bracketed);
        PH_TRY(name != NULL ? add_host(probing, name, address) : PH_ERROR_MEMORY);
    }
    return PH_OK;
}

/* Gives hosts of the same name their agents' addresses as names. */
static ph_status name_apart(struct probing *probing)
{
    bool is_apart = true;
    for (size_t i = 0; i < probing->num_hosts; i++)
        for (size_t k = 0; k < i; k++)
            is_apart &= strcmp(probing->hosts[i].name, probing->hosts[k].name) != 0;
    for (size_t i = 0; i < probing->num_hosts && !is_apart; i++) {
        struct ph__netprobe_host *host = &probing->hosts[i];
        host->name =
            ph__arena_printf(&probing->arena, "%.*s", (int)strcspn(host->addresses, " "), host->addresses);
        if (host->name == NULL)
            return PH_ERROR_MEMORY;
    }
    return PH_OK;
}

/* ---- the probe ---- */

/* Keeps what was measured now and then, and tells ranks that this one goes on. */
static ph_status pass_time(void *context)
{
    struct probing *probing = context;
    const uint64_t now_ns = ph__clock_ns();
    if (now_ns >= probing->save_ns) {
        PH_TRY(cli_topology_part_write(&probing->file));
        probing->save_ns = ph__clock_deadline(SAVE_MS) + SAVE_REST * (ph__clock_ns() - now_ns);
    }
    return ph__meanwhile(&probing->others);
}

/* Keeps what was measured, and says so behind the error. */
static ph_status keep_part(struct probing *probing, ph_status status)
{
    char text[900];
    const struct ph__netprobe_result *result = &probing->file.result;
    const size_t num_pairs = result->num_hosts * (result->num_hosts - 1);
    snprintf(text, sizeof text, "%s", ph_error_text());
    PH_TRY(cli_topology_part_write(&probing->file));
    return ph_fail(status, "%s; %zu of %zu pairs are in '%s': --resume goes on", text,
        num_pairs - ph__netprobe_result_count(result, PH_NETPROBE_UNKNOWN), num_pairs,
        probing->file.part_path);
}

static ph_status find_groups(struct ph__netprobe_result *result)
{
    const struct ph__host_distances measured = {result->num_hosts, result->ns_per_byte, result->latency_ns};
    return ph__host_groups_find(&measured, result->groups, &result->num_groups);
}

static ph_status measure_over(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    PH_TRY(ph__netprobe_rounds(probe, result));
    PH_TRY(find_groups(result));
    PH_TRY(ph__netprobe_held_up(probe, result));
    PH_TRY(find_groups(result));
    return ph__netprobe_trunks(probe, result);
}

static ph_status measure(struct probing *probing)
{
    struct ph__netprobe *probe;
    PH_TRY(ph__netprobe_open(&probing->options, probing->hosts, probing->num_hosts, &probe));
    const ph_status status = measure_over(probe, &probing->file.result);
    ph__netprobe_close(probe);
    return status;
}

/* Goes on from FILE.part where that is wanted, and writes it first, which fails before anything is
 * measured. */
static ph_status measure_and_write(struct probing *probing)
{
    const struct ph__netprobe_result *result = &probing->file.result;
    if (probing->is_resumed)
        PH_TRY(cli_topology_part_read(&probing->file));
    PH_TRY(cli_topology_part_write(&probing->file));
    const ph_status status = measure(probing);
    if (status != PH_OK)
        return keep_part(probing, status);
    PH_TRY(cli_topology_file_write(&probing->file));
    const size_t num_alike = ph__netprobe_result_count(result, PH_NETPROBE_ALIKE);
    printf("%zu pairs measured, %zu alone; %zu have the value of pairs like them; %.3g MB sent\n",
        result->num_hosts * (result->num_hosts - 1) - num_alike,
        ph__netprobe_result_count(result, PH_NETPROBE_ALONE), num_alike, (double)result->sent_bytes / 1e6);
    return cli_topology_print(probing->file.path, probing->page);
}

/* Measures the network between the hosts, by their agents. */
static ph_status probe_hosts(struct probing *probing)
{
    const size_t n = probing->num_hosts;
    if (n < 2)
        return ph_fail(PH_ERROR_USAGE,
            "topology probe requires two hosts or more, by --hosts HOST:PORT,HOST:PORT or mpirun, and there "
            "is %s%s",
            n == 1 ? "only " : "none", n == 1 ? probing->hosts[0].name : "");
    PH_TRY(name_apart(probing));
    PH_TRY(ph__netprobe_result_init(n, &probing->arena, &probing->file.result));
    probing->file.hosts = probing->hosts;
    probing->options.stop_signal = cli_stop_signal();
    probing->options.meanwhile = (struct ph__meanwhile){pass_time, probing};
    probing->options.arena = &probing->arena;
    return measure_and_write(probing);
}

/* ---- ranks ---- */

static ph_status probe_as_first(void *context, const struct ph__meanwhile *meanwhile)
{
    struct probing *probing = context;
    probing->others = *meanwhile;
    return probe_hosts(probing);
}

/* Adds a rank's host by what its agent has told: its name, then addresses, with a space between two. Other
 * ranks tell nothing. */
static ph_status hear_agent(void *context, size_t rank, const char *text, size_t size)
{
    struct probing *probing = context;
    char *addresses = ph__arena_strdup(&probing->arena, text);
    (void)rank;
    if (addresses == NULL)
        return PH_ERROR_MEMORY;
    const char *name = strsep(&addresses, " ");
    return size > 0 ? add_host(probing, name, addresses) : PH_OK;
}

/* Starts an agent at all addresses of this host, and gives what hear_agent reads. */
static ph_status start_agent(struct probing *probing, struct ph__netprobe_agent **agent_out, char **text_out)
{
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    PH_TRY(ph__watch_hosts(false, hosts, &num_hosts));
    if (num_hosts == 0)
        return ph_fail(PH_ERROR_PEER, "this host has no address that other hosts can reach");
    if (ph__netprobe_agent_create("[::]:0", &probing->secret, agent_out) != PH_OK)
        PH_TRY(ph__netprobe_agent_create("0.0.0.0:0", &probing->secret, agent_out));
    const char *port = strrchr(ph__netprobe_agent_address(*agent_out), ':');
    *text_out = ph__arena_printf(&probing->arena, "%s", ph__watch_self(0).host);
    for (size_t i = 0; i < num_hosts && *text_out != NULL; i++)
        *text_out = ph__arena_printf(&probing->arena, strchr(hosts[i], ':') != NULL ? "%s [%s]%s" : "%s %s%s",
            *text_out, hosts[i], port);
    return *text_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status probe_with_agent(
    struct probing *probing, struct ph_comm *comm, struct ph__netprobe_agent **agent)
{
    char nothing[] = "", *text = nothing;
    ph_status status = PH_OK;
    probing->secret.size = PH_WATCH_SECRET_BYTES;
    PH_TRY(ph__random_bytes(probing->secret.bytes, PH_WATCH_SECRET_BYTES));
    PH_TRY(ph__comm_broadcast_once(
        comm, "secret of the probe", 0, probing->secret.bytes, PH_WATCH_SECRET_BYTES));
    if (ph__comm_host(comm)->own == 0)
        status = start_agent(probing, agent, &text);
    PH_TRY(ph__comm_share(comm, status));
    PH_TRY(ph__comm_read_texts(comm, "addresses of agents", text, strlen(text), hear_agent, probing));
    probing->options.secret = &probing->secret;
    probing->file.ranks_per_host = ph__comm_host(comm)->size;
    return ph__comm_work_by_first(comm, probe_as_first, probing);
}

static ph_status probe_as_rank(void *context, struct ph_comm *comm)
{
    struct probing *probing = context;
    struct ph__netprobe_agent *agent = NULL;
    cli_stop_signal();
    const ph_status status = probe_with_agent(probing, comm, &agent);
    ph__netprobe_agent_destroy(agent);
    return status;
}

/* ---- the verb ---- */

static ph_status probe_agents(struct probing *probing)
{
    PH_TRY(cli_check_one_process("topology probe --hosts"));
    if (probing->secret_file != NULL) {
        PH_TRY(ph__secret_read(probing->secret_file, &probing->secret));
        probing->options.secret = &probing->secret;
    }
    PH_TRY(add_listed(probing));
    probing->file.ranks_per_host = 1;
    return probe_hosts(probing);
}

ph_status cli_topology_probe(int argc, char **argv)
{
    const struct ph_parallel_settings parallel = {.transport = "auto", .timeout_seconds = 300};
    struct probing probing = {0};
    const struct cli_ranks ranks = {.task = "phloem topology probe",
        .parallel = &parallel,
        .work = probe_as_rank,
        .context = &probing,
        .done_text = "the topology file is written"};
    bool is_done = false;
    ph_status status = parse(argc, argv, &probing, &is_done);
    if (status == PH_OK && probing.hosts_text != NULL)
        status = probe_agents(&probing);
    else if (!is_done)
        status = cli_with_ranks(&ranks, status);
    ph__secret_fini(&probing.secret);
    ph__arena_fini(&probing.arena);
    free(probing.hosts);
    return status;
}
