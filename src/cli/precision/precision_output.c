#include "cli/precision/precision_output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "cli/output.h"
#include "report/page.h"

static double loss_percent(const struct cli_precision_outcome *outcome)
{
    return (outcome->loss / outcome->exact_loss - 1) * 100;
}

static double microseconds(const struct ph__site *site, enum ph_recipe recipe)
{
    return site->seconds[recipe] > 0 ? site->seconds[recipe] * 1e6 : (double)NAN;
}

static double speed_up(const struct ph__site *site, enum ph_recipe recipe)
{
    return site->seconds[PH_RECIPE_FP32] * 1e6 / microseconds(site, recipe);
}

static double predicted(const struct ph__site *site)
{
    return site->is_predicted ? site->predicted[PH_ARITHMETIC_INT8].error : (double)NAN;
}

static const char *direction(const struct ph__site *site)
{
    return site->is_backward ? "backward" : "forward";
}

/* ---- one table for the terminal and the page ---- */

static const struct ph__text_column columns[] = {{"weight", false}, {"product", false}, {"shape", true},
    {"kurtosis", true}, {"bf16", true}, {"int8", true}, {"e4m3 tensor", true}, {"e4m3 row", true},
    {"e4m3 block", true}, {"int8 predicted", true}, {"int8 normal", true}, {"fp32 us", true},
    {"bf16 x", true}, {"int8 x", true}, {"recipe", false}};

static void fill_table(const struct ph__sites *sites, struct ph__text_table *table)
{
    static const enum ph__arithmetic shown[] = {PH_ARITHMETIC_BF16, PH_ARITHMETIC_INT8,
        PH_ARITHMETIC_E4M3_TENSOR, PH_ARITHMETIC_E4M3_ROW, PH_ARITHMETIC_E4M3_BLOCK};
    for (size_t i = 0; i < sites->count; i++) {
        const struct ph__site *site = &sites->sites[i];
        ph__text_table_cell(table, "%s", site->weight);
        ph__text_table_cell(table, "%s", direction(site));
        ph__text_table_cell(table, "%zu x %zu", site->out_features, site->in_features);
        ph__text_table_number(table, "%.1f", site->kurtosis);
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
            ph__text_table_number(table, "%.4f", site->measured[shown[k]].error);
        ph__text_table_number(table, site->is_normal ? "%.4f" : "%.4f*", predicted(site));
        ph__text_table_number(table, "%.4f", site->standard[PH_ARITHMETIC_INT8].error);
        ph__text_table_number(table, "%.1f", microseconds(site, PH_RECIPE_FP32));
        ph__text_table_number(table, "%.2f", speed_up(site, PH_RECIPE_BF16));
        ph__text_table_number(table, "%.2f", speed_up(site, PH_RECIPE_INT8));
        ph__text_table_cell(table, "%s", ph_recipe_name(site->recipe));
    }
}

/* Names products that a kernel computes otherwise than its rounding explains, or says that none does. */
static void print_check(const struct ph__sites *sites)
{
    double largest = 0;
    for (size_t i = 0; i < sites->count; i++)
        for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; recipe < PH_RECIPE_COUNT; recipe++) {
            const struct ph__site *site = &sites->sites[i];
            largest = fmax(largest, site->off[recipe]);
            if (site->off[recipe] >= PH_SITE_FAULT)
                printf("FAULT        %s of %s, %s: %.3g of the rms from its rounded operands; it is not "
                       "chosen\n",
                    ph_recipe_name(recipe), site->weight, direction(site), site->off[recipe]);
        }
    printf("kernels      at most %.1e of the rms from products of rounded operands\n", largest);
}

ph_status cli_precision_print(const struct cli_precision_outcome *outcome)
{
    const struct ph__prediction prediction = ph__sites_prediction(outcome->sites);
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    fill_table(outcome->sites, &table);
    const ph_status status = cli_print_table(&table);
    ph__text_table_fini(&table);
    print_check(outcome->sites);
    if (prediction.count > 0)
        printf(
            "int8 errors  %zu of %zu predicted within 15 %%, %zu missed by standard normal numbers by 1.3 x; "
            "* by rows of the training, whose errors a normal distribution misses\n",
            prediction.within, prediction.count, prediction.missed_by_standard);
    printf("%-12s fp32 %.6f recipes %.6f difference %+.4f %%\n", outcome->metric, outcome->exact_loss,
        outcome->loss, loss_percent(outcome));
    return status;
}

/* ---- the page ---- */

/* Draws the products in fewer bits by error and speed: safe ones are left of the threshold, fast ones above
 * the ratio. */
