#include "study/comparison_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/statistics.h"

#define FIGURE(member) offsetof(struct ph__comparison_figures, member)
#define SUMMARY(member) offsetof(struct ph_train_summary, member)

const struct ph__json_field ph__comparison_fields[] = {
    {"finished", PH_JSON_COUNT, FIGURE(num_finished), 0},
    {"failed", PH_JSON_COUNT, FIGURE(num_failed), 0},
    {"test_auc", PH_JSON_NUMBER, FIGURE(test_auc.mean), 0},
    {"test_auc_deviation", PH_JSON_NUMBER, FIGURE(test_auc.deviation), 0},
    {"test_logloss", PH_JSON_NUMBER, FIGURE(test_logloss.mean), 0},
    {"test_logloss_deviation", PH_JSON_NUMBER, FIGURE(test_logloss.deviation), 0},
    {"test_ne", PH_JSON_NUMBER, FIGURE(test_ne.mean), 0},
    {"test_ne_deviation", PH_JSON_NUMBER, FIGURE(test_ne.deviation), 0},
    {"test_calibration", PH_JSON_NUMBER, FIGURE(test_calibration.mean), 0},
    {"test_calibration_deviation", PH_JSON_NUMBER, FIGURE(test_calibration.deviation), 0},
    {"valid_auc", PH_JSON_NUMBER, FIGURE(valid_auc.mean), 0},
    {"valid_auc_deviation", PH_JSON_NUMBER, FIGURE(valid_auc.deviation), 0},
    {"valid_logloss", PH_JSON_NUMBER, FIGURE(valid_logloss.mean), 0},
    {"valid_logloss_deviation", PH_JSON_NUMBER, FIGURE(valid_logloss.deviation), 0},
    {"pairs", PH_JSON_COUNT, FIGURE(num_pairs), 0},
    {"auc_difference", PH_JSON_NUMBER, FIGURE(auc_difference.mean), 0},
    {"auc_difference_half_width", PH_JSON_NUMBER, FIGURE(auc_difference.half_width), 0},
    {"logloss_difference", PH_JSON_NUMBER, FIGURE(logloss_difference.mean), 0},
    {"logloss_difference_half_width", PH_JSON_NUMBER, FIGURE(logloss_difference.half_width), 0},
    {"parameters", PH_JSON_NUMBER, FIGURE(parameters), 0},
    {"flops_per_sample", PH_JSON_NUMBER, FIGURE(flops_per_sample), 0},
    {"samples_per_s", PH_JSON_NUMBER, FIGURE(samples_per_s), 0},
    {"train_seconds", PH_JSON_NUMBER, FIGURE(train_seconds), 0},
    {"epochs", PH_JSON_NUMBER, FIGURE(epochs), 0},
    {"published_auc", PH_JSON_NUMBER, FIGURE(published_auc), 0},
    {"published_auc_difference", PH_JSON_NUMBER, FIGURE(published_auc_difference), 0},
    {"published_logloss", PH_JSON_NUMBER, FIGURE(published_logloss), 0},
    {"published_logloss_difference", PH_JSON_NUMBER, FIGURE(published_logloss_difference), 0},
    {"bar_auc", PH_JSON_NUMBER, FIGURE(bar_auc), 0},
};
const size_t ph__num_comparison_fields = sizeof ph__comparison_fields / sizeof *ph__comparison_fields;

/* ---- over seeds ---- */

static double number_at(const struct ph_train_summary *summary, size_t offset)
{
    double number;
    memcpy(&number, (const char *)summary + offset, sizeof number);
    return number;
}

static bool is_finished(const struct ph__compared *row, size_t seed)
{
    return row->runs[seed].state == PH_RUN_FINISHED;
}

/* Gathers the number at this offset in the summary of each finished run; returns how many there are. */
static size_t gather(
    const struct ph__comparison *comparison, const struct ph__compared *row, size_t offset, double *values)
{
    size_t count = 0;
    for (size_t seed = 0; seed < comparison->num_seeds; seed++)
        if (is_finished(row, seed))
            values[count++] = number_at(&row->runs[seed].summary, offset);
    return count;
}

static struct ph__spread spread_of(
    const struct ph__comparison *comparison, const struct ph__compared *row, size_t offset, double *values)
{
    const size_t count = gather(comparison, row, offset, values);
    return (struct ph__spread){ph__mean(values, count), ph__sample_deviation(values, count)};
}

static struct ph__difference difference_of(const struct ph__comparison *comparison,
    const struct ph__compared *row, const struct ph__compared *base, size_t offset, double *values)
{
    size_t count = 0;
    for (size_t seed = 0; seed < comparison->num_seeds; seed++)
        if (is_finished(row, seed) && is_finished(base, seed))
            values[count++] =
                number_at(&row->runs[seed].summary, offset) - number_at(&base->runs[seed].summary, offset);
    return (struct ph__difference){
        ph__mean(values, count), ph__mean_half_width(values, count, PH_COMPARISON_CONFIDENCE)};
}

/* ---- one row ---- */

/* Returns figures of which nothing is measured: every number is NaN, every count 0. */
static struct ph__comparison_figures no_figures(void)
{
    struct ph__comparison_figures figures = {0};
    const double none = (double)NAN;
    for (size_t i = 0; i < ph__num_comparison_fields; i++)
        if (ph__comparison_fields[i].kind == PH_JSON_NUMBER)
            memcpy((char *)&figures + ph__comparison_fields[i].offset, &none, sizeof none);
    return figures;
}

