/* phloem precision DIR: which products of a trained model can be computed in fewer bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/statistics.h"
#include "base/text/number.h"
#include "base/thread/cpu.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/verb/scoring.h"
#include "graph/recipe_table.h"
#include "serve/scorer.h"
#include "train/measure/evaluate.h"
#include "train/probe/probe.h"
#include "train/probe/product_error.h"
#include "train/probe/product_time.h"

struct wish {
    const char *folder, *data, *out;
    double threshold, speed_up, most_loss; /* most_loss: of NE, percent */
    size_t rows;
};

/* A product: what it would lose and gain. */
struct site {
    const struct ph__probe_product *product;
    struct ph__product_error errors[PH_ARITHMETIC_COUNT];
    double kurtosis;   /* median of the features */
    double seconds[2]; /* by enum ph_recipe */
    enum ph_recipe recipe;
};

struct precision {
    struct wish wish;
    struct cli_scoring scoring;
    struct ph__probe *probe;
    struct site *sites; /* (num_sites) */
    size_t num_sites;
    double ne[2]; /* of the model in fp32, by its recipes */
};

/* ---- measuring ---- */

static ph_status evaluate(struct precision *precision, struct ph_scorer *scorer, double *ne_out)
{
    const size_t num_tasks = ph_encoder_num_tasks(precision->scoring.model.encoder);
    const struct ph__rows_origin rows = {.path = precision->wish.data};
    int no_signal;
    struct ph_metrics *metrics = calloc(num_tasks, sizeof *metrics);
    if (metrics == NULL)
        return ph__out_of_memory("%zu tasks", num_tasks);
    const ph_status status = ph__scorer_evaluate(scorer, rows, NULL, &no_signal, metrics, NULL, NULL);
    *ne_out = metrics[0].ne;
    free(metrics);
    return status;
}

/* Scores the data in fp32 while the probe sees the rows of each product. */
static ph_status probe_products(struct precision *precision)
{
    struct cli_scoring *scoring = &precision->scoring;
    PH_TRY(ph__probe_create(ph__scorer_program(scoring->scorer), scoring->backend->gemm, &precision->probe));
    scoring->backend->simulator = ph__probe_hook(precision->probe);
    const ph_status status = evaluate(precision, scoring->scorer, &precision->ne[0]);
    scoring->backend->simulator = NULL;
    return status;
}

/* Gives the median kurtosis of the features that vary; 0: none does. */
static ph_status median_kurtosis(const struct ph__row_statistics *statistics, double *kurtosis_out)
{
    double *values = calloc(statistics->width + 1, sizeof *values);
    size_t count = 0;
    if (values == NULL)
        return ph__out_of_memory("%zu features", statistics->width);
    for (size_t i = 0; i < statistics->width; i++) {
        values[count] = ph__row_statistics_kurtosis(statistics, i);
        count += values[count] > 0;
    }
    ph__sort_numbers(values, count);
    *kurtosis_out = count > 0 ? ph__sorted_median(values, count) : 0;
    free(values);
    return PH_OK;
}

static ph_status measure_site(
    struct precision *precision, const struct ph__probe_product *product, struct site *site)
{
    struct ph_tensor weight;
    const struct ph_backend *backend = precision->scoring.backend;
    *site = (struct site){.product = product};
    PH_TRY(median_kurtosis(&product->statistics, &site->kurtosis));
    PH_TRY(ph_store_find(precision->scoring.model.store, product->weight, &weight));
    const struct ph__probed_product operands = {
        product->num_rows, product->terms, product->outputs, product->rows, weight.data, false};
    PH_TRY(ph__product_errors(&operands, backend->kernels, site->errors));
    const bool takes_int8 = ph__gemm_takes_int8(product->outputs, product->terms, false);
    for (enum ph_recipe recipe = PH_RECIPE_FP32; recipe <= (takes_int8 ? PH_RECIPE_INT8 : PH_RECIPE_FP32);
         recipe++)
        PH_TRY(ph__product_time(backend->gemm, precision->wish.rows, product->outputs, product->terms, recipe,
            &site->seconds[recipe]));
    const bool is_safe = site->errors[PH_ARITHMETIC_INT8].error < precision->wish.threshold;
    const bool is_fast = takes_int8 && site->seconds[PH_RECIPE_FP32] >
                                           precision->wish.speed_up * site->seconds[PH_RECIPE_INT8];
    site->recipe = is_safe && is_fast ? PH_RECIPE_INT8 : PH_RECIPE_FP32;
    return PH_OK;
}

static ph_status measure_sites(struct precision *precision)
{
    const struct ph__probe *probe = precision->probe;
    precision->sites = calloc(probe->num_products + 1, sizeof *precision->sites);
    if (precision->sites == NULL)
        return ph__out_of_memory("%zu products", probe->num_products);
    for (size_t i = 0; i < probe->num_products; i++)
        if (probe->products[i].num_rows > 0)
            PH_TRY(measure_site(precision, &probe->products[i], &precision->sites[precision->num_sites++]));
    return PH_OK;
}

