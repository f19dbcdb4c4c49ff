/* phloem hub status ADDRESS: shows what a running hub does. Asks the hub twice, and takes rates from the
 * difference. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text/number.h"
#include "cli/arguments.h"
#include "cli/hub/hub_verbs.h"
#include "cli/output.h"
#include "hub/client/client_operator.h"
#include "train/ranks/memory_check.h"

#define DEFAULT_SECONDS 0.5
#define MAX_SECONDS 3600

struct request {
    struct ph_hub_options options;
    const char *service, *seconds;
    bool is_json;
};

struct sight { /* of a hub, at two moments */
    struct ph__json *before, *after;
    double seconds; /* between them, by the hub's clock */
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--service", CLI_TEXT, &request->service, "NAME",
            "shows only this service, with all its workers and keys"},
        {"--seconds", CLI_TEXT, &request->seconds, "S", "seconds that rates are measured over; default: 0.5"},
        {"--secret-file", CLI_TEXT, &request->options.secret_file, "FILE", "secret file of the hub"},
        {"--json", CLI_SWITCH, &request->is_json, NULL, "prints JSON instead of tables"},
    };
    const struct cli_command command = {"hub status", "hub status 127.0.0.1:4711",
        "Shows the jobs of the hub at ADDRESS, their workers and transports, and its core threads.",
        "ADDRESS", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    request->options.size = sizeof request->options;
    request->options.address = arguments.positional[0];
    request->options.connect_timeout_ms = CLI_HUB_CONNECT_MS;
    return PH_OK;
}

static ph_status parse_seconds(const char *text, double *seconds_out)
{
    *seconds_out = DEFAULT_SECONDS;
    if (text != NULL &&
        (!ph__number_parse(text, seconds_out) || !(*seconds_out > 0) || *seconds_out > MAX_SECONDS))
        return ph_fail(
            PH_ERROR_USAGE, "--seconds must be above 0 and at most %d, not '%s'", MAX_SECONDS, text);
    return PH_OK;
}

/* ---- asking ---- */

static void wait_for(double seconds)
{
    struct timespec left = {
        .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&left, NULL); /* a signal may end it early: then the interval is shorter */
}

static double number(const struct ph__json *object, const char *key)
{
    return ph__json_as_number(ph__json_get(object, key), 0);
}

static uint64_t count(const struct ph__json *object, const char *key)
{
    return (uint64_t)ph__json_as_integer(ph__json_get(object, key), 0);
}

static const char *text(const struct ph__json *object, const char *key)
{
    return ph__json_as_text(ph__json_get(object, key), "-");
}

static ph_status look(const struct request *request, struct sight *sight)
{
    double seconds;
    PH_TRY(parse_seconds(request->seconds, &seconds));
    PH_TRY(ph__hub_status(&request->options, request->service, &sight->before));
    wait_for(seconds);
    PH_TRY(ph__hub_status(&request->options, request->service, &sight->after));
    sight->seconds = number(sight->after, "seconds") - number(sight->before, "seconds");
    const bool has_jobs = ph__json_size(ph__json_get(sight->after, "jobs")) > 0;
    if (request->service != NULL && !has_jobs)
        return ph_fail(
            PH_ERROR_USAGE, "the hub at %s has no service '%s'", request->options.address, request->service);
    return PH_OK;
}

/* Returns the growth of a job's counter a second; 0 for a job that was not there before, or is another of its
 * name by now. */
static double rate(const struct sight *sight, const struct ph__json *job, const char *key)
{
    const struct ph__json *jobs = ph__json_get(sight->before, "jobs");
    for (size_t i = 0; i < ph__json_size(jobs); i++) {
        const struct ph__json *former = ph__json_at(jobs, i);
        if (strcmp(text(former, "name"), text(job, "name")) == 0 && sight->seconds > 0)
            return fmax(number(job, key) - number(former, key), 0) / sight->seconds;
    }
    return 0;
}

/* ---- tables ---- */

static ph_status print_table(struct ph__text_table *table)
{
    const ph_status status = ph__text_table_num_rows(table) > 0 ? cli_print_table(table) : PH_OK;
    ph__text_table_fini(table);
    return status;
}

