/* The passes over the dense part of a program that is spread over ranks, each in a file of its own, and their
 * operators. Errors stick to the builder. */
#ifndef PH_SHARD_DENSE_PASSES_H
#define PH_SHARD_DENSE_PASSES_H

#include "op/operator.h"
#include "shard/sharding.h"

/* ---- gradient_reduce.c ----
 *
 * Gradients of parameters that every rank has become those of the global batch.
 *
 * Dense ones are reduced in buckets, in the order in which the backward pass makes them: a bucket starts
 * behind the node that makes its last gradient and is waited for at the end of the entry, or later
 * (plan_distribution.c), so that its sum is made while what stands before is differentiated. The communicator
 * makes it, or a reducer in its place (gradient_push.c). Sparse ones, of tables that every rank has, are
 * gathered: the rows of all ranks are merged in the order of the ranks. */

/* Tells whether a node waits for a bucket's sums. */
bool ph__is_gradient_wait(const struct ph__node *node);

/* parameters and gradients (count); a gradient of 0 stays 0. Tables of which this rank has shards keep
 * theirs. */
void ph__reduce_gradients(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients);

/* ---- global_loss.c ----
 *
 * The loss of the labels, a mean over the samples that this rank has, becomes the mean over the global batch.
 */

/* Adds a mean over ranks behind each loss of the graph so far. */
void ph__share_losses(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- global_norm.c ----
 *
 * The norm of all ranks' gradients, for clipping. */

/* Makes what clip factors (op/update/op_clip_factor.c) are made from a sum over all ranks. Gradients have
 * been reduced. */
void ph__share_norms(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- sync_batch_norm.c ----
 *
 * Batch norms whose batch is the global one. */

/* Makes each batch norm that learns one over all ranks; losses, which mix samples too, are global_loss.c's.
 * PH_ERROR_CONFIG for an operator that mixes samples otherwise. */
void ph__sync_batch_norms(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- share_squares.c ----
 *
 * Row-wise Adagrad of tables whose columns are cut: the state of a row moves by the mean square of its whole
 * gradient, which no rank has. The pass adds, before the updates of such tables, block sums of squares and
 * their exchange with the ranks that have the other columns (square_exchange.h), and gives the updates the
 * rows' sums: state and weights then have the bits of the table that is not cut. Each shard of a row has the
 * row's state for itself, the same on every rank.
 *
 * Tables of other optimizers, and cuts between rows alone, need nothing. */

/* Adds the exchange behind the updates, in their entry and before fusion. PH_ERROR_CONFIG for updates that
 * visit rows without a gradient, all of whose squares would have to travel. */
void ph__share_squares(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- gather_rows.c: the gradient of a table that every rank has ---- */

/* rows: this rank's gradient, sparse_rows; returns all ranks', of which equal slots have been added in the
 * order of the ranks. */
ph_value ph__gather_rows(struct ph__sharding *sharding, struct ph_builder *builder, ph_value rows);

#endif
