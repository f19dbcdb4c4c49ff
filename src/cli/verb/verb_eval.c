/* phloem eval DIR [FILE] */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/verb/scoring.h"
#include "train/folder/summary.h"
#include "train/measure/evaluate.h"

/* Prints one object for one task, an array for several. */
static ph_status print_metrics(const struct ph_metrics *metrics, size_t num_tasks)
{
    struct ph__json *json = num_tasks == 1 ? ph__metrics_json(metrics) : ph__json_array();
    for (size_t task = 0; num_tasks > 1 && task < num_tasks; task++)
        ph__json_append(json, ph__metrics_json(&metrics[task]));
    const ph_status status = cli_print_json(json);
    ph__json_destroy(json);
    return status;
}

static ph_status check_scores(const char *path, const struct ph_metrics *metrics, size_t num_tasks)
{
    for (size_t task = 0; task < num_tasks; task++)
        if (metrics[task].num_samples > 0 && isnan(metrics[task].logloss))
            return ph_fail(PH_ERROR_DATA, "%s: the model gives scores that are not numbers", path);
    return PH_OK;
}

static ph_status evaluate(struct cli_scoring *scoring, const char *path)
{
    const struct ph_encoder *encoder = scoring->model.encoder;
    size_t num_tasks = ph_encoder_num_classes(encoder) > 0 ? 1 : ph_encoder_num_tasks(encoder);
    if (path == NULL)
        path = scoring->config.data.paths.test;
    if (path == NULL)
        return ph_fail(PH_ERROR_USAGE, "the config has no data.test: give FILE");
    struct ph_metrics *metrics = calloc(ph_encoder_num_tasks(encoder), sizeof *metrics);
    if (metrics == NULL)
        return ph__out_of_memory("%zu tasks", num_tasks);
    int no_signal;
    struct ph__bad_rows bad_rows;
    const struct ph__rows_origin rows = {.path = path};
    ph_status status = ph__scorer_evaluate(scoring->scorer, rows, NULL, &no_signal, metrics, &bad_rows, NULL);
    if (status == PH_OK && bad_rows.count > 0)
        fprintf(stderr, "phloem: note: left out %" PRIu64 " bad rows; the first: %s\n", bad_rows.count,
            bad_rows.first);
    if (status == PH_OK)
        status = check_scores(path, metrics, num_tasks);
    if (status == PH_OK)
        status = print_metrics(metrics, num_tasks);
    free(metrics);
    return status;
}

ph_status verb_eval(int argc, char **argv)
{
    struct cli_texts sets = {0};
    struct cli_formats formats = {0};
    const struct cli_flag flags[] = {
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value"},
        CLI_FORMAT_FLAGS(formats),
    };
    const struct cli_command command = {"eval", "eval runs/mine test.tsv",
        "Measures the model in DIR on FILE (default: data.test of its config) and prints metrics as JSON.",
        "DIR [FILE]", 1, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    struct cli_scoring scoring;
    ph_status status = cli_scoring_open(&scoring, arguments.positional[0], &sets, &formats);
    if (status == PH_OK)
        status = evaluate(&scoring, arguments.num_positional > 1 ? arguments.positional[1] : NULL);
    cli_scoring_close(&scoring);
    return status;
}
