/* What a program that is spread over ranks needs of whoever builds and runs it, who need not know of ranks.
 *
 * Each rank has some rows and columns of the tables, and all samples of a step's global batch whose ids lie
 * there are its *requests*: they are brought together before the batch is bound, and the program looks them
 * up like a batch of its own. A distribution (shard/plan_distribution.h makes one) rewrites what a model has
 * built and binds batches so. */
#ifndef PH_GRAPH_DISTRIBUTION_H
#define PH_GRAPH_DISTRIBUTION_H

#include "graph/op.h"

/* The ids of all ranks' samples that this rank's shards are asked for, in the combined format: those of
 * sample b of the global batch and stream s, a stream being some rows' share of a feature, are ids[offsets[s
 * * num_samples + b] .. offsets[s * num_samples + b + 1]), counted from the first of the stream's rows. */
struct ph__requests {
    size_t num_samples;    /* of the global batch */
    size_t num_global_ids; /* of all its samples */
    size_t num_streams;
    size_t num_ids;
    const uint32_t *offsets; /* (num_streams * num_samples + 1) */
    const int64_t *ids;      /* (num_ids) */
    const ph_real *weights;  /* (num_ids); NULL: all 1 */
};

/* The program's inputs for them: jagged int64 (streams * G bags, R), and (R) weights. */
ph_value ph__input_requested_ids(struct ph_builder *builder, size_t num_streams);
ph_value ph__input_requested_weights(struct ph_builder *builder);

/* As ph_workspace_create, with room for as many requests (their pointers are not looked at; NULL: none). */
ph_status ph__workspace_create(struct ph_executor *executor, size_t batch_size, size_t num_ids,
    const struct ph__requests *requests, struct ph_workspace **workspace_out);
/* As ph_workspace_bind, with the batch's requests, borrowed until the next bind. */
ph_status ph__workspace_bind(struct ph_workspace *workspace, const struct ph_batch *batch,
    const struct ph__requests *requests, uint64_t seed, uint64_t step);

/* From now on `poll` is called between two nodes that a workspace of the executor runs, and now and then
 * within one that is cut into many tasks, by the thread that runs the workspace: so that what is in flight
 * between ranks moves on while this one computes. An error ends the run behind the node, and is returned by
 * the next call of `poll` as well. context is borrowed. */
void ph__executor_poll(struct ph_executor *executor, ph_status (*poll)(void *context), void *context);

/* What is done to a graph before and after it is differentiated, and to each batch. Functions come in the
 * order in which they are called; errors stick to the builder. All ranks call them alike. */
struct ph_distribution {
    void *context;
    /* The model, and in training its loss, have been built: lookups become exchanges, what mixes samples
     * becomes a matter of all ranks. more_out (num_more_out) lists values that training differentiates by
     * besides parameters, since others wait for their gradients; until the program is destroyed. */
    void (*spread)(
        void *context, struct ph_builder *builder, const ph_value **more_out, size_t *num_more_out);
    /* Gradients of this rank's samples become those of the global batch: of parameters, and behind them of
     * what spread has listed. gradients (count) are changed; 0 stays 0. */
    void (*reduce)(void *context, struct ph_builder *builder, size_t count, const ph_value *parameters,
        ph_value *gradients);
    /* Updates have been added: what they need to know of other ranks' shards is exchanged. */
    void (*complete)(void *context, struct ph_builder *builder);
    /* In the place of ph_workspace_create and ph_workspace_bind. batch_size: samples of a global batch, of
     * which this rank has its part; num_ids: ids of that part. */
    ph_status (*create_workspace)(void *context, struct ph_executor *executor, size_t batch_size,
        size_t num_ids, struct ph_workspace **workspace_out);
    ph_status (*bind)(void *context, struct ph_workspace *workspace, const struct ph_batch *batch,
        uint64_t seed, uint64_t step);
};

#endif
