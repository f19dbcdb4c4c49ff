/* phloem sim CONFIG --topology FILE --out DIR [--world N] [--profile FILE] [--sweep KEY=V1,V2,...]
 * phloem sim run ...: sim_run.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/absent.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "cli/arguments.h"
#include "cli/progress.h"
#include "cli/sim/sim_run.h"
#include "cli/sim/sim_sweep.h"
#include "cli/verb.h"
#include "data/batch/shared_batches.h"
#include "sim/simulator.h"
#include "sim/world.h"
#include "train/config/job_config.h"
#include "train/ranks/ranks.h"

#define MOST_TRACED_RANKS 64 /* by default: a thousand ranks leave gigabytes */
#define TRACED_STEPS 3       /* by default */
#define SLACK .03            /* of the network: see docs/SIMULATOR.md for what less would cost and bring */
#define MOST_SUMMARY_BYTES ((uint64_t)1 << 30)

struct request {
    struct cli_sim_case simulated;
    const char *profile;
    const char *trace_steps; /* NULL: by the number of ranks */
    int64_t num_trace_steps; /* where it is given */
    struct cli_texts sweeps;
    bool is_quiet, is_not_measured;
};

/* Things that the simulations of a command share. */
struct machine {
    const struct request *request;
    struct ph__arena arena;
    const char *profile, *profile_text; /* the file's path; with its label behind it */
    struct ph_backend *measuring;
    struct ph__op_times *times;
};

