#include "data/synth/synth_staircase.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"

#define MAX_TRIES 10000 /* arrangements drawn for a round until one shares no term with another round */

/* ---- shape ---- */

/* Returns the step of an order, 1 + log2; 0 when there is no such order. */
static size_t step_of(int64_t order)
{
    for (size_t step = 0; step < PH_SYNTH_MAX_STEPS; step++)
        if (order == (int64_t)1 << step)
            return step + 1;
    return 0;
}

static ph_status read_steps(struct ph__staircase *staircase, const struct ph_synth_settings *settings)
{
    const struct ph__synth_step *steps = settings->staircase.items;
    double squares = 0;
    for (size_t i = 0; i < settings->staircase.count; i++) {
        size_t step = step_of(steps[i].order);
        if (step == 0)
            return ph_fail(
                PH_ERROR_CONFIG, "synth.staircase: order %" PRId64 " must be 1, 2, 4 or 8", steps[i].order);
        if (staircase->weights[step - 1] != 0)
            return ph_fail(
                PH_ERROR_CONFIG, "synth.staircase: order %" PRId64 " is given twice", steps[i].order);
        staircase->weights[step - 1] = steps[i].weight;
        staircase->num_steps = step > staircase->num_steps ? step : staircase->num_steps;
        squares += steps[i].weight * steps[i].weight;
    }
    for (size_t step = 0; step < staircase->num_steps; step++)
        staircase->weights[step] *= settings->scale / sqrt(squares);
    return PH_OK;
}

static ph_status check(const struct ph__staircase *staircase, const struct ph_synth_settings *settings,
    const uint64_t *table_rows)
{
    if (settings->num_planted_dense > 0)
        return ph_fail(
            PH_ERROR_CONFIG, "synth.planted_dense: must be 0 with synth.staircase, which uses ids alone");
    if (settings->drift > 0)
        return ph_fail(PH_ERROR_CONFIG, "synth.drift: must be 0 with synth.staircase, which does not drift");
    if (settings->has_no_linear_part)
        return ph_fail(PH_ERROR_CONFIG,
            "synth.interactions_only: must be false with synth.staircase, which names its orders");
    if (settings->num_groups > 1)
        return ph_fail(
            PH_ERROR_CONFIG, "synth.groups: must be 1 with synth.staircase, which mixes all features");
    size_t order = (size_t)1 << (staircase->num_steps - 1);
    if (staircase->num_fields == 0 || staircase->num_fields % order != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "synth.planted: %zu must be a positive multiple of the highest order, %zu", staircase->num_fields,
            order);
    for (size_t f = 0; f < staircase->num_fields; f++)
        if (table_rows[f] < staircase->latent_dim + 2)
            return ph_fail(PH_ERROR_CONFIG,
                "synth.table_rows: %" PRIu64 " ids of feature %zu are too few for synth.latent_dim %zu: "
                "synth.staircase needs two more than that",
                table_rows[f], f + 1, staircase->latent_dim);
    return PH_OK;
}

/* ---- numbers of an id ---- */

static void draw_numbers(const struct ph__rng_key *key, size_t num_rows, size_t width, double *numbers)
{
    for (size_t id = 0; id < num_rows; id++) {
        double *row = numbers + id * width;
        double squares = 0;
        for (size_t j = 0; j < width; j++) {
            row[j] = ph__rng_normal(key, id, (uint32_t)j);
            squares += j > 0 ? row[j] * row[j] : 0;
        }
        for (size_t j = 1; j < width; j++)
            row[j] /= sqrt(squares);
    }
}

/* Sets the share of each id among the ids of all rows, by the power law. */
static void fill_shares(double exponent, size_t num_rows, uint64_t scatter, double *shares)
{
    double total = 0;
    for (size_t item = 1; item <= num_rows; item++)
        total += pow((double)item, -exponent);
    for (size_t item = 1; item <= num_rows; item++)
        shares[item * scatter % num_rows] = pow((double)item, -exponent) / total;
}

