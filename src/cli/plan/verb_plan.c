/* phloem plan CONFIG --world N [--topology FILE] [--cost DIR] [--compare FILE FILE]; phloem plan --learn DIR
 */
#include <string.h>

#include "base/text/number.h"
#include "cli/output.h"
#include "cli/plan/plan_learn.h"
#include "cli/plan/plan_memory.h"
#include "cli/plan/plan_page.h"
#include "cli/plan/planning.h"
#include "cli/verb.h"
#include "cli/with_ranks.h"
#include "train/config/training_program.h"

#define LEARNT_SETS "3000" /* minutes of measuring */
#define LEARNT_BATCH 2048  /* of costs that are learnt without a config */

/* Flags as they are given. */
struct texts {
    const char *world, *ranks_per_host, *rank_memory, *fast_memory, *move_ms, *compare; /* NULL: not given */
    const char *learn, *locality, *sets;
};

/* ---- arguments ---- */

static ph_status take_texts(const struct texts *texts, struct cli_plan_request *request)
{
    PH_TRY(cli_count_parse("--world", texts->world, 1, INT64_MAX, &request->world_size));
    PH_TRY(
        cli_count_parse("--ranks-per-host", texts->ranks_per_host, 1, INT64_MAX, &request->ranks_per_host));
    PH_TRY(cli_count_parse("--rank-memory", texts->rank_memory, 1, INT64_MAX, &request->rank_bytes));
    PH_TRY(cli_count_parse("--fast-memory", texts->fast_memory, 1, INT64_MAX, &request->fast_bytes));
    if (texts->move_ms != NULL &&
        (!ph__number_parse(texts->move_ms, &request->move_ms) || request->move_ms < 0))
        return ph_fail(PH_ERROR_USAGE, "--move-ms must be a number from 0 on, not '%s'", texts->move_ms);
    if (texts->move_ms != NULL && request->from == NULL)
        return ph_fail(PH_ERROR_USAGE, "--move-ms is a price on what moves from a plan: give --from FILE");
    request->is_searched |= request->limits != NULL || request->from != NULL;
    if (request->plan != NULL && request->is_searched)
        return ph_fail(
            PH_ERROR_USAGE, "--plan shows a plan as it is: leave out --search, --limits and --from");
    return PH_OK;
}

/* Takes the plans of --compare A B: B is the second argument without a flag. */
static ph_status take_arguments(
    const struct cli_arguments *arguments, const struct texts *texts, struct cli_plan_request *request)
{
    const size_t wanted = texts->compare != NULL ? 2 : 1;
    if (texts->learn != NULL &&
        (request->is_measured || request->is_searched || request->cost != NULL || request->run != NULL ||
            request->plan != NULL || request->out != NULL || request->page != NULL || texts->compare != NULL))
        return ph_fail(
            PH_ERROR_USAGE, "--learn makes no plan: give it --sets, --locality and --topology alone");
    if (arguments->num_positional == 0 && texts->learn != NULL)
        return PH_OK;
    if (arguments->num_positional == 0)
        return ph_fail(PH_ERROR_USAGE, "plan requires a CONFIG, or --learn DIR");
    request->path = arguments->positional[0];
    if (arguments->num_positional != wanted)
        return ph_fail(
            PH_ERROR_USAGE, texts->compare != NULL
                                ? "--compare takes two plans: phloem plan CONFIG --compare A.yaml B.yaml"
                                : "plan takes one CONFIG; two plans are compared by --compare A.yaml B.yaml");
    if (texts->compare == NULL)
        return PH_OK;
    if (request->plan != NULL || request->out != NULL || request->is_searched)
        return ph_fail(PH_ERROR_USAGE, "--compare makes no plan: leave out --plan, --out and --search");
    request->plan = texts->compare;
    request->other_plan = arguments->positional[1];
    return PH_OK;
}

