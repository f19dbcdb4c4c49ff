/* Operators that join the squares of rows whose columns lie on several ranks, for row-wise Adagrad.
 *
 *   exchange_squares_start   sends block sums of squares (row_squares) of this rank's columns to the ranks
 *                            that have other columns
 *   exchange_squares_wait    with the sums received, each row's sum of squares: (U), in the one order of
 *                            kernel/kernel.h
 *
 * One exchange serves all tables of this rank that belong to one table of the model: shards of several
 * widths. Ranks that share slices send each other one message, slice after slice in the order of the plan's
 * tables, with the blocks of each slice's distinct rows, ascending. All ranks that have columns of a slice
 * know its rows by the same ids, so the number is not sent: another number is another length, an error at the
 * receiver. Where there are no rows, there is no message. */
#ifndef PH_SHARD_SQUARE_EXCHANGE_H
#define PH_SHARD_SQUARE_EXCHANGE_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph__op ph__op_exchange_squares_start;
extern const struct ph__op ph__op_exchange_squares_wait;

/* A slice of one of the exchange's tables. A row has num_shards shards, ordered by columns; one of them is
 * here. */
struct ph__square_slice {
    uint32_t table;
    size_t end_slot;                /* end of its rows in the table */
    size_t first_shard, num_shards; /* among all shards of the exchange */
    size_t own_shard;               /* >= first_shard */
};

/* A shard of another rank. */
struct ph__square_share {
    uint32_t rank;
    uint32_t plan_table; /* index in the plan, which orders a rank's shards */
    uint32_t slice;
    uint32_t num_blocks;
    size_t shard;
};

struct ph__square_exchange {
    struct ph__sharding *sharding;
    uint32_t channel;
    const char *what;
    size_t num_tables, num_slices, num_shards, num_shares;
    const size_t *first_slices; /* (num_tables + 1) */
    const struct ph__square_slice *slices;
    const struct ph__square_share *shares; /* by rank and then by table of the plan */
};

/* Attributes of both operators. */
struct ph__square_attributes {
    const struct ph__square_exchange *exchange;
};

/* start's inputs, for each table: block sums, and the rows they belong to (ph__row_squares). */
enum { PH_SQUARES_BLOCKS, PH_SQUARES_SLOTS, PH_SQUARES_TABLE_INPUTS };
/* start's outputs. wait's inputs are these and start's inputs; its outputs are each table's sums. */
enum { PH_SQUARES_IN_FLIGHT, PH_SQUARES_TICKET, PH_SQUARES_SENT, PH_SQUARES_OUTPUTS };

#endif
