/* A model in inference mode: from what an encoder gives to logits, and from logits to probabilities. */
#ifndef PH_SERVE_SCORER_H
#define PH_SERVE_SCORER_H

#include <stddef.h>

#include "phloem/data.h"
#include "phloem/graph.h"
#include "phloem/model.h"
#include "phloem/serve.h"
#include "phloem/tensor.h"

/* ---- features ---- */

/* The features that an encoder gives, as models want them. Names stay the encoder's. */
ph_status ph__features_init(const struct ph_encoder *encoder, struct ph_model_features *features_out);
void ph__features_fini(struct ph_model_features *features);

/* ---- the program ---- */

/* Builds the program that scores: entry "forward", output "logits" (B,T).
 * distribution: over which ranks it is spread (graph/distribution.h); NULL: over none. */
ph_status ph__scoring_program_build(const struct ph_model_settings *model,
    const struct ph_model_features *features, enum ph_precision precision,
    const struct ph_distribution *distribution, struct ph_program **program_out);

/* Builds the same in fp32, each operator as the model put it: for export. */
ph_status ph__scoring_program_build_unfused(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out);

/* ---- scorers ---- */

/* Gives the options as they were given; owned by the scorer. */
const struct ph_scorer_options *ph__scorer_options(const struct ph_scorer *scorer);

/* ---- probabilities ---- */

double ph__sigmoid(double x);

/* Gives what is added to the logit p was computed from, where training saw all positives but only the share
 * `rate` of the negatives: sampling multiplied the odds by 1 / rate, so q / (1 - q) = rate p / (1 - p), that
 * is q = p / (p + (1 - p) / rate) (He et al., Practical Lessons from Predicting Clicks on Ads at Facebook,
 * ADKDD 2014, section 6.3). 0 for rates 0 and 1: all were seen. */
double ph__negative_rate_shift(double rate);

/* The probability of each logit. Whoever hands probabilities out takes them from here, so that they have the
 * same bits. */
void ph__probabilities(size_t n, const ph_real *logits, float *probabilities);

#endif
