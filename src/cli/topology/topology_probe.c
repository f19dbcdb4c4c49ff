/* phloem topology probe --out FILE: measures the network between hosts that run agents, or between the hosts
 * of ranks that a launcher has started: the first rank of each then runs an agent in its own process. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sum/random_bytes.h"
#include "base/text/number.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/topology/topology_files.h"
#include "cli/topology/topology_verbs.h"
#include "cli/with_ranks.h"
#include "comm/collective/comm.h"
#include "comm/probe/probe_agent.h"
#include "comm/watch/watch_state.h"
#include "phloem/config.h"
#include "plan/fabric/host_groups.h"

#define MOST_HOSTS 4096
#define DEFAULT_ECHOES 100
#define LEAST_ECHOES 3

struct probing {
    const char *hosts_text, *host_file, *secret_file, *page;
    bool is_resumed;
    struct ph__secret secret;
    struct ph__netprobe_options options;
    struct ph__arena arena; /* holds addresses and names */
    struct ph__netprobe_host *hosts;
    size_t num_hosts, capacity;
    struct cli_topology_files file;
};

/* ---- the command line ---- */

static ph_status parse_number(const char *flag, const char *text, double low, double high, double *number_out)
{
    if (text != NULL && (!ph__number_parse(text, number_out) || !(*number_out >= low && *number_out <= high)))
        return ph_fail(PH_ERROR_USAGE, "%s must be a number from %g to %g, not '%s'", flag, low, high, text);
    return PH_OK;
}

static ph_status parse(int argc, char **argv, struct probing *probing, bool *is_done)
{
    const char *seconds = NULL, *bytes = NULL, *share = NULL, *echoes = NULL;
    double most_bytes = 0, num_echoes = DEFAULT_ECHOES;
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &probing->file.path, "FILE", "topology file to write (required)"},
        {"--hosts", CLI_TEXT, &probing->hosts_text, "HOST:PORT,...",
            "addresses of the hosts' agents (phloem topology agent), as all hosts reach them. Default: the "
            "hosts on which mpirun has started ranks of this command"},
        {"--host-file", CLI_TEXT, &probing->host_file, "FILE", "the same, an address a line"},
        {"--secret-file", CLI_TEXT, &probing->secret_file, "FILE", "secret of the agents"},
        {"--page", CLI_TEXT, &probing->page, "FILE", "also writes a page that draws the network"},
        {"--seconds", CLI_TEXT, &seconds, "N", "longest time of the probe; default: no limit"},
        {"--bytes", CLI_TEXT, &bytes, "N", "most bytes that the probe sends; default: no limit"},
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
    probing->options = (struct ph__netprobe_options){.share = .5};
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (probing->file.path == NULL)
        return ph_fail(PH_ERROR_USAGE, "topology probe requires --out FILE");
    PH_TRY(parse_number("--seconds", seconds, 1e-3, 1e7, &probing->options.seconds));
    PH_TRY(parse_number("--bytes", bytes, 1, 1e18, &most_bytes));
    PH_TRY(parse_number("--share", share, .001, 1, &probing->options.share));
    PH_TRY(parse_number("--echoes", echoes, LEAST_ECHOES, PH_NETPROBE_MAX_ECHOES, &num_echoes));
    probing->options.bytes = (uint64_t)most_bytes;
    probing->options.num_echoes = (uint32_t)num_echoes;
    if (snprintf(probing->file.part_path, sizeof probing->file.part_path, "%s.part", probing->file.path) >=
        (int)sizeof probing->file.part_path)
        return ph_fail(PH_ERROR_USAGE, "--out: the path is too long");
    return PH_OK;
}

/* ---- hosts ---- */

