/* What one call at a time scores with: the memory of a batch from its rows to its logits, and a team of one thread.
 * A session owns several, over one store. */
#ifndef PH_SERVE_CONTEXT_H
#define PH_SERVE_CONTEXT_H

#include "data/batch/batch_buffer.h"
#include "data/encode/row_encoder.h"
#include "phloem/serve.h"
#include "serve/model_folder.h"

struct ph__context { /* zero-initialised is closed; stays where it is */
    const struct ph_encoder *encoder;
    struct ph_backend *backend;
    struct ph_scorer *scorer;
    struct ph__row_encoder row;
    struct ph__rows rows;        /* encoded, not scored yet */
    const uint32_t **row_starts; /* (max_batch) where each of them begins, while a batch is made of them */
    struct ph__batch_buffer buffer;
    char *line; /* of text, while it is cut into cells */
    size_t line_capacity;
};

/* For batches of up to max_batch rows of up to row_ids ids each; more ids make it grow. The model and the settings are
 * borrowed until close. Close it also after a failure. One thread at a time opens contexts
 * over one model. */
ph_status ph__context_open(struct ph__context *context, const struct ph__model_folder *model,
    const struct ph_model_settings *settings, enum ph_precision precision, size_t max_batch, size_t row_ids);
void ph__context_close(struct ph__context *context);

/* Scores the rows, at most max_batch, and takes them away: probabilities (rows, T). */
ph_status ph__context_score(struct ph__context *context, float *probabilities);

#endif