/* Scores the data by the recipes. */
static ph_status score_by_recipes(struct precision *precision)
{
    struct ph_scorer_options options = *ph__scorer_options(precision->scoring.scorer);
    struct ph_site_recipe *recipes = calloc(precision->num_sites + 1, sizeof *recipes);
    struct ph_scorer *scorer = NULL;
    if (recipes == NULL)
        return ph__out_of_memory("%zu recipes", precision->num_sites);
    for (size_t i = 0; i < precision->num_sites; i++)
        recipes[i] = (struct ph_site_recipe){
            precision->sites[i].product->weight, precision->sites[i].recipe, PH_RECIPE_FP32};
    options.recipes = recipes;
    options.num_recipes = precision->num_sites;
    ph_status status = ph_scorer_create(&options, &scorer);
    if (status == PH_OK)
        status = evaluate(precision, scorer, &precision->ne[1]);
    ph_scorer_destroy(scorer);
    free(recipes);
    return status;
}

static double loss_percent(const struct precision *precision)
{
    return (precision->ne[1] / precision->ne[0] - 1) * 100;
}

/* Returns the product of int8 that errs most; NULL: all are fp32. */
static struct site *worst_site(struct precision *precision)
{
    struct site *worst = NULL;
    for (size_t i = 0; i < precision->num_sites; i++) {
        struct site *site = &precision->sites[i];
        if (site->recipe == PH_RECIPE_INT8 && (worst == NULL || site->errors[PH_ARITHMETIC_INT8].error >
                                                                    worst->errors[PH_ARITHMETIC_INT8].error))
            worst = site;
    }
    return worst;
}

/* Scores the data by the recipes, and gives up those of the products that err most until the model loses as
 * little as is wished. */
static ph_status fit_recipes(struct precision *precision)
{
    PH_TRY(score_by_recipes(precision));
    for (struct site *worst;
         loss_percent(precision) > precision->wish.most_loss && (worst = worst_site(precision)) != NULL;) {
        worst->recipe = PH_RECIPE_FP32;
        PH_TRY(score_by_recipes(precision));
    }
    return PH_OK;
}

/* ---- output ---- */

static double speed_up_of(const struct site *site)
{
    return site->seconds[PH_RECIPE_INT8] > 0 ? site->seconds[PH_RECIPE_FP32] / site->seconds[PH_RECIPE_INT8]
                                             : (double)NAN;
}

static ph_status print_sites(const struct precision *precision)
{
    static const struct ph__text_column columns[] = {{"weight", false}, {"shape", true}, {"kurtosis", true},
        {"bf16", true}, {"int8", true}, {"e4m3 tensor", true}, {"e4m3 row", true}, {"e4m3 block", true},
        {"fp32 us", true}, {"int8 us", true}, {"x", true}, {"recipe", false}};
    static const enum ph__arithmetic shown[] = {PH_ARITHMETIC_BF16, PH_ARITHMETIC_INT8,
        PH_ARITHMETIC_E4M3_TENSOR, PH_ARITHMETIC_E4M3_ROW, PH_ARITHMETIC_E4M3_BLOCK};
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < precision->num_sites; i++) {
        const struct site *site = &precision->sites[i];
        ph__text_table_cell(&table, "%s", site->product->weight);
        ph__text_table_cell(&table, "%zu x %zu", site->product->outputs, site->product->terms);
        ph__text_table_number(&table, "%.1f", site->kurtosis);
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
            ph__text_table_number(&table, "%.4f", site->errors[shown[k]].error);
        ph__text_table_number(&table, "%.1f", site->seconds[PH_RECIPE_FP32] * 1e6);
        ph__text_table_number(&table, "%.1f",
            site->seconds[PH_RECIPE_INT8] > 0 ? site->seconds[PH_RECIPE_INT8] * 1e6 : (double)NAN);
        ph__text_table_number(&table, "%.2f", speed_up_of(site));
        ph__text_table_cell(&table, "%s", ph_recipe_name(site->recipe));
    }
    const ph_status status = cli_print_table(&table);
    ph__text_table_fini(&table);
    return status;
}

static struct ph__json *site_json(const struct site *site)
{
    struct ph__json *json = ph__json_object(), *errors = ph__json_object();
    ph__json_set_text(json, "weight", site->product->weight);
    ph__json_set_text(json, "forward", ph_recipe_name(site->recipe));
    for (enum ph__arithmetic arithmetic = 0; arithmetic < PH_ARITHMETIC_COUNT; arithmetic++)
        ph__json_set_number(errors, ph__arithmetic_name(arithmetic), site->errors[arithmetic].error);
    ph__json_set(json, "errors", errors);
    ph__json_set_number(json, "kurtosis", site->kurtosis);
    ph__json_set_number(json, "fp32_us", site->seconds[PH_RECIPE_FP32] * 1e6);
    ph__json_set_number(json, "speed_up", speed_up_of(site));
    return json;
}

