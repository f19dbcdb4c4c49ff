/* phloem precision DIR: which products of a trained model can be computed in fewer bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "cli/precision/precision_output.h"
#include "cli/verb.h"
#include "cli/verb/scoring.h"
#include "graph/recipe_table.h"
#include "serve/scorer.h"
#include "train/measure/evaluate.h"
#include "train/probe/probing.h"

#define PAGE_FILE "precision.html"

struct precision {
    const char *folder, *data, *out, *page;
    struct ph__site_wish wish;
    struct cli_scoring scoring;
    struct ph__probe *seen, *learnt; /* learnt NULL: the training left none */
    struct ph__sites sites;
    double losses[2]; /* NE of the model in fp32, by its recipes; logloss of one with classes */
};

/* ---- measuring ---- */

static bool has_classes(const struct precision *precision)
{
    return ph_encoder_num_classes(precision->scoring.model.encoder) > 0;
}

static ph_status evaluate(struct precision *precision, struct ph_scorer *scorer, double *loss_out)
{
    const size_t num_tasks = ph_encoder_num_tasks(precision->scoring.model.encoder);
    const struct ph__rows_origin rows = {.path = precision->data};
    int no_signal;
    struct ph_metrics *metrics = calloc(num_tasks, sizeof *metrics);
    if (metrics == NULL)
        return ph__out_of_memory("%zu tasks", num_tasks);
    const ph_status status = ph__scorer_evaluate(scorer, rows, NULL, &no_signal, metrics, NULL, NULL);
    *loss_out = has_classes(precision) ? metrics[0].logloss : metrics[0].ne;
    free(metrics);
    return status;
}

/* Scores the data in fp32 while the probe sees the rows of each product. */
static ph_status probe_products(struct precision *precision)
{
    struct cli_scoring *scoring = &precision->scoring;
    PH_TRY(ph__probe_create(ph__scorer_program(scoring->scorer), scoring->backend->gemm, &precision->seen));
    scoring->backend->simulator = ph__probe_hook(precision->seen);
    const ph_status status = evaluate(precision, scoring->scorer, &precision->losses[0]);
    scoring->backend->simulator = NULL;
    return status;
}

/* Reads the file that the training's probe left in the folder, if any. */
static ph_status read_learnt(struct precision *precision)
{
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, precision->folder, PH_PROBE_FILE);
    ph_status status = path != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK && ph__file_exists(path))
        status = ph__probe_read(path, precision->scoring.backend->gemm, &precision->learnt);
    ph__arena_fini(&arena);
    return status;
}

/* Scores the data by the recipes. */
static ph_status score_by_recipes(struct precision *precision)
{
    struct ph_scorer_options options = *ph__scorer_options(precision->scoring.scorer);
    const struct ph__sites *sites = &precision->sites;
    struct ph_site_recipe *recipes = calloc(sites->count + 1, sizeof *recipes);
    struct ph_scorer *scorer = NULL;
    size_t count = 0;
    if (recipes == NULL)
        return ph__out_of_memory("%zu recipes", sites->count);
    for (size_t i = 0; i < sites->count; i++)
        if (!sites->sites[i].is_backward)
            recipes[count++] =
                (struct ph_site_recipe){sites->sites[i].weight, sites->sites[i].recipe, PH_RECIPE_FP32};
    options.recipes = recipes;
    options.num_recipes = count;
    ph_status status = ph_scorer_create(&options, &scorer);
    if (status == PH_OK)
        status = evaluate(precision, scorer, &precision->losses[1]);
    ph_scorer_destroy(scorer);
    free(recipes);
    return status;
}

static double loss_percent(const struct precision *precision)
{
    return (precision->losses[1] / precision->losses[0] - 1) * 100;
}

/* Scores the data by the recipes, and gives the products that err most recipes of less error until the model
 * loses as little as is wished. */
static ph_status fit_recipes(struct precision *precision)
{
    struct ph__site *worst;
    PH_TRY(score_by_recipes(precision));
    while (loss_percent(precision) > precision->wish.most_loss &&
           (worst = ph__sites_worst(&precision->sites)) != NULL) {
        ph__site_choose(worst, ph__site_error(worst, worst->recipe), &precision->wish);
        PH_TRY(score_by_recipes(precision));
    }
    return PH_OK;
}

/* ---- the whole ---- */

static ph_status write_files(const struct precision *precision, const char *table, const char *page)
{
    const struct cli_precision_outcome outcome = {&precision->sites, &precision->wish, precision->folder,
        precision->data, has_classes(precision) ? "logloss" : "ne", precision->losses[0],
        precision->losses[1]};
    PH_TRY(cli_precision_write_table(&outcome, table));
    PH_TRY(cli_precision_write_page(&outcome, page));
    PH_TRY(cli_precision_print(&outcome));
    printf("recipes: %s\npage: %s\n", table, page);
    return PH_OK;
}

