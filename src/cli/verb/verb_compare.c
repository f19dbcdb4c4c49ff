/* phloem compare CONFIG... --out DIR */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/directory.h"
#include "base/memory/memory.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "study/comparison_tables.h"

struct request {
    struct cli_arguments arguments;
    const char *folder, *threads, *base, *seeds_text;
    struct cli_texts sets, variant;
    struct cli_seeds seeds;
    struct ph__arena arena; /* holds texts of sets that argv does not hold */
    bool is_quiet;
};

static ph_status parse(int argc, char **argv, struct request *request)
{
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &request->folder, "DIR", "folder for runs and tables (required)"},
        {"--seeds", CLI_TEXT, &request->seeds_text, "N",
            "number of seeds (3), a list (1,2,5) or a range (4-6); default: 3"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the value of each config"},
        {"--with", CLI_TEXTS, &request->variant, "KEY=VALUE",
            "also trains each config with this value, and compares it with the config as it is"},
        {"--base", CLI_TEXT, &request->base, "CONFIG",
            "config that the others are compared with; default: the first"},
        {"--threads", CLI_TEXT, &request->threads, "N", "same as --set threads=N"},
        {"--quiet", CLI_SWITCH, &request->is_quiet, NULL, "prints only the tables"},
    };
    const struct cli_command command = {"compare",
        "compare dlrm.yaml deepfm.yaml --out runs/compared --seeds 3",
        "Trains each CONFIG with several seeds and compares the outcomes in tables, printed and written to\n"
        "DIR/compare.md, .csv, .json and .html. Trainings that DIR already holds are not repeated.",
        "CONFIG...", 1, PH_CLI_MAX_POSITIONAL, flags, sizeof flags / sizeof *flags};
    PH_TRY(cli_parse(&command, argc, argv, &request->arguments));
    if (request->arguments.has_printed_help)
        return PH_OK;
    if (request->folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "compare requires --out DIR");
    PH_TRY(cli_seeds_parse(request->seeds_text != NULL ? request->seeds_text : "3", &request->seeds));
    return cli_sets_add(&request->sets, &request->arena, "threads", request->threads);
}

/* Prints "dlrm  seed 1  test auc 0.98460  logloss 0.15000  22 epochs  41.2 s  [3 of 18]". */
static void print_run(void *context, const struct ph__comparison *comparison, size_t row, size_t seed)
{
    const struct request *request = context;
    const struct ph__compared_run *run = &comparison->rows[row].runs[seed];
    const struct ph_train_summary *summary = &run->summary;
    if (request->is_quiet)
        return;
    printf("%s  seed %" PRId64 "  ", comparison->rows[row].name, comparison->seeds[seed]);
    if (run->state == PH_RUN_FAILED)
        printf("failed: %s", run->failure);
    else if (summary->has_test)
        printf("test auc %.5f  logloss %.5f  ", summary->test.auc, summary->test.logloss);
    else if (summary->has_valid)
        printf("valid auc %.5f  logloss %.5f  ", summary->valid.auc, summary->valid.logloss);
    if (run->state == PH_RUN_FINISHED)
        printf("%" PRIu64 " epochs  %.1f s%s", summary->epochs, summary->train_seconds,
            run->is_of_before ? "  (finished before)" : "");
    printf("  [%zu of %zu]\n", seed * comparison->num_rows + row + 1,
        comparison->num_rows * comparison->num_seeds);
    fflush(stdout);
}

static ph_status write_tables(const void *tables, struct ph__writer *writer)
{
    return ph__comparison_tables_write(tables, writer);
}

static ph_status print_tables(const struct request *request, const struct ph__comparison_tables *tables)
{
    printf("%s", request->is_quiet ? "" : "\n");
    PH_TRY(cli_print(write_tables, tables));
    printf("\nalso in %s/compare.md, .csv, .json and .html\n", request->folder);
    return PH_OK;
}

static ph_status report(const struct request *request, struct ph__comparison *comparison)
{
    struct ph__comparison_tables tables;
    ph_status status = ph__comparison_tables_init(&tables, comparison);
    if (status == PH_OK)
        status = ph__comparison_files_write(&tables, request->folder);
    if (status == PH_OK)
        status = print_tables(request, &tables);
    ph__comparison_tables_fini(&tables);
    return status;
}

static ph_status compare(struct request *request, struct ph__comparison *comparison)
{
    const struct ph__comparison_plan plan = {
        .configs = request->arguments.positional,
        .num_configs = request->arguments.num_positional,
        .sets = request->sets.items,
        .num_sets = request->sets.count,
        .variant = request->variant.items,
        .num_variant = request->variant.count,
        .base = request->base,
        .seeds = request->seeds.items,
        .num_seeds = request->seeds.count,
        .folder = request->folder,
    };
    const struct ph__comparison_watcher watcher = {.context = request,
        .on_run = print_run,
        .observer = {.size = sizeof watcher.observer,
            .on_note = cli_print_note,
            .on_watch = cli_stop_signal_watch},
        .stop_signal = cli_stop_signal_place()};
    int lock;
    PH_TRY(ph__comparison_init(comparison, &plan));
    PH_TRY(ph__directory_create(request->folder));
    PH_TRY(ph__directory_lock(request->folder, &lock));
    ph_status status = ph__comparison_run(comparison, &watcher);
    if (status == PH_OK)
        status = report(request, comparison);
    ph__directory_unlock(lock);
    return status == PH_OK ? ph__comparison_outcome(comparison) : status;
}

static ph_status run(int argc, char **argv, struct request *request)
{
    struct ph__comparison comparison = {0};
    PH_TRY(parse(argc, argv, request));
    if (request->arguments.has_printed_help)
        return PH_OK;
    ph_status status = compare(request, &comparison);
    ph__comparison_fini(&comparison);
    return status;
}

ph_status verb_compare(int argc, char **argv)
{
    struct request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return ph__out_of_memory("a command line");
    ph_status status = run(argc, argv, request);
    ph__arena_fini(&request->arena);
    free(request);
    return status;
}
