/* The inside of a session, shared by the ways in which rows come. */
#ifndef PH_SERVE_SESSION_H
#define PH_SERVE_SESSION_H

#include <pthread.h>

#include "data/source/source_delimited.h"
#include "data/source/source_libsvm.h"
#include "serve/context.h"
#include "serve/inputs.h"

/* How lines of text meet the columns, by the format of the data. */
enum ph__line_kind {
    PH_LINES_NONE,   /* rows are no lines */
    PH_LINES_CELLS,  /* cut at separators: csv, tsv, criteo, avazu */
    PH_LINES_LIBSVM, /* libsvm, libffm */
};
struct ph__lines { /* zero-initialised is of kind NONE */
    enum ph__line_kind kind;
    struct ph__delimited labelled, unlabelled;
    struct ph__libsvm libsvm;
};
ph_status ph__lines_init(const struct ph_encoder *encoder, struct ph__lines *lines);
void ph__lines_fini(struct ph__lines *lines); /* also after a failed init */

struct ph_session {
    size_t max_batch;
    struct ph__model_config config;
    struct ph__model_folder model;
    struct ph__inputs inputs;
    struct ph__lines lines;
    struct ph__context *contexts; /* (num_contexts) */
    size_t num_contexts;
    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t is_given_back;
    struct ph__context **free_contexts; /* (num_free), the one that was used last at the end */
    size_t num_free;
};

/* Rows to be scored, wherever they come from. */
struct ph__request {
    size_t num_rows;
    /* Encodes row `row` behind those in the context. Rows are asked for in order, from 0 on, once or twice. An error names
     * the row. */
    ph_status (*encode)(struct ph__request *request, struct ph__context *context, size_t row);
};

/* Scores the rows, in pieces where they are more than a batch: probabilities (num_rows, T). Untouched when a row is bad. */
ph_status ph__session_run(struct ph_session *session, struct ph__request *request, float *probabilities);

#endif
