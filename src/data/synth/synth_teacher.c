#include "data/synth/synth_teacher.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "data/synth/synth_domain.h"
#include "data/synth/synth_truth.h"

#define MAX_COUNT 1e6
#define BIAS_ROWS 10000
#define QUARTER_TURN 1.5707963267948966
#define NUM_ELEMENTS (PH_SYNTH_MAX_LATENT_DIM + 1) /* elements of w0; those of w1 follow */

/* ---- power law ---- */

/* Return the integral of x^-s from 1 to x, (x^(1-s) - 1) / (1-s), which is log x at s = 1; and its
 * inverse. */
static double integral(const struct ph__zipf *zipf, double x)
{
    double power = (1 - zipf->exponent) * log(x);
    return fabs(power) < 1e-8 ? log(x) * (1 + power / 2) : expm1(power) / (1 - zipf->exponent);
}

static double integral_inverse(const struct ph__zipf *zipf, double area)
{
    double power = (1 - zipf->exponent) * area;
    if (power < -1)
        power = -1; /* beyond the tail, by rounding */
    return exp(fabs(power) < 1e-8 ? area * (1 - power / 2) : log1p(power) / (1 - zipf->exponent));
}

static double mass(const struct ph__zipf *zipf, double item)
{
    return exp(-zipf->exponent * log(item));
}

void ph__zipf_init(struct ph__zipf *zipf, double exponent, uint64_t num_items)
{
    zipf->exponent = exponent;
    zipf->num_items = (double)num_items;
    zipf->first = integral(zipf, 1.5) - 1;
    zipf->last = integral(zipf, zipf->num_items + 0.5);
    zipf->accept = 2 - integral_inverse(zipf, integral(zipf, 2.5) - mass(zipf, 2));
}

uint64_t ph__zipf_draw(const struct ph__zipf *zipf, struct ph__rng_sequence *random)
{
    for (;;) {
        double area = zipf->last + ph__rng_next_uniform(random) * (zipf->first - zipf->last);
        double x = integral_inverse(zipf, area);
        double item = floor(x + 0.5);
        item = item < 1 ? 1 : item > zipf->num_items ? zipf->num_items : item;
        if (item - x <= zipf->accept || area >= integral(zipf, item + 0.5) - mass(zipf, item))
            return (uint64_t)item;
    }
}

/* ---- shape ---- */

static ph_status check_list(const struct ph__integer_list *list, const char *key, size_t num_fields)
{
    if (list->count == 1 || list->count == num_fields)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "synth.%s: %zu numbers for %zu sparse features; give one, or one for each", key, list->count,
        num_fields);
}

static int64_t num_groups(const struct ph_synth_settings *settings)
{
    return settings->num_groups > 1 ? settings->num_groups : 1;
}

static ph_status check_orders(const struct ph_synth_settings *settings)
{
    const int64_t groups = num_groups(settings), size = settings->num_planted / groups;
    if (settings->num_planted % groups != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "synth.groups: %" PRId64 " groups cannot have equal shares of %" PRId64 " planted features",
            groups, settings->num_planted);
    if (groups > 1 && settings->order > size)
        return ph_fail(PH_ERROR_CONFIG,
            "synth.order: must be at most %" PRId64 ", the number of planted features in a group", size);
    if (settings->num_planted > 0 && settings->order > size)
        return ph_fail(PH_ERROR_CONFIG, "synth.order: must be at most synth.planted");
    if (settings->has_no_linear_part && settings->order < 2)
        return ph_fail(PH_ERROR_CONFIG, "synth.interactions_only: requires synth.order: 2 or more");
    return PH_OK;
}

static ph_status check(const struct ph_synth_settings *settings)
{
    size_t num_fields = (size_t)settings->num_sparse;
    PH_TRY(check_list(&settings->table_rows, "table_rows", num_fields));
    PH_TRY(check_list(&settings->bag_sizes, "bag_sizes", num_fields));
    if (settings->num_planted > settings->num_sparse)
        return ph_fail(PH_ERROR_CONFIG, "synth.planted: must be at most synth.sparse");
    if (settings->num_planted_dense > settings->num_dense)
        return ph_fail(PH_ERROR_CONFIG, "synth.planted_dense: must be at most synth.dense");
    PH_TRY(ph__domains_check(settings));
    if (settings->staircase.count == 0)
        PH_TRY(check_orders(settings));
    if (settings->format != PH_SYNTH_CRITEO)
        return PH_OK;
    if (settings->num_dense != 13 || settings->num_sparse != 26)
        return ph_fail(PH_ERROR_CONFIG, "synth.format: criteo needs 13 dense and 26 sparse features");
    for (size_t i = 0; i < settings->bag_sizes.count; i++)
        if (settings->bag_sizes.items[i] != 1)
            return ph_fail(PH_ERROR_CONFIG, "synth.bag_sizes: must be 1 with format criteo");
    return PH_OK;
}

