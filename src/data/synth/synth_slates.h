/* A stream of requests: users come in sessions, each request shows a slate of items, of which many were in
 * the user's last one. Labels are drawn by a planted model of user, item and a context that lasts for hours,
 * until another one is drawn.
 *
 *     logit = bias + scale (sqrt(c) <u, cos(p) v + sin(p) v'> / sqrt(K) + sqrt((1 - c) / 2) (a + b))
 *
 * p is the context's phase, c context_share; a, u are the user's, b, v, v' the item's, all from N(0,1). An
 * item of the last slate stays with a chance that rises with the user's liking; others are drawn by Zipf's
 * law. Everything is a function of the settings.
 *
 * Source: the rates, slates and the chance to stay are those that SOLARIS (arXiv 2604.12110) was tried with
 * here; none of them is published. */
#ifndef PH_DATA_SYNTH_SLATES_H
#define PH_DATA_SYNTH_SLATES_H

#include "base/option/option.h"

struct ph__slates_settings {
    int64_t num_users, num_items, slate;
    double hours, requests;      /* of the stream; of a user, on average */
    double spread;               /* deviation of the logarithm of users' rates */
    double session, gap_minutes; /* requests of a session, on average; between two of them */
    double stay, stay_hours;     /* mean chance to stay, and how old a last slate may be */
    double exponent;             /* of items */
    int64_t latent_dim;
    double scale, base_rate;
    double context_hours, context_share; /* that a context lasts on average; of the logit's variance */
    int64_t seed;
};

extern const struct ph__option_table ph__slates_options;

/* Figures of a stream. */
struct ph__slates_figures {
    uint64_t num_requests, num_rows, num_pairs; /* pairs: different ones */
    double base_rate, ne;                       /* of the true model, on the labels as drawn */
};

/* Writes DIR/train.tsv, a row for each item of each request in the order of time: label, row, truth, time
 * (seconds), request, user, item, context, and features that hint at the hidden vectors; and DIR/synth.yaml.
 * Errors as ph_synth_write. */
ph_status ph__slates_write(
    const struct ph__slates_settings *settings, const char *folder, struct ph__slates_figures *figures_out);

#endif
