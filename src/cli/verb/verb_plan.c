/* phloem plan CONFIG --world N [--topology FILE] */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format/text_table.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/verb/inspect_source.h"
#include "cli/verb/machine_speed.h"
#include "cli/verb/plan_memory.h"
#include "cli/with_ranks.h"
#include "comm/collective/comm.h"
#include "plan/fabric.h"
#include "plan/plan_cost.h"
#include "plan/plan_units.h"
#include "train/config/table_facts.h"
#include "train/config/training_program.h"

#define MAX_WORLD 4096 /* the planner weighs every pair of ranks */
#define MOST_COLUMNS 8 /* ranks, or hosts, whose links are shown */

struct request {
    const char *path; /* config or folder */
    const char *out, *plan, *topology;
    struct cli_texts sets;
    int64_t world_size, ranks_per_host, rank_bytes; /* 0: no flag */
    bool is_measured, shows_memory;
};

/* The plan, and what it is made of. */
struct planning {
    const struct request *request;
    struct cli_source source;
    const char *topology_path; /* of the flag, else the config's; NULL: none */
    struct ph__topology topology;
    struct ph__table_list list;
    struct ph__plan_step step;
    size_t num_micro_batches;
    const char *given_title;         /* of the column of given figures; NULL: there are none */
    struct ph__plan_machine given;   /* by --measure or the topology; NaN: not known */
    uint64_t share_bytes;            /* a rank's share of memory by the topology, else of this machine's */
    struct ph__plan_machine machine; /* the plan is made for it */
    bool is_limited_by_machine; /* neither flag, config nor topology sets rank_bytes: this machine does */
    struct ph__plan plan;
    struct ph__plan_load *loads;
    struct ph__plan_links links;
    struct ph__memory_report memory;
};

static ph_status parse_count(const char *flag, const char *text, int64_t *count_out)
{
    if (ph__integer_parse(text, count_out) && *count_out > 0)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "%s must be a whole number above 0, not '%s'", flag, text);
}

static ph_status parse_counts(
    const char *world, const char *ranks_per_host, const char *memory, struct request *request)
{
    if (world != NULL)
        PH_TRY(parse_count("--world", world, &request->world_size));
    if (ranks_per_host != NULL)
        PH_TRY(parse_count("--ranks-per-host", ranks_per_host, &request->ranks_per_host));
    if (memory != NULL)
        PH_TRY(parse_count("--rank-memory", memory, &request->rank_bytes));
    return PH_OK;
}

/* ---- the machine ---- */

/* Takes ranks and hosts of a topology file, of which the flags and the config may take a part. */
static ph_status read_topology(struct planning *planning)
{
    const struct request *request = planning->request;
    const int64_t configured = planning->source.config.parallel.ranks_per_host;
    if (request->is_measured)
        return ph_fail(
            PH_ERROR_USAGE, "--measure takes no topology: leave out --topology, or set parallel.topology=");
    planning->given_title = "of the topology";
    planning->topology = (struct ph__topology){(size_t)request->world_size,
        (size_t)(request->ranks_per_host > 0 ? request->ranks_per_host : configured)};
    return ph__fabric_machine(planning->topology_path, &planning->topology, &planning->given);
}

/* Takes the ranks and hosts of the flags, else those of the ranks that measure, else the config's. */
static ph_status count_ranks(struct planning *planning, const struct ph_comm *comm)
{
    const struct request *request = planning->request;
    const bool is_of_ranks = request->world_size == 0 && comm != NULL && ph_comm_world_size(comm) > 1;
    const bool is_flag = request->ranks_per_host > 0;
    const int64_t world_size = is_of_ranks ? (int64_t)ph_comm_world_size(comm) : request->world_size;
    int64_t num_local = planning->source.config.parallel.ranks_per_host;
    if (world_size == 0)
        return ph_fail(PH_ERROR_USAGE, "plan requires --world N, the number of ranks");
    if (is_flag)
        num_local = request->ranks_per_host;
    else if (is_of_ranks)
        num_local = (int64_t)ph_comm_ranks_per_host(comm);
    num_local = num_local > 0 ? num_local : world_size;
    if (world_size % num_local != 0)
        return ph_fail(PH_ERROR_USAGE, "--world %" PRId64 " is not a multiple of %s %" PRId64, world_size,
            is_flag ? "--ranks-per-host" : "parallel.ranks_per_host", num_local);
    planning->topology = (struct ph__topology){(size_t)world_size, (size_t)num_local};
    return PH_OK;
}