static ph_status add_host(
    struct probing *probing, const char *name, const char *const *addresses, size_t count)
{
    if (probing->num_hosts == MOST_HOSTS)
        return ph_fail(PH_ERROR_USAGE, "a probe has at most %d hosts", MOST_HOSTS);
    PH_TRY(ph__array_reserve(
        (void **)&probing->hosts, &probing->capacity, probing->num_hosts + 1, sizeof *probing->hosts));
    probing->hosts[probing->num_hosts++] =
        (struct ph__netprobe_host){.name = name, .addresses = addresses, .num_addresses = count};
    return PH_OK;
}

/* Adds the host of an agent at an address of `length` bytes. */
static ph_status add_agent(struct probing *probing, const char *text, size_t length)
{
    const char **address = ph__arena_alloc(&probing->arena, sizeof *address);
    const char *copy = ph__arena_printf(&probing->arena, "%.*s", (int)length, text);
    const char *colon = copy != NULL ? strrchr(copy, ':') : NULL;
    if (address == NULL || copy == NULL)
        return PH_ERROR_MEMORY;
    if (colon == NULL || colon == copy || length >= PH_ADDRESS_BYTES)
        return ph_fail(PH_ERROR_USAGE, "'%s' is not an address of an agent: write HOST:PORT", copy);
    const bool is_bracketed = copy[0] == '[' && colon[-1] == ']';
    const char *name = ph__arena_printf(
        &probing->arena, "%.*s", (int)(colon - copy) - 2 * is_bracketed, copy + is_bracketed);
    *address = copy;
    return name != NULL ? add_host(probing, name, address, 1) : PH_ERROR_MEMORY;
}

static ph_status add_listed(struct probing *probing, const char *text)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        PH_TRY(add_agent(probing, text, length));
        text += length + (text[length] == ',');
    }
    return PH_OK;
}

static ph_status add_from_file(struct probing *probing)
{
    struct ph__reader *reader;
    char *line;
    size_t length;
    PH_TRY(ph__reader_open(probing->host_file, &reader));
    ph_status status = PH_OK;
    while (status == PH_OK && (status = ph__reader_line(reader, &line, &length)) == PH_OK && line != NULL) {
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t");
        length = strcspn(line, " \t");
        if (length > 0)
            status = add_agent(probing, line, length);
    }
    ph__reader_close(reader);
    return status;
}

/* Gives hosts of the same name their agents' addresses as names. */
static void name_apart(struct probing *probing)
{
    bool is_apart = true;
    for (size_t i = 0; i < probing->num_hosts; i++)
        for (size_t k = 0; k < i; k++)
            is_apart &= strcmp(probing->hosts[i].name, probing->hosts[k].name) != 0;
    for (size_t i = 0; i < probing->num_hosts && !is_apart; i++)
        probing->hosts[i].name = probing->hosts[i].addresses[0];
}

/* ---- the probe ---- */

static ph_status save(void *context)
{
    return cli_topology_part_write(context);
}

static size_t count_pairs(const struct ph__netprobe_result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < result->num_hosts * result->num_hosts; i++)
        count += isnan(result->pairs[i].bytes_per_ns) ? 0 : 1;
    return count;
}

/* Keeps what was measured, and says so behind the error. */
static ph_status keep_part(struct probing *probing, ph_status status)
{
    char text[900];
    const struct ph__netprobe_result *result = &probing->file.result;
    const size_t n = result->num_hosts, count = count_pairs(result);
    size_t missing = 0;
    snprintf(text, sizeof text, "%s", ph_error_text());
    PH_TRY(cli_topology_part_write(&probing->file));
    while (missing < n * n && (missing / n == missing % n || !isnan(result->pairs[missing].bytes_per_ns)))
        missing++;
    if (missing == n * n)
        return ph_fail(status, "%s; all pairs are in '%s', not all trunks: --resume goes on", text,
            probing->file.part_path);
    return ph_fail(status, "%s; %zu of %zu pairs are in '%s' (%s to %s is missing): --resume goes on", text,
        count, n * (n - 1), probing->file.part_path, probing->hosts[missing / n].name,
        probing->hosts[missing % n].name);
}

