/* phloem serve status ADDRESS: what a running server serves. Asks twice, and takes rates from the difference.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread/clock.h"
#include "cli/arguments.h"
#include "cli/http_client.h"
#include "cli/output.h"
#include "cli/serve/serve_verbs.h"

/* ---- the table ---- */

static double figure(const struct ph__json *model, const char *group, const char *key)
{
    const struct ph__json *object =
        group != NULL ? ph__json_get(ph__json_get(model, "inference_stats"), group) : model;
    return ph__json_as_number(ph__json_get(object, key), 0);
}

static const char *text_of(const struct ph__json *object, const char *key)
{
    return ph__json_as_text(ph__json_get(object, key), "");
}

/* Finds the statistics of a version; NULL: it does not serve. */
static const struct ph__json *find(const struct ph__json *statistics, const struct ph__json *entry)
{
    const struct ph__json *models = ph__json_get(statistics, "model_stats");
    for (size_t i = 0; i < ph__json_size(models); i++) {
        const struct ph__json *model = ph__json_at(models, i);
        if (strcmp(text_of(model, "name"), text_of(entry, "name")) == 0 &&
            strcmp(text_of(model, "version"), text_of(entry, "version")) == 0)
            return model;
    }
    return NULL;
}

static ph_status print_table(
    const struct ph__json *index, const struct ph__json *before, const struct ph__json *after, double seconds)
{
    static const struct ph__text_column columns[] = {{"model", false}, {"version", true}, {"state", false},
        {"requests/s", true}, {"rows/s", true}, {"ms a request", true}, {"answered", true}, {"failed", true},
        {"reason", false}};
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < ph__json_size(index); i++) {
        const struct ph__json *entry = ph__json_at(index, i);
        const struct ph__json *now = find(after, entry), *then = find(before, entry);
        const double num_requests = figure(now, "success", "count") - figure(then, "success", "count");
        const double ns = figure(now, "success", "ns") - figure(then, "success", "ns");
        ph__text_table_cell(&table, "%s", text_of(entry, "name"));
        ph__text_table_cell(&table, "%s", text_of(entry, "version"));
        ph__text_table_cell(&table, "%s", text_of(entry, "state"));
        ph__text_table_number(&table, "%.0f", num_requests / seconds);
        ph__text_table_number(&table, "%.0f",
            (figure(now, NULL, "inference_count") - figure(then, NULL, "inference_count")) / seconds);
        ph__text_table_number(&table, "%.3f", ns / num_requests * 1e-6);
        ph__text_table_number(&table, "%.0f", figure(now, "success", "count"));
        ph__text_table_number(&table, "%.0f", figure(now, "fail", "count"));
        ph__text_table_cell(&table, "%s", text_of(entry, "reason"));
    }
    const ph_status status = cli_print_table(&table);
    ph__text_table_fini(&table);
    return status;
}

static ph_status show(struct cli_http *http, bool is_json)
{
    struct ph__json *index = NULL, *before = NULL, *after = NULL;
    const struct timespec pause = {.tv_nsec = 500000000};
    ph_status status = cli_http_ask_json(http, "GET", "/v2/models/stats", &before);
    const double begun_s = ph__clock_seconds();
    if (status == PH_OK && !is_json)
        nanosleep(&pause, NULL);
    if (status == PH_OK)
        status = cli_http_ask_json(http, "GET", "/v2/models/stats", &after);
    if (status == PH_OK)
        status = cli_http_ask_json(http, "POST", "/v2/repository/index", &index);
    if (status == PH_OK)
        status = is_json ? cli_print_json(after)
                         : print_table(index, before, after, ph__clock_seconds() - begun_s);
    ph__json_destroy(index);
    ph__json_destroy(before);
    ph__json_destroy(after);
    return status;
}

ph_status cli_serve_status(int argc, char **argv)
{
    const char *token_file = NULL;
    bool is_json = false;
    const struct cli_flag flags[] = {
        {"--token-file", CLI_TEXT, &token_file, "FILE", "bearer token of the server"},
        {"--json", CLI_SWITCH, &is_json, NULL, "prints the statistics as JSON instead of a table"},
    };
    const struct cli_command command = {"serve status", "serve status 127.0.0.1:8000",
        "Shows the models of the server at ADDRESS, its REST wire: what serves, how fast, and what does not.",
        "ADDRESS", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    struct cli_http http;
    ph_status status = cli_http_open(&http, arguments.positional[0], token_file);
    if (status == PH_OK)
        status = show(&http, is_json);
    cli_http_close(&http);
    return status;
}