static ph_status settle_topology(struct planning *planning, const struct ph_comm *comm)
{
    const char *flag = planning->request->topology;
    planning->topology_path = flag != NULL ? flag : planning->source.config.parallel.topology;
    PH_TRY(planning->topology_path != NULL ? read_topology(planning) : count_ranks(planning, comm));
    if (planning->topology.world_size > MAX_WORLD)
        return ph_fail(
            PH_ERROR_USAGE, "--world %zu: must be at most %d", planning->topology.world_size, MAX_WORLD);
    return PH_OK;
}

/* Settles the memory that a rank may spend, as a training does: from the flag or the config, else, for a new
 * plan, the rank's share of a host's memory by the topology, else of this machine's. */
static ph_status settle_rank_bytes(struct planning *planning, uint64_t *rank_bytes_out)
{
    const struct request *request = planning->request;
    const int64_t configured = planning->source.config.parallel.memory_bytes;
    uint64_t total_bytes;
    PH_TRY(ph__memory_total_bytes("", &total_bytes));
    planning->share_bytes = planning->given.rank_bytes > 0 ? planning->given.rank_bytes
                                                           : total_bytes / planning->topology.ranks_per_host;
    *rank_bytes_out = (uint64_t)(request->rank_bytes > 0 ? request->rank_bytes : configured);
    if (*rank_bytes_out > 0 || request->plan != NULL)
        return PH_OK;
    *rank_bytes_out = planning->share_bytes;
    planning->is_limited_by_machine = planning->given.rank_bytes == 0;
    return PH_OK;
}

/* Returns the columns of the table that most bytes are read of. */
static size_t busiest_dim(const struct ph__table_list *list)
{
    size_t dim = 1;
    double most = 0;
    for (size_t i = 0; i < list->num_tables; i++) {
        const double reals = list->tables[i].ids_per_sample * (double)list->tables[i].dim;
        if (reals > most) {
            most = reals;
            dim = list->tables[i].dim;
        }
    }
    return dim;
}

/* Measures on all ranks; the first rank's figures count. */
static ph_status measure_machine(
    const struct ph__train_job *job, struct ph_comm *comm, struct planning *planning)
{
    struct ph__plan_machine *measured = &planning->given;
    struct ph__team *team;
    planning->given_title = "measured here";
    PH_TRY(ph__team_create(job->run.num_threads, &team));
    const ph_status status = cli_memory_speed_measure(
        busiest_dim(&planning->list), ph__comm_num_neighbours(comm), team, &measured->memory_bytes_per_s);
    ph__team_destroy(team);
    PH_TRY(status);
    PH_TRY(cli_link_speeds_measure(comm, measured));
    return ph__comm_broadcast_once(comm, "measurements of the machine", 0, measured, sizeof *measured);
}

/* Takes the nominal machine, with the given figures where there are any. */
static ph_status settle_machine(struct planning *planning)
{
    uint64_t rank_bytes;
    PH_TRY(settle_rank_bytes(planning, &rank_bytes));
    planning->machine = ph__plan_machine_nominal(rank_bytes);
    if (planning->given_title != NULL)
        ph__plan_machine_take(&planning->machine, &planning->given);
    return PH_OK;
}

/* ---- planning ---- */

static ph_status make(const struct ph__train_job *job, struct planning *planning)
{
    const struct ph__table_list *list = &planning->list;
    char why[1024];
    ph_status status = ph__plan_greedy(&planning->machine, &planning->topology, &planning->step, list->tables,
        list->num_tables, &planning->plan);
    if (status == PH_OK)
        status = ph__table_list_make_units(list, job, planning->share_bytes, &planning->plan);
    if (status != PH_ERROR_MEMORY || !planning->is_limited_by_machine)
        return status;
    snprintf(why, sizeof why, "%s", ph_error_text());
    return ph_fail(status,
        "%s, its share of this machine's memory; for ranks of another machine, give --rank-memory BYTES",
        why);
}

static ph_status read_or_make(const struct ph__train_job *job, struct planning *planning)
{
    const char *path = planning->request->plan;
    const struct ph__table_list *list = &planning->list;
    if (path == NULL)
        return make(job, planning);
    enum ph__dense_mode mode;
    const enum ph__dense_mode *named =
        ph__named_dense_mode(planning->source.config.parallel.dense_mode, &mode);
    PH_TRY(ph__table_list_read_plan(path, &planning->topology, list, named, &planning->plan));
    return ph__plan_check_bytes(&planning->plan, list->tables, planning->machine.rank_bytes);
}