static int64_t list_item(const struct ph__integer_list *list, size_t index)
{
    return list->items[list->count == 1 ? 0 : index];
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns a factor near the golden section of the table and coprime to its size: item -> item * factor is a
 * bijection. */
static uint64_t scatter_factor(uint64_t table_rows)
{
    uint64_t factor = (uint64_t)((double)table_rows * 0.6180339887498949);
    while (greatest_common_divisor(table_rows, factor) != 1)
        factor++;
    return factor;
}

static void init_fields(struct ph__synth_teacher *teacher)
{
    const struct ph_synth_settings *settings = teacher->settings;
    uint64_t seed = (uint64_t)settings->seed;
    for (size_t f = 0; f < teacher->num_fields; f++) {
        char name[48];
        snprintf(name, sizeof name, "synth.teacher.C%zu", f + 1);
        teacher->table_rows[f] = (uint64_t)list_item(&settings->table_rows, f);
        teacher->bag_sizes[f] = (size_t)list_item(&settings->bag_sizes, f);
        teacher->scatter[f] = scatter_factor(teacher->table_rows[f]);
        teacher->field_keys[f] = (struct ph__rng_key){.seed = seed, .stream = ph__hash_name(name)};
        teacher->num_ids += teacher->bag_sizes[f];
        ph__zipf_init(&teacher->zipf[f], settings->exponent, teacher->table_rows[f]);
    }
    teacher->dense_key = (struct ph__rng_key){.seed = seed, .stream = ph__hash_name("synth.teacher.dense")};
}

/* ---- dense ---- */

static double count_of(double normal)
{
    double count = floor(exp(1 + 1.2 * normal));
    return count < MAX_COUNT ? count : MAX_COUNT;
}

/* Computes mean and deviation of log1p(count) by summing over the normal density. */
static void init_dense(struct ph__synth_teacher *teacher)
{
    double total = 0, sum = 0, squares = 0;
    for (int i = -6000; i <= 6000; i++) {
        double normal = i * 0.001;
        double density = exp(-normal * normal / 2);
        double value = log1p(count_of(normal));
        total += density;
        sum += density * value;
        squares += density * value * value;
    }
    teacher->dense_mean = sum / total;
    teacher->dense_deviation = sqrt(squares / total - teacher->dense_mean * teacher->dense_mean);
}

/* ---- the components of the logit ---- */

static void init_component_scales(struct ph__synth_teacher *teacher)
{
    const struct ph_synth_settings *settings = teacher->settings;
    double num_planted = (double)settings->num_planted;
    const double num_orders = (double)(settings->order - settings->has_no_linear_part);
    double num_components = (settings->num_planted > 0 ? num_orders : 0) + (settings->num_planted_dense > 0);
    double scale = num_components > 0 ? settings->scale / sqrt(num_components) : 0;
    if (settings->num_planted_dense > 0)
        teacher->component_scales[0] = scale / sqrt((double)settings->num_planted_dense);
    if (settings->num_planted > 0 && !settings->has_no_linear_part)
        teacher->component_scales[1] = scale / sqrt(num_planted);
    const double size = num_planted / (double)teacher->num_groups;
    double num_products = num_planted; /* of all groups, G binomial(P/G, k) */
    for (int k = 2; k <= settings->order && settings->num_planted > 0; k++) {
        num_products = num_products * (size - k + 1) / k;
        teacher->component_scales[k] = scale / sqrt((double)settings->latent_dim * num_products);
    }
}

static void set_time(const struct ph__synth_teacher *teacher, double time, struct ph__synth_row *row)
{
    row->mix[0] = cos(teacher->drift_angle * time);
    row->mix[1] = sin(teacher->drift_angle * time);
}

/* Returns a weight of the true model at the row's time. */
static double weight(
    const struct ph__synth_row *row, const struct ph__rng_key *key, uint64_t index, uint32_t element)
{
    double first = ph__rng_normal(key, index, element);
    if (row->mix[1] == 0)
        return row->mix[0] * first;
    return row->mix[0] * first + row->mix[1] * ph__rng_normal(key, index, NUM_ELEMENTS + element);
}

static double dense_component(const struct ph__synth_teacher *teacher, const struct ph__synth_row *row)
{
    double sum = 0;
    for (size_t j = 0; j < (size_t)teacher->settings->num_planted_dense; j++) {
        double value = (log1p((double)row->counts[j]) - teacher->dense_mean) / teacher->dense_deviation;
        sum += weight(row, &teacher->dense_key, j, 0) * value;
    }
    return teacher->component_scales[0] * sum;
}

/* Returns an element of a bag: element 0 of an id is its weight, elements 1 .. K are its vector. */
static double bag_element(const struct ph__synth_teacher *teacher, const struct ph__synth_row *row,
    size_t field, const uint64_t *ids, uint32_t element)
{
    double sum = 0;
    size_t num_ids = teacher->bag_sizes[field];
    for (size_t i = 0; i < num_ids; i++)
        sum += weight(row, &teacher->field_keys[field], ids[i], element);
    return num_ids == 1 ? sum : sum / sqrt((double)num_ids);
}

static double linear_component(const struct ph__synth_teacher *teacher, const struct ph__synth_row *row)
{
    double sum = 0;
    const uint64_t *ids = row->ids;
    for (size_t f = 0; f < (size_t)teacher->settings->num_planted; f++) {
        sum += bag_element(teacher, row, f, ids, 0);
        ids += teacher->bag_sizes[f];
    }
    return teacher->component_scales[1] * sum;
}

/* Returns all orders from 2 on of one group and latent dimension: e_k of the first f fields = e_k of f-1 +
 * v_f e_(k-1) of f-1. */
static double interaction_component(const struct ph__synth_teacher *teacher, const struct ph__synth_row *row,
    size_t group, uint32_t dimension)
{
    const uint64_t *ids = row->ids;
    size_t order = (size_t)teacher->settings->order;
    double products[PH_SYNTH_MAX_ORDER + 1] = {1};
    for (size_t f = 0; f < (size_t)teacher->settings->num_planted; ids += teacher->bag_sizes[f++]) {
        if (f % teacher->num_groups != group)
            continue;
        double value = bag_element(teacher, row, f, ids, dimension + 1);
        for (size_t k = order; k >= 1; k--)
            products[k] += products[k - 1] * value;
    }
    double sum = 0;
    for (size_t k = 2; k <= order; k++)
        sum += teacher->component_scales[k] * products[k];
    return sum;
}

static double staircase_logit(const struct ph__synth_teacher *teacher, struct ph__synth_row *row)
{
    const struct ph__staircase *staircase = &teacher->staircase;
    ph__staircase_components(staircase, row->ids, teacher->bag_sizes, row->components);
    double logit = teacher->bias;
    for (size_t step = 0; step < staircase->num_steps; step++)
        logit += staircase->weights[step] * row->components[step];
    return logit;
}

static double shared_logit(const struct ph__synth_teacher *teacher, struct ph__synth_row *row)
{
    if (teacher->staircase.num_steps > 0)
        return staircase_logit(teacher, row);
    double logit = teacher->bias + dense_component(teacher, row) + linear_component(teacher, row);
    if (teacher->settings->order < 2 || teacher->settings->num_planted < 2)
        return logit;
    for (size_t group = 0; group < teacher->num_groups; group++)
        for (uint32_t d = 0; d < (uint32_t)teacher->settings->latent_dim; d++)
            logit += interaction_component(teacher, row, group, d);
    return logit;
}

static struct ph__synth_fields fields_of(const struct ph__synth_teacher *teacher)
{
    return (struct ph__synth_fields){
        teacher->num_fields, teacher->field_keys, teacher->table_rows, teacher->bag_sizes};
}

/* Returns the logit with the bias. */
static double logit_of(const struct ph__synth_teacher *teacher, struct ph__synth_row *row)
{
    const struct ph__synth_fields fields = fields_of(teacher);
    const double shared = shared_logit(teacher, row);
    return teacher->settings->domains.count == 0
               ? shared
               : teacher->bias + ph__domain_logit(teacher->settings, &fields, row->ids, row->domain,
                                     shared - teacher->bias);
}

/* ---- rows ---- */

ph_status ph__synth_row_init(struct ph__synth_row *row, const struct ph__synth_teacher *teacher)
{
    *row = (struct ph__synth_row){0};
    row->counts = calloc((size_t)teacher->settings->num_dense + 1, sizeof *row->counts);
    row->ids = calloc(teacher->num_ids + 1, sizeof *row->ids);
    if (row->counts == NULL || row->ids == NULL) {
        ph__synth_row_fini(row);
        return ph__out_of_memory("synth: a row of %zu ids", teacher->num_ids);
    }
    return PH_OK;
}

void ph__synth_row_fini(struct ph__synth_row *row)
{
    free(row->counts);
    free(row->ids);
    *row = (struct ph__synth_row){0};
}

static void draw_features(const struct ph__synth_teacher *teacher, struct ph__rng_sequence *random,
    double time, struct ph__synth_row *row)
{
    for (size_t j = 0; j < (size_t)teacher->settings->num_dense; j++)
        row->counts[j] = (uint64_t)count_of(ph__rng_next_normal(random));
    uint64_t *id = row->ids;
    for (size_t f = 0; f < teacher->num_fields; f++)
        for (size_t i = 0; i < teacher->bag_sizes[f]; i++)
            *id++ = ph__zipf_draw(&teacher->zipf[f], random) * teacher->scatter[f] % teacher->table_rows[f];
    const struct ph__synth_fields fields = fields_of(teacher);
    ph__turn_ids_over(teacher->settings, &fields, time, row->ids);
    row->domain = ph__domain_draw(teacher->settings, random);
    set_time(teacher, time, row);
}

void ph__synth_row_draw(const struct ph__synth_teacher *teacher, uint64_t stream, uint64_t index, double time,
    struct ph__synth_row *row)
{
    struct ph__rng_sequence random = {
        .key = {.seed = (uint64_t)teacher->settings->seed, .step = index, .stream = stream}};
    row->index = index;
    draw_features(teacher, &random, time, row);
    row->probability = ph__synth_sigmoid(logit_of(teacher, row));
    row->label = ph__rng_next_uniform(&random) < row->probability;
}

/* ---- the base rate ---- */

static double mean_probability(const double *logits, size_t count, double bias)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ph__synth_sigmoid(logits[i] + bias);
    return sum / (double)count;
}

