/* phloem sim run -n N --topology FILE [--collective NAME=ALGORITHM]... PROGRAM [ARGUMENTS] */
#include "cli/sim/sim_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "cli/arguments.h"
#include "cli/sim/sim_sweep.h"
#include "sim/players.h"
#include "sim/processes.h"

struct request {
    const char *topology, *folder, *preload;
    size_t num_ranks;
    double speed;
    bool is_compute_free, is_folded, is_quiet;
    int8_t algorithms[PH_RUN_NUM_COLLECTIVES];
    struct cli_arguments arguments;
};

struct running {
    const struct request *request;
    struct ph__fabric fabric;
    struct ph__processes *processes;
    struct ph__player_figures *ranks;
    uint64_t *link_bytes;
    double seconds, wall_seconds; /* simulated, and of this machine */
    uint64_t num_messages;
};

/* ---- the command line ---- */

static const char *const collectives[] = {
#define NAME(name, ...) #name,
    PH_RUN_COLLECTIVES(NAME)
#undef NAME
};
static const char *const algorithms[][PH_RUN_MOST_ALGORITHMS] = {
#define NAMES(name, ...) {__VA_ARGS__},
    PH_RUN_COLLECTIVES(NAMES)
#undef NAMES
};

/* Finds a word in a list of at most `most` names, which NULL may end before. */
static ph_status find(
    const char *what, const char *word, const char *const *names, size_t most, size_t *index_out)
{
    size_t i = 0;
    while (i < most && names[i] != NULL && strcmp(names[i], word) != 0)
        i++;
    *index_out = i;
    return i < most && names[i] != NULL ? PH_OK : cli_unknown(what, word, names, i);
}

/* Takes a choice such as allreduce=ring. */
static ph_status choose(struct request *request, const char *choice)
{
    char name[32];
    size_t collective, chosen;
    const size_t length = strcspn(choice, "=");
    if (choice[length] != '=')
        return ph_fail(PH_ERROR_USAGE,
            "--collective must be a collective and its algorithm, as in allreduce=ring, not '%s'", choice);
    snprintf(name, sizeof name, "%.*s", (int)length, choice);
    PH_TRY(find("collective", name, collectives, PH_RUN_NUM_COLLECTIVES, &collective));
    PH_TRY(find("algorithm", choice + length + 1, algorithms[collective], PH_RUN_MOST_ALGORITHMS, &chosen));
    request->algorithms[collective] = (int8_t)chosen;
    return PH_OK;
}

static ph_status check(
    struct request *request, const char *ranks, const char *speed, const struct cli_texts *choices)
{
    if (ranks == NULL || request->topology == NULL)
        return ph_fail(PH_ERROR_USAGE, "sim run requires -n N and --topology FILE");
    PH_TRY(cli_sim_world_parse("-n", ranks, &request->num_ranks));
    if (speed != NULL && (!ph__number_parse(speed, &request->speed) || !(request->speed > 0)))
        return ph_fail(PH_ERROR_USAGE, "--speed must be a number above 0, not '%s'", speed);
    for (size_t i = 0; i < choices->count; i++)
        PH_TRY(choose(request, choices->items[i]));
    return PH_OK;
}

static ph_status parse(int argc, char **argv, struct request *request)
{
    const char *ranks = NULL, *speed = NULL;
    struct cli_texts choices = {0};
    const struct cli_flag flags[] = {
        {"-n", CLI_TEXT, &ranks, "N", "number of processes (required)"},
        {"--topology", CLI_TEXT, &request->topology, "FILE",
            "the cluster, as configs/topology has some (required)"},
        {"--collective", CLI_TEXTS, &choices, "NAME=ALGORITHM",
            "allreduce=ring|doubling|rabenseifner, alltoall=pairwise|at_once|ring|bruck, "
            "bcast=tree|pipeline, allgather=ring|bruck. Default: by size and number of ranks"},
        {"--speed", CLI_TEXT, &speed, "F", "of the cluster's processors; this machine's is 1, the default"},
        {"--no-compute", CLI_SWITCH, &request->is_compute_free, NULL,
            "computing takes no time: each run gives the same times"},
        {"--fold-memory", CLI_SWITCH, &request->is_folded, NULL,
            "lets all large pieces of memory that the program allocates share their pages: sizes are right, "
            "values are not"},
        {"--preload", CLI_TEXT, &request->preload, "FILE",
            "a library that comes before MPI, such as libphloem_reorder_openmpi.so; several: FILE:FILE"},
        {"--out", CLI_TEXT, &request->folder, "DIR", "folder for summary.json"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints nothing but what the program prints"},
    };
    const struct cli_command command = {"sim run",
        "sim run -n 8 --topology configs/topology/star8.yaml ./my_mpi_program",
        "Runs an MPI program, which is linked with Open MPI 4 or MPICH 4, as N processes on this machine, "
        "and\n"
        "says how long it would take on a cluster: messages take the time that the cluster's network gives\n"
        "them, and computing takes the processor time that it takes here.",
        "PROGRAM [ARGUMENTS]", 1, PH_CLI_PROGRAM, flags, sizeof flags / sizeof *flags};
    PH_TRY(cli_parse(&command, argc, argv, &request->arguments));
    return request->arguments.has_printed_help ? PH_OK : check(request, ranks, speed, &choices);
}

/* ---- the summary ---- */

static struct ph__json *ranks_json(const struct running *running)
{
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < running->request->num_ranks; i++) {
        struct ph__json *object = ph__json_object();
        ph__json_set_number(object, "seconds", running->ranks[i].seconds);
        ph__json_set_number(object, "computed_seconds", running->ranks[i].computed_seconds);
        ph__json_set_number(object, "waited_seconds", running->ranks[i].waited_seconds);
        ph__json_set_integer(object, "messages", (int64_t)running->ranks[i].num_messages);
        ph__json_set_integer(object, "sent_bytes", (int64_t)running->ranks[i].sent_bytes);
        ph__json_append(array, object);
    }
    return array;
}

