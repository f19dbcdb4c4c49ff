/* The learning rate over time, as a factor of optimizer.learning_rate, and the protocol that decides after
 * each evaluation: continue, cut the learning rate, or stop. Pure functions of their arguments. */
#ifndef PH_TRAIN_SCHEDULE_H
#define PH_TRAIN_SCHEDULE_H

#include "phloem/train.h"

/* Returns the learning rate of step `step` (from 1). Warm-up: base * step / warmup_steps; then
 *   constant, plateau  base * cuts
 *   step               base * cuts * factor^(steps since warm-up / schedule_steps, rounded down)
 *   cosine             base * cuts * (factor + (1 - factor) * (1 + cos(pi * progress)) / 2)
 * Once warm, never below min_learning_rate, or below base where base is smaller. cuts: of struct
 * ph__protocol. */
double ph__schedule_learning_rate(
    const struct ph_train_settings *settings, double base, double cuts, uint64_t step);

/* PH_ERROR_CONFIG where the settings contradict one another. */
ph_status ph__schedule_check(const struct ph_train_settings *settings);

/* Returns true when the learning rate of a step depends on max_steps. */
static inline bool ph__schedule_ends_with_max_steps(const struct ph_train_settings *settings)
{
    return settings->schedule == PH_SCHEDULE_COSINE && settings->schedule_steps <= 0;
}

/* State of the BARS protocol. Starts as zeros with cuts = 1. */
struct ph__protocol {
    bool has_best;
    double best;        /* selection metric; larger is better */
    int64_t bad_in_row; /* evaluations since the best one */
    double cuts;        /* product of the plateau schedule's cuts */
};

struct ph__decision {
    bool is_best; /* keep this model */
    bool has_cut; /* the learning rate was cut */
    bool is_stop;
    bool is_incomparable; /* the data does not define the metric: nothing was decided */
};

/* Returns true when the evaluations so far end the training. */
bool ph__protocol_is_over(const struct ph__protocol *protocol, const struct ph_train_settings *settings);

/* Decides after an evaluation. An improvement is more than 1e-6. A metric that the labels do not define (an
 * AUC of one class, any metric of no labels) cannot be compared and decides nothing; scores that are not
 * numbers count as no improvement. */
struct ph__decision ph__protocol_evaluated(struct ph__protocol *protocol,
    const struct ph_train_settings *settings, const struct ph_metrics *metrics);

#endif
