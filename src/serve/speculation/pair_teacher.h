/* A foundation model that tells few numbers of a pair: its session, and the encoder that stands in its
 * folder.
 *
 *     row of the model's columns ──> "hidden" (D) ──> pair_encoder.safetensors ──> e (d)
 *
 * One thread at a time. */
#ifndef PH_SERVE_PAIR_TEACHER_H
#define PH_SERVE_PAIR_TEACHER_H

#include "serve/session.h"
#include "serve/speculation/pair_encoder.h"

#define PH_PAIR_ENCODER_FILE "pair_encoder.safetensors"
#define PH_PAIR_OUTPUT "hidden"

struct ph__pair_teacher { /* zero-initialised is closed */
    struct ph_session *session;
    struct ph__pair_encoder encoder;
    size_t output;    /* of the session: what the encoder reads */
    uint64_t version; /* a hash of the seals of weights and encoder */
    float *values;    /* (max_batch, D) */
};

/* Opens a run folder with its encoder. PH_ERROR_CHECKPOINT: a file is missing or damaged, or the encoder is
 * that of another model. Close it also after a failure. */
ph_status ph__pair_teacher_open(struct ph__pair_teacher *teacher, const char *folder);
void ph__pair_teacher_close(struct ph__pair_teacher *teacher);

/* Gives the version that the folder holds now. PH_ERROR_CHECKPOINT. */
ph_status ph__pair_teacher_version(const char *folder, uint64_t *version_out);

/* Returns the rows that are waiting to be encoded: callers append them, at most the session's max_batch. */
struct ph__rows *ph__pair_teacher_rows(struct ph__pair_teacher *teacher);
/* Encodes the rows of a request, from `first` on, behind those that wait. */
ph_status ph__pair_teacher_take(
    struct ph__pair_teacher *teacher, struct ph__request *request, size_t first, size_t count);
/* Computes what the waiting rows say, e (rows, d), and removes them. */
ph_status ph__pair_teacher_run(struct ph__pair_teacher *teacher, float *e);

#endif
