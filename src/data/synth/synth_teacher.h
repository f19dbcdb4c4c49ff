/* The model that draws the labels of synthetic data, and the rows that it draws them for.
 *
 * With P planted sparse fields, id x_f of field f has a weight a_f(x_f) and a vector v_f(x_f) of K numbers,
 * all from N(0,1). A bag of n ids has the ids' sums divided by sqrt(n).
 *
 *     component 0  dense:        sum_j c_j (log1p(count_j) - mean) / deviation / sqrt(planted dense)
 *     component 1  linear:       sum_f a_f / sqrt(P)
 *     component k  order k >= 2: sum_d e_k(v_1d, ..., v_Pd) / sqrt(K binomial(P, k))
 *     logit = bias + scale * (sum of components) / sqrt(number of components)
 *
 * e_k is the elementary symmetric polynomial: the sum of all products of k different fields. Each component
 * has variance 1 over random weights. The bias makes the mean probability the base rate. Everything is a
 * function of seed, file and row: rows can be made in any order. The linear component may be left out.
 *
 * With G groups, field f is in group f mod G, and component k is a sum over the groups: e_k of the group's
 * fields alone, with G binomial(P/G, k) products in place of binomial(P, k).
 *
 * With drift, c_j, a_f and v_f depend on a time t in [0,1]: each is cos(angle t) w0 + sin(angle t) w1 of two
 * numbers from N(0,1), which is again from N(0,1). The bias then holds for times that are spread evenly.
 *
 * With a staircase (synth_staircase.h) its components replace these, each with its own weight. */
#ifndef PH_DATA_SYNTH_TEACHER_H
#define PH_DATA_SYNTH_TEACHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "data/synth/synth_options.h"
#include "data/synth/synth_staircase.h"
#include "phloem/status.h"

/* Power law with a bound: P(k) in proportion to k^-s for k = 1 .. n, s >= 0, drawn exactly and without
 * tables.
 *
 * Source: Hoermann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions" (ACM TOMACS 6(3), 1996): invert the integral of the continuous hat x^-s, round, and reject
 * the small excess of the hat. */
struct ph__zipf {
    double exponent;
    double num_items;
    double first, last; /* ends of the hat's integral */
    double accept;      /* an item this near to its x is accepted without a test */
};

void ph__zipf_init(struct ph__zipf *zipf, double exponent, uint64_t num_items);

/* Draws an item in [1, num_items]. */
uint64_t ph__zipf_draw(const struct ph__zipf *zipf, struct ph__rng_sequence *random);

struct ph__synth_teacher {
    const struct ph_synth_settings *settings; /* borrowed */
    size_t num_fields;
    size_t num_groups;
    struct ph__zipf zipf[PH_SYNTH_MAX_FIELDS];
    uint64_t table_rows[PH_SYNTH_MAX_FIELDS];
    size_t bag_sizes[PH_SYNTH_MAX_FIELDS];
    uint64_t scatter[PH_SYNTH_MAX_FIELDS]; /* coprime to table_rows: keeps frequent ids apart */
    struct ph__rng_key field_keys[PH_SYNTH_MAX_FIELDS];
    struct ph__rng_key dense_key;
    size_t num_ids; /* ids of a row */
    double dense_mean, dense_deviation;
    double component_scales[PH_SYNTH_MAX_ORDER + 1]; /* includes scale / sqrt(components) */
    double drift_angle;                              /* turn from time 0 to 1, in radians */
    struct ph__staircase staircase;                  /* no steps: the components above are used */
    double bias;
};

struct ph__synth_row {
    uint64_t *counts; /* (num_dense) */
    uint64_t *ids;    /* (num_ids), field after field, in [0, table_rows) */
    double mix[2];    /* shares of w0 and w1 in the true model's weights at the row's time */
    double components[PH_SYNTH_MAX_STEPS]; /* components of the staircase: order 2^i in components[i] */
    uint64_t index;                        /* in its file */
    size_t domain;                         /* of synth.domains; 0 without them */
    double probability;
    int label;
};

/* PH_ERROR_CONFIG where settings contradict each other. There is nothing to free after a failure, nor without
 * a staircase. */
ph_status ph__synth_teacher_init(struct ph__synth_teacher *teacher, const struct ph_synth_settings *settings);
void ph__synth_teacher_fini(struct ph__synth_teacher *teacher);

ph_status ph__synth_row_init(struct ph__synth_row *row, const struct ph__synth_teacher *teacher);
void ph__synth_row_fini(struct ph__synth_row *row);

/* Draws row `index` of the file whose name has the hash `stream`, its label by the model of `time`. */
void ph__synth_row_draw(const struct ph__synth_teacher *teacher, uint64_t stream, uint64_t index, double time,
    struct ph__synth_row *row);

#endif
