/* phloem train CONFIG --out DIR [--resume] */
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/hub/hub_reducer.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "cli/verb/rank_table.h"
#include "cli/with_ranks.h"
#include "train/config/job_config.h"
#include "train/ranks/memory_check.h"

struct request {
    const char *config, *folder, *threads, *trace;
    struct cli_texts sets;
    struct ph__arena arena; /* holds texts of sets that argv does not hold */
    bool is_resumed, has_profile, is_quiet;
};

/* Context of the observer's functions. */
struct watch {
    struct cli_progress progress;
    const char *trace; /* NULL: none */
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &request->folder, "DIR", "folder for the model and reports (required)"},
        {"--resume", CLI_SWITCH, &request->is_resumed, NULL,
            "resumes the training in DIR, or begins it when DIR is missing or empty"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
        {"--threads", CLI_TEXT, &request->threads, "N", "same as --set threads=N"},
        {"--profile", CLI_SWITCH, &request->has_profile, NULL,
            "prints time, GFLOP/s and GB/s of each operator on rank 0"},
        {"--trace", CLI_TEXT, &request->trace, "FILE", "writes a Chrome trace of all ranks"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints no progress"},
    };
    const struct cli_command command = {"train", "train config.yaml --out runs/mine",
        "Trains the model of CONFIG and keeps the best one in DIR.", "CONFIG", 1, 1, flags,
        sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (request->folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "train requires --out DIR, for the model and the reports");
    request->config = arguments.positional[0];
    return PH_OK;
}

static ph_status read_config(struct request *request, struct ph_config *config)
{
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "threads", request->threads));
    PH_TRY(ph__job_config_read(config, request->config, request->sets.items, request->sets.count));
    if (config->data.paths.train == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s: data.train is missing: name the training data", request->config);
    return PH_OK;
}

static void print_metrics(const char *what, const struct ph_metrics *metrics)
{
    if (!isnan(metrics->accuracy))
        printf("%-5s  accuracy %.5f  logloss %.5f  (%llu samples)\n", what, metrics->accuracy,
            metrics->logloss, (unsigned long long)metrics->num_samples);
    else
        printf("%-5s  auc %.5f  logloss %.5f  ne %.4f  calibration %.4f  (%llu samples)\n", what,
            metrics->auc, metrics->logloss, metrics->ne, metrics->calibration,
            (unsigned long long)metrics->num_samples);
}

static void print_bad_rows(const char *what, uint64_t count, struct ph_buffer first)
{
    if (count > 0)
        printf("left out %llu bad rows of the %s data; the first: %s\n", (unsigned long long)count, what,
            first.text);
}

static void print_memory(const struct ph_train_memory *memory)
{
    char peak[32], limit[32], baseline[32], parameters[32], slots[32], plan[32], no_reuse[32], probe[32];
    uint64_t limit_bytes = ph__memory_limit(memory);
    printf("memory: peak anonymous %s, %s the limit of %s = baseline %s + parameters %s + slots %s + plan %s "
           "(%s without reuse) + probe %s + 64 MiB\n",
        ph__bytes_text(memory->peak_anonymous_bytes, peak),
        memory->peak_anonymous_bytes <= limit_bytes ? "within" : "ABOVE", ph__bytes_text(limit_bytes, limit),
        ph__bytes_text(memory->baseline_bytes, baseline), ph__bytes_text(memory->parameter_bytes, parameters),
        ph__bytes_text(memory->slot_bytes, slots), ph__bytes_text(memory->plan_bytes, plan),
        ph__bytes_text(memory->no_reuse_bytes, no_reuse), ph__bytes_text(memory->probe_bytes, probe));
}

static void print_summary(const struct ph_train_summary *summary, const struct ph_first_bad_rows *first,
    const struct ph_train_settings *settings, const char *folder)
{
    if (summary->was_finished)
        printf("%s holds a finished training: nothing to do\n", folder);
    else if (summary->resumed_step > 0)
        printf("resumed at step %llu\n", (unsigned long long)summary->resumed_step);
    printf(
        "trained %llu steps in %.1f s (%.1f%% waiting for data), %.0f samples/s, %llu parameters; best epoch "
        "%llu\n",
        (unsigned long long)summary->steps, summary->train_seconds, 100 * summary->reader_wait_share,
        summary->samples_per_s, (unsigned long long)summary->parameters,
        (unsigned long long)summary->best_epoch);
    if (summary->probe_share > 0)
        printf("probe: looks at products took %.2f%% of the time\n", 100 * summary->probe_share);
    if (summary->ended_by == PH_ENDED_BY_PATIENCE)
        printf("ended by train.patience: %lld evaluation%s in a row did not improve on the best one\n",
            (long long)settings->patience, settings->patience == 1 ? "" : "s");
    if (summary->skipped_steps > 0)
        printf("skipped %llu steps whose loss or gradients were not finite\n",
            (unsigned long long)summary->skipped_steps);
    print_bad_rows("training", summary->train_bad_rows, first->train);
    print_bad_rows("validation", summary->valid_bad_rows, first->valid);
    print_bad_rows("test", summary->test_bad_rows, first->test);
    if (summary->has_progressive)
        print_metrics("progressive", &summary->progressive);
    if (summary->has_valid)
        print_metrics("valid", &summary->valid);
    if (summary->has_test)
        print_metrics("test", &summary->test);
    print_memory(&summary->memory);
    printf("model: %s/model.safetensors (sha256 of its parameters %.16s...)\nmetrics: %s/summary.json\n",
        folder, summary->checkpoint_sha256, folder);
}