static ph_status parse(
    int argc, char **argv, struct texts *texts, struct cli_plan_request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--world", CLI_TEXT, &texts->world, "N",
            "number of ranks (required, unless --measure runs on several ranks or a topology gives it)"},
        {"--ranks-per-host", CLI_TEXT, &texts->ranks_per_host, "M",
            "ranks of each host; default: the config's or the topology's, else all ranks on one host"},
        {"--memory", CLI_SWITCH, &request->shows_memory, NULL,
            "prints the bytes that each operator of rank 0's step needs, instead of the plan"},
        {"--rank-memory", CLI_TEXT, &texts->rank_memory, "BYTES",
            "bytes that a rank may spend on tables and optimizer slots; default: the config's, else its "
            "share of the topology's or this machine's memory"},
        {"--fast-memory", CLI_TEXT, &texts->fast_memory, "BYTES",
            "tells how many rows of each table should lie in fast memory, of which a rank has so much"},
        {"--topology", CLI_TEXT, &request->topology, "FILE",
            "plans for the hosts and links that FILE describes, as configs/topology has some; default: the "
            "config's parallel.topology; not with --measure"},
        {"--measure", CLI_SWITCH, &request->is_measured, NULL,
            "measures this machine and, under mpirun, its links, prints the figures beside the nominal ones, "
            "and plans by them"},
        {"--search", CLI_SWITCH, &request->is_searched, NULL,
            "searches among many ways of cutting the tables, instead of placing them greedily"},
        {"--cost", CLI_TEXT, &request->cost, "DIR",
            "searches by costs that --learn has left in DIR, instead of by the planner's own model"},
        {"--learn-from", CLI_TEXT, &request->run, "RUN",
            "searches by costs that are scaled to what the training in folder RUN has measured"},
        {PH_COST_FOREIGN_FLAG, CLI_SWITCH, &request->may_be_foreign, NULL,
            "takes costs that were learnt on another kind of processor"},
        {"--limits", CLI_TEXT, &request->limits, "FILE",
            "searches within limits: memory of hosts, unequal ranks, tables that lie together or apart"},
        {"--from", CLI_TEXT, &request->from, "FILE",
            "searches from the plan in FILE, with a price on the bytes that move"},
        {"--move-ms", CLI_TEXT, &texts->move_ms, "MS",
            "the price: milliseconds a step that moving a GB must save; default: 0"},
        {"--compare", CLI_TEXT, &texts->compare, "FILE FILE", "compares two plans, and makes none"},
        {"--learn", CLI_TEXT, &texts->learn, "DIR",
            "learns costs, measured here and simulated, and leaves them in DIR; CONFIG gives batches, "
            "threads "
            "and optimizer, and may be left out"},
        {"--sets", CLI_TEXT, &texts->sets, "N",
            "sets of tables that --learn measures; default: " LEARNT_SETS},
        {"--locality", CLI_TEXT, &texts->locality, "FILE",
            "statistics of which rows are read how often, that --learn makes tables by; default: power laws"},
        {"--out", CLI_TEXT, &request->out, "FILE",
            "file for the plan, to be named by parallel.plan; -: prints it instead of the tables"},
        {"--page", CLI_TEXT, &request->page, "FILE", "file for an HTML page with the load of each rank"},
        {"--plan", CLI_TEXT, &request->plan, "FILE",
            "prints the loads of the plan in FILE, instead of making one"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints no progress"},
    };
    const struct cli_command command = {"plan", "plan config.yaml --world 4",
        "Places rows and columns of the model's tables on ranks, and prints the load of each rank.\n"
        "CONFIG is a config or a folder made by phloem train. Ids are counted in the first batch of\n"
        "data.train.",
        "CONFIG", 0, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    PH_TRY(take_texts(texts, request));
    return take_arguments(&arguments, texts, request);
}

/* ---- output ---- */

static ph_status write_plan(const void *what, struct ph__writer *writer)
{
    const struct cli_planning *planning = what;
    return ph__plan_write(&planning->plan, writer);
}

static ph_status spare_inputs(const struct cli_planning *planning, const char *path)
{
    const struct cli_plan_request *request = planning->request;
    const struct ph_data_settings *data = &planning->source.config.data;
    const char *const inputs[] = {request->path, request->plan, request->other_plan, request->topology,
        request->limits, request->from, data->paths.train, data->paths.valid, data->paths.test};
    if (path == NULL)
        return PH_OK;
    PH_TRY(cli_output_spare_model(path, request->path));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i] != NULL)
            PH_TRY(cli_output_spare_input(path, inputs[i]));
    return PH_OK;
}

static ph_status open_source(struct cli_planning *planning)
{
    const struct cli_plan_request *request = planning->request;
    PH_TRY(cli_source_open(&planning->source, request->path, &request->sets));
    PH_TRY(spare_inputs(planning, request->page));
    return spare_inputs(planning, request->out);
}

static ph_status print_memory(const void *what, struct ph__writer *writer)
{
    const struct cli_planning *planning = what;
    return cli_plan_memory_print(&planning->memory, &planning->plan, writer);
}

