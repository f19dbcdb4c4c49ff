/* phloem predict DIR FILE --out PREDICTIONS.csv|.npy|- */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/stop.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "cli/verb/prediction_file.h"
#include "cli/verb/scoring.h"
#include "serve/scorer.h"

static ph_status check_probabilities(const struct cli_prediction_file *file, const float *probabilities)
{
    for (size_t task = 0; task < file->num_tasks; task++)
        if (isnan(probabilities[task]))
            return ph_fail(PH_ERROR_DATA, "row %" PRIu64 ": the model gives a score that is not a number",
                file->num_rows + 1);
    return PH_OK;
}

static ph_status predict_batch(struct cli_scoring *scoring, const struct ph_batch *batch,
    float *probabilities, struct cli_prediction_file *file)
{
    const ph_real *logits; /* (B,T) */
    PH_TRY(ph_scorer_score(scoring->scorer, batch, &logits));
    for (size_t b = 0; b < batch->num_samples; b++) {
        ph__probabilities(file->num_tasks, logits + b * file->num_tasks, probabilities);
        PH_TRY(check_probabilities(file, probabilities));
        PH_TRY(cli_prediction_file_row(file, probabilities));
    }
    return PH_OK;
}

/* Writes predictions of all batches. PH_ERROR_INTERRUPTED once *stop_signal is not 0; the caller sets its
 * text. */
static ph_status predict_batches(struct cli_scoring *scoring, struct ph_batches *batches,
    const volatile int *stop_signal, struct cli_prediction_file *file)
{
    float *probabilities = calloc(file->num_tasks, sizeof *probabilities);
    if (probabilities == NULL)
        return ph__out_of_memory("%zu tasks", file->num_tasks);
    ph_status status = PH_OK;
    while (status == PH_OK) {
        const struct ph_batch *batch = NULL;
        status = ph__is_stopped(stop_signal) ? PH_ERROR_INTERRUPTED : ph_batches_next(batches, &batch);
        if (status != PH_OK || batch == NULL)
            break;
        status = predict_batch(scoring, batch, probabilities, file);
    }
    free(probabilities);
    return status;
}

static ph_status predict_file(
    struct cli_scoring *scoring, const char *path, const char *out, const volatile int *stop_signal)
{
    struct cli_prediction_file file;
    struct ph_batches *batches;
    struct ph_batches_options options = {
        .size = sizeof options,
        .batch_size = (size_t)scoring->config.train.batch_size,
        .reading.num_prefetched = scoring->config.data.reading.num_prefetched,
        .needs_no_labels = true,
        .stop_signal = stop_signal,
    };
    PH_TRY(ph_batches_open(scoring->model.encoder, path, &options, &batches));
    ph_status status = cli_prediction_file_open(out, ph_encoder_num_tasks(scoring->model.encoder), &file);
    if (status == PH_OK) {
        status = predict_batches(scoring, batches, stop_signal, &file);
        if (status == PH_OK)
            status = cli_prediction_file_finish(&file);
        cli_prediction_file_abandon(&file);
    }
    ph_batches_close(batches);
    if (status == PH_OK)
        fprintf(file.is_standard_output ? stderr : stdout, "%s: %" PRIu64 " predictions\n",
            cli_prediction_file_name(out), file.num_rows);
    return status;
}

static ph_status predict(struct cli_scoring *scoring, const char *path, const char *out)
{
    PH_TRY(cli_output_spare_input(out, path));
    const volatile int *stop_signal = cli_stop_signal();
    ph_status status = predict_file(scoring, path, out, stop_signal);
    if (status != PH_ERROR_INTERRUPTED)
        return status;
    return ph_fail(ph__stop_status(stop_signal), "stopped by a signal: %s is %s",
        cli_prediction_file_name(out), strcmp(out, "-") == 0 ? "incomplete" : "not written");
}

ph_status verb_predict(int argc, char **argv)
{
    struct cli_texts sets = {0};
    struct cli_formats formats = {0};
    const char *out = NULL;
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &out, "FILE",
            "file for predictions, .csv or .npy; -: CSV to standard output (required)"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value"},
        CLI_FORMAT_FLAGS(formats),
    };
    const struct cli_command command = {"predict", "predict runs/mine rows.tsv --out predictions.csv",
        "Writes the probability that the model in DIR predicts for each row of FILE, in order. Labels are\n"
        "not needed.",
        "DIR FILE", 2, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (out == NULL)
        return ph_fail(PH_ERROR_USAGE, "predict requires --out FILE: .csv or .npy, or - for standard output");
    struct cli_scoring scoring;
    ph_status status = cli_scoring_open(&scoring, arguments.positional[0], &sets, &formats);
    if (status == PH_OK)
        status = cli_output_spare_model(out, arguments.positional[0]);
    if (status == PH_OK)
        status = predict(&scoring, arguments.positional[1], out);
    cli_scoring_close(&scoring);
    return status;
}