/* Lists the links that have carried anything, by the numbers of their nodes: hosts, then switches. */
static struct ph__json *links_json(const struct running *running)
{
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < running->fabric.num_links; i++) {
        if (running->link_bytes[i] == 0)
            continue;
        struct ph__json *object = ph__json_object();
        ph__json_set_integer(object, "from", running->fabric.links[i].from);
        ph__json_set_integer(object, "to", running->fabric.links[i].to);
        ph__json_set_integer(object, "bytes", (int64_t)running->link_bytes[i]);
        ph__json_append(array, object);
    }
    return array;
}

static ph_status write_summary(const struct running *running)
{
    const struct request *request = running->request;
    struct ph__arena arena = {0};
    struct ph__json *json = ph__json_object();
    ph__json_set_text(json, "label", "simulated");
    ph__json_set_text(json, "program", request->arguments.positional[0]);
    ph__json_set_text(json, "topology", request->topology);
    ph__json_set_integer(json, "world_size", (int64_t)request->num_ranks);
    ph__json_set_number(json, "speed", request->is_compute_free ? (double)INFINITY : request->speed);
    ph__json_set_number(json, "seconds", running->seconds);
    ph__json_set_integer(json, "messages", (int64_t)running->num_messages);
    ph__json_set_number(json, "wall_seconds", running->wall_seconds);
    ph__json_set(json, "ranks", ranks_json(running));
    ph__json_set(json, "links", links_json(running));
    ph_status status = ph__directory_create(request->folder);
    const char *path = ph__path_join(&arena, request->folder, "summary.json");
    if (status == PH_OK)
        status = path != NULL ? ph__json_write(json, path) : PH_ERROR_MEMORY;
    ph__json_destroy(json);
    ph__arena_fini(&arena);
    return status;
}

/* ---- the run ---- */

static ph_status prepare(struct running *running)
{
    const struct request *request = running->request;
    PH_TRY(ph__fabric_read(request->topology, &running->fabric));
    const size_t room = running->fabric.num_hosts * running->fabric.ranks_per_host;
    if (request->num_ranks > room)
        return ph_fail(PH_ERROR_CONFIG, "%s: the cluster has room for %zu ranks, not %zu", request->topology,
            room, request->num_ranks);
    running->ranks = calloc(request->num_ranks, sizeof *running->ranks);
    running->link_bytes = calloc(running->fabric.num_links + 1, sizeof *running->link_bytes);
    if (running->ranks == NULL || running->link_bytes == NULL)
        return ph__out_of_memory("figures of %zu ranks", request->num_ranks);
    const struct ph__processes_options options = {.arguments = request->arguments.positional,
        .preload = request->preload,
        .fabric = &running->fabric,
        .num_ranks = request->num_ranks,
        .is_compute_free = request->is_compute_free,
        .is_folded = request->is_folded,
        .algorithms = request->algorithms};
    return ph__processes_start(&options, &running->processes);
}

static ph_status play(struct running *running, int *code_out)
{
    const struct ph__players_options options = {.fabric = &running->fabric,
        .memory = ph__processes_memory(running->processes),
        .speed = running->request->speed,
        .check = ph__processes_check,
        .check_context = running->processes,
        .ranks_out = running->ranks,
        .link_bytes_out = running->link_bytes};
    ph_status status = ph__players_run(&options);
    *code_out = options.memory->exit_code;
    if (status == PH_OK)
        status = ph__processes_wait(running->processes, code_out);
    for (size_t i = 0; i < running->request->num_ranks; i++) {
        running->seconds = fmax(running->seconds, running->ranks[i].seconds);
        running->num_messages += running->ranks[i].num_messages;
    }
    return status;
}

static ph_status run(const struct request *request, int *code_out)
{
    struct running running = {.request = request};
    const double began = ph__clock_seconds();
    ph_status status = prepare(&running);
    if (status == PH_OK)
        status = play(&running, code_out);
    running.wall_seconds = ph__clock_seconds() - began;
    if (status == PH_OK && request->folder != NULL)
        status = write_summary(&running);
    if (status == PH_OK && !request->is_quiet)
        printf("simulated %zu ranks of %s: %.9f s (simulated); %" PRIu64 " messages; %.1f s of wall time\n",
            request->num_ranks, request->arguments.positional[0], running.seconds, running.num_messages,
            running.wall_seconds);
    ph__processes_destroy(running.processes);
    free(running.ranks);
    free(running.link_bytes);
    ph__fabric_fini(&running.fabric);
    return status;
}

ph_status cli_sim_run(int argc, char **argv)
{
    struct request request = {.speed = 1};
    int code = 0;
    memset(request.algorithms, PH_RUN_BY_RULE, sizeof request.algorithms);
    PH_TRY(parse(argc, argv, &request));
    if (request.arguments.has_printed_help)
        return PH_OK;
    const ph_status status = run(&request, &code);
    if (code == 0)
        return status;
    if (status != PH_OK)
        fprintf(stderr, "phloem: error: %s\n", ph_error_text());
    fflush(stdout);
    exit(code); /* the program's, which no status stands for */
}