static ph_status make_plan(const struct ph__train_job *job, struct planning *planning)
{
    struct ph__table_list *list = &planning->list;
    PH_TRY(settle_machine(planning));
    planning->step = ph__plan_step_of_job(job);
    planning->num_micro_batches = ph__num_micro_batches(job->train);
    PH_TRY(read_or_make(job, planning));
    planning->loads =
        ph__arena_alloc_array(&list->arena, planning->topology.world_size, sizeof *planning->loads);
    if (planning->loads == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(
        ph__plan_loads(&planning->plan, &planning->machine, &planning->step, list->tables, planning->loads));
    const struct ph__plan_dense dense = ph__plan_dense_of_job(job, list);
    return ph__plan_links_find(
        &planning->plan, &planning->step, &dense, list->tables, MOST_COLUMNS, &list->arena, &planning->links);
}

/* ---- printing ---- */

static void rate_cell(struct ph__text_table *text, double bytes_per_s)
{
    ph__text_table_number(text, "%.2f GB/s", bytes_per_s / 1e9);
}

static ph_status print_rates(const struct planning *planning, struct ph__writer *writer)
{
    const bool is_given = planning->given_title != NULL;
    const struct ph__text_column columns[] = {{"figure", false}, {"nominal", true},
        {is_given ? planning->given_title : "nominal is", is_given}, {"nominal is", false}};
    struct ph__text_table text;
    ph__text_table_init(&text, columns, is_given ? 4 : 3);
    for (size_t i = 0; i < PH_PLAN_NUM_RATES; i++) {
        const struct ph__plan_rate *rate = &ph__plan_rates[i];
        ph__text_table_cell(&text, "%s", rate->name);
        rate_cell(&text, rate->nominal);
        if (is_given)
            rate_cell(&text, ph__plan_machine_rate(&planning->given, rate));
        ph__text_table_cell(&text, "%s", rate->source);
    }
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

static ph_status print_dense_modes(const struct planning *planning, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "\nBytes of dense parameters on the fullest rank:\n\n"));
    return ph__dense_modes_print(&planning->plan, planning->list.dense, planning->list.num_dense_parameters,
        planning->num_micro_batches, writer);
}

static ph_status print_plan(const void *what, struct ph__writer *writer)
{
    static const char by_measured[] =
        "The plan uses measured figures where there are any. A training with parallel.plan: auto uses "
        "nominal ones;\nto train by this plan, write it with --out FILE and set parallel.plan: FILE.";
    static const char by_topology[] =
        "\nThe plan uses the figures of %s, as a training\nwith parallel.topology does. Between hosts counts "
        "what a host sends while all hosts send to all.\n";
    const struct planning *planning = what;
    char rank_bytes[PH_NUMBER_TEXT_BYTES];
    PH_TRY(ph__plan_print(&planning->plan, planning->loads, writer));
    if (planning->topology.world_size > 1)
        PH_TRY(print_dense_modes(planning, writer));
    if (planning->links.count > 0) {
        PH_TRY(ph__writer_printf(writer, "\n"));
        PH_TRY(ph__plan_links_print(&planning->links, writer));
        PH_TRY(ph__writer_printf(writer,
            "\nTable bytes are ids, vectors and their gradients; all bytes are these and the dense gradients "
            "that ranks sum.\n"));
    }
    PH_TRY(ph__writer_printf(
        writer, "\nA step of %zu samples, by the planner's model of a machine.", planning->step.batch_size));
    if (planning->machine.rank_bytes > 0)
        PH_TRY(ph__writer_printf(writer, " A rank may spend %s on tables and optimizer slots.",
            ph__bytes_text(planning->machine.rank_bytes, rank_bytes)));
    PH_TRY(ph__writer_printf(writer, "\n\n"));
    PH_TRY(print_rates(planning, writer));
    if (planning->topology_path != NULL)
        return ph__writer_printf(writer, by_topology, planning->topology_path);
    const bool is_by_measured = planning->request->is_measured && planning->request->plan == NULL;
    return is_by_measured ? ph__writer_printf(writer, "\n%s\n", by_measured) : PH_OK;
}

static ph_status write_plan(const void *what, struct ph__writer *writer)
{
    const struct planning *planning = what;
    return ph__plan_write(&planning->plan, writer);
}

static ph_status spare_inputs(const struct planning *planning)
{
    const struct request *request = planning->request;
    const struct ph_data_settings *data = &planning->source.config.data;
    const char *const inputs[] = {request->path, request->plan, request->topology, data->paths.train,
        data->paths.valid, data->paths.test};
    if (request->out == NULL)
        return PH_OK;
    PH_TRY(cli_output_spare_model(request->out, request->path));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i] != NULL)
            PH_TRY(cli_output_spare_input(request->out, inputs[i]));
    return PH_OK;
}

static ph_status open_source(struct planning *planning)
{
    const struct request *request = planning->request;
    PH_TRY(cli_source_open(&planning->source, request->path, &request->sets));
    return spare_inputs(planning);
}

static ph_status print_memory(const void *what, struct ph__writer *writer)
{
    const struct planning *planning = what;
    return cli_plan_memory_print(&planning->memory, &planning->plan, writer);
}