/* Tries to open the trace's file early: it is written at the end of a long training, maybe into the folder
 * that is there now. */
static ph_status try_trace(void *context)
{
    const struct watch *watch = context;
    return watch->trace != NULL ? cli_output_try(watch->trace) : PH_OK;
}

static ph_status show_progress(void *context, const struct ph_train_progress *progress)
{
    struct watch *watch = context;
    return cli_progress_show(&watch->progress, progress);
}

static void show_note(void *context, const char *text)
{
    struct watch *watch = context;
    cli_progress_end(&watch->progress);
    fprintf(stderr, "phloem: note: %s\n", text);
}

static ph_status spare_inputs(const struct request *request, const struct ph_data_settings *data)
{
    const char *const inputs[] = {request->config, data->paths.train, data->paths.valid, data->paths.test};
    for (size_t i = 0; request->trace != NULL && i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i] != NULL)
            PH_TRY(cli_output_spare_input(request->trace, inputs[i]));
    return PH_OK;
}

static ph_status train(const struct request *request, struct ph_config *config, struct ph_comm *comm,
    const struct ph_reducer *reducer)
{
    struct watch watch = {.progress = cli_progress_on(stdout), .trace = request->trace};
    const bool is_first = ph_comm_rank(comm) == 0;
    char first_rows[3][512];
    const struct ph_first_bad_rows first_bad_rows = {.train = {first_rows[0], sizeof first_rows[0]},
        .valid = {first_rows[1], sizeof first_rows[1]},
        .test = {first_rows[2], sizeof first_rows[2]}};
    const struct ph_train_observer observer = {
        .size = sizeof observer,
        .context = &watch,
        .on_progress = is_first && !request->is_quiet ? show_progress : NULL,
        .on_start = is_first ? try_trace : NULL,
        .on_note = is_first ? show_note : NULL,
        .on_watch = cli_stop_signal_watch,
    };
    const struct ph_train_options options = {
        .size = sizeof options,
        .comm = comm,
        .reducer = reducer,
        .folder = request->folder,
        .is_resumed = request->is_resumed,
        .observer = &observer,
        .profile_path = request->has_profile ? "-" : NULL,
        .trace_path = request->trace,
        .first_bad_rows = first_bad_rows,
        .stop_signal = cli_stop_signal_place(),
    };
    struct ph_train_summary summary;
    ph_status status = ph_train_config(config, &options, &summary);
    cli_progress_end(&watch.progress);
    if (status != PH_OK || !is_first)
        return status;
    print_summary(&summary, &first_bad_rows, &config->train, request->folder);
    return ph_comm_world_size(comm) > 1 ? cli_rank_table_print(request->folder) : PH_OK;
}

struct training {
    const struct request *request;
    struct ph_config *config;
};

/* Trains. Tells the other ranks of a failure before it ends the hub's service. */
static ph_status train_over_ranks(void *context, struct ph_comm *comm)
{
    const struct training *training = context;
    struct ph_config *config = training->config;
    struct cli_hub_reducer hub = {0};
    const bool has_hub = config->parallel.sync == PH_SYNC_HUB;
    ph_status status = has_hub ? cli_hub_reducer_init(&hub, &config->parallel, comm) : PH_OK;
    if (status == PH_OK)
        status = train(training->request, config, comm, has_hub ? &hub.table : NULL);
    if (status != PH_OK)
        ph_comm_fail(comm, status);
    cli_hub_reducer_fini(&hub, status);
    return status;
}

static ph_status read_and_check(struct request *request, struct ph_config *config)
{
    PH_TRY(read_config(request, config));
    return spare_inputs(request, &config->data);
}

ph_status verb_train(int argc, char **argv)
{
    struct request request = {0};
    struct ph_config config = {0};
    bool is_done = false;
    ph_status status = parse(argc, argv, &request, &is_done);
    if (status == PH_OK && is_done)
        return PH_OK;
    if (status == PH_OK)
        status = read_and_check(&request, &config);
    struct training training = {&request, &config};
    const struct cli_ranks ranks = {.task = "phloem train",
        .parallel = &config.parallel,
        .work = train_over_ranks,
        .context = &training,
        .done_text = "the training is done and written"};
    status = cli_with_ranks(&ranks, status);
    ph__job_config_fini(&config);
    ph__arena_fini(&request.arena);
    return status;
}
