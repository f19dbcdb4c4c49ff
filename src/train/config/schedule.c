#include "train/config/schedule.h"

#include <math.h>

#define MIN_IMPROVEMENT 1e-6

/* ---- the learning rate ---- */

static double cosine_factor(const struct ph_train_settings *settings, uint64_t steps)
{
    int64_t total = settings->schedule_steps > 0 ? settings->schedule_steps : settings->max_steps;
    double span = (double)(total - settings->warmup_steps);
    double progress = span > 0 ? fmin(1.0, (double)steps / span) : 1.0;
    double low = settings->schedule_factor;
    return low + (1 - low) * 0.5 * (1 + cos(3.14159265358979323846 * progress));
}

double ph__schedule_learning_rate(
    const struct ph_train_settings *settings, double base, double cuts, uint64_t step)
{
    uint64_t warmup = (uint64_t)settings->warmup_steps;
    if (step <= warmup)
        return base * cuts * (double)step / (double)warmup;
    uint64_t since = step - 1 - warmup;
    double rate = base * cuts;
    if (settings->schedule == PH_SCHEDULE_STEP)
        rate *= pow(settings->schedule_factor, (double)(since / (uint64_t)settings->schedule_steps));
    else if (settings->schedule == PH_SCHEDULE_COSINE)
        rate *= cosine_factor(settings, since);
    return fmax(rate, fmin(base, settings->min_learning_rate));
}

ph_status ph__schedule_check(const struct ph_train_settings *settings)
{
    if (settings->schedule == PH_SCHEDULE_STEP && settings->schedule_steps <= 0)
        return ph_fail(PH_ERROR_CONFIG,
            "train.schedule: step requires train.schedule_steps, the steps between two cuts");
    if (ph__schedule_ends_with_max_steps(settings) && settings->max_steps <= 0)
        return ph_fail(PH_ERROR_CONFIG, "train.schedule: cosine requires train.schedule_steps or "
                                        "train.max_steps, the step at which it ends");
    return PH_OK;
}

/* ---- the protocol ---- */

bool ph__protocol_is_over(const struct ph__protocol *protocol, const struct ph_train_settings *settings)
{
    return settings->patience > 0 && protocol->bad_in_row >= settings->patience;
}

struct ph__decision ph__protocol_evaluated(
    struct ph__protocol *protocol, const struct ph_train_settings *settings, const struct ph_metrics *metrics)
{
    double metric = settings->selection == PH_SELECT_AUC ? metrics->auc : -metrics->logloss;
    if (isnan(metrics->logloss)) /* an AUC in bins leaves out scores that are not numbers */
        metric = (double)NAN;
    struct ph__decision decision = {0};
    decision.is_incomparable = isnan(metric) && (metrics->num_samples == 0 || !isnan(metrics->logloss));
    if (decision.is_incomparable)
        return decision;
    if (!isnan(metric) && (!protocol->has_best || metric > protocol->best + MIN_IMPROVEMENT)) {
        protocol->has_best = true;
        protocol->best = metric;
        protocol->bad_in_row = 0;
        decision.is_best = true;
        return decision;
    }
    protocol->bad_in_row++;
    if (settings->schedule == PH_SCHEDULE_PLATEAU) {
        protocol->cuts *= settings->schedule_factor;
        decision.has_cut = true;
    }
    decision.is_stop = ph__protocol_is_over(protocol, settings);
    return decision;
}