static ph_status find_groups(struct ph__netprobe_result *result, uint32_t *groups)
{
    const size_t n = result->num_hosts;
    double *numbers = calloc(2 * n * n, sizeof *numbers);
    if (numbers == NULL)
        return ph__out_of_memory("the ways between %zu hosts", n);
    for (size_t i = 0; i < n * n; i++) {
        numbers[i] = 1 / result->pairs[i].bytes_per_ns;
        numbers[n * n + i] = result->pairs[i].latency_ns;
    }
    const struct ph__host_distances measured = {n, numbers, numbers + n * n};
    const ph_status status = ph__host_groups_find(&measured, groups, &result->num_groups);
    free(numbers);
    result->groups = groups;
    return status;
}

/* Groups hosts whose pairs are all known, and makes room for the trunks, of which a part may hold some. */
static ph_status begin_trunks(struct probing *probing, uint32_t *groups)
{
    struct ph__netprobe_result *result = &probing->file.result;
    PH_TRY(find_groups(result, groups));
    const size_t count = result->num_groups * result->num_groups;
    result->trunks = calloc(count, sizeof *result->trunks);
    if (result->trunks == NULL)
        return ph__out_of_memory("the trunks of %zu groups", result->num_groups);
    for (size_t i = 0; i < count; i++)
        result->trunks[i] = (double)NAN;
    return probing->is_resumed ? cli_topology_part_read(&probing->file) : PH_OK;
}

/* Takes up what FILE.part has, and writes it, which fails before anything is measured. */
static ph_status begin(struct probing *probing, uint32_t *groups)
{
    const size_t n = probing->num_hosts;
    if (probing->is_resumed)
        PH_TRY(cli_topology_part_read(&probing->file));
    if (count_pairs(&probing->file.result) == n * (n - 1))
        PH_TRY(begin_trunks(probing, groups));
    return cli_topology_part_write(&probing->file);
}

static ph_status measure(struct probing *probing, struct ph__netprobe *probe, uint32_t *groups)
{
    PH_TRY(ph__netprobe_pairs(probe, &probing->file.result));
    free(probing->file.result.trunks); /* their groups may be others by now */
    PH_TRY(begin_trunks(probing, groups));
    return ph__netprobe_trunks(probe, &probing->file.result);
}

static ph_status measure_and_write(struct probing *probing, uint32_t *groups)
{
    struct ph__netprobe *probe;
    PH_TRY(begin(probing, groups));
    ph_status status = ph__netprobe_open(&probing->options, probing->hosts, probing->num_hosts, &probe);
    if (status == PH_OK) {
        status = measure(probing, probe, groups);
        ph__netprobe_close(probe);
    }
    if (status != PH_OK)
        return keep_part(probing, status);
    PH_TRY(cli_topology_file_write(&probing->file));
    return cli_topology_print(probing->file.path, probing->page);
}

/* Measures the network between the hosts, by their agents. */
static ph_status probe_hosts(struct probing *probing)
{
    struct ph__netprobe_result *result = &probing->file.result;
    const size_t n = probing->num_hosts;
    if (n < 2)
        return ph_fail(PH_ERROR_USAGE,
            "topology probe requires two hosts or more, by --hosts HOST:PORT,HOST:PORT or mpirun, and there "
            "is %s%s",
            n == 1 ? "only " : "none", n == 1 ? probing->hosts[0].name : "");
    name_apart(probing);
    uint32_t *groups = calloc(n, sizeof *groups);
    result->pairs = calloc(n * n, sizeof *result->pairs);
    result->num_hosts = n;
    probing->file.hosts = probing->hosts;
    probing->options.stop_signal = cli_stop_signal();
    probing->options.save = save;
    probing->options.save_context = &probing->file;
    for (size_t i = 0; result->pairs != NULL && i < n * n; i++)
        result->pairs[i] = (struct ph__netprobe_pair){.latency_ns = (double)NAN, .bytes_per_ns = (double)NAN};
    const ph_status status = groups != NULL && result->pairs != NULL
                                 ? measure_and_write(probing, groups)
                                 : ph__out_of_memory("a probe of %zu hosts", n);
    free(result->trunks);
    free(result->pairs);
    free(groups);
    return status;
}

