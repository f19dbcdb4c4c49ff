/* phloem plan CONFIG --world N */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/inspect.h"
#include "cli/output_file.h"
#include "cli/printing.h"
#include "cli/verb.h"
#include "plan/plan_machine.h"
#include "train/table_facts.h"

#define MAX_WORLD 4096 /* the planner weighs every pair of ranks */
#define MOST_COLUMNS 8 /* ranks, or hosts, whose links are shown */

struct request {
    const char *path; /* config or folder */
    const char *out, *plan;
    struct cli_texts sets;
    int64_t world_size, ranks_per_host, rank_bytes; /* the latter 0: as the config says */
};

/* What is planned, beside what it is planned for. */
struct planning {
    const struct request *request;
    struct cli_source source;
    struct ph_topology topology;
    uint64_t rank_bytes; /* 0: no limit */
    struct ph__table_list list;
    struct ph_plan_step step;
    struct ph_plan_machine machine;
    struct ph_plan plan;
    struct ph_plan_load *loads;
    struct ph_plan_links links;
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
    if (world == NULL)
        return ph_fail(PH_ERROR_USAGE, "--world N is missing: over how many ranks?");
    PH_TRY(parse_count("--world", world, &request->world_size));
    if (ranks_per_host != NULL)
        PH_TRY(parse_count("--ranks-per-host", ranks_per_host, &request->ranks_per_host));
    if (memory != NULL)
        PH_TRY(parse_count("--memory", memory, &request->rank_bytes));
    if (request->world_size > MAX_WORLD)
        return ph_fail(PH_ERROR_USAGE, "--world %" PRId64 ": plans are made for up to %d ranks",
            request->world_size, MAX_WORLD);
    return PH_OK;
}

/* ---- planning ------------------------------------------------------------------------------------------------ */

/* A training goes by its config: what no flag says is as it stands there. */
static ph_status settle(struct planning *planning)
{
    const struct request *request = planning->request;
    const struct ph_parallel_settings *parallel = &planning->source.config.parallel;
    const bool is_flag = request->ranks_per_host > 0;
    const int64_t said = is_flag ? request->ranks_per_host : parallel->ranks_per_host;
    const int64_t num_local = said > 0 ? said : request->world_size;
    if (request->world_size % num_local != 0)
        return ph_fail(PH_ERROR_USAGE, "--world %" PRId64 " is no multiple of %s %" PRId64,
            request->world_size, is_flag ? "--ranks-per-host" : "parallel.ranks_per_host", num_local);
    planning->topology = (struct ph_topology){(size_t)request->world_size, (size_t)num_local};
    planning->rank_bytes = (uint64_t)(request->rank_bytes > 0 ? request->rank_bytes : parallel->memory_bytes);
    return PH_OK;
}

static ph_status measure_machine(const struct ph_train_job *job, struct planning *planning)
{
    struct ph_team *team;
    PH_TRY(ph__team_create(job->num_threads, &team));
    ph_status status =
        ph__plan_machine_measure(ph__table_list_busiest_dim(&planning->list), 1, team, &planning->machine);
    ph__team_destroy(team);
    planning->machine.rank_bytes = planning->rank_bytes;
    return status;
}

static ph_status read_or_make(struct planning *planning)
{
    const char *path = planning->request->plan;
    const struct ph__table_list *list = &planning->list;
    if (path == NULL)
        return ph__plan_greedy(&planning->machine, &planning->topology, &planning->step, list->tables,
            list->num_tables, &planning->plan);
    PH_TRY(ph__plan_read(path, &planning->topology, list->tables, list->num_tables, &planning->plan));
    return ph__plan_check_bytes(&planning->plan, list->tables, planning->rank_bytes);
}

