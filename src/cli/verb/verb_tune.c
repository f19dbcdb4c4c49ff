/* phloem tune CONFIG --out DIR */
#include <inttypes.h>
#include <stdio.h>

#include "base/thread/stop.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "study/tuning.h"

struct request {
    const char *config, *folder, *threads, *runs, *minutes, *seed;
    struct cli_texts sets;
    struct ph__arena arena; /* holds texts of sets that argv does not hold */
    bool is_quiet;
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &request->folder, "DIR", "folder for trials and the best config (required)"},
        {"--runs", CLI_TEXT, &request->runs, "N", "same as --set tune.runs=N"},
        {"--minutes", CLI_TEXT, &request->minutes, "M", "same as --set tune.minutes=M"},
        {"--seed", CLI_TEXT, &request->seed, "K", "same as --set tune.seed=K"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
        {"--threads", CLI_TEXT, &request->threads, "N", "same as --set threads=N"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints only the table"},
    };
    const struct cli_command command = {"tune", "tune config.yaml --out runs/tuned",
        "Searches the ranges in section tune of CONFIG for the values that are best on data.valid, and\n"
        "writes DIR/best.yaml. Test data are not read. Trainings that DIR already holds are not repeated.",
        "CONFIG", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (request->folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "tune requires --out DIR");
    request->config = arguments.positional[0];
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "threads", request->threads));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "tune.runs", request->runs));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "tune.minutes", request->minutes));
    return cli_sets_add(&request->sets, &request->arena, "tune.seed", request->seed);
}

/* Prints "trial 3  seed 1  2 epochs  valid auc 0.98460  logloss 0.15000  4.2 s  model.dropout=0.1". */
static void print_step(void *context, const struct ph__trial *trial, int64_t seed,
    const struct ph__tune_step *step, bool is_of_before)
{
    const struct request *request = context;
    if (request->is_quiet)
        return;
    printf("trial %" PRIu64 "  seed %" PRId64 "  ", trial->index, seed);
    if (step->exit_code != 0)
        printf("failed: %s", step->failure);
    else
        printf("%" PRIu64 " epochs  valid auc %.5f  logloss %.5f  %.1f s", step->epochs_trained,
            step->valid_auc, step->valid_logloss, step->train_seconds);
    printf("%s ", is_of_before ? "  (finished before)" : "");
    for (size_t i = 0; i < trial->num_sets; i++)
        printf(" %s", trial->sets[i]);
    printf("%s\n", trial->num_sets == 0 ? " the config as it is" : "");
    fflush(stdout);
}

static ph_status print_table(struct ph__tuning *tuning)
{
    struct ph__text_table table;
    printf("\n");
    ph_status status = ph__tuning_table(tuning, &table);
    if (status == PH_OK)
        status = cli_print_table(&table);
    ph__text_table_fini(&table);
    return status;
}

static ph_status print_outcome(const struct request *request, struct ph__tuning *tuning)
{
    const struct ph__trial **trials;
    size_t num_finished;
    PH_TRY(ph__tuning_order(tuning, &trials, &num_finished));
    if (num_finished > 0) {
        PH_TRY(print_table(tuning));
        printf("\nthe best by valid %s: %s/best.yaml; all: %s/trials.csv\n",
            ph__tuning_is_by_logloss(tuning) ? "logloss" : "AUC", request->folder, request->folder);
    }
    if (tuning->is_out_of_time)
        printf("\ntune.minutes is used up; the same command goes on\n");
    return PH_OK;
}

/* Writes the files of what is finished all the same, and then reports why the search ended. */
static ph_status end_early(struct request *request, struct ph__tuning *tuning, ph_status status)
{
    const char *reason = ph__arena_strdup(&request->arena, ph_error_text());
    PH_TRY(ph__tuning_files_write(tuning));
    if (ph__is_stop_status(status))
        return ph_fail(status,
            "stopped by a signal; finished trials are in %s/trials.csv, and the same command goes on",
            request->folder);
    return reason != NULL ? ph_fail(status, "%s", reason) : PH_ERROR_MEMORY;
}

static ph_status search(
    struct request *request, struct ph__tuning *tuning, const struct ph__tuning_plan *plan)
{
    const struct ph__tuning_watcher watcher = {.context = request,
        .on_step = print_step,
        .observer = {.size = sizeof watcher.observer,
            .on_note = cli_print_note,
            .on_watch = cli_stop_signal_watch},
        .stop_signal = cli_stop_signal_place()};
    PH_TRY(ph__tuning_init(tuning, plan));
    ph_status status = ph__tuning_run(tuning, &watcher);
    if (status != PH_OK)
        return end_early(request, tuning, status);
    PH_TRY(ph__tuning_files_write(tuning));
    return print_outcome(request, tuning);
}

ph_status verb_tune(int argc, char **argv)
{
    struct request request = {0};
    struct ph__tuning tuning = {0};
    bool is_done;
    ph_status status = parse(argc, argv, &request, &is_done);
    if (status == PH_OK && !is_done) {
        const struct ph__tuning_plan plan = {
            request.config, request.sets.items, request.sets.count, request.folder};
        status = search(&request, &tuning, &plan);
        ph__tuning_fini(&tuning);
    }
    ph__arena_fini(&request.arena);
    return status;
}
