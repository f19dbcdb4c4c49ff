/* Scoring: a model in inference mode, over the weights that a training left (sessions, for programs that
 * serve) or over those of a running training (scorers). */
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

/* A model in inference mode over a store and a state, which may be those of a running training. A sample's
 * logits have the same bits in every batch, for any batch size and number of threads. Used by one thread at a
 * time. */
struct ph_scorer;
struct ph_scorer_options {
    size_t size; /* sizeof the struct: phloem/options.h */
    const struct ph_model_settings *model;
    const struct ph_encoder *encoder; /* all pointers are borrowed until the scorer is destroyed */
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    size_t batch_size;     /* batch size of files, and planned for: a larger batch makes the workspace grow */
    size_t num_ids;        /* expected in a batch; 0: one in each bag */
    size_t num_prefetched; /* batches made ahead while a file is scored, up to 1024; 0: none, no thread */
    uint64_t max_bad_rows; /* bad rows left out while measuring, as struct ph_batches_options says */
    /* Added to the logit of task 0: makes up for negatives that were left out of the training data. */
    double logit_shift;
    enum ph_precision precision; /* precision of linear layers; 0: fp32 */
    /* Values (num_outputs) that the model names (ph_name_value), to be computed beside the logits;
     * ph_scorer_output gives them. */
    const char *const *outputs;
    size_t num_outputs;
    bool has_no_logits; /* true: the logits are not computed, unless another output needs them */
    /* NULL: the whole model is in the store. Otherwise ranks score together, each its part of a batch, and
     * all of them make the same calls. */
    const struct ph_distribution *distribution;
    struct ph_comm *comm; /* ranks that score together; borrowed. Where it is set, each scores its part of a
                             file's batches */
    const struct ph_site_recipe *recipes; /* (num_recipes) as ph_builder_set_recipes takes them */
    size_t num_recipes;
};
/* Creates a scorer. Parameters and states that the store and the state lack are made there, with their
 * initial values. Errors: PH_ERROR_CONFIG where the model cannot be built on the encoder's features, or the
 * store or the state holds one of its names in another shape; PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_scorer_create(
    const struct ph_scorer_options *options, struct ph_scorer **scorer_out);
void ph_scorer_destroy(struct ph_scorer *scorer); /* NULL is fine */

/* Computes the logits (B,T) of a batch, borrowed until the next call; NULL with has_no_logits. PH_ERROR_DATA:
 * a batch of other features, or an id outside its table; PH_ERROR_MEMORY: no memory for a batch larger than
 * any before. */
PH_MUST_CHECK ph_status ph_scorer_score(
    struct ph_scorer *scorer, const struct ph_batch *batch, const ph_real **logits_out);
/* Gives output `index` of the options for the batch that was scored last: (B, width), borrowed until the next
 * call. */
PH_MUST_CHECK ph_status ph_scorer_output(
    const struct ph_scorer *scorer, size_t index, const ph_real **values_out, size_t *width_out);
struct ph_memory_usage ph_scorer_memory(const struct ph_scorer *scorer);

/* ---- sessions: a trained model in a program that serves ---- */

/* A run folder's model, ready to score. Any number of threads may use one session at once, but not while it
 * is closed. */
struct ph_session;

struct ph_session_options {
    size_t size;        /* sizeof the struct: phloem/options.h */
    size_t max_batch;   /* rows scored together, up to 65536; 0: 64. Larger calls are scored in pieces,
                           but for graphs, whose nodes are one call: PH_ERROR_USAGE */
    size_t num_threads; /* calls served at once, a thread each, up to 1024; 0: 1. Further calls wait */
    size_t list_length; /* ids of a list that memory is reserved for, up to 65536; 0: 32. Longer lists
                           allocate */
    /* Format of the rows of embedding tables (0: fp32), as far as that makes them smaller: rows are converted
     * while they are read. Probabilities then differ from those of fp32 by the rounding of the rows, and have
     * the same bits in any call. */
    enum ph_row_format row_format;
    /* PH_PRECISION_BF16 (0: fp32): the weights of linear layers are rounded to bf16, which halves their
     * bytes; arithmetic stays fp32. Pays for few rows, where reading the weights is most of the work. */
    enum ph_precision precision;
    /* Session whose tables are shared, in place of being read, where the files' checksums say that they are
     * the same, in the same row format; NULL: none. Both sessions must be open during the call; either may be
     * closed first. */
    const struct ph_session *share_with;
};

/* Opens a folder that ph_train_config or phloem train made: encoder.json, model.safetensors and, if present,
 * config.yaml (its section model and data.negative_rate), which must agree with the weights' metadata; and,
 * if present, recipes.json, which tells which products are computed in fewer bits (phloem precision).
 * Everything that calls need is allocated and touched here: a call allocates nothing, makes no thread and
 * wakes none, unless its lists are longer than list_length or its lines longer than 64 KiB, and than any
 * before in the same one of the num_threads contexts: each grows for itself. options may be NULL. Errors:
 * PH_ERROR_CHECKPOINT for a file that is missing, damaged or does not fit the others, PH_ERROR_CONFIG for
 * mistakes in config.yaml, PH_ERROR_USAGE for options out of range, PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_session_open(
    const char *folder, const struct ph_session_options *options, struct ph_session **session_out);
void ph_session_close(struct ph_session *session); /* NULL is fine */

