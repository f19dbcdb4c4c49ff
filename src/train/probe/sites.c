#include "train/probe/sites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/statistics.h"
#include "train/probe/product_run.h"

#define NORMAL_WITHIN .1 /* of the error on its own rows, a normal distribution is believed */

/* Operands of products of one site. */
struct operands {
    const struct ph_backend *backend;
    struct ph__rng_sequence random;
    ph_real *x, *w, *turned; /* (PH_PROBE_ROWS, terms), (outputs, terms), (out, in) */
    size_t terms, outputs;
    bool is_backward;
    double former_amax; /* of the training's rows; 0: not known */
};

/* ---- kernels ---- */

ph_status ph__site_time(
    struct ph__site *site, const struct ph_backend *backend, const struct ph__site_wish *wish)
{
    const size_t out = site->out_features, in = site->in_features;
    for (enum ph_recipe recipe = 0; recipe < PH_RECIPE_COUNT; recipe++) {
        const struct ph__recipe_product product = {out, in, site->is_backward, recipe};
        if (recipe != PH_RECIPE_INT8 || ph__gemm_takes_int8(out, in, site->is_backward))
            PH_TRY(ph__product_time(backend, site->is_backward ? wish->backward_rows : wish->rows, &product,
                &site->seconds[recipe]));
    }
    return PH_OK;
}

/* Compares the products of the kernels with those of rounded operands. */
static ph_status check_kernels(const struct ph_backend *backend, const struct ph__probe_product *product,
    const ph_real *weight, struct ph__site *site)
{
    for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; recipe < PH_RECIPE_COUNT; recipe++) {
        const struct ph__recipe_product of = {
            site->out_features, site->in_features, site->is_backward, recipe};
        if (recipe != PH_RECIPE_INT8 ||
            ph__gemm_takes_int8(site->out_features, site->in_features, site->is_backward))
            PH_TRY(ph__product_check(
                backend, product->num_rows, &of, product->rows, weight, &site->off[recipe]));
    }
    return PH_OK;
}

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
    const struct ph__probed_product product = {rows, operands->terms, operands->outputs, x, operands->w,
        operands->is_backward, operands->former_amax};
    return ph__product_errors(&product, operands->backend, errors_out);
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
    struct operands *operands, const struct ph__probe *learnt, size_t index, struct ph__site *site)
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
static size_t find_learnt(const struct ph__probe *learnt, const struct ph__site *site)
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
    const struct ph__probe_product *product, const struct ph__probe *learnt, struct ph__site *site)
{
    const size_t index = find_learnt(learnt, site);
    set_weight(operands, weight);
    operands->former_amax = index != SIZE_MAX ? learnt->products[index].amax : 0;
    PH_TRY(median_kurtosis(&product->statistics, &site->kurtosis));
    PH_TRY(errors_of(operands, product->rows, product->num_rows, site->measured));
    if (index != SIZE_MAX)
        PH_TRY(predict(operands, learnt, index, site));
    operands->former_amax = 0;
    fill_standard(operands, PH_PROBE_ROWS * operands->terms, operands->x);
    fill_standard(operands, operands->outputs * operands->terms, operands->w);
    return errors_of(operands, operands->x, PH_PROBE_ROWS, site->standard);
}

static ph_status find_errors(
    const struct ph__site_sources *from, const struct ph__probe_product *product, struct ph__site *site)
{
    const size_t terms = product->terms, outputs = product->outputs;
    struct operands operands = {.backend = from->backend,
        .random = {.key = {.stream = ph__hash_name(site->weight), .step = site->is_backward}},
        .x = malloc(PH_PROBE_ROWS * terms * sizeof(ph_real)),
        .w = malloc(outputs * terms * sizeof(ph_real)),
        .turned = malloc(outputs * terms * sizeof(ph_real)),
        .terms = terms,
        .outputs = outputs,
        .is_backward = site->is_backward};
    struct ph_tensor weight;
    ph_status status = operands.x != NULL && operands.w != NULL && operands.turned != NULL
                           ? ph_store_find(from->store, site->weight, &weight)
                           : ph__out_of_memory("the operands of a product");
    if (status == PH_OK)
        status = check_kernels(from->backend, product, weight.data, site);
    if (status == PH_OK)
        status = measure_errors(&operands, weight.data, product, from->learnt, site);
    free(operands.x);
    free(operands.w);
    free(operands.turned);
    return status;
}

