/* Models in inference mode: from an encoder's output to logits, and from logits to probabilities. */
#ifndef PH_SERVE_SCORER_H
#define PH_SERVE_SCORER_H

#include <stddef.h>

#include "base/memory/arena.h"
#include "phloem/data.h"
#include "phloem/graph.h"
#include "phloem/model.h"
#include "phloem/serve.h"
#include "phloem/tensor.h"

/* ---- features ---- */

/* Lists the encoder's features for a model. Names stay the encoder's. */
ph_status ph__features_init(const struct ph_encoder *encoder, struct ph_model_features *features_out);
void ph__features_fini(struct ph_model_features *features);

/* ---- the program ---- */

/* Builds the program that scores: entry "forward", outputs "logits" (B,T), if wanted, and those that the
 * options name. Reads precision and distribution of the options, too. PH_ERROR_USAGE: the model has no such
 * value, or it has not one row a sample. */
ph_status ph__scoring_program_build(const struct ph_scorer_options *options,
    const struct ph_model_features *features, struct ph_program **program_out);

/* Builds the program in fp32, each operator as the model added it: for export. */
ph_status ph__scoring_program_build_unfused(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out);

/* A value that a model names, and that has one row a sample. */
struct ph__model_output {
    const char *name; /* in the arena */
    size_t width;     /* numbers a row */
};

/* Lists the values that a model names, in the arena. */
ph_status ph__scoring_outputs(const struct ph_model_settings *model, const struct ph_model_features *features,
    struct ph__arena *arena, struct ph__model_output **outputs_out, size_t *num_outputs_out);

/* ---- scorers ---- */

/* Returns the program, which is the scorer's. */
const struct ph_program *ph__scorer_program(const struct ph_scorer *scorer);
/* Returns the options as they were given; owned by the scorer. */
const struct ph_scorer_options *ph__scorer_options(const struct ph_scorer *scorer);

/* ---- probabilities ---- */

double ph__sigmoid(double x);

/* Returns the shift of the logit for training data that has all positives but only the share `rate` of the
 * negatives: sampling multiplied the odds by 1 / rate, so the true q for a computed p has q / (1 - q) = rate
 * p / (1 - p), that is q = p / (p + (1 - p) / rate) (He et al., Practical Lessons from Predicting Clicks on
 * Ads at Facebook, ADKDD 2014, section 6.3). 0 for rates 0 and 1: no sampling. */
double ph__negative_rate_shift(double rate);

/* Computes the probability of each logit. All probabilities that leave the library come from here, so that
 * they have the same bits. */
void ph__probabilities(size_t n, const ph_real *logits, float *probabilities);

#endif
