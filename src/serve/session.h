/* The inside of a session, shared by the ways in which rows come. */
#ifndef PH_SERVE_SESSION_H
#define PH_SERVE_SESSION_H

#include <pthread.h>

#include "data/delimited.h"
#include "serve/context.h"
#include "serve/inputs.h"

struct ph_session {
    size_t max_batch;
    struct ph__model_config config;
    struct ph__model_folder model;
    struct ph__inputs inputs;
    struct ph__delimited labelled,
        unlabelled;               /* how lines are cut; empty for formats that are not cut into cells */
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

/* Whether rows of the model's data format are lines that are cut into cells. */
bool ph__session_cuts_lines(const struct ph_session *session);

#endif