/* ---- the choice ---- */

double ph__site_error(const struct ph__site *site, enum ph_recipe recipe)
{
    static const enum ph__arithmetic arithmetics[] = {
        [PH_RECIPE_BF16] = PH_ARITHMETIC_BF16, [PH_RECIPE_INT8] = PH_ARITHMETIC_INT8};
    return recipe == PH_RECIPE_FP32 ? 0 : site->measured[arithmetics[recipe]].error;
}

void ph__site_choose(struct ph__site *site, double threshold, const struct ph__site_wish *wish)
{
    const double *seconds = site->seconds;
    site->recipe = PH_RECIPE_FP32;
    for (enum ph_recipe recipe = PH_RECIPE_FP32 + 1; recipe < PH_RECIPE_COUNT; recipe++)
        if (seconds[recipe] > 0 && site->off[recipe] < PH_SITE_FAULT &&
            ph__site_error(site, recipe) < threshold &&
            (wish->only == PH_RECIPE_FP32 || wish->only == recipe) &&
            seconds[PH_RECIPE_FP32] > wish->speed_up * seconds[recipe] &&
            (site->recipe == PH_RECIPE_FP32 || seconds[recipe] < seconds[site->recipe]))
            site->recipe = recipe;
}

struct ph__site *ph__sites_worst(struct ph__sites *sites)
{
    struct ph__site *worst = NULL;
    for (size_t i = 0; i < sites->count; i++) {
        struct ph__site *site = &sites->sites[i];
        if (site->recipe != PH_RECIPE_FP32 && !site->is_backward &&
            (worst == NULL || ph__site_error(site, site->recipe) > ph__site_error(worst, worst->recipe)))
            worst = site;
    }
    return worst;
}

/* ---- all ---- */

static ph_status add_site(struct ph__sites *sites, const struct ph__site_sources *from,
    const struct ph__probe *probe, size_t index, const struct ph__site_wish *wish)
{
    const struct ph__probe_product *product = &probe->products[index];
    const struct ph__probe_weight *weight = &probe->weights[product->weight];
    struct ph__site *site = &sites->sites[sites->count];
    if (product->num_rows == 0)
        return PH_OK;
    *site = (struct ph__site){.weight = weight->name,
        .is_backward = product->is_backward,
        .out_features = weight->out_features,
        .in_features = weight->in_features};
    sites->count++;
    PH_TRY(find_errors(from, product, site));
    PH_TRY(ph__site_time(site, from->backend, wish));
    ph__site_choose(site, wish->threshold, wish);
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

ph_status ph__sites_measure(
    struct ph__sites *sites, const struct ph__site_sources *from, const struct ph__site_wish *wish)
{
    const struct ph__probe *seen = from->seen, *learnt = from->learnt;
    const size_t num_learnt = learnt != NULL ? learnt->num_products : 0;
    sites->sites = calloc(seen->num_products + num_learnt + 1, sizeof *sites->sites);
    if (sites->sites == NULL)
        return ph__out_of_memory("%zu products", seen->num_products);
    for (size_t i = 0; i < seen->num_products; i++)
        PH_TRY(add_site(sites, from, seen, i, wish));
    for (size_t i = 0; i < num_learnt; i++)
        if (learnt->products[i].is_backward && has_weight(seen, &learnt->weights[learnt->products[i].weight]))
            PH_TRY(add_site(sites, from, learnt, i, wish));
    return PH_OK;
}

void ph__sites_fini(struct ph__sites *sites)
{
    free(sites->sites);
    *sites = (struct ph__sites){.count = 0};
}

struct ph__prediction ph__sites_prediction(const struct ph__sites *sites)
{
    struct ph__prediction prediction = {0};
    for (size_t i = 0; i < sites->count; i++) {
        const struct ph__site *site = &sites->sites[i];
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