/* Describe the columns of a row, in the order of the training data: those that features are made of, so no
 * labels, weights or groups. Names are the session's. find returns SIZE_MAX when there is no such column. */
size_t ph_session_num_columns(const struct ph_session *session);
const char *ph_session_column_name(const struct ph_session *session, size_t column);
size_t ph_session_find_column(const struct ph_session *session, const char *name);
size_t ph_session_num_tasks(const struct ph_session *session); /* T */
uint64_t ph_session_weight_bytes(
    const struct ph_session *session); /* weights' bytes, tables in the session's row format */

/* Scores rows of cells (num_rows, num_columns), encoded as in training: probabilities (num_rows, T), bit for
 * bit those that phloem predict writes for the same rows (and the same row format), for any division of rows
 * into calls. PH_ERROR_DATA names the wrong row (from 0) and field; then nothing has been written. In a call
 * of more than max_batch rows cells are read twice: their texts and lists must not change meanwhile. */
PH_MUST_CHECK ph_status ph_session_score(
    struct ph_session *session, size_t num_rows, const struct ph_cell *cells, float *probabilities);

/* Describe the outputs of a session: 0 is "probability" and 1 "logit", both of T numbers a row; the others
 * are the values that the model names (ph_name_value), such as "hidden", what the layer of the logits reads,
 * and "embeddings". Names are the session's. find returns SIZE_MAX when there is no such output. */
size_t ph_session_num_outputs(const struct ph_session *session);
const char *ph_session_output_name(const struct ph_session *session, size_t output);
size_t ph_session_output_width(const struct ph_session *session, size_t output); /* numbers a row */
size_t ph_session_find_output(const struct ph_session *session, const char *name);

/* Computes outputs of rows of cells, as ph_session_score does: values[i] (num_rows, width of outputs[i]).
 * What is not asked for is not computed. The first call that asks for a new set of outputs builds a program
 * for it, which allocates. A row's numbers have the same bits in any call. */
PH_MUST_CHECK ph_status ph_session_score_outputs(struct ph_session *session, size_t num_rows,
    const struct ph_cell *cells, size_t num_outputs, const size_t *outputs, float *const *values);

/* Scores lines in the format of the training data (CSV, TSV, Criteo, Avazu, libsvm, libffm), without a
 * header: all columns in their order, with or without the labels. Empty lines are skipped. The text, too,
 * must not change during the call. probabilities (capacity_rows, T) gets *num_rows_out rows. PH_ERROR_DATA
 * names the line (from 1) and the field, PH_ERROR_USAGE: more rows than capacity_rows. On failure nothing has
 * been written, not even *num_rows_out. */
PH_MUST_CHECK ph_status ph_session_score_text(struct ph_session *session, const char *text, size_t size,
    float *probabilities, size_t capacity_rows, size_t *num_rows_out);

/* Scores the rows of an Arrow record batch, with columns by name and types as for ph_dataset_append_arrow:
 * probabilities (length, T), the bits of ph_session_score. Other columns are ignored, labels among them.
 * Batch and schema are borrowed during the call, and stay the caller's. Allocates a little for each column,
 * and as ph_session_score for the rows. PH_ERROR_DATA names the wrong column, or row (from 0) and field;
 * PH_ERROR_USAGE: the batch or its schema has been released. On failure nothing has been written. */
PH_MUST_CHECK ph_status ph_session_score_arrow(struct ph_session *session, const struct ArrowArray *batch,
    const struct ArrowSchema *schema, float *probabilities);

/* Returns the dimension of a sparse feature's embeddings; 0: the model has no such feature, or no table for
 * it. Of several tables with rows for a feature, as a factorization machine has one of weights beside one of
 * vectors, the widest is meant; of equally wide ones, the first that the model declares. Features that share
 * rows (data.fields: shares) have the same embeddings. */
size_t ph_session_embedding_dim(const struct ph_session *session, const char *feature);

/* Gives the embeddings of ids: vectors (num_ids, dimension), in the precision of the session's row
 * format. cells (num_ids) has one id each, of the feature's column, encoded as in training: an unknown id
 * gives row 0, and so does a blank; of a list zeros. PH_ERROR_DATA names the wrong id (from 0) and field,
 * also one with several ids; PH_ERROR_USAGE: the feature has no embeddings. On failure some vectors may have
 * been written. */
PH_MUST_CHECK ph_status ph_session_embed(struct ph_session *session, const char *feature, size_t num_ids,
    const struct ph_cell *cells, float *vectors);

#ifdef __cplusplus
}
#endif
#endif