static void count_runs(const struct ph__comparison *comparison, const struct ph__compared *row,
    struct ph__comparison_figures *figures)
{
    const struct ph__compared *base = &comparison->rows[row->base];
    for (size_t seed = 0; seed < comparison->num_seeds; seed++) {
        figures->num_finished += is_finished(row, seed);
        figures->num_failed += row->runs[seed].state == PH_RUN_FAILED;
        figures->num_pairs += is_finished(row, seed) && is_finished(base, seed);
    }
    figures->has_all_seeds = figures->num_finished == comparison->num_seeds;
}

static void pair(const struct ph__comparison *comparison, const struct ph__compared *row, double *values,
    struct ph__comparison_figures *figures)
{
    const struct ph__compared *base = &comparison->rows[row->base];
    const bool have_tests = row->config->data.paths.test != NULL && base->config->data.paths.test != NULL;
    figures->pairing = PH_PAIRED;
    if (row == base)
        figures->pairing = PH_PAIR_IS_BASE;
    else if (!have_tests || strcmp(row->test_key, base->test_key) != 0)
        figures->pairing = PH_PAIR_OF_OTHER_DATA;
    else if (figures->num_pairs == 0)
        figures->pairing = PH_PAIR_HAS_NO_SEED;
    if (figures->pairing != PH_PAIRED) {
        figures->num_pairs = 0;
        return;
    }
    figures->auc_difference = difference_of(comparison, row, base, SUMMARY(test.auc), values);
    figures->logloss_difference = difference_of(comparison, row, base, SUMMARY(test.logloss), values);
}

static void measure(const struct ph__comparison *comparison, const struct ph__compared *row, double *values,
    struct ph__comparison_figures *figures)
{
    const struct {
        size_t offset;
        struct ph__spread *spread;
        bool has;
    } metrics[] = {
        {SUMMARY(test.auc), &figures->test_auc, row->config->data.paths.test != NULL},
        {SUMMARY(test.logloss), &figures->test_logloss, row->config->data.paths.test != NULL},
        {SUMMARY(test.ne), &figures->test_ne, row->config->data.paths.test != NULL},
        {SUMMARY(test.calibration), &figures->test_calibration, row->config->data.paths.test != NULL},
        {SUMMARY(valid.auc), &figures->valid_auc, row->config->data.paths.valid != NULL},
        {SUMMARY(valid.logloss), &figures->valid_logloss, row->config->data.paths.valid != NULL},
    };
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (metrics[i].has)
            *metrics[i].spread = spread_of(comparison, row, metrics[i].offset, values);
}

static ph_status cost(const struct ph__comparison *comparison, const struct ph__compared *row, double *values,
    struct ph__comparison_figures *figures)
{
    double epochs = 0;
    for (size_t seed = 0; seed < comparison->num_seeds; seed++) {
        if (!is_finished(row, seed))
            continue;
        figures->parameters = (double)row->runs[seed].summary.parameters;
        epochs += (double)row->runs[seed].summary.epochs;
    }
    if (figures->num_finished > 0)
        figures->epochs = epochs / (double)figures->num_finished;
    figures->flops_per_sample = spread_of(comparison, row, SUMMARY(flops_per_sample), values).mean;
    figures->train_seconds = spread_of(comparison, row, SUMMARY(train_seconds), values).mean;
    const size_t count = gather(comparison, row, SUMMARY(samples_per_s), values);
    return ph__median(values, count, &figures->samples_per_s);
}

static double or_none(double number)
{
    return number > 0 ? number : (double)NAN;
}

/* Sets the published figures; they belong to the config as it is, not to a variant. */
static void set_published(const struct ph__compared *row, struct ph__comparison_figures *figures)
{
    const struct ph__published_settings *published = &row->config->published;
    if (row->is_variant)
        return;
    figures->published_auc = or_none(published->auc);
    figures->published_logloss = or_none(published->logloss);
    figures->bar_auc = or_none(published->bar_auc);
    figures->published_auc_difference = figures->test_auc.mean - figures->published_auc;
    figures->published_logloss_difference = figures->test_logloss.mean - figures->published_logloss;
}

ph_status ph__comparison_figures(
    const struct ph__comparison *comparison, size_t row, struct ph__comparison_figures *figures_out)
{
    const struct ph__compared *compared = &comparison->rows[row];
    struct ph__comparison_figures figures = no_figures();
    double *values = calloc(comparison->num_seeds, sizeof *values);
    if (values == NULL)
        return ph__out_of_memory("the figures of %zu runs", comparison->num_seeds);
    count_runs(comparison, compared, &figures);
    pair(comparison, compared, values, &figures);
    measure(comparison, compared, values, &figures);
    ph_status status = cost(comparison, compared, values, &figures);
    set_published(compared, &figures);
    free(values);
    if (status == PH_OK)
        *figures_out = figures;
    return status;
}

const char *ph__bar_word(const struct ph__comparison_figures *figures)
{
    if (!figures->has_all_seeds || isnan(figures->bar_auc) || isnan(figures->test_auc.mean))
        return NULL;
    return figures->test_auc.mean >= figures->bar_auc ? "reached" : "missed";
}