static void add_plot(const struct cli_precision_outcome *outcome, struct ph__json *blocks)
{
    enum { MOST = 512 };
    const struct ph__sites *sites = outcome->sites;
    double x[PH_RECIPE_COUNT][MOST], y[PH_RECIPE_COUNT][MOST];
    struct ph__page_series series[PH_RECIPE_COUNT - 1];
    for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; recipe < PH_RECIPE_COUNT; recipe++) {
        size_t count = 0;
        for (size_t i = 0; i < sites->count && count < MOST; i++)
            if (sites->sites[i].seconds[recipe] > 0) {
                x[recipe][count] = ph__site_error(&sites->sites[i], recipe);
                y[recipe][count++] = speed_up(&sites->sites[i], recipe);
            }
        series[recipe - 1] = (struct ph__page_series){.name = ph_recipe_name(recipe),
            .id = ph_recipe_name(recipe),
            .style = PH_PAGE_DOTS,
            .color = (int)recipe,
            .count = count,
            .x = x[recipe],
            .y = y[recipe]};
    }
    const struct ph__page_mark mark = {outcome->wish->threshold, "threshold"};
    const struct ph__page_plot plot = {.id = "products",
        .title = "Error and speed of each product",
        .x = {.label = "mean relative error", .is_log = true},
        .y = {.label = "times as fast as fp32", .has_zero = true},
        .series = series,
        .num_series = PH_RECIPE_COUNT - 1,
        .marks = &mark,
        .num_marks = outcome->wish->threshold > 0};
    ph__page_add_plot(ph__page_add_plots(blocks), &plot);
}

ph_status cli_precision_write_page(const struct cli_precision_outcome *outcome, const char *path)
{
    struct ph__page page;
    struct ph__text_table table;
    char processor[128];
    ph__cpu_name(processor, sizeof processor);
    ph__page_init(&page, "Precision", "Products in fewer bits",
        "What each product of the model would lose and gain, and the recipe that is chosen for it.");
    ph__page_add_fact(&page, "folder", outcome->folder);
    ph__page_add_fact(&page, "data", outcome->data);
    ph__page_add_fact(&page, "processor", processor);
    struct ph__json *items = ph__page_add_figures(ph__page_add_section(&page, "figures", "Figures", NULL));
    ph__page_add_figure(items, "loss in fp32", outcome->exact_loss, ".6", outcome->metric);
    ph__page_add_figure(items, "loss by the recipes", outcome->loss, ".6", NULL);
    ph__page_add_figure(items, "more loss, %", loss_percent(outcome), ".4", outcome->metric);
    struct ph__json *blocks = ph__page_add_section(&page, "sites", "Products",
        "Errors are means of |out - ref| / max(|ref|, .01 rms of ref). Predicted: from the distributions "
        "that the "
        "training saw, or, with *, from its rows where their kurtosis is not a normal distribution's. "
        "Normal: with "
        "standard normal numbers in place of rows and weights.");
    add_plot(outcome, blocks);
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    fill_table(outcome->sites, &table);
    ph__page_add_text_table(blocks, "products_table", &table);
    ph__text_table_fini(&table);
    const ph_status status = ph__page_write(&page, path);
    ph__page_fini(&page);
    return status;
}

/* ---- the table of recipes ---- */

static struct ph__json *product_json(const struct ph__site *site)
{
    struct ph__json *json = ph__json_object(), *errors = ph__json_object(), *speed_ups = ph__json_object();
    for (enum ph__arithmetic arithmetic = 0; arithmetic < PH_ARITHMETIC_COUNT; arithmetic++)
        ph__json_set_number(errors, ph__arithmetic_name(arithmetic), site->measured[arithmetic].error);
    for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; recipe < PH_RECIPE_COUNT; recipe++)
        ph__json_set_number(speed_ups, ph_recipe_name(recipe), speed_up(site, recipe));
    ph__json_set_text(json, "product", direction(site));
    ph__json_set(json, "errors", errors);
    ph__json_set_number(json, "int8_predicted", predicted(site));
    ph__json_set_number(json, "kurtosis", site->kurtosis);
    ph__json_set_number(json, "fp32_us", microseconds(site, PH_RECIPE_FP32));
    ph__json_set(json, "speed_ups", speed_ups);
    return json;
}

/* Returns the entry of a weight: the products of one weight are of one site. */
static struct ph__json *site_json(const struct ph__sites *sites, size_t forward)
{
    struct ph__json *json = ph__json_object(), *why = ph__json_array();
    const char *weight = sites->sites[forward].weight;
    ph__json_set_text(json, "weight", weight);
    for (size_t i = 0; i < sites->count; i++) {
        const struct ph__site *site = &sites->sites[i];
        if (strcmp(site->weight, weight) != 0)
            continue;
        ph__json_set_text(json, direction(site), ph_recipe_name(site->recipe));
        ph__json_append(why, product_json(site));
    }
    ph__json_set(json, "why", why);
    return json;
}

ph_status cli_precision_write_table(const struct cli_precision_outcome *outcome, const char *path)
{
    struct ph__json *json = ph__json_object(), *sites = ph__json_array();
    char processor[128];
    ph__cpu_name(processor, sizeof processor);
    ph__json_set_text(json, "processor", processor);
    ph__json_set_integer(json, "rows", (int64_t)outcome->wish->rows);
    ph__json_set_integer(json, "backward_rows", (int64_t)outcome->wish->backward_rows);
    ph__json_set_number(json, "threshold", outcome->wish->threshold);
    for (size_t i = 0; i < outcome->sites->count; i++)
        if (!outcome->sites->sites[i].is_backward)
            ph__json_append(sites, site_json(outcome->sites, i));
    ph__json_set(json, "sites", sites);
    const ph_status status = ph__json_write(json, path);
    ph__json_destroy(json);
    return status;
}