/* Returns the mean product of two columns; NULL stands for a column of ones. */
static double mean_product(
    const double *shares, size_t num_rows, size_t width, const double *first, const double *second)
{
    double sum = 0;
    for (size_t id = 0; id < num_rows; id++)
        sum += shares[id] * first[id * width] * (second != NULL ? second[id * width] : 1);
    return sum;
}

static void subtract_column(size_t num_rows, size_t width, double factor, const double *taken, double *column)
{
    for (size_t id = 0; id < num_rows; id++)
        column[id * width] -= factor * (taken != NULL ? taken[id * width] : 1);
}

/* Orthonormalises column after column (Gram and Schmidt), after a column of ones. */
static void orthonormalise(const double *shares, size_t num_rows, size_t width, double *numbers)
{
    for (size_t j = 0; j < width; j++) {
        double *column = numbers + j;
        double mean = mean_product(shares, num_rows, width, column, NULL);
        subtract_column(num_rows, width, mean, NULL, column);
        for (size_t i = 0; i < j; i++) {
            double product = mean_product(shares, num_rows, width, column, numbers + i);
            subtract_column(num_rows, width, product, numbers + i, column);
        }
        double deviation = sqrt(mean_product(shares, num_rows, width, column, column));
        for (size_t id = 0; id < num_rows; id++)
            column[id * width] /= deviation;
    }
}

static ph_status init_field(struct ph__staircase *staircase, const struct ph_synth_settings *settings,
    size_t field, uint64_t table_rows, uint64_t scatter)
{
    size_t width = 1 + staircase->latent_dim;
    char name[48];
    snprintf(name, sizeof name, "synth.staircase.C%zu", field + 1);
    const struct ph__rng_key key = {.seed = (uint64_t)settings->seed, .stream = ph__hash_name(name)};
    double *numbers = calloc(table_rows, width * sizeof *numbers);
    double *shares = calloc(table_rows, sizeof *shares);
    staircase->numbers[field] = numbers;
    if (numbers == NULL || shares == NULL) {
        free(shares);
        return ph__out_of_memory("synth: the %" PRIu64 " ids of feature %zu", table_rows, field + 1);
    }
    draw_numbers(&key, table_rows, width, numbers);
    fill_shares(settings->exponent, table_rows, scatter, shares);
    orthonormalise(shares, table_rows, width, numbers);
    free(shares);
    return PH_OK;
}

/* ---- arrangements ---- */

/* Returns the fields at `size` places of a round from `first` on, as one bit each. */
static uint64_t term_fields(const uint32_t *round, size_t first, size_t size)
{
    uint64_t fields = 0;
    for (size_t i = first; i < first + size; i++)
        fields |= (uint64_t)1 << round[i];
    return fields;
}

static bool have_common_term(
    const struct ph__staircase *staircase, const uint32_t *one, const uint32_t *other)
{
    for (size_t size = 2; size < (size_t)1 << staircase->num_steps; size *= 2)
        for (size_t i = 0; i < staircase->num_fields; i += size)
            for (size_t j = 0; j < staircase->num_fields; j += size)
                if (term_fields(one, i, size) == term_fields(other, j, size))
                    return true;
    return false;
}

static bool is_new(const struct ph__staircase *staircase, size_t round)
{
    for (size_t former = 0; former < round; former++)
        if (have_common_term(staircase, staircase->rounds[former], staircase->rounds[round]))
            return false;
    return true;
}

static ph_status init_rounds(struct ph__staircase *staircase, uint64_t seed)
{
    struct ph__rng_sequence random = {
        .key = {.seed = seed, .stream = ph__hash_name("synth.staircase.rounds")}};
    for (size_t round = 0; round < staircase->num_rounds; round++) {
        uint32_t *fields = staircase->rounds[round];
        for (size_t f = 0; f < staircase->num_fields; f++)
            fields[f] = (uint32_t)f;
        size_t tries = 0;
        do {
            if (tries++ == MAX_TRIES)
                return ph_fail(PH_ERROR_CONFIG,
                    "synth.staircase_rounds: cannot find %zu arrangements of %zu planted features without a "
                    "common term",
                    staircase->num_rounds, staircase->num_fields);
            ph__rng_shuffle(&random, fields, staircase->num_fields);
        } while (!is_new(staircase, round));
    }
    return PH_OK;
}

