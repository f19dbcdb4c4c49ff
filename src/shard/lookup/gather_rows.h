/* The gradient of a table that every rank has: the rows of all ranks, merged. */
#ifndef PH_SHARD_GATHER_ROWS_H
#define PH_SHARD_GATHER_ROWS_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph_op ph__op_gather_rows;

/* rows: this rank's gradient, sparse_rows; returns all ranks', of which equal slots have been added in the order of the ranks. */
ph_value ph__gather_rows(struct ph_sharding *sharding, struct ph_builder *builder, ph_value rows);

#endif
