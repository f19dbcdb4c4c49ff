/* Requests to a model with a speculation: their pairs are looked up before they are scored, and copied for
 * the worker after they were answered. The driving thread alone. */
#ifndef PH_SERVE_SPECULATED_H
#define PH_SERVE_SPECULATED_H

#include "serve/speculation/speculation.h"
#include "serve/wire/tensor_rows.h"

/* Input and features of a request, until it is offered; in the request's arena. */
struct ph__speculated {
    const struct ph__tensor *tensors; /* (num_tensors) of the request */
    size_t num_tensors, count;        /* count: rows */
    uint64_t *users, *items;          /* (count) hashes */
    float *features;                  /* (count, columns) */
    double now;
};

/* Source and target of features. */
struct ph__speculated_source {
    struct ph__speculation *core;
    const struct ph__name_index *columns; /* that a request may have beside the student's */
    const struct ph_session *student;
};

/* Fills all but tensors and time, and matches the student's columns with the tensors and with what was looked
 * up. PH_ERROR_DATA naming a tensor. */
ph_status ph__speculated_look_up(const struct ph__speculated_source *source, struct ph__arena *arena,
    struct ph__speculated *speculated, struct ph__tensor_rows *rows_out);

/* Copy of a request for the worker. */
struct ph__note {
    struct ph__note *next;
    struct ph__arena arena;
    struct ph__tensor *tensors; /* (num_tensors) that the teacher reads */
    size_t num_tensors, count;
    struct ph_cell *user_cells; /* (count) */
    uint64_t *users, *items;
    float *scores, *features;
    struct ph__bytes request;
    double now;
    uint64_t bytes;
};

/* Copies a request that was answered into a note, whose arena is empty: the tensors of these columns alone.
 * probabilities (count, stride); NULL: they are not known. Returns false without memory. */
bool ph__note_fill(struct ph__note *note, const struct ph__speculation *core,
    const struct ph__name_index *columns, const struct ph__speculated *speculated, struct ph__bytes request,
    const float *probabilities, size_t stride);

#endif