/* ---- the whole ---- */

static ph_status init(struct ph__staircase *staircase, const struct ph_synth_settings *settings,
    const uint64_t *table_rows, const uint64_t *scatter)
{
    PH_TRY(read_steps(staircase, settings));
    PH_TRY(check(staircase, settings, table_rows));
    PH_TRY(init_rounds(staircase, (uint64_t)settings->seed));
    for (size_t f = 0; f < staircase->num_fields; f++)
        PH_TRY(init_field(staircase, settings, f, table_rows[f], scatter[f]));
    return PH_OK;
}

ph_status ph__staircase_init(struct ph__staircase *staircase, const struct ph_synth_settings *settings,
    const uint64_t *table_rows, const uint64_t *scatter)
{
    *staircase = (struct ph__staircase){
        .num_fields = (size_t)settings->num_planted,
        .num_rounds = (size_t)settings->num_rounds,
        .latent_dim = (size_t)settings->latent_dim,
    };
    ph_status status = init(staircase, settings, table_rows, scatter);
    if (status != PH_OK)
        ph__staircase_fini(staircase);
    return status;
}

void ph__staircase_fini(struct ph__staircase *staircase)
{
    for (size_t f = 0; f < staircase->num_fields; f++)
        free(staircase->numbers[f]);
    *staircase = (struct ph__staircase){0};
}

/* ---- the components of a row ---- */

struct field_numbers {
    double weight;
    double vector[PH_SYNTH_MAX_LATENT_DIM];
};

static void gather(const struct ph__staircase *staircase, size_t field, const uint64_t *ids, size_t num_ids,
    struct field_numbers *sum_out)
{
    size_t dim = staircase->latent_dim;
    double factor = 1 / sqrt((double)num_ids);
    *sum_out = (struct field_numbers){0};
    for (size_t i = 0; i < num_ids; i++) {
        const double *numbers = staircase->numbers[field] + ids[i] * (1 + dim);
        sum_out->weight += factor * numbers[0];
        for (size_t d = 0; d < dim; d++)
            sum_out->vector[d] += factor * numbers[1 + d];
    }
}

static double pair_term(const double *one, const double *other, size_t dim)
{
    double sum = 0;
    for (size_t d = 0; d < dim; d++)
        sum += one[d] * other[d];
    return sum / sqrt((double)dim);
}

/* Adds the sums of one round's terms of orders 2, 4, 8. */
static void add_round(const struct ph__staircase *staircase, const uint32_t *round,
    const struct field_numbers *fields, double *components)
{
    double terms[PH_SYNTH_MAX_FIELDS / 2];
    size_t num_terms = staircase->num_fields / 2;
    for (size_t i = 0; i < num_terms; i++)
        terms[i] =
            pair_term(fields[round[2 * i]].vector, fields[round[2 * i + 1]].vector, staircase->latent_dim);
    for (size_t step = 1; step < staircase->num_steps; step++) {
        for (size_t i = 0; i < num_terms; i++)
            components[step] += terms[i];
        num_terms /= 2;
        for (size_t i = 0; i < num_terms; i++)
            terms[i] = terms[2 * i] * terms[2 * i + 1];
    }
}

void ph__staircase_components(const struct ph__staircase *staircase, const uint64_t *ids,
    const size_t *bag_sizes, double *components_out)
{
    struct field_numbers fields[PH_SYNTH_MAX_FIELDS];
    memset(components_out, 0, staircase->num_steps * sizeof *components_out);
    for (size_t f = 0; f < staircase->num_fields; f++) {
        gather(staircase, f, ids, bag_sizes[f], &fields[f]);
        components_out[0] += fields[f].weight;
        ids += bag_sizes[f];
    }
    for (size_t round = 0; round < staircase->num_rounds; round++)
        add_round(staircase, staircase->rounds[round], fields, components_out);
    double num_terms = (double)(staircase->num_fields * staircase->num_rounds);
    components_out[0] /= sqrt((double)staircase->num_fields);
    for (size_t step = 1; step < staircase->num_steps; step++)
        components_out[step] /= sqrt(num_terms / (double)(1 << step));
}
