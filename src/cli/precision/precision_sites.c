#include "cli/precision/precision_sites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/statistics.h"
#include "train/probe/product_time.h"

#define NORMAL_WITHIN .1 /* of the error on its own rows, a normal distribution is believed */

/* Operands of products of one site. */
struct operands {
    const struct ph__kernels *kernels;
    struct ph__rng_sequence random;
    ph_real *x, *w, *turned; /* (PH_PROBE_ROWS, terms), (outputs, terms), (out, in) */
    size_t terms, outputs;
    bool is_backward;
};

/* ---- errors ---- */

/* Turns a weight (out, in) into the operand (outputs, terms). */
static void set_weight(struct operands *operands, const ph_real *weight)
{
    const size_t terms = operands->terms, outputs = operands->outputs;
    for (size_t i = 0; i < outputs; i++)
        for (size_t k = 0; k < terms; k++)
            operands->w[i * terms + k] =
                operands->is_backward ? weight[k * outputs + i] : weight[i * terms + k];
}

static ph_status errors_of(const struct operands *operands, const ph_real *x, size_t rows,
    struct ph__product_error errors_out[PH_ARITHMETIC_COUNT])
{
    const struct ph__probed_product product = {
        rows, operands->terms, operands->outputs, x, operands->w, operands->is_backward};
    return ph__product_errors(&product, operands->kernels, errors_out);
}

static void fill_standard(struct operands *operands, size_t count, ph_real *numbers)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (ph_real)ph__rng_next_normal(&operands->random);
}

static ph_status draw_errors(struct operands *operands, const struct ph__probe_product *product,
    struct ph__matrix_normal *weight, struct ph__product_error errors_out[PH_ARITHMETIC_COUNT])
{
    PH_TRY(ph__row_statistics_draw(&product->statistics, &operands->random, PH_PROBE_ROWS, operands->x));
    if (weight->count > 0) {
        ph__matrix_normal_draw(weight, &operands->random, operands->turned);
        set_weight(operands, operands->turned);
    }
    return errors_of(operands, operands->x, PH_PROBE_ROWS, errors_out);
}

/* Gives the median kurtosis of the features that vary; 0: none does, or they are too many to be known. */
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

static bool are_near(double a, double b)
{
    return fabs(a - b) <= NORMAL_WITHIN * fabs(b);
}

/* Predicts errors from a product as the training saw it: by operands that are drawn of its distributions, or
 * by its rows where the drawn ones miss what these show. */
static ph_status predict(
    struct operands *operands, const struct ph__probe *learnt, size_t index, struct cli_site *site)
{
    const struct ph__probe_product *product = &learnt->products[index];
    struct ph__product_error drawn[PH_ARITHMETIC_COUNT];
    site->is_predicted = true;
    PH_TRY(errors_of(operands, product->rows, product->num_rows, site->predicted));
    if (product->statistics.count < 2)
        return PH_OK;
    PH_TRY(draw_errors(operands, product, &learnt->weights[product->weight].distribution, drawn));
    site->is_normal = are_near(drawn[PH_ARITHMETIC_INT8].error, site->predicted[PH_ARITHMETIC_INT8].error);
    if (site->is_normal)
        memcpy(site->predicted, drawn, sizeof drawn);
    return PH_OK;
}

/* Gives the index of the site's product as the training saw it; SIZE_MAX: none. */
static size_t find_learnt(const struct ph__probe *learnt, const struct cli_site *site)
{
    for (size_t i = 0; learnt != NULL && i < learnt->num_products; i++) {
        const struct ph__probe_product *product = &learnt->products[i];
        const struct ph__probe_weight *weight = &learnt->weights[product->weight];
        if (product->is_backward == site->is_backward && product->num_rows > 0 &&
            weight->out_features == site->out_features && weight->in_features == site->in_features &&
            strcmp(weight->name, site->weight) == 0)
            return i;
    }
    return SIZE_MAX;
}

static ph_status measure_errors(struct operands *operands, const ph_real *weight,
    const struct ph__probe_product *product, const struct ph__probe *learnt, struct cli_site *site)
{
    const size_t index = find_learnt(learnt, site);
    set_weight(operands, weight);
    PH_TRY(median_kurtosis(&product->statistics, &site->kurtosis));
    PH_TRY(errors_of(operands, product->rows, product->num_rows, site->measured));
    if (index != SIZE_MAX)
        PH_TRY(predict(operands, learnt, index, site));
    fill_standard(operands, PH_PROBE_ROWS * operands->terms, operands->x);
    fill_standard(operands, operands->outputs * operands->terms, operands->w);
    return errors_of(operands, operands->x, PH_PROBE_ROWS, site->standard);
}

static ph_status find_errors(const struct cli_scoring *scoring, const struct ph__probe_product *product,
    const struct ph__probe *learnt, struct cli_site *site)
{
    const size_t terms = product->terms, outputs = product->outputs;
    struct operands operands = {.kernels = scoring->backend->kernels,
        .random = {.key = {.stream = ph__hash_name(site->weight), .step = site->is_backward}},
        .x = malloc(PH_PROBE_ROWS * terms * sizeof(ph_real)),
        .w = malloc(outputs * terms * sizeof(ph_real)),
        .turned = malloc(outputs * terms * sizeof(ph_real)),
        .terms = terms,
        .outputs = outputs,
        .is_backward = site->is_backward};
    struct ph_tensor weight;
    ph_status status = operands.x != NULL && operands.w != NULL && operands.turned != NULL
                           ? ph_store_find(scoring->model.store, site->weight, &weight)
                           : ph__out_of_memory("the operands of a product");
    if (status == PH_OK)
        status = measure_errors(&operands, weight.data, product, learnt, site);
    free(operands.x);
    free(operands.w);
    free(operands.turned);
    return status;
}

