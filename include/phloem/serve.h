/* Scoring: a model in inference mode, over the weights of a running training or over those that it left. */
#ifndef PHLOEM_SERVE_H
#define PHLOEM_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/data.h"
#include "phloem/graph.h"
#include "phloem/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model in inference mode over a store and a state, which may be those of a running training. A sample's logits have the
 * same bits in every batch, whatever its size and the number of threads. One thread at a time. */
struct ph_scorer;
struct ph_scorer_options {
    const struct ph_model_settings *model;
    const struct ph_encoder *encoder; /* all pointers are borrowed until the scorer is destroyed */
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    size_t batch_size;
    size_t num_ids;        /* expected in a batch; 0: one in each bag */
    size_t num_prefetched; /* batches made ahead while a file is scored */
    double
        logit_shift; /* added to the logit of task 0: undoes what sampling the training data did to the base rate */
};
ph_status ph_scorer_create(const struct ph_scorer_options *options, struct ph_scorer **scorer_out);
void ph_scorer_destroy(struct ph_scorer *scorer);

/* Logits (B,T) of a batch, borrowed until the next call. */
ph_status ph_scorer_score(struct ph_scorer *scorer, const struct ph_batch *batch, const ph_real **logits_out);
struct ph_memory_report ph_scorer_memory(const struct ph_scorer *scorer);

#ifdef __cplusplus
}
#endif
#endif