static ph_status make_plan(struct planning *planning)
{
    struct ph__table_list *list = &planning->list;
    struct ph_train_job job = ph_config_job(&planning->source.config);
    job.encoder = planning->source.encoder;
    PH_TRY(ph__table_list_of_job(&job, list));
    PH_TRY(measure_machine(&job, planning));
    planning->step = ph__plan_step_of_job(&job);
    PH_TRY(read_or_make(planning));
    planning->loads =
        ph__arena_alloc_array(&list->arena, planning->topology.world_size, sizeof *planning->loads);
    if (planning->loads == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(
        ph__plan_loads(&planning->plan, &planning->machine, &planning->step, list->tables, planning->loads));
    const struct ph_plan_dense dense = ph__plan_dense_of_job(&job, list);
    return ph__plan_links_find(
        &planning->plan, &planning->step, &dense, list->tables, MOST_COLUMNS, &list->arena, &planning->links);
}

/* ---- what is said about it ------------------------------------------------------------------------------------ */

static ph_status print_plan(const void *what, struct ph_writer *writer)
{
    const struct planning *planning = what;
    const struct ph_plan_machine *machine = &planning->machine;
    PH_TRY(ph__plan_print(&planning->plan, planning->loads, writer));
    if (planning->links.count > 0) {
        PH_TRY(ph__writer_printf(writer, "\n"));
        PH_TRY(ph__plan_links_print(&planning->links, writer));
        PH_TRY(ph__writer_printf(writer,
            "\nTable bytes are ids, vectors and their gradients; all bytes are these and the dense gradients "
            "that ranks sum.\n"));
    }
    return ph__writer_printf(writer,
        "\nA step of %zu samples, by the planner's model: %.2f GB/s of rows at random (measured here), %.2f "
        "GB/s "
        "between ranks of a\nhost, %.2f GB/s between hosts (both stated).\n",
        planning->step.batch_size, machine->memory_bytes_per_s / 1e9, machine->host_bytes_per_s / 1e9,
        machine->network_bytes_per_s / 1e9);
}

static ph_status write_plan(const void *what, struct ph_writer *writer)
{
    const struct planning *planning = what;
    return ph__plan_write(&planning->plan, writer);
}

static ph_status spare_inputs(const struct planning *planning)
{
    const struct request *request = planning->request;
    const struct ph_data_settings *data = &planning->source.config.data;
    const char *const inputs[] = {request->path, request->plan, data->train, data->valid, data->test};
    if (request->out == NULL)
        return PH_OK;
    PH_TRY(cli_output_spare_model(request->out, request->path));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i] != NULL)
            PH_TRY(cli_output_spare_input(request->out, inputs[i]));
    return PH_OK;
}

static ph_status plan_source(struct planning *planning)
{
    const struct request *request = planning->request;
    PH_TRY(cli_source_open(&planning->source, request->path, &request->sets));
    PH_TRY(spare_inputs(planning));
    PH_TRY(settle(planning));
    PH_TRY(make_plan(planning));
    if (request->out != NULL && strcmp(request->out, "-") == 0)
        return cli_print(write_plan, planning);
    PH_TRY(cli_print(print_plan, planning));
    return request->out != NULL ? ph__plan_save(&planning->plan, request->out) : PH_OK;
}

static ph_status plan(const struct request *request)
{
    struct planning planning = {.request = request};
    ph_status status = plan_source(&planning);
    ph__plan_fini(&planning.plan);
    ph__table_list_fini(&planning.list);
    cli_source_close(&planning.source);
    return status;
}

ph_status verb_plan(int argc, char **argv)
{
    struct request request = {0};
    const char *world = NULL, *ranks_per_host = NULL, *memory = NULL;
    const struct cli_flag flags[] = {
        {"--world", CLI_TEXT, &world, "N", "ranks (required)"},
        {"--ranks-per-host", CLI_TEXT, &ranks_per_host, "M",
            "of each host, in place of the config's; all are on one where neither says how many"},
        {"--memory", CLI_TEXT, &memory, "BYTES",
            "that a rank may spend on tables and optimizer slots, in place of the config's"},
        {"--out", CLI_TEXT, &request.out, "FILE",
            "where the plan is written, for parallel.plan; -: in place of the tables"},
        {"--plan", CLI_TEXT, &request.plan, "FILE",
            "shows what this plan asks of the ranks, in place of a new one"},
        {"--set", CLI_TEXTS, &request.sets, "KEY=VALUE", "in place of the config's value"},
    };
    const struct cli_command command = {"plan",
        "Plans which rank holds which rows and columns of which table of CONFIG's model (or DIR's), and "
        "prints what each "
        "rank then has to hold and to do. Ids are counted in the first batch of data.train.",
        "CONFIG", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    request.path = arguments.positional[0];
    PH_TRY(parse_counts(world, ranks_per_host, memory, &request));
    return plan(&request);
}
