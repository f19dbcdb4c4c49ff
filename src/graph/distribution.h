/* Distributions spread a program over ranks; the code that builds and runs the program needs no notion of
 * ranks.
 *
 * Each rank has some rows and columns of the tables. Its *requests* are the samples of a step's global batch
 * whose ids lie there: they are gathered before the batch is bound, and the program looks them up like a
 * batch of its own. A distribution (shard/plan_distribution.h makes one) rewrites a model's graph accordingly
 * and binds batches so. */
#ifndef PH_GRAPH_DISTRIBUTION_H
#define PH_GRAPH_DISTRIBUTION_H

#include "graph/op.h"

/* Ids of all ranks' samples that this rank's shards are asked for, in the combined format. A stream is the
 * share of a feature that lies in some rows. Stream s of sample b of the global batch has the ids
 *
 *     ids[offsets[s * num_samples + b] .. offsets[s * num_samples + b + 1]),
 *
 * counted from the first of the stream's rows. */
struct ph__requests {
    size_t num_samples;    /* samples of the global batch */
    size_t num_global_ids; /* ids of all its samples */
    size_t num_streams;
    size_t num_ids;
    const uint32_t *offsets; /* (num_streams * num_samples + 1) */
    const int64_t *ids;      /* (num_ids) */
    const ph_real *weights;  /* (num_ids); NULL: all 1 */
};

/* Add the program's inputs for requests: jagged int64 (streams * G bags, R), and (R) weights. */
ph_value ph__input_requested_ids(struct ph_builder *builder, size_t num_streams);
ph_value ph__input_requested_weights(struct ph_builder *builder);

/* Creates a workspace as ph_workspace_create does, with room for as many requests (their pointers are
 * ignored; NULL: none). */
ph_status ph__workspace_create(struct ph_executor *executor, size_t batch_size, size_t num_ids,
    const struct ph__requests *requests, struct ph_workspace **workspace_out);
/* Binds a batch as ph_workspace_bind does, with its requests, borrowed until the next bind. */
ph_status ph__workspace_bind(struct ph_workspace *workspace, const struct ph_batch *batch,
    const struct ph__requests *requests, uint64_t seed, uint64_t step);

/* Returns the requested ids of the batch that is bound, which may be none. */
const int64_t *ph__workspace_requested_ids(const struct ph_workspace *workspace, size_t *num_ids_out);

/* Sets `poll`, which is then called between two nodes that a workspace of the executor runs, and now and then
 * within a node that is cut into many tasks, by the thread that runs the workspace: so transfers between
 * ranks progress while this rank computes. An error of `poll` ends the run behind the node, so the next call
 * of `poll` must return it as well. context is borrowed. */
void ph__executor_poll(struct ph_executor *executor, ph_status (*poll)(void *context), void *context);

/* Hooks of a distribution: before and after a graph is differentiated, and for each batch. Functions are
 * listed in the order of their calls; errors stick to the builder. All ranks make the same calls. */
struct ph_distribution {
    void *context;
    /* Called when the model, and in training its loss, are built: turns lookups into exchanges, and operators
     * that mix samples into operators over all ranks. more_out (num_more_out) lists values that training
     * differentiates by besides parameters, since other ranks wait for their gradients; valid until the
     * program is destroyed. */
    void (*spread)(
        void *context, struct ph_builder *builder, const ph_value **more_out, size_t *num_more_out);
    /* Returns the value of forward whose gradient is the parameter's: the parameter itself, or what stands
     * for it while it is spread. */
    ph_value (*read_as)(void *context, ph_value parameter);
    /* Called when backward, the current entry, has been differentiated, which may run once for each
     * micro-batch; parameters and gradients (count) as those of reduce. */
    void (*differentiated)(void *context, struct ph_builder *builder, size_t count,
        const ph_value *parameters, ph_value *gradients);
    /* Turns gradients of this rank's samples into those of the global batch: of parameters, and behind them
     * of the values that spread has listed. gradients (count) are changed; 0 stays 0. */
    void (*reduce)(void *context, struct ph_builder *builder, size_t count, const ph_value *parameters,
        ph_value *gradients);
    /* Called when updates have been added: adds the exchange of what updates need of other ranks' shards. */
    void (*complete)(void *context, struct ph_builder *builder);
    /* Replace ph_workspace_create and ph_workspace_bind. batch_size: samples of a global batch, of which this
     * rank has its part; num_ids: ids of that part. */
    ph_status (*create_workspace)(void *context, struct ph_executor *executor, size_t batch_size,
        size_t num_ids, struct ph_workspace **workspace_out);
    ph_status (*bind)(void *context, struct ph_workspace *workspace, const struct ph_batch *batch,
        uint64_t seed, uint64_t step);
};

#endif
