/* phloem synth [CONFIG] --out DIR */
#include <inttypes.h>
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/verb.h"
#include "data/data_options.h"
#include "train/config/job_config.h"

static void print_orders(const struct ph_synth_truth *truth)
{
    for (size_t i = 0; i < truth->num_orders; i++)
        printf("       orders up to %" PRId64 ": logloss %.5f, ne %.4f\n", truth->orders[i].order,
            truth->orders[i].logloss, truth->orders[i].ne);
}

static void print_truth(const struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT])
{
    printf("The true model, which drew the labels, on these data:\n");
    for (size_t i = 0; i < PH_SYNTH_FILE_COUNT; i++) {
        if (truth[i].num_rows > 0)
            printf("%-5s  %" PRIu64 " rows, positives %.4f, auc %.5f, logloss %.5f, ne %.4f\n",
                ph__split_names[i], truth[i].num_rows, truth[i].base_rate, truth[i].auc, truth[i].logloss,
                truth[i].ne);
        print_orders(&truth[i]);
    }
}

static ph_status write_slates(struct ph_config *config, const char *folder)
{
    struct ph__slates_figures figures;
    PH_TRY(ph__slates_write(&config->slates, folder, &figures));
    printf("%" PRIu64 " requests for %" PRIu64 " pairs, %" PRIu64
           " of them different; positives %.4f, ne of the "
           "true model %.4f\n",
        figures.num_requests, figures.num_rows, figures.num_pairs, figures.base_rate, figures.ne);
    printf("data: %s (train.tsv, and synth.yaml: the data section of a config)\n", folder);
    return PH_OK;
}

static ph_status write_graph(struct ph_config *config, const char *folder)
{
    uint64_t num_edges;
    PH_TRY(ph__csbm_write(&config->csbm, folder, &num_edges));
    printf("%" PRId64 " nodes, %" PRIu64 " edges, %.1f neighbours a node\n", config->csbm.num_nodes,
        num_edges, 2 * (double)num_edges / (double)config->csbm.num_nodes);
    printf("data: %s (nodes.csv, edges.csv, and synth.yaml: the data section of a config)\n", folder);
    return PH_OK;
}

static ph_status synthesise(struct ph_config *config, const char *path, const struct cli_texts *sets,
    bool has_slates, bool has_graph, const char *folder)
{
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
    PH_TRY(ph__job_config_read(config, path, sets->items, sets->count));
    if (has_slates)
        return write_slates(config, folder);
    if (has_graph)
        return write_graph(config, folder);
    PH_TRY(ph_synth_write(&config->synth, folder, truth));
    print_truth(truth);
    printf(
        "data: %s (truth.json holds the figures above, synth.yaml the data section of a config)\n", folder);
    return PH_OK;
}

ph_status verb_synth(int argc, char **argv)
{
    struct cli_texts sets = {0};
    const char *folder = NULL;
    bool has_slates = false, has_graph = false;
    const struct cli_flag flags[] = {
        {"--out", CLI_TEXT, &folder, "DIR", "folder for the files, new or empty (required)"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value: --set synth.train_rows=1000"},
        {"--slates", CLI_SWITCH, &has_slates, NULL,
            "writes a stream of requests, each for a slate of items, by section slates"},
        {"--graph", CLI_SWITCH, &has_graph, NULL,
            "writes a graph whose nodes are mostly joined to their class, by section csbm"},
    };
    const struct cli_command command = {"synth", "synth config.yaml --out data",
        "Writes training, validation and test data whose labels are drawn from a known model, by section\n"
        "synth of CONFIG (without CONFIG, by the defaults).",
        "[CONFIG]", 0, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "synth requires --out DIR, for the data");
    struct ph_config config = {0};
    ph_status status = synthesise(&config, arguments.positional[0], &sets, has_slates, has_graph, folder);
    ph__job_config_fini(&config);
    return status;
}