static double ids_per_sample(const struct ph__table_list *list)
{
    double sum = 0;
    for (size_t i = 0; i < list->num_tables; i++)
        sum += list->tables[i].ids_per_sample;
    return sum;
}

static ph_status tell_memory(const struct ph__train_job *job, struct cli_planning *planning)
{
    PH_TRY(ph__memory_report_init(job, &planning->plan, ids_per_sample(&planning->list), &planning->memory));
    return cli_print(print_memory, planning);
}

static ph_status tell_plan(const struct ph__train_job *job, struct cli_planning *planning)
{
    const struct cli_plan_request *request = planning->request;
    if (request->shows_memory)
        return tell_memory(job, planning);
    if (request->page != NULL)
        PH_TRY(cli_plan_page_write(planning, request->page));
    if (request->out != NULL && strcmp(request->out, "-") == 0)
        return cli_print(write_plan, planning);
    PH_TRY(cli_print(request->other_plan != NULL ? cli_plan_print_comparison : cli_plan_print, planning));
    return request->out != NULL ? ph__plan_save(&planning->plan, request->out) : PH_OK;
}

/* Makes and shows the plan. comm: the ranks that measure, of which the first one makes the plan; NULL:
 * nothing is measured. */
static ph_status plan(void *context, struct ph_comm *comm)
{
    struct cli_planning *planning = context;
    struct ph__train_job job = ph__config_job(&planning->source.config);
    job.encoder = planning->source.encoder;
    PH_TRY(cli_planning_run(planning, &job, comm));
    return comm == NULL || ph_comm_rank(comm) == 0 ? tell_plan(&job, planning) : PH_OK;
}

/* ---- learning ---- */

/* Returns the optimizer that keeps as many numbers as the table's. */
static enum ph_optimizer_kind optimizer_of(const struct ph__table_facts *table)
{
    if (table->slot_bytes == 0)
        return PH_SGD;
    if (table->row_slot_bytes > 0)
        return PH_ROWWISE_ADAGRAD;
    return table->slot_bytes > table->dim * sizeof(ph_real) ? PH_ADAM : PH_ADAGRAD;
}

/* Takes from the config what costs depend on: batches, threads and the tables' optimizer. */
static ph_status take_job(struct cli_planning *planning, struct cli_plan_learning *learning)
{
    PH_TRY(open_source(planning));
    struct ph__train_job job = ph__config_job(&planning->source.config);
    job.encoder = planning->source.encoder;
    PH_TRY(ph__table_list_of_job(&job, &planning->list));
    learning->batch_size = ph__plan_step_of_job(&job).batch_size;
    learning->num_threads = (size_t)job.run.num_threads;
    if (planning->list.num_tables > 0)
        learning->optimizer = optimizer_of(&planning->list.tables[0]);
    return PH_OK;
}

static ph_status learn(const struct texts *texts, struct cli_planning *planning)
{
    struct cli_plan_learning learning = {.folder = texts->learn,
        .locality = texts->locality,
        .topology = planning->request->topology,
        .batch_size = LEARNT_BATCH,
        .num_threads = 1,
        .optimizer = PH_ROWWISE_ADAGRAD};
    int64_t num_sets;
    PH_TRY(cli_count_parse("--sets", texts->sets, 1, INT64_MAX, &num_sets));
    learning.num_sets = (size_t)num_sets;
    if (planning->request->path != NULL)
        PH_TRY(take_job(planning, &learning));
    return cli_plan_learn(&learning);
}

/* ---- the verb ---- */

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
    struct cli_plan_request request = {0};
    struct texts texts = {.sets = LEARNT_SETS};
    struct cli_planning planning = {.request = &request};
    const bool is_measured = wants_measuring(argc, argv);
    const struct cli_ranks ranks = {.task = "phloem plan",
        .parallel = &planning.source.config.parallel,
        .work = plan,
        .context = &planning,
        .done_text = "the plan is made"};
    bool is_done = false;
    if (!is_measured)
        PH_TRY(cli_check_one_process("plan"));
    ph_status status = parse(argc, argv, &texts, &request, &is_done);
    if (status == PH_OK && is_done)
        return PH_OK;
    if (status == PH_OK && texts.learn != NULL)
        status = learn(&texts, &planning);
    else if (status == PH_OK)
        status = open_source(&planning);
    if (is_measured)
        status = cli_with_ranks(&ranks, status);
    else if (status == PH_OK && texts.learn == NULL)
        status = plan(&planning, NULL);
    cli_planning_fini(&planning);
    return status;
}
