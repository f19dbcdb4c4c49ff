#include "data/synth/synth_domain.h"

#include <math.h>

static const struct ph__synth_domain *domains_of(const struct ph_synth_settings *settings)
{
    return settings->domains.items;
}

ph_status ph__domains_check(const struct ph_synth_settings *settings)
{
    const bool is_plain = settings->domains.count == 0 && settings->turnover == 0 && !settings->has_truth;
    if (!is_plain && settings->format != PH_SYNTH_TSV)
        return ph_fail(PH_ERROR_CONFIG,
            "synth.format: criteo has no columns for domains, turnover and truth; set it to "
            "tsv");
    if (settings->staircase.count > 0 && settings->turnover > 0)
        return ph_fail(PH_ERROR_CONFIG, "synth.turnover: must be 0 with a staircase");
    return PH_OK;
}

/* ---- domains ---- */

size_t ph__domain_draw(const struct ph_synth_settings *settings, struct ph__rng_sequence *random)
{
    const struct ph__synth_domain *domains = domains_of(settings);
    const size_t count = settings->domains.count;
    double sum = 0;
    size_t domain = 0;
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        sum += domains[i].traffic;
    for (double rest = ph__rng_next_uniform(random) * sum; domain + 1 < count; domain++) {
        rest -= domains[domain].traffic;
        if (rest < 0)
            break;
    }
    return domain;
}

/* Returns the domain's own linear model of the planted fields. */
static double own_part(const struct ph_synth_settings *settings, const struct ph__synth_fields *fields,
    const uint64_t *ids, size_t domain)
{
    const uint64_t numbers = ph__hash_name("synth.domains"); /* an element is a domain */
    const size_t num_planted = (size_t)settings->num_planted;
    double sum = 0;
    for (size_t f = 0; f < num_planted; ids += fields->bag_sizes[f++]) {
        struct ph__rng_key key = fields->keys[f];
        double bag = 0;
        key.stream ^= numbers;
        for (size_t i = 0; i < fields->bag_sizes[f]; i++)
            bag += ph__rng_normal(&key, ids[i], (uint32_t)domain);
        sum += bag / sqrt((double)fields->bag_sizes[f]);
    }
    return num_planted > 0 ? sum / sqrt((double)num_planted) : 0;
}

double ph__domain_logit(const struct ph_synth_settings *settings, const struct ph__synth_fields *fields,
    const uint64_t *ids, size_t domain, double shared)
{
    if (settings->domains.count == 0)
        return shared;
    const struct ph__synth_domain *of = &domains_of(settings)[domain];
    const double logit = sqrt(1 - of->own) * shared + log(of->odds);
    return of->own > 0 ? logit + sqrt(of->own) * settings->scale * own_part(settings, fields, ids, domain)
                       : logit;
}

/* ---- turnover ---- */

void ph__turn_ids_over(const struct ph_synth_settings *settings, const struct ph__synth_fields *fields,
    double time, uint64_t *ids)
{
    const double turnover = settings->turnover;
    for (size_t f = 0; turnover > 0 && f < fields->count; ids += fields->bag_sizes[f++]) {
        struct ph__rng_key key = fields->keys[f];
        key.stream ^= ph__hash_name("synth.turnover"); /* of ages */
        for (size_t i = 0; i < fields->bag_sizes[f]; i++)
            ids[i] += (uint64_t)(time * turnover + ph__rng_uniform(&key, ids[i], 0)) * fields->table_rows[f];
    }
}

uint64_t ph__turnover_rows(const struct ph_synth_settings *settings, uint64_t table_rows)
{
    return table_rows * (1 + (uint64_t)ceil(settings->turnover));
}