static ph_status print_jobs(const struct sight *sight)
{
    static const struct ph__text_column columns[] = {{"job", false}, {"state", false}, {"mode", false},
        {"workers", true}, {"iteration", true}, {"memory", true}, {"updates/s", true},
        {"gradients, GB/s", true}};
    const struct ph__json *jobs = ph__json_get(sight->after, "jobs");
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < ph__json_size(jobs); i++) {
        const struct ph__json *job = ph__json_at(jobs, i);
        char bytes[32];
        ph__text_table_cell(&table, "%s", text(job, "name"));
        ph__text_table_cell(&table, "%s", text(job, "state"));
        ph__text_table_cell(&table, "%s", text(job, "mode"));
        ph__text_table_cell(
            &table, "%" PRIu64 " of %" PRIu64, count(job, "workers_there"), count(job, "workers_wanted"));
        ph__text_table_cell(&table, "%" PRIu64, count(job, "iteration"));
        ph__text_table_cell(&table, "%s", ph__bytes_text(count(job, "bytes"), bytes));
        ph__text_table_cell(&table, "%.0f", rate(sight, job, "updates"));
        ph__text_table_cell(&table, "%.3f", rate(sight, job, "gradient_bytes") * 1e-9);
    }
    return print_table(&table);
}

static ph_status print_workers(const struct ph__json *job)
{
    static const struct ph__text_column columns[] = {{"worker", true}, {"transport", false}, {"to", false},
        {"why", false}, {"messages in", true}, {"out", true}, {"payload in", true}, {"out", true},
        {"system calls", true}, {"doorbells", true}};
    const struct ph__json *workers = ph__json_get(job, "workers");
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < ph__json_size(workers); i++) {
        const struct ph__json *worker = ph__json_at(workers, i);
        char received[32], sent[32];
        ph__text_table_cell(&table, "%" PRIu64, count(worker, "rank"));
        ph__text_table_cell(&table, "%s", text(worker, "transport"));
        ph__text_table_cell(&table, "%s", text(worker, "addresses"));
        ph__text_table_cell(&table, "%s", text(worker, "why"));
        ph__text_table_cell(&table, "%" PRIu64, count(worker, "messages_received"));
        ph__text_table_cell(&table, "%" PRIu64, count(worker, "messages_sent"));
        ph__text_table_cell(&table, "%s", ph__bytes_text(count(worker, "payload_bytes_received"), received));
        ph__text_table_cell(&table, "%s", ph__bytes_text(count(worker, "payload_bytes_sent"), sent));
        ph__text_table_cell(&table, "%" PRIu64, count(worker, "system_calls"));
        ph__text_table_cell(&table, "%" PRIu64, count(worker, "doorbells"));
    }
    return print_table(&table);
}

static ph_status print_keys(const struct ph__json *job)
{
    static const struct ph__text_column columns[] = {
        {"key", true}, {"elements", true}, {"dtype", false}, {"optimizer", true}, {"chunks", true}};
    const struct ph__json *keys = ph__json_get(job, "keys");
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < ph__json_size(keys); i++) {
        const struct ph__json *key = ph__json_at(keys, i);
        ph__text_table_cell(&table, "%zu", i);
        ph__text_table_cell(&table, "%" PRIu64, count(key, "elements"));
        ph__text_table_cell(&table, "%s", text(key, "dtype"));
        ph__text_table_cell(&table, "%" PRIu64, count(key, "optimizer"));
        ph__text_table_cell(&table, "%" PRIu64, count(key, "chunks"));
    }
    return print_table(&table);
}

/* Prints how many are not shown: of a job among others the hub lists only the first ones. */
static void print_rest(const struct ph__json *job, const char *what, uint64_t num_there)
{
    const size_t num_shown = ph__json_size(ph__json_get(job, what));
    if (num_shown < num_there)
        printf("and %" PRIu64 " more %s: --service %s\n", num_there - num_shown, what, text(job, "name"));
}

