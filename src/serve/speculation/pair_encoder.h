/* Makes few numbers of what a teacher's last layer reads, such that the teacher's own logits are kept.
 *
 *     e = P (z - mean)    z (D), e (d); P's rows are orthonormal
 *
 * The first rows of P span the weights with which the teacher's logits follow from z, so that they follow
 * from e as well; the others are the directions in which z varies most beside these. Among linear codes that
 * keep the logits this one has the least squared error. The weights are those of least squares, so that the
 * teacher's logits may have other parts besides.
 *
 * Source: SOLARIS (arXiv 2604.12110) compresses by a learnt autoencoder; this closed form is ours. */
#ifndef PH_SERVE_PAIR_ENCODER_H
#define PH_SERVE_PAIR_ENCODER_H

#include <stddef.h>

#include "phloem/status.h"

struct ph__pair_encoder { /* zero-initialised is none */
    size_t width, dim;    /* D, d */
    float *mean;          /* (D) */
    float *directions;    /* (d,D) */
    double kept;          /* share of the variance of z; 0: not known */
    char teacher[65];     /* seal of the weights that z came from */
};

/* Fits to samples z (count, width) and their logits (count, num_tasks). dim >= num_tasks, at most width.
 * PH_ERROR_MEMORY. */
ph_status ph__pair_encoder_fit(size_t count, size_t width, const float *z, size_t num_tasks,
    const float *logits, size_t dim, struct ph__pair_encoder *encoder_out);
void ph__pair_encoder_fini(struct ph__pair_encoder *encoder);

/* Encodes rows: z (count, width), e (count, dim). */
void ph__pair_encode(const struct ph__pair_encoder *encoder, size_t count, const float *z, float *e);

/* Saves it as safetensors, `teacher` in its metadata, and reads it. PH_ERROR_DISK; PH_ERROR_CHECKPOINT. */
ph_status ph__pair_encoder_save(const struct ph__pair_encoder *encoder, const char *path);
ph_status ph__pair_encoder_load(const char *path, struct ph__pair_encoder *encoder_out);

#endif