static ph_status write_table(const struct precision *precision, const char *path)
{
    struct ph__json *json = ph__json_object(), *sites = ph__json_array();
    char processor[128];
    ph__cpu_name(processor, sizeof processor);
    ph__json_set_text(json, "processor", processor);
    ph__json_set_integer(json, "rows", (int64_t)precision->wish.rows);
    ph__json_set_number(json, "threshold", precision->wish.threshold);
    for (size_t i = 0; i < precision->num_sites; i++)
        ph__json_append(sites, site_json(&precision->sites[i]));
    ph__json_set(json, "sites", sites);
    const ph_status status = ph__json_write(json, path);
    ph__json_destroy(json);
    return status;
}

static ph_status print(const struct precision *precision, const char *path)
{
    PH_TRY(print_sites(precision));
    printf("ne           fp32 %.6f recipes %.6f difference %+.4f %%\n", precision->ne[0], precision->ne[1],
        loss_percent(precision));
    printf("recipes: %s\n", path);
    return PH_OK;
}

/* ---- the whole ---- */

static ph_status run(struct precision *precision)
{
    struct ph__arena arena = {0};
    const struct wish *wish = &precision->wish;
    if (wish->data == NULL)
        precision->wish.data = precision->scoring.config.data.paths.test;
    if (wish->data == NULL)
        return ph_fail(PH_ERROR_USAGE, "the config has no data.test: give --data FILE");
    PH_TRY(probe_products(precision));
    PH_TRY(measure_sites(precision));
    PH_TRY(fit_recipes(precision));
    const char *path =
        wish->out != NULL ? wish->out : ph__path_join(&arena, wish->folder, PH_RECIPE_TABLE_FILE);
    ph_status status = path != NULL ? write_table(precision, path) : PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = print(precision, path);
    ph__arena_fini(&arena);
    return status;
}

static ph_status read_number(const char *flag, const char *text, double least, double most, double *number)
{
    if (text == NULL || (ph__number_parse(text, number) && *number >= least && *number <= most))
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "%s '%.32s' must be a number from %g to %g", flag, text, least, most);
}

ph_status verb_precision(int argc, char **argv)
{
    struct cli_texts sets = {0};
    const struct cli_formats formats = {.ignores_recipes = true};
    const char *threshold = NULL, *speed_up = NULL, *most_loss = NULL, *rows = NULL;
    double num_rows = 64;
    struct precision precision = {.wish = {.threshold = .2, .speed_up = 1.05, .most_loss = .02}};
    const struct cli_flag flags[] = {
        {"--data", CLI_TEXT, &precision.wish.data, "FILE", "rows to score; default: data.test of the config"},
        {"--out", CLI_TEXT, &precision.wish.out, "FILE", "table of recipes; default: DIR/recipes.json"},
        {"--threshold", CLI_TEXT, &threshold, "ERROR",
            "mean relative error below which a product may be int8 (default .2); 0: all stay fp32"},
        {"--speed-up", CLI_TEXT, &speed_up, "RATIO",
            "times as fast as fp32 that int8 must be at least (default 1.05)"},
        {"--ne-loss", CLI_TEXT, &most_loss, "PERCENT",
            "NE that the model may lose on the data (default .02); products that err most stay fp32 for it"},
        {"--rows", CLI_TEXT, &rows, "N", "rows of the calls that are timed (default 64)"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"precision", "precision runs/mine --data valid.tsv",
        "Scores rows with the model in DIR, measures what each product would lose and gain in fewer bits, "
        "and "
        "writes\nthe recipes by which DIR is then served and scored.",
        "DIR", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    precision.wish.folder = arguments.positional[0];
    PH_TRY(read_number("--threshold", threshold, 0, 1e6, &precision.wish.threshold));
    PH_TRY(read_number("--speed-up", speed_up, 0, 1e6, &precision.wish.speed_up));
    PH_TRY(read_number("--ne-loss", most_loss, 0, 100, &precision.wish.most_loss));
    PH_TRY(read_number("--rows", rows, 1, 65536, &num_rows));
    precision.wish.rows = (size_t)num_rows;
    ph_status status = cli_scoring_open(&precision.scoring, precision.wish.folder, &sets, &formats);
    if (status == PH_OK)
        status = run(&precision);
    ph__probe_destroy(precision.probe);
    free(precision.sites);
    cli_scoring_close(&precision.scoring);
    return status;
}