static ph_status print_job(const struct ph__json *job)
{
    char share[64] = "";
    if (count(job, "num_hubs") > 1)
        snprintf(share, sizeof share, "hub %" PRIu64 " of %" PRIu64 ", ", count(job, "hub"),
            count(job, "num_hubs"));
    printf("\n%s: %s%" PRIu64 " chunks, %" PRIu64 " pushed, %" PRIu64 " pulled, %" PRIu64
           " updates waited for replies\n\n",
        text(job, "name"), share, count(job, "num_chunks"), count(job, "pushes"), count(job, "pulls"),
        count(job, "reply_waits"));
    if (ph__json_get(job, "checkpoint_iteration") != NULL)
        printf("checkpoint: iteration %" PRIu64 "\n\n", count(job, "checkpoint_iteration"));
    PH_TRY(print_workers(job));
    print_rest(job, "workers", count(job, "workers_there"));
    if (ph__json_size(ph__json_get(job, "keys")) > 0)
        printf("\n");
    PH_TRY(print_keys(job));
    print_rest(job, "keys", count(job, "num_keys"));
    return PH_OK;
}

static ph_status print_cores(const struct ph__json *hub)
{
    static const struct ph__text_column columns[] = {
        {"core thread", true}, {"place", false}, {"rounds", true}, {"idle", true}, {"sleeps", true}};
    const struct ph__json *cores = ph__json_get(hub, "cores");
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < ph__json_size(cores); i++) {
        const struct ph__json *core = ph__json_at(cores, i);
        ph__text_table_cell(&table, "%zu", i);
        ph__text_table_cell(&table, "%s", text(core, "place"));
        ph__text_table_cell(&table, "%" PRIu64, count(core, "rounds"));
        ph__text_table_cell(&table, "%" PRIu64, count(core, "idle_rounds"));
        ph__text_table_cell(&table, "%" PRIu64, count(core, "sleeps"));
    }
    return print_table(&table);
}

static ph_status print_hub(const struct sight *sight)
{
    const struct ph__json *hub = sight->after, *jobs = ph__json_get(hub, "jobs");
    char used[32], most[32];
    printf("hub at %s, for %.1f s: %s aggregation, %" PRIu64 " connections, %s of %s for jobs%s\n\n",
        text(hub, "address"), number(hub, "seconds"), text(hub, "aggregation"), count(hub, "connections"),
        ph__bytes_text(count(hub, "used_bytes"), used), ph__bytes_text(count(hub, "max_bytes"), most),
        ph__json_as_bool(ph__json_get(hub, "is_crowded"), false)
            ? "; threads and workers outnumber the processors"
            : "");
    PH_TRY(print_cores(hub));
    printf("\n");
    if (ph__json_size(jobs) == 0)
        printf("no jobs\n");
    PH_TRY(print_jobs(sight));
    for (size_t i = 0; i < ph__json_size(jobs); i++)
        PH_TRY(print_job(ph__json_at(jobs, i)));
    return PH_OK;
}

/* ---- JSON ---- */

/* Prints {"seconds": the interval, "rates": [{"name", "updates_per_s", "gradient_bytes_per_s"}], "hub": its
 * own status}. */
static ph_status print_json(struct sight *sight)
{
    const struct ph__json *jobs = ph__json_get(sight->after, "jobs");
    struct ph__json *json = ph__json_object(), *rates = ph__json_array();
    for (size_t i = 0; i < ph__json_size(jobs); i++) {
        const struct ph__json *job = ph__json_at(jobs, i);
        struct ph__json *entry = ph__json_object();
        ph__json_set_text(entry, "name", text(job, "name"));
        ph__json_set_number(entry, "updates_per_s", rate(sight, job, "updates"));
        ph__json_set_number(entry, "gradient_bytes_per_s", rate(sight, job, "gradient_bytes"));
        ph__json_append(rates, entry);
    }
    ph__json_set_number(json, "seconds", sight->seconds);
    ph__json_set(json, "rates", rates);
    ph__json_set(json, "hub", sight->after);
    sight->after = NULL;
    const ph_status status = cli_print_json(json);
    ph__json_destroy(json);
    return status;
}

ph_status cli_hub_status(int argc, char **argv)
{
    struct request request = {0};
    struct sight sight = {0};
    bool is_done;
    PH_TRY(parse(argc, argv, &request, &is_done));
    if (is_done)
        return PH_OK;
    ph_status status = look(&request, &sight);
    if (status == PH_OK)
        status = request.is_json ? print_json(&sight) : print_hub(&sight);
    ph__json_destroy(sight.before);
    ph__json_destroy(sight.after);
    return status;
}