struct simulating {
    const struct cli_sim_case *simulated;
    size_t world_size;
    struct ph_config config;
    struct ph_encoder *encoder;
    struct ph__shared_batches *batches;
    struct ph__shared_plan plan;
    struct ph__fabric fabric;
    struct ph__simulation *simulation;
    struct ph__absent absent;
    char trace_path[1024];           /* of the timeline; empty: none */
    char chakra_folder[1024];        /* of Chakra traces */
    struct ph__chakra *chakra;       /* NULL: none */
    struct ph_train_summary summary; /* of rank 0 */
    uint64_t rank_bytes;             /* at its peak, of the rank that needs most: beyond its baseline */
    struct cli_progress progress;
    double began; /* wall time */
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    struct cli_sim_case *simulated = &request->simulated;
    const char *world = NULL;
    const struct cli_flag flags[] = {
        {"--world", CLI_TEXT, &world, "N", "number of ranks; default: as many as the topology has room for"},
        {"--topology", CLI_TEXT, &simulated->topology, "FILE",
            "the cluster, as configs/topology has some (required)"},
        {"--profile", CLI_TEXT, &request->profile, "FILE",
            "times of operators; those that are missing are measured and added. Default: a file of this "
            "machine's in ~/.cache/phloem"},
        {"--no-measure", CLI_SWITCH, &request->is_not_measured, NULL,
            "takes the profile as it is, which may be another machine's: an operator that it lacks is an "
            "error"},
        {"--out", CLI_TEXT, &simulated->folder, "DIR", "folder for summary.json and metrics (required)"},
        {"--trace-steps", CLI_TEXT, &request->trace_steps, "N",
            "leaves DIR/trace.json, a timeline, and DIR/chakra/rank.<r>.et, Chakra traces of the first N "
            "steps; 0: neither. Default: 3 up to 64 ranks, else 0; 0 for a sweep"},
        {"--sweep", CLI_TEXTS, &request->sweeps, "KEY=V1,V2,...",
            "simulates each of the values; KEY is world, topology or a key of the config. Given again, each "
            "combination"},
        {"--set", CLI_TEXTS, &simulated->sets, "KEY=VALUE", "overrides the config's value"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints no progress"},
    };
    const struct cli_command command = {"sim",
        "sim config.yaml --topology configs/topology/star8.yaml --out runs/sim",
        "Simulates the training of CONFIG on the ranks of a cluster: the program is the same, operators "
        "take\n"
        "the time that they take on this machine, messages the time that the cluster's network gives them.\n"
        "A sweep leaves DIR/sweep.csv and DIR/report.html, and a folder for each combination.",
        "CONFIG", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (simulated->folder == NULL || (simulated->topology == NULL && request->sweeps.count == 0))
        return ph_fail(PH_ERROR_USAGE, "sim requires --topology FILE and --out DIR");
    if (request->trace_steps != NULL &&
        (!ph__integer_parse(request->trace_steps, &request->num_trace_steps) || request->num_trace_steps < 0))
        return ph_fail(
            PH_ERROR_USAGE, "--trace-steps must be a number of steps, not '%s'", request->trace_steps);
    simulated->config = arguments.positional[0];
    return world != NULL ? cli_sim_world_parse("--world", world, &simulated->world_size) : PH_OK;
}

/* Shows how far the training is, in its own time and in this machine's. */
static ph_status show_progress(void *context, const struct ph_train_progress *progress)
{
    struct simulating *simulating = context;
    struct cli_simulated shown = {
        .step = progress->step, .total_steps = progress->total_steps, .seconds = ph__clock_seconds()};
    ph__world_step_out(true);
    shown.wall_seconds = ph__clock_seconds() - simulating->began;
    ph__world_step_out(false);
    cli_progress_show_simulation(&simulating->progress, &shown);
    return PH_OK;
}

/* Runs a rank. No rank prefetches, and none evaluates or saves. */
static ph_status train(struct ph_comm *comm, void *context)
{
    struct simulating *simulating = context;
    struct ph_train_summary summary;
    struct ph__train_job job = ph__config_job(&simulating->config);
    const struct ph_train_observer observer = {
        .size = sizeof observer, .context = simulating, .on_progress = show_progress};
    ph__absent_use(&simulating->absent);
    ph__simulation_join(simulating->simulation);
    job.backend = ph__simulation_backend(simulating->simulation);
    job.encoder = simulating->encoder;
    job.paths.valid = job.paths.test = NULL;
    job.shared_batches = simulating->batches;
    job.shared_plan = &simulating->plan;
    job.fabric = &simulating->fabric;
    job.reading.num_prefetched = 0;
    job.options = (struct ph_train_options){.size = sizeof job.options,
        .comm = comm,
        .folder = simulating->simulated->folder,
        .trace_path = simulating->trace_path[0] != '\0' ? simulating->trace_path : NULL};
    if (ph_comm_rank(comm) == 0 && simulating->progress.is_live)
        job.options.observer = &observer;
    PH_TRY(ph__train(&job, &summary));
    const uint64_t bytes = summary.memory.peak_anonymous_bytes - summary.memory.baseline_bytes;
    simulating->rank_bytes = bytes > simulating->rank_bytes ? bytes : simulating->rank_bytes;
    if (ph_comm_rank(comm) == 0)
        simulating->summary = summary;
    return PH_OK;
}

static ph_status check_world(struct simulating *simulating)
{
    const size_t room = simulating->fabric.num_hosts * simulating->fabric.ranks_per_host;
    const size_t wanted = simulating->simulated->world_size;
    if (wanted > room)
        return ph_fail(PH_ERROR_CONFIG, "%s: the cluster has room for %zu ranks, not %zu",
            simulating->simulated->topology, room, wanted);
    if (simulating->config.parallel.sync == PH_SYNC_HUB)
        return ph_fail(
            PH_ERROR_CONFIG, "parallel.sync: 'hub' cannot be simulated: set parallel.sync=allreduce");
    simulating->world_size = wanted > 0 ? wanted : room;
    return PH_OK;
}

static uint64_t row_bytes(const void *batches)
{
    return ph__shared_batches_row_bytes(batches);
}

static ph_status create_simulation(struct simulating *simulating, const struct machine *machine)
{
    const struct ph__simulation_options options = {.measuring = machine->measuring,
        .times = machine->times,
        .world_size = simulating->world_size,
        .host_bytes = simulating->fabric.host_bytes,
        .shared_bytes = row_bytes,
        .shared_context = simulating->batches};
    return ph__simulation_create(&options, &simulating->simulation);
}

/* Lets the ranks leave traces, where they are wanted. A single rank counts no steps, and has no messages. */
static ph_status prepare_traces(struct simulating *simulating, const struct request *request)
{
    const char *folder = simulating->simulated->folder;
    const bool is_traced = request->sweeps.count == 0 && simulating->world_size <= MOST_TRACED_RANKS;
    int64_t num_steps = is_traced ? TRACED_STEPS : 0;
    if (request->trace_steps != NULL)
        num_steps = request->num_trace_steps;
    if (num_steps == 0)
        return PH_OK;
    snprintf(simulating->trace_path, sizeof simulating->trace_path, "%s/trace.json", folder);
    snprintf(simulating->chakra_folder, sizeof simulating->chakra_folder, "%s/chakra", folder);
    const struct ph__chakra_options options = {
        simulating->chakra_folder, simulating->world_size, (uint64_t)num_steps};
    return simulating->world_size > 1 ? ph__chakra_create(&options, &simulating->chakra) : PH_OK;
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

/* Reads and makes all that a simulation needs. Each step is reported as it ends: a second of simulated time
 * may take an hour. */
static ph_status prepare(struct simulating *simulating, const struct machine *machine)
{
    const struct cli_sim_case *simulated = simulating->simulated;
    struct ph_config *config = &simulating->config;
    PH_TRY(ph__job_config_read(config, simulated->config, simulated->sets.items, simulated->sets.count));
    PH_TRY(ph__fabric_read(simulated->topology, &simulating->fabric));
    PH_TRY(check_world(simulating));
    PH_TRY(prepare_traces(simulating, machine->request));
    config->train.report = false;
    config->train.report_seconds = 0;
    PH_TRY(ph_encoder_create(&config->data, &simulating->encoder));
    PH_TRY(ph__shared_batches_create(simulating->world_size, &simulating->batches));
    PH_TRY(ph__absent_init(&simulating->absent));
    return create_simulation(simulating, machine);
}

/* ---- the summary ---- */

static struct ph__json *simulation_json(
    const struct simulating *simulating, const struct machine *machine, const struct ph__world_figures *world)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_text(object, "topology", simulating->simulated->topology);
    ph__json_set_text(object, "profile", machine->profile);
    ph__json_set_text(object, "profile_label", ph__op_times_label(machine->times));
    ph__json_set_integer(object, "messages", (int64_t)world->num_messages);
    ph__json_set_integer(object, "rank_bytes", (int64_t)simulating->rank_bytes);
    return object;
}

/* Takes the figures from summary.json, and adds to it what was simulated. */
static ph_status finish_summary(const struct simulating *simulating, const struct machine *machine,
    const struct ph__world_figures *world, struct cli_sim_figures *figures_out)
{
    const struct ph_train_summary *summary = &simulating->summary;
    const double steps = (double)summary->steps;
    struct ph__arena arena = {0};
    struct ph__json *json = NULL;
    const char *path = ph__path_join(&arena, simulating->simulated->folder, "summary.json");
    ph_status status =
        path != NULL ? ph__json_read(path, PH_ERROR_DISK, MOST_SUMMARY_BYTES, &json) : PH_ERROR_MEMORY;
    const struct ph__json *ranks = ph__json_get(json, "ranks"); /* NULL: one rank, which sends nothing */
    const double exposed = ph__json_as_number(ph__json_get(ranks, "exposed_share"), 0);
    *figures_out = (struct cli_sim_figures){.num_ranks = (double)simulating->world_size,
        .samples_per_s = summary->samples_per_s,
        .step_seconds = summary->train_seconds / steps,
        .computed_share = 1 - exposed,
        .exposed_share = exposed,
        .sent_bytes = ph__json_as_number(ph__json_get(ranks, "sent_bytes"), 0) / steps,
        .rank_bytes = (double)simulating->rank_bytes};
    if (status == PH_OK) {
        ph__json_set(json, "simulation", simulation_json(simulating, machine, world));
        status = ph__json_write(json, path);
    }
    ph__json_destroy(json);
    ph__arena_fini(&arena);
    return status;
}

/* ---- one simulation ---- */

static ph_status run_world(
    struct simulating *simulating, const struct machine *machine, struct ph__world_figures *figures_out)
{
    const struct ph__world_options options = {.fabric = &simulating->fabric,
        .world_size = simulating->world_size,
        .slack = SLACK,
        .work = ph__simulation_work,
        .work_context = simulating->simulation,
        .is_untimed = simulating->world_size > 1, /* a single rank counts no steps */
        .chakra = simulating->chakra,
        .comm = {.task = "phloem sim", .timeout_seconds = simulating->config.parallel.timeout_seconds}};
    const ph_status status = ph__world_run(&options, train, simulating, figures_out);
    cli_progress_end(&simulating->progress);
    PH_TRY(ph__op_times_save(machine->times));
    PH_TRY(status);
    if (simulating->chakra != NULL)
        PH_TRY(ph__chakra_finish(simulating->chakra));
    return ph__op_times_missing(machine->times);
}

static void fini(struct simulating *simulating)
{
    ph__chakra_destroy(simulating->chakra);
    ph__simulation_destroy(simulating->simulation);
    ph__absent_fini(&simulating->absent);
    ph__plan_fini(&simulating->plan.plan);
    ph__table_list_fini(&simulating->plan.tables);
    ph__shared_batches_destroy(simulating->batches);
    ph_encoder_destroy(simulating->encoder);
    ph__fabric_fini(&simulating->fabric);
    ph__job_config_fini(&simulating->config);
}

static void print(const struct simulating *simulating, const struct machine *machine,
    const struct ph__world_figures *world, const struct cli_sim_figures *figures)
{
    printf("simulated %zu ranks: %" PRIu64 " steps in %.6f s, %.0f samples/s (simulated)\n",
        simulating->world_size, simulating->summary.steps, simulating->summary.train_seconds,
        simulating->summary.samples_per_s);
    printf("%" PRIu64 " messages; %zu operators measured; %.1f s of wall time\n", world->num_messages,
        ph__op_times_num_measured(machine->times), figures->wall_seconds);
    printf("profile: %s\n", machine->profile_text);
    tell_traces(simulating, machine->request);
}

static ph_status simulate(
    void *context, const struct cli_sim_case *simulated, struct cli_sim_figures *figures_out)
{
    const struct machine *machine = context;
    const struct request *request = machine->request;
    struct simulating simulating = {.simulated = simulated, .began = ph__clock_seconds()};
    struct ph__world_figures world;
    if (!request->is_quiet)
        simulating.progress = cli_progress_on(stdout);
    ph_status status = prepare(&simulating, machine);
    if (status == PH_OK)
        status = run_world(&simulating, machine, &world);
    if (status == PH_OK)
        status = finish_summary(&simulating, machine, &world, figures_out);
    figures_out->wall_seconds = ph__clock_seconds() - simulating.began;
    if (status == PH_OK && request->sweeps.count == 0)
        print(&simulating, machine, &world, figures_out);
    fini(&simulating);
    return status;
}

/* ---- the command ---- */

/* Opens the profile, for the threads of a case's config. */
static ph_status open_machine(struct machine *machine, const struct cli_sim_case *simulated)
{
    const struct request *request = machine->request;
    struct ph_config config = {0};
    ph_status status =
        ph__job_config_read(&config, simulated->config, simulated->sets.items, simulated->sets.count);
    const struct ph_backend_options options = {
        .size = sizeof options, .num_threads = config.run.num_threads, .team = config.run.team};
    ph__job_config_fini(&config);
    PH_TRY(status);
    PH_TRY(ph_backend_create(&options, &machine->measuring));
    machine->profile = request->profile;
    if (request->profile == NULL)
        PH_TRY(ph__op_times_place(machine->measuring, &machine->arena, &machine->profile));
    const struct ph__op_times_options times = {
        machine->profile, machine->measuring, !request->is_not_measured};
    PH_TRY(ph__op_times_open(&times, &machine->times));
    const char *label = ph__op_times_label(machine->times);
    machine->profile_text = machine->profile;
    if (label != NULL)
        machine->profile_text = ph__arena_printf(&machine->arena, "%s (%s)", machine->profile, label);
    return machine->profile_text != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status run_one(struct machine *machine)
{
    struct cli_sim_figures figures;
    PH_TRY(open_machine(machine, &machine->request->simulated));
    return simulate(machine, &machine->request->simulated, &figures);
}

static ph_status run_sweep(struct machine *machine)
{
    const struct request *request = machine->request;
    struct cli_sim_sweep sweep;
    bool has_checkpoint;
    ph_status status = cli_sim_sweep_init(&sweep, &request->simulated, &request->sweeps);
    if (status == PH_OK)
        status = open_machine(machine, &sweep.rows[0].simulated);
    if (status == PH_OK)
        status = ph__train_check_folder(request->simulated.folder, false, &has_checkpoint);
    sweep.profile = machine->profile_text;
    if (status == PH_OK)
        status = cli_sim_sweep_run(&sweep, simulate, machine, request->is_quiet);
    cli_sim_sweep_fini(&sweep);
    return status;
}

ph_status verb_sim(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "run") == 0)
        return cli_sim_run(argc - 1, argv + 1);
    struct request request = {0};
    struct machine machine = {.request = &request};
    bool is_done = false;
    ph_status status = parse(argc, argv, &request, &is_done);
    ph__absent_explain_touches();
    if (status == PH_OK && !is_done)
        status = request.sweeps.count > 0 ? run_sweep(&machine) : run_one(&machine);
    ph__op_times_close(machine.times);
    ph_backend_destroy(machine.measuring);
    ph__arena_fini(&machine.arena);
    return status;
}
