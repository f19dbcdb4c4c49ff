/* The inside of a session, shared by the files that take rows as cells and as text, and that give embeddings.
 */
#ifndef PH_SERVE_SESSION_H
#define PH_SERVE_SESSION_H

#include <pthread.h>

#include "base/text/name_index.h"
#include "data/batch/batch_buffer.h"
#include "data/encode/row_encoder.h"
#include "data/source/source_delimited.h"
#include "data/source/source_libsvm.h"
#include "phloem/serve.h"
#include "serve/model_folder.h"
#include "serve/scorer.h"

/* ---- contexts ---- */

/* Set of outputs: bit 0 is the logits, which also make the probabilities; bit i the model's i-th named value.
 */
typedef uint32_t ph__output_set;
#define PH_LOGITS_SET ((ph__output_set)1)
#define PH_MAX_NAMED_OUTPUTS 31

/* Scorer of one set of outputs. */
struct ph__set_scorer {
    ph__output_set set;
    const char *names[PH_MAX_NAMED_OUTPUTS]; /* (num_names), the session's */
    size_t num_names;
    struct ph_scorer *scorer;
    struct ph__set_scorer *next;
};

/* Memory that one call at a time scores with: a batch from its rows to its outputs, and a team of one thread.
 * A session owns several contexts, over one store. */
struct ph__context { /* zero-initialised is closed; must not move */
    const struct ph_encoder *encoder;
    struct ph_backend *backend;
    struct ph__set_scorer *scorers;       /* the logits' first; others as they are asked for */
    const struct ph__set_scorer *current; /* scored the batch that outputs are taken from */
    const ph_real *logits;                /* (B,T) of that batch, if its set has them */
    struct ph__row_encoder row;
    struct ph__rows rows;        /* encoded, not scored yet */
    const uint32_t **row_starts; /* (max_batch) first word of each row, while a batch is made of them */
    struct ph__batch_buffer buffer;
    char *line; /* line of text, while it is cut into cells */
    size_t line_capacity;
};

/* ---- columns that a program hands over with a row ---- */

/* Columns of the data that features are made of, in the order of the data: no labels, weights and groups. */
struct ph__inputs {                     /* zero-initialised is empty */
    struct ph__name_index index;        /* of the columns' names, the encoder's */
    size_t *first;                      /* (columns + 1) into features */
    const struct ph__column **features; /* the encoder's; those of column i are [first[i], first[i + 1]) */
};

ph_status ph__inputs_init(const struct ph_encoder *encoder, struct ph__inputs *inputs_out);
void ph__inputs_fini(struct ph__inputs *inputs);

/* Encodes a row of cells (index.count) behind those in `rows`. PH_ERROR_DATA naming the field. */
ph_status ph__inputs_encode(const struct ph__inputs *inputs, struct ph__row_encoder *row,
    const struct ph_cell *cells, struct ph__rows *rows);

/* ---- sessions ---- */

/* Kind of lines of text, by the format of the data. */
enum ph__line_kind {
    PH_LINES_NONE,   /* rows are not lines */
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

/* Encodes a row of one line, with or without labels, behind those in the context. PH_ERROR_DATA without a
 * place. */
ph_status ph__lines_encode(
    const struct ph__lines *lines, struct ph__context *context, const char *text, size_t size);

struct ph_session {
    size_t max_batch;
    struct ph__model_config config;
    struct ph__model_folder model;
    struct ph__inputs inputs;
    struct ph__lines lines;
    struct ph__model_output *outputs; /* (num_outputs): probability, logit, the model's; in config.arena */
    size_t num_outputs;
    enum ph_precision precision;
    size_t row_ids;               /* most ids of a row that memory is reserved for */
    struct ph__context *contexts; /* (num_contexts) */
    size_t num_contexts;
    pthread_mutex_t building; /* held while a scorer is built */
    pthread_mutex_t lock;     /* guards the members below */
    pthread_cond_t is_given_back;
    struct ph__context **free_contexts; /* (num_free), the one that was used last at the end */
    size_t num_free;
};

/* Tells whether the rows of a call are the nodes of one graph, which are scored together, and alone. */
static inline bool ph__session_is_of_graphs(const struct ph_session *session)
{
    return session->model.encoder->format == PH_DATA_GRAPH;
}

/* Rows to be scored, from any source. */
struct ph__request {
    size_t num_rows;
    /* Encodes row `row` behind those in the context. Called for rows in order, from 0 on, once or twice. An
     * error names the row. */
    ph_status (*encode)(struct ph__request *request, struct ph__context *context, size_t row);
};

/* Outputs that a request wants. */
struct ph__wanted {
    size_t num_outputs;
    const size_t *outputs;
    float *const *values; /* values[i]: (num_rows, width of outputs[i]) */
};

/* Scores the rows, in pieces if they exceed a batch; values stay untouched when a row is bad. wanted NULL:
 * the rows are encoded alone, once. */
ph_status ph__session_run(
    struct ph_session *session, struct ph__request *request, const struct ph__wanted *wanted);
/* Gives the probabilities alone. */
ph_status ph__session_run_probabilities(
    struct ph_session *session, struct ph__request *request, float *probabilities);

/* ---- contexts (session_context.c), each for one thread at a time ---- */

#define PH_OUTPUT_PROBABILITY 0 /* output of every session */

/* Lists the outputs: what every model has, and behind it what the model names. */
ph_status ph__session_list_outputs(struct ph_session *session);

/* Opens a context with the scorer of the logits. Close it also after a failure. */
ph_status ph__context_open(struct ph_session *session, struct ph__context *context);
void ph__context_close(struct ph__context *context);

/* Returns the set that computes these outputs. */
ph__output_set ph__session_output_set(size_t num_outputs, const size_t *outputs);

/* Builds what computes a set, which takes memory and time; else the first batch of the set does. */
ph_status ph__context_prepare(struct ph_session *session, struct ph__context *context, ph__output_set set);

/* Scores the rows in the context, at most max_batch, and removes them. */
ph_status ph__context_run(struct ph_session *session, struct ph__context *context, ph__output_set set);

/* Copies an output of the set that ran last: rows [first, first + num_rows) of the batch. */
ph_status ph__context_output(const struct ph_session *session, const struct ph__context *context,
    size_t output, size_t first, size_t num_rows, float *to);

#endif