static double ids_per_sample(const struct ph__table_list *list)
{
    double sum = 0;
    for (size_t i = 0; i < list->num_tables; i++)
        sum += list->tables[i].ids_per_sample;
    return sum;
}

static ph_status tell_memory(const struct ph__train_job *job, struct planning *planning)
{
    PH_TRY(ph__memory_report_init(job, &planning->plan, ids_per_sample(&planning->list), &planning->memory));
    return cli_print(print_memory, planning);
}

static ph_status tell_plan(const struct ph__train_job *job, struct planning *planning)
{
    const struct request *request = planning->request;
    if (request->shows_memory)
        return tell_memory(job, planning);
    if (request->out != NULL && strcmp(request->out, "-") == 0)
        return cli_print(write_plan, planning);
    PH_TRY(cli_print(print_plan, planning));
    return request->out != NULL ? ph__plan_save(&planning->plan, request->out) : PH_OK;
}

/* Makes and shows the plan. comm: the ranks that measure, of which the first one makes the plan; NULL:
 * nothing is measured. */
static ph_status plan(void *context, struct ph_comm *comm)
{
    struct planning *planning = context;
    struct ph__train_job job = ph__config_job(&planning->source.config);
    job.encoder = planning->source.encoder;
    PH_TRY(settle_topology(planning, comm));
    PH_TRY(ph__table_list_of_job(&job, &planning->list));
    if (comm != NULL)
        PH_TRY(measure_machine(&job, comm, planning));
    if (comm != NULL && ph_comm_rank(comm) > 0)
        return PH_OK;
    PH_TRY(make_plan(&job, planning));
    return tell_plan(&job, planning);
}

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const char *world = NULL, *ranks_per_host = NULL, *memory = NULL;
    const struct cli_flag flags[] = {
        {"--world", CLI_TEXT, &world, "N",
            "number of ranks (required, unless --measure runs on several ranks or a topology gives it)"},
        {"--ranks-per-host", CLI_TEXT, &ranks_per_host, "M",
            "ranks of each host; default: the config's or the topology's, else all ranks on one host"},
        {"--memory", CLI_SWITCH, &request->shows_memory, NULL,
            "prints the bytes that each operator of rank 0's step needs, instead of the plan"},
        {"--rank-memory", CLI_TEXT, &memory, "BYTES",
            "bytes that a rank may spend on tables and optimizer slots; default: the config's, else its "
            "share of the topology's or this machine's memory"},
        {"--topology", CLI_TEXT, &request->topology, "FILE",
            "plans for the hosts and links that FILE describes, as configs/topology has some; default: the "
            "config's parallel.topology; not with --measure"},
        {"--measure", CLI_SWITCH, &request->is_measured, NULL,
            "measures this machine and, under mpirun, its links, prints the figures beside the nominal ones, "
            "and plans by them"},
        {"--out", CLI_TEXT, &request->out, "FILE",
            "file for the plan, to be named by parallel.plan; -: prints it instead of the tables"},
        {"--plan", CLI_TEXT, &request->plan, "FILE",
            "prints the loads of the plan in FILE, instead of making one"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"plan", "plan config.yaml --world 4",
        "Places rows and columns of the model's tables on ranks, and prints the load of each rank.\n"
        "CONFIG is a config or a folder made by phloem train. Ids are counted in the first batch of\n"
        "data.train.",
        "CONFIG", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    request->path = arguments.positional[0];
    return parse_counts(world, ranks_per_host, memory, request);
}

/* Looks for the flag before the line is parsed: a mistake there is reported by one of the measuring ranks. */
static bool wants_measuring(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--measure") == 0)
            return true;
    return false;
}

ph_status verb_plan(int argc, char **argv)
{
    struct request request = {0};
    struct planning planning = {.request = &request};
    const bool is_measured = wants_measuring(argc, argv);
    const struct cli_ranks ranks = {.task = "phloem plan",
        .parallel = &planning.source.config.parallel,
        .work = plan,
        .context = &planning,
        .done_text = "the plan is made"};
    bool is_done = false;
    if (!is_measured)
        PH_TRY(cli_check_one_process("plan"));
    ph_status status = parse(argc, argv, &request, &is_done);
    if (status == PH_OK && is_done)
        return PH_OK;
    if (status == PH_OK)
        status = open_source(&planning);
    if (is_measured)
        status = cli_with_ranks(&ranks, status);
    else if (status == PH_OK)
        status = plan(&planning, NULL);
    ph__memory_report_fini(&planning.memory);
    ph__plan_fini(&planning.plan);
    ph__table_list_fini(&planning.list);
    cli_source_close(&planning.source);
    return status;
}
