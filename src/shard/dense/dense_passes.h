/* Passes over the dense part of a program that is spread over ranks, each in a file of its own, with their
 * operators. Errors stick to the builder. */
#ifndef PH_SHARD_DENSE_PASSES_H
#define PH_SHARD_DENSE_PASSES_H

#include "op/operator.h"
#include "shard/sharding.h"

/* ---- gradient_reduce.c ----
 *
 * Turns this rank's gradients of parameters that every rank has into those of the global batch.
 *
 * Dense gradients are reduced in buckets, in the order in which the backward pass makes them. A bucket starts
 * behind the node that makes its last gradient and is waited for at the end of the entry, or later
 * (plan_distribution.c): the sum is made while the layers before are differentiated, by the communicator or a
 * reducer (gradient_push.c). Sparse gradients, of tables that every rank has, are gathered: the rows of all
 * ranks are merged in the order of the ranks. */

/* Returns true when a node waits for a bucket's sums. */
bool ph__is_gradient_wait(const struct ph__node *node);
/* Returns true for operators that start a bucket's sums or wait for them. */
bool ph__sums_gradients(const struct ph__op *op);

/* Replaces gradients (count), those of parameters (count), by their sums over ranks; a gradient of 0 stays 0.
 * Tables of which this rank has shards keep theirs. */
void ph__reduce_gradients(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients);

/* ---- global_loss.c ----
 *
 * The loss node gives the mean over this rank's samples; the pass makes it the mean over the global batch. */

/* Adds a mean over ranks behind each loss of the graph so far. */
void ph__share_losses(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- global_norm.c ----
 *
 * Norm of all ranks' gradients, for clipping. */

/* Puts a sum over all ranks before each clip factor (op/update/op_clip_factor.c). Gradients have been
 * reduced. */
void ph__share_norms(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- sync_batch_norm.c ----
 *
 * Batch norms over the global batch. */

/* Makes each batch norm that learns span all ranks; losses, which mix samples too, are left to global_loss.c.
 * PH_ERROR_CONFIG for an operator that mixes samples otherwise. */
void ph__sync_batch_norms(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- share_squares.c ----
 *
 * Row-wise Adagrad of tables whose columns are cut. A row's state moves by the mean square of its whole
 * gradient, which no rank has. Before the updates of such tables the pass adds block sums of squares and
 * their exchange with the ranks that have the other columns (square_exchange.h), and gives the updates the
 * rows' sums: state and weights then have the bits of the uncut table. Each shard of a row keeps the row's
 * state, the same on every rank.
 *
 * Tables of other optimizers, and cuts between rows alone, need nothing. */

/* Adds the exchange for the updates, in their entry and before fusion. PH_ERROR_CONFIG for updates that visit
 * rows without a gradient: the squares of all rows would have to travel. */
void ph__share_squares(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- gather_rows.c: the gradient of a table that every rank has ---- */

/* Takes this rank's gradient `rows`, sparse_rows; returns all ranks' gradient, in which equal slots have been
 * added in the order of the ranks. */
ph_value ph__gather_rows(struct ph__sharding *sharding, struct ph_builder *builder, ph_value rows);

#endif