static ph_status run(struct precision *precision)
{
    struct ph__arena arena = {0};
    if (precision->data == NULL)
        precision->data = precision->scoring.config.data.paths.test;
    if (precision->data == NULL)
        return ph_fail(PH_ERROR_USAGE, "the config has no data.test: give --data FILE");
    precision->wish.backward_rows = (size_t)precision->scoring.config.train.batch_size;
    PH_TRY(read_learnt(precision));
    PH_TRY(probe_products(precision));
    const struct ph__site_sources sources = {
        precision->scoring.model.store, precision->scoring.backend, precision->seen, precision->learnt};
    PH_TRY(ph__sites_measure(&precision->sites, &sources, &precision->wish));
    PH_TRY(fit_recipes(precision));
    const char *table = precision->out != NULL
                            ? precision->out
                            : ph__path_join(&arena, precision->folder, PH_RECIPE_TABLE_FILE);
    const char *page =
        precision->page != NULL ? precision->page : ph__path_join(&arena, precision->folder, PAGE_FILE);
    const ph_status status =
        table != NULL && page != NULL ? write_files(precision, table, page) : PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status;
}

static ph_status read_only(const char *text, enum ph_recipe *only)
{
    for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; text != NULL && recipe < PH_RECIPE_COUNT; recipe++)
        if (strcmp(text, ph_recipe_name(recipe)) == 0)
            *only = recipe;
    return text == NULL || *only != PH_RECIPE_FP32
               ? PH_OK
               : ph_fail(PH_ERROR_USAGE, "--only '%.32s' must be bf16 or int8", text);
}

ph_status verb_precision(int argc, char **argv)
{
    struct cli_texts sets = {0};
    const struct cli_formats formats = {.ignores_recipes = true};
    const char *only = NULL, *threshold = NULL, *speed_up = NULL, *most_loss = NULL, *rows = NULL;
    double num_rows = 64;
    struct precision precision = {.wish = {.threshold = .2, .speed_up = 1.05, .most_loss = .02}};
    const struct cli_flag flags[] = {
        {"--data", CLI_TEXT, &precision.data, "FILE", "rows to score; default: data.test of the config"},
        {"--out", CLI_TEXT, &precision.out, "FILE", "table of recipes; default: DIR/recipes.json"},
        {"--page", CLI_TEXT, &precision.page, "FILE", "page to read; default: DIR/precision.html"},
        {"--threshold", CLI_TEXT, &threshold, "ERROR",
            "mean relative error below which a product may be in fewer bits (default .2); 0: all stay fp32"},
        {"--speed-up", CLI_TEXT, &speed_up, "RATIO",
            "times as fast as fp32 that it must be at least (default 1.05)"},
        {"--ne-loss", CLI_TEXT, &most_loss, "PERCENT",
            "NE that the model may lose on the data (default .02); products that err most keep more bits for "
            "it"},
        {"--only", CLI_TEXT, &only, "RECIPE", "considers this one beside fp32: bf16 or int8; default: both"},
        {"--rows", CLI_TEXT, &rows, "N", "rows of the calls that are timed (default 64)"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"precision", "precision runs/mine --data valid.tsv",
        "Scores rows with the model in DIR, measures what each product would lose and gain in fewer bits, "
        "and\n"
        "writes the recipes by which DIR is then served and scored. After a training with train.probe_steps\n"
        "gradients' products are measured, too, and errors are predicted from what the training saw.",
        "DIR", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    precision.folder = arguments.positional[0];
    PH_TRY(cli_number_parse("--threshold", threshold, 0, 1e6, &precision.wish.threshold));
    PH_TRY(cli_number_parse("--speed-up", speed_up, 0, 1e6, &precision.wish.speed_up));
    PH_TRY(cli_number_parse("--ne-loss", most_loss, 0, 100, &precision.wish.most_loss));
    PH_TRY(read_only(only, &precision.wish.only));
    PH_TRY(cli_number_parse("--rows", rows, 1, 65536, &num_rows));
    precision.wish.rows = (size_t)num_rows;
    ph_status status = cli_scoring_open(&precision.scoring, precision.folder, &sets, &formats);
    if (status == PH_OK)
        status = run(&precision);
    ph__sites_fini(&precision.sites);
    ph__probe_destroy(precision.seen);
    ph__probe_destroy(precision.learnt);
    cli_scoring_close(&precision.scoring);
    return status;
}
