/* Row-wise Adagrad of tables whose columns are cut: the state of a row moves by the mean square of its whole gradient, which
 * no rank has. The pass adds, before the updates of such tables, block sums of squares and their exchange with the ranks
 * that have the other columns (square_exchange.h), and gives the updates the rows' sums: state and weights then have the bits
 * of the table that is not cut. Each part of a row has the row's state for itself, the same on every rank.
 *
 * Tables of other optimizers, and cuts between rows alone, need nothing. */
#ifndef PH_SHARD_SHARE_SQUARES_H
#define PH_SHARD_SHARE_SQUARES_H

#include "shard/sharding.h"

/* Behind the updates, in their entry and before fusion. Errors stick to the builder: PH_ERROR_CONFIG for updates that visit
 * rows without a gradient, all of whose squares would have to travel. */
void ph__share_squares(struct ph_sharding *sharding, struct ph_builder *builder);

#endif
