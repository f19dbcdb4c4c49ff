/* phloem prepare CONFIG --out DIR [--resume] [--quiet] */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory/memory.h"
#include "cli/arguments.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "train/config/job_config.h"

struct request {
    const char *config, *folder, *threads;
    struct cli_texts sets;
    struct ph__arena arena; /* holds texts of sets that argv does not hold */
    bool is_resumed, is_quiet;
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &request->folder, "DIR", "folder for the prepared data (required)"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints no progress"},
        {"--resume", CLI_SWITCH, &request->is_resumed, NULL, "continues the preparation in DIR"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
        {"--threads", CLI_TEXT, &request->threads, "N", "same as --set threads=N"},
    };
    const struct cli_command command = {"prepare", "prepare config.yaml --out prepared",
        "Encodes the data of CONFIG once, into files in DIR that training reads fast. DIR/prepared.yaml is\n"
        "the data section of a config that trains on them.",
        "CONFIG", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    if (request->folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "prepare requires --out DIR");
    request->config = arguments.positional[0];
    return PH_OK;
}

static void print_summary(
    const struct ph_prepare_summary *summary, const char *first_bad_row, const char *folder)
{
    double text_mb = (double)summary->num_text_bytes * 1e-6, seconds = summary->seconds;
    printf("prepared %" PRIu64 " rows: %.1f MB of text, %.1f MB in %zu parts", summary->num_rows, text_mb,
        (double)summary->num_bytes * 1e-6, summary->num_parts);
    if (summary->num_kept_parts > 0)
        printf(" (%zu already there)\n", summary->num_kept_parts);
    else
        printf("\nencoded in %.1f s on %zu threads: %.1f MB/s, %.1f MB/s a core, %.0f rows/s\n", seconds,
            summary->num_threads, text_mb / seconds, text_mb / seconds / (double)summary->num_threads,
            (double)summary->num_rows / seconds);
    if (summary->num_bad_rows > 0)
        printf("left out %" PRIu64 " bad rows, the first: %s\n", summary->num_bad_rows, first_bad_row);
    printf("memory: peak %.1f MB, mapped files included\n", (double)ph__memory_peak_rss_bytes() * 1e-6);
    printf("data: %s (prepared.yaml: the data section of a config)\n", folder);
}

static ph_status prepare(struct request *request, struct ph_config *config)
{
    struct ph_prepare_summary summary;
    char first_bad_row[512];
    struct cli_progress progress = cli_progress_on(stderr);
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "threads", request->threads));
    PH_TRY(ph__job_config_read(config, request->config, request->sets.items, request->sets.count));
    struct ph_prepare_options options = {.size = sizeof options};
    PH_TRY(ph_config_prepare_options(config, &options));
    options.may_resume = request->is_resumed;
    options.stop_signal = cli_stop_signal_soon();
    options.on_progress = request->is_quiet ? NULL : cli_progress_show_preparation;
    options.progress_context = &progress;
    options.first_bad_row = (struct ph_buffer){first_bad_row, sizeof first_bad_row};
    options.progress_seconds = cli_progress_seconds(&progress);
    ph_status status = ph_prepare(&config->data, request->folder, &options, &summary);
    cli_progress_end(&progress);
    PH_TRY(status);
    print_summary(&summary, first_bad_row, request->folder);
    return PH_OK;
}

ph_status verb_prepare(int argc, char **argv)
{
    struct request request = {0};
    struct ph_config config = {0};
    bool is_done = false;
    PH_TRY(parse(argc, argv, &request, &is_done));
    if (is_done)
        return PH_OK;
    ph_status status = prepare(&request, &config);
    ph__job_config_fini(&config);
    ph__arena_fini(&request.arena);
    return status;
}
