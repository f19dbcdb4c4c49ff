/* Streams of several domains, whose labels a shared model draws with a part of each domain's own, and ids
 * that leave while others come. */
#ifndef PH_DATA_SYNTH_DOMAIN_H
#define PH_DATA_SYNTH_DOMAIN_H

#include "base/rng.h"
#include "data/synth/synth_options.h"
#include "phloem/status.h"

/* The sparse fields of rows; all is borrowed. */
struct ph__synth_fields {
    size_t count;
    const struct ph__rng_key *keys; /* (count) of the true model's numbers */
    const uint64_t *table_rows;     /* (count) */
    const size_t *bag_sizes;        /* (count) */
};

/* PH_ERROR_CONFIG where the keys of domains and turnover contradict the others. */
ph_status ph__domains_check(const struct ph_synth_settings *settings);

/* Draws a row's domain by traffic; without domains returns 0, and draws nothing. */
size_t ph__domain_draw(const struct ph_synth_settings *settings, struct ph__rng_sequence *random);
/* Returns the logit of a row in its domain, of a shared model's: sqrt(1 - own) shared + sqrt(own) scale part
 * + log(odds), where `part` is a linear model of the planted fields that is the domain's own, of variance 1.
 */
double ph__domain_logit(const struct ph_synth_settings *settings, const struct ph__synth_fields *fields,
    const uint64_t *ids, size_t domain, double shared);

/* Replaces a row's ids by those that have taken their place at this time. With turnover u each id lives for
 * 1 / u of the training file, and then id + table_rows comes in its place; ids begin at different ages. */
void ph__turn_ids_over(const struct ph_synth_settings *settings, const struct ph__synth_fields *fields,
    double time, uint64_t *ids);
/* Returns the number of ids that a field has over all times. */
uint64_t ph__turnover_rows(const struct ph_synth_settings *settings, uint64_t table_rows);

#endif
