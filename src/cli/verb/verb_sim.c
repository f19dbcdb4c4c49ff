/* phloem sim CONFIG --world N --topology FILE [--profile FILE] [--out DIR] */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory/absent.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "cli/arguments.h"
#include "cli/verb.h"
#include "data/batch/shared_batches.h"
#include "sim/simulator.h"
#include "sim/world.h"
#include "train/config/job_config.h"
#include "train/ranks/ranks.h"

#define MOST_TRACED_RANKS 64 /* by default: a thousand ranks leave gigabytes */
#define TRACED_STEPS 3       /* by default */
#define SLACK .03            /* of the network: see docs/SIMULATOR.md for what less would cost and bring */

struct request {
    const char *config, *topology, *profile, *folder;
    size_t world_size;
    const char *trace_steps; /* NULL: by the number of ranks */
    struct cli_texts sets;
};

struct simulating {
    const struct request *request;
    struct ph_config config;
    struct ph_encoder *encoder;
    struct ph__shared_batches *batches;
    struct ph__shared_plan plan;
    struct ph__fabric fabric;
    struct ph_backend *measuring;
    struct ph__op_times *times;
    struct ph__simulation *simulation;
    struct ph__absent absent;
    char trace_path[1024];           /* of the timeline; empty: none */
    char chakra_folder[1024];        /* of Chakra traces */
    struct ph__chakra *chakra;       /* NULL: none */
    struct ph_train_summary summary; /* of rank 0 */
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const char *world = NULL;
    int64_t count;
    const struct cli_flag flags[] = {
        {"--world", CLI_TEXT, &world, "N", "number of ranks; default: as many as the topology has room for"},
        {"--topology", CLI_TEXT, &request->topology, "FILE",
            "the cluster, as configs/topology has some (required)"},
        {"--profile", CLI_TEXT, &request->profile, "FILE",
            "times of operators; those that are missing are measured and added. Default: all are measured, "
            "for this run alone"},
        {"--out", CLI_TEXT, &request->folder, "DIR", "folder for summary.json and metrics (required)"},
        {"--trace-steps", CLI_TEXT, &request->trace_steps, "N",
            "leaves DIR/trace.json, a timeline, and DIR/chakra/rank.<r>.et, Chakra traces of the first N "
            "steps; 0: neither. Default: 3 up to 64 ranks, else 0"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"sim", "sim config.yaml --topology configs/topology/star8.yaml",
        "Simulates the training of CONFIG on the ranks of a cluster: the program is the same, operators "
        "take\n"
        "the time that they take on this machine, messages the time that the cluster's network gives them.",
        "CONFIG", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (request->topology == NULL || request->folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "sim requires --topology FILE and --out DIR");
    if (world != NULL && (!ph__integer_parse(world, &count) || count < 1 || count > 65536))
        return ph_fail(PH_ERROR_USAGE, "--world must be from 1 to 65536, not '%s'", world);
    request->world_size = world != NULL ? (size_t)count : 0;
    request->config = arguments.positional[0];
    return PH_OK;
}

/* Runs a rank. No rank prefetches, and none evaluates or saves. */
static ph_status train(struct ph_comm *comm, void *context)
{
    struct simulating *simulating = context;
    struct ph_train_summary summary;
    struct ph__train_job job = ph__config_job(&simulating->config);
    ph__absent_use(&simulating->absent);
    ph__simulation_join(simulating->simulation);
    job.backend = ph__simulation_backend(simulating->simulation);
    job.encoder = simulating->encoder;
    job.paths.valid = job.paths.test = NULL;
    job.shared_batches = simulating->batches;
    job.shared_plan = &simulating->plan;
    job.reading.num_prefetched = 0;
    job.options = (struct ph_train_options){.size = sizeof job.options,
        .comm = comm,
        .folder = simulating->request->folder,
        .trace_path = simulating->trace_path[0] != '\0' ? simulating->trace_path : NULL};
    const ph_status status = ph__train(&job, &summary);
    if (status == PH_OK && ph_comm_rank(comm) == 0)
        simulating->summary = summary;
    return status;
}

static ph_status check_world(struct simulating *simulating, struct request *request)
{
    const size_t room = simulating->fabric.num_hosts * simulating->fabric.ranks_per_host;
    if (request->world_size == 0)
        request->world_size = room;
    if (request->world_size > room)
        return ph_fail(PH_ERROR_CONFIG, "%s: the cluster has room for %zu ranks, not %zu", request->topology,
            room, request->world_size);
    if (simulating->config.parallel.sync == PH_SYNC_HUB)
        return ph_fail(
            PH_ERROR_CONFIG, "parallel.sync: 'hub' cannot be simulated: set parallel.sync=allreduce");
    return PH_OK;
}

static uint64_t row_bytes(const void *batches)
{
    return ph__shared_batches_row_bytes(batches);
}

static ph_status create_simulation(struct simulating *simulating, size_t world_size)
{
    const struct ph__simulation_options options = {.measuring = simulating->measuring,
        .times = simulating->times,
        .world_size = world_size,
        .host_bytes = simulating->fabric.host_bytes,
        .shared_bytes = row_bytes,
        .shared_context = simulating->batches};
    return ph__simulation_create(&options, &simulating->simulation);
}

/* Lets the ranks leave traces, where they are wanted. A single rank counts no steps, and has no messages. */
static ph_status prepare_traces(struct simulating *simulating, const struct request *request)
{
    int64_t num_steps = request->world_size <= MOST_TRACED_RANKS ? TRACED_STEPS : 0;
    if (request->trace_steps != NULL &&
        (!ph__integer_parse(request->trace_steps, &num_steps) || num_steps < 0))
        return ph_fail(
            PH_ERROR_USAGE, "--trace-steps must be a number of steps, not '%s'", request->trace_steps);
    if (num_steps == 0)
        return PH_OK;
    snprintf(simulating->trace_path, sizeof simulating->trace_path, "%s/trace.json", request->folder);
    snprintf(simulating->chakra_folder, sizeof simulating->chakra_folder, "%s/chakra", request->folder);
    const struct ph__chakra_options options = {
        simulating->chakra_folder, request->world_size, (uint64_t)num_steps};
    return request->world_size > 1 ? ph__chakra_create(&options, &simulating->chakra) : PH_OK;
}

static void tell_traces(const struct simulating *simulating, const struct request *request)
{
    if (simulating->chakra != NULL)
        printf("traces: %s and %s\n", simulating->trace_path, simulating->chakra_folder);
    else if (simulating->trace_path[0] != '\0')
        printf("trace: %s\n", simulating->trace_path);
    else if (request->trace_steps == NULL)
        printf("no traces of more than %d ranks without --trace-steps\n", MOST_TRACED_RANKS);
}

static ph_status prepare(struct simulating *simulating, struct request *request)
{
    struct ph_config *config = &simulating->config;
    PH_TRY(ph__job_config_read(config, request->config, request->sets.items, request->sets.count));
    PH_TRY(ph__fabric_read(request->topology, &simulating->fabric));
    PH_TRY(check_world(simulating, request));
    PH_TRY(prepare_traces(simulating, request));
    config->train.report = false;
    PH_TRY(ph_encoder_create(&config->data, &simulating->encoder));
    PH_TRY(ph__shared_batches_create(request->world_size, &simulating->batches));
    const struct ph_backend_options options = {
        .size = sizeof options, .num_threads = config->run.num_threads, .team = config->run.team};
    PH_TRY(ph_backend_create(&options, &simulating->measuring));
    const struct ph__op_times_options times = {request->profile, simulating->measuring, true};
    PH_TRY(ph__op_times_open(&times, &simulating->times));
    PH_TRY(ph__absent_init(&simulating->absent));
    return create_simulation(simulating, request->world_size);
}

static ph_status simulate(struct simulating *simulating, struct request *request)
{
    struct ph__world_figures figures;
    PH_TRY(prepare(simulating, request));
    const struct ph__world_options options = {.fabric = &simulating->fabric,
        .world_size = request->world_size,
        .slack = SLACK,
        .work = ph__simulation_work,
        .work_context = simulating->simulation,
        .chakra = simulating->chakra,
        .comm = {.task = "phloem sim", .timeout_seconds = simulating->config.parallel.timeout_seconds}};
    const double began = ph__clock_seconds();
    const ph_status status = ph__world_run(&options, train, simulating, &figures);
    PH_TRY(ph__op_times_save(simulating->times));
    PH_TRY(status);
    if (simulating->chakra != NULL)
        PH_TRY(ph__chakra_finish(simulating->chakra));
    printf("simulated %zu ranks: %" PRIu64 " steps in %.6f s, %.0f samples/s (simulated)\n",
        request->world_size, simulating->summary.steps, simulating->summary.train_seconds,
        simulating->summary.samples_per_s);
    printf("%" PRIu64 " messages; %zu operators measured; %.1f s of wall time\n", figures.num_messages,
        ph__op_times_num_measured(simulating->times), ph__clock_seconds() - began);
    tell_traces(simulating, request);
    return PH_OK;
}

ph_status verb_sim(int argc, char **argv)
{
    struct request request = {0};
    struct simulating simulating = {.request = &request};
    bool is_done = false;
    ph_status status = parse(argc, argv, &request, &is_done);
    if (status == PH_OK && !is_done)
        status = simulate(&simulating, &request);
    ph__chakra_destroy(simulating.chakra);
    ph__simulation_destroy(simulating.simulation);
    ph__op_times_close(simulating.times);
    ph_backend_destroy(simulating.measuring);
    ph__absent_fini(&simulating.absent);
    ph__plan_fini(&simulating.plan.plan);
    ph__table_list_fini(&simulating.plan.tables);
    ph__shared_batches_destroy(simulating.batches);
    ph_encoder_destroy(simulating.encoder);
    ph__fabric_fini(&simulating.fabric);
    ph__job_config_fini(&simulating.config);
    return status;
}