/* ---- times ---- */

static ph_status find_times(
    const struct ph_backend *backend, const struct cli_precision_wish *wish, struct cli_site *site)
{
    const size_t out = site->out_features, in = site->in_features;
    for (enum ph_recipe recipe = 0; recipe < PH_RECIPE_COUNT; recipe++) {
        const struct ph__timed_product product = {out, in, site->is_backward, recipe};
        if (recipe != PH_RECIPE_INT8 || ph__gemm_takes_int8(out, in, site->is_backward))
            PH_TRY(ph__product_time(backend->gemm, backend->kernels,
                site->is_backward ? wish->backward_rows : wish->rows, &product, &site->seconds[recipe]));
    }
    return PH_OK;
}

/* ---- the choice ---- */

double cli_site_error(const struct cli_site *site, enum ph_recipe recipe)
{
    static const enum ph__arithmetic arithmetics[] = {
        [PH_RECIPE_BF16] = PH_ARITHMETIC_BF16, [PH_RECIPE_INT8] = PH_ARITHMETIC_INT8};
    return recipe == PH_RECIPE_FP32 ? 0 : site->measured[arithmetics[recipe]].error;
}

void cli_site_choose(struct cli_site *site, double threshold, const struct cli_precision_wish *wish)
{
    const double *seconds = site->seconds;
    site->recipe = PH_RECIPE_FP32;
    for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; recipe < PH_RECIPE_COUNT; recipe++)
        if (seconds[recipe] > 0 && cli_site_error(site, recipe) < threshold &&
            (wish->only == PH_RECIPE_FP32 || wish->only == recipe) &&
            seconds[PH_RECIPE_FP32] > wish->speed_up * seconds[recipe] &&
            (site->recipe == PH_RECIPE_FP32 || seconds[recipe] < seconds[site->recipe]))
            site->recipe = recipe;
}

struct cli_site *cli_sites_worst(struct cli_sites *sites)
{
    struct cli_site *worst = NULL;
    for (size_t i = 0; i < sites->count; i++) {
        struct cli_site *site = &sites->sites[i];
        if (site->recipe != PH_RECIPE_FP32 && !site->is_backward &&
            (worst == NULL || cli_site_error(site, site->recipe) > cli_site_error(worst, worst->recipe)))
            worst = site;
    }
    return worst;
}

/* ---- all ---- */

static ph_status add_site(struct cli_sites *sites, const struct cli_scoring *scoring,
    const struct ph__probe *probe, size_t index, const struct ph__probe *learnt,
    const struct cli_precision_wish *wish)
{
    const struct ph__probe_product *product = &probe->products[index];
    const struct ph__probe_weight *weight = &probe->weights[product->weight];
    struct cli_site *site = &sites->sites[sites->count];
    if (product->num_rows == 0)
        return PH_OK;
    *site = (struct cli_site){.weight = weight->name,
        .is_backward = product->is_backward,
        .out_features = weight->out_features,
        .in_features = weight->in_features};
    sites->count++;
    PH_TRY(find_errors(scoring, product, learnt, site));
    PH_TRY(find_times(scoring->backend, wish, site));
    cli_site_choose(site, wish->threshold, wish);
    return PH_OK;
}

/* Tells whether the model that is scored has the weight, in this shape. */
static bool has_weight(const struct ph__probe *seen, const struct ph__probe_weight *weight)
{
    for (size_t i = 0; i < seen->num_weights; i++)
        if (strcmp(seen->weights[i].name, weight->name) == 0)
            return seen->weights[i].out_features == weight->out_features &&
                   seen->weights[i].in_features == weight->in_features;
    return false;
}

ph_status cli_sites_measure(struct cli_sites *sites, const struct cli_scoring *scoring,
    const struct ph__probe *seen, const struct ph__probe *learnt, const struct cli_precision_wish *wish)
{
    const size_t num_learnt = learnt != NULL ? learnt->num_products : 0;
    sites->sites = calloc(seen->num_products + num_learnt + 1, sizeof *sites->sites);
    if (sites->sites == NULL)
        return ph__out_of_memory("%zu products", seen->num_products);
    for (size_t i = 0; i < seen->num_products; i++)
        PH_TRY(add_site(sites, scoring, seen, i, learnt, wish));
    for (size_t i = 0; i < num_learnt; i++)
        if (learnt->products[i].is_backward && has_weight(seen, &learnt->weights[learnt->products[i].weight]))
            PH_TRY(add_site(sites, scoring, learnt, i, learnt, wish));
    return PH_OK;
}

void cli_sites_fini(struct cli_sites *sites)
{
    free(sites->sites);
    *sites = (struct cli_sites){.count = 0};
}

struct cli_prediction cli_sites_prediction(const struct cli_sites *sites)
{
    struct cli_prediction prediction = {0};
    for (size_t i = 0; i < sites->count; i++) {
        const struct cli_site *site = &sites->sites[i];
        if (!site->is_predicted || site->is_backward)
            continue;
        const double measured = site->measured[PH_ARITHMETIC_INT8].error,
                     predicted = site->predicted[PH_ARITHMETIC_INT8].error,
                     standard = site->standard[PH_ARITHMETIC_INT8].error;
        prediction.count++;
        prediction.within += fabs(predicted / measured - 1) <= .15;
        prediction.missed_by_standard += fmax(standard / measured, measured / standard) >= 1.3;
    }
    return prediction;
}