/* Finds the bias by bisection over the logits of rows that are in no file. */
static ph_status find_bias(struct ph__synth_teacher *teacher)
{
    struct ph__synth_row row;
    PH_TRY(ph__synth_row_init(&row, teacher));
    double *logits = malloc(BIAS_ROWS * sizeof *logits);
    if (logits == NULL) {
        ph__synth_row_fini(&row);
        return ph__out_of_memory("synth: %d logits", BIAS_ROWS);
    }
    struct ph__rng_sequence random = {
        .key = {.seed = (uint64_t)teacher->settings->seed, .stream = ph__hash_name("synth.bias")}};
    for (size_t i = 0; i < BIAS_ROWS; i++) {
        draw_features(teacher, &random, ((double)i + 0.5) / BIAS_ROWS, &row);
        logits[i] = logit_of(teacher, &row);
    }
    double low = -1000, high = 1000;
    for (int step = 0; step < 60; step++) {
        double middle = (low + high) / 2;
        if (mean_probability(logits, BIAS_ROWS, middle) < teacher->settings->base_rate)
            low = middle;
        else
            high = middle;
    }
    teacher->bias = low;
    free(logits);
    ph__synth_row_fini(&row);
    return PH_OK;
}

ph_status ph__synth_teacher_init(struct ph__synth_teacher *teacher, const struct ph_synth_settings *settings)
{
    PH_TRY(check(settings));
    memset(teacher, 0, sizeof *teacher);
    teacher->settings = settings;
    teacher->num_fields = (size_t)settings->num_sparse;
    teacher->num_groups = (size_t)num_groups(settings);
    teacher->drift_angle = settings->drift * QUARTER_TURN;
    init_fields(teacher);
    init_dense(teacher);
    init_component_scales(teacher);
    if (settings->staircase.count > 0)
        PH_TRY(ph__staircase_init(&teacher->staircase, settings, teacher->table_rows, teacher->scatter));
    ph_status status = find_bias(teacher);
    if (status != PH_OK)
        ph__synth_teacher_fini(teacher);
    return status;
}

void ph__synth_teacher_fini(struct ph__synth_teacher *teacher)
{
    ph__staircase_fini(&teacher->staircase);
}