/* ---- ranks ---- */

static ph_status probe_as_first(void *context, const struct ph__meanwhile *meanwhile)
{
    struct probing *probing = context;
    probing->options.meanwhile = *meanwhile;
    return probe_hosts(probing);
}

/* Adds a rank's host by what its agent has told: its name, then an address a line. Other ranks tell nothing.
 */
static ph_status hear_agent(void *context, size_t rank, const char *text, size_t size)
{
    struct probing *probing = context;
    size_t count = 0;
    (void)rank;
    if (size == 0)
        return PH_OK;
    char *left = ph__arena_strdup(&probing->arena, text);
    const char **addresses =
        ph__arena_alloc_array(&probing->arena, PH_WATCH_MAX_ADDRESSES, sizeof *addresses);
    if (left == NULL || addresses == NULL)
        return PH_ERROR_MEMORY;
    const char *name = strsep(&left, "\n");
    while (left != NULL && count < PH_WATCH_MAX_ADDRESSES)
        addresses[count++] = strsep(&left, "\n");
    return add_host(probing, name, addresses, count);
}

static ph_status start_agent(const struct ph__secret *secret, struct ph__netprobe_agent **agent_out,
    char **text_out, struct ph__arena *arena)
{
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    PH_TRY(ph__watch_hosts(false, hosts, &num_hosts));
    if (num_hosts == 0)
        return ph_fail(PH_ERROR_PEER, "this host has no address that other hosts can reach");
    if (ph__netprobe_agent_create("[::]:0", secret, agent_out) != PH_OK)
        PH_TRY(ph__netprobe_agent_create("0.0.0.0:0", secret, agent_out));
    const char *port = strrchr(ph__netprobe_agent_address(*agent_out), ':');
    *text_out = ph__arena_printf(arena, "%s", ph__watch_self(0).host);
    for (size_t i = 0; i < num_hosts && *text_out != NULL; i++)
        *text_out = ph__arena_printf(
            arena, strchr(hosts[i], ':') != NULL ? "%s\n[%s]%s" : "%s\n%s%s", *text_out, hosts[i], port);
    return *text_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status draw_secret(struct ph_comm *comm, struct ph__secret *secret)
{
    secret->size = PH_WATCH_SECRET_BYTES;
    PH_TRY(ph__random_bytes(secret->bytes, secret->size));
    return ph__comm_broadcast_once(comm, "secret of the probe", 0, secret->bytes, secret->size);
}

static ph_status probe_with_agent(
    struct probing *probing, struct ph_comm *comm, struct ph__netprobe_agent **agent)
{
    char *text = NULL;
    ph_status status = PH_OK;
    PH_TRY(draw_secret(comm, &probing->secret));
    if (ph__comm_host(comm)->own == 0)
        status = start_agent(&probing->secret, agent, &text, &probing->arena);
    PH_TRY(ph__comm_share(comm, status));
    text = text != NULL ? text : (char[]){""};
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
    if (probing->hosts_text != NULL)
        PH_TRY(add_listed(probing, probing->hosts_text));
    if (probing->host_file != NULL)
        PH_TRY(add_from_file(probing));
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
    if (status == PH_OK && (probing.hosts_text != NULL || probing.host_file != NULL))
        status = probe_agents(&probing);
    else if (!is_done)
        status = cli_with_ranks(&ranks, status);
    ph__secret_fini(&probing.secret);
    ph__arena_fini(&probing.arena);
    free(probing.hosts);
    return status;
}
