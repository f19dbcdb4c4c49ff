/* Messages between ranks in a step, for the parts of a model that they share: bytes from rank to rank, exact
 * where the batch's ids are counted. A test counts them on the wire (tests/mpi/mpi_steps.sh).
 *
 * B_r: the samples of rank r; c: the columns of a shard; v(c): the bytes of c numbers on their wire. A rank's
 * messages to itself cost nothing. Lookups read a table; each read has one feature of the batch, pooled or
 * item by item. A *stream* is a rank's requests for one feature: it covers the rows of a shard. Shards of
 * several tables, or reads of one, that have the same rows on the same rank share a stream.
 *
 *   lengths     r -> each rank                    12, for r's batch; 4 B_r for each of that rank's streams
 *   ids         r -> each rank                    4 for each of r's ids that names a row of a stream;
 *                                                 weights likewise
 *   pooled      for each pooled read of each shard:
 *               owner -> r                        B_r v(c): for cut rows the partial sum, which r adds in
 *                                                 the order of ranks
 *               where rows are cut over the ranks of one of many hosts, h (table_row_wise, grid):
 *               owner -> (h, j), j each place     v(c) sum over hosts g of B_(g,j): partial sums, added
 *                                                 there in rank order
 *               (h, j) -> (g, j), g other hosts   v(c) B_(g,j), once for all owners of the same columns
 *               for each read item by item of each shard, of any kind, since nothing is summed:
 *               owner -> r                        v(c) for each of r's ids that names a row of the shard
 *               where a tower on host h reads the table, of any cut:
 *               owner -> (h, j), j each place     v(c) sum over hosts g of B_(g,j)
 *               and for each such tower of n vectors of D numbers:
 *               (h, j) -> (g, j), g other hosts   n v(D) B_(g,j)
 *   gradients   the same messages the other way, in their own wire
 *   squares     where columns are cut and the optimizer has one number a row (its sum of squares):
 *               owner -> owners of the same rows  4 ceil(c / PH_SHARD_COLUMNS) for each row that the batch
 *                                                 names
 *   replicas    data_parallel: r -> each rank     8 for each parameter that has such tables; for each such
 *                                                 table 4 + 4 D for each row that r's samples name
 *   dense       gradients of dense parameters, bucket by bucket of n numbers, on an int8 wire filled up to
 *               whole rows of PH_DENSE_COLUMNS:
 *               r -> q                            q's part of them, and then the sums of r's own part,
 *                                                 or what another collective sends (struct ph__plan_sums);
 *               those of towers on host h, in buckets of their own, among the ranks of h alone
 *               of sharded ones (plan.h), unit by unit, in each group:
 *               r -> q                            the gradients of q's shards
 *               hybrid: the shards' gradients, bucket by bucket, among the ranks that have the same shards
 *   parameters  of units, in each group:
 *               r -> q                            r's shards, for forward; again for backward, as far as it
 *                                                 reads them, where parameters are freed, except those of the
 *                                                 unit that forward uses last
 *
 * A part is a run of the bucket's numbers (on an int8 wire, of its rows) for each rank; the first parts are
 * one longer. Not counted are the few numbers of losses, norms and statistics, and what ranks agree on
 * between steps. A step of several micro-batches sends squares, replicas and dense once (units with reduce:
 * every, and parameters unless zero1, in each), the rest in each micro-batch. */
#ifndef PH_PLAN_PLAN_TRAFFIC_H
#define PH_PLAN_PLAN_TRAFFIC_H

#include "plan/plan.h"

#define PH_TRAFFIC_LIST(X)               \
    X(PH_TRAFFIC_LENGTHS, "lengths")     \
    X(PH_TRAFFIC_IDS, "ids")             \
    X(PH_TRAFFIC_WEIGHTS, "weights")     \
    X(PH_TRAFFIC_POOLED, "pooled")       \
    X(PH_TRAFFIC_GRADIENTS, "gradients") \
    X(PH_TRAFFIC_SQUARES, "squares")     \
    X(PH_TRAFFIC_REPLICAS, "replicas")   \
    X(PH_TRAFFIC_DENSE, "dense")         \
    X(PH_TRAFFIC_PARAMETERS, "parameters")

#define PH_TRAFFIC_ENUM(name, text) name,
enum ph__traffic { PH_TRAFFIC_LIST(PH_TRAFFIC_ENUM) PH_TRAFFIC_COUNT };
#undef PH_TRAFFIC_ENUM

const char *ph__traffic_name(enum ph__traffic what);

/* Numbers in a row in which dense gradients travel. */
#define PH_DENSE_COLUMNS 256

/* Returns true when a host adds up the pooled vectors of a shard before they cross to other hosts. */
bool ph__shard_is_summed_on_host(
    const struct ph__plan *plan, const struct ph__plan_table *table, const struct ph__table_shard *shard);

/* Counts of a batch's ids for a table; a planner fills in those that it expects (plan_cost.h). */
struct ph__table_counts {
    const double *ids; /* (num_features, world_size, num_shards) ids of a read and a rank's samples that name
                          a row of a shard */
    const double *distinct_rows; /* (num_shards) rows of a shard that the batch names */
    const double *rank_rows;     /* (world_size) rows that a rank's samples name; for data_parallel alone */
};

/* Counts the samples of the batch that a rank has, from batch_size rank / world_size on. */
size_t ph__plan_samples(const struct ph__topology *topology, size_t batch_size, size_t rank);

/* Calls visit for every message of one table between two ranks; bytes may be 0. Counts as if there were no
 * other table: the table has its streams to itself, and messages sent once a batch or once a parameter are
 * left out. */
typedef void (*ph__traffic_visit)(void *context, enum ph__traffic what, size_t from, size_t to, double bytes);
void ph__table_traffic(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, ph__traffic_visit visit,
    void *context);

/* Visit the messages of all tables (num_tables) together: ph__shared_traffic those of one table, by its own
 * counts; ph__batch_traffic those sent once a batch or a parameter. */
void ph__shared_traffic(const struct ph__plan *plan, size_t table, const struct ph__table_facts *tables,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, ph__traffic_visit visit,
    void *context);
void ph__batch_traffic(const struct ph__plan *plan, const struct ph__table_facts *tables,
    ph__traffic_visit visit, void *context);
/* Ranks first, first + stride ... of a collective. */
struct ph__plan_group {
    size_t first, stride, size;
};
/* Visits the messages that sum so many dense gradients over a group, bucket by bucket. */
void ph__sum_traffic(const struct ph__plan_group *group, const struct ph__plan_dense *dense,
    size_t num_numbers, ph__traffic_visit visit, void *context);
/* Visits the messages of towers that have a host, which are sent once a batch for all of a tower's tables. */
void ph__tower_traffic(
    const struct ph__plan *plan, const struct ph__plan_step *step, ph__traffic_visit visit, void *context);
/* Visits the messages of dense gradients that no unit has (plan_units.h): the towers' and, unless num_numbers
 * is 0, all others. */
void ph__dense_traffic(
    const struct ph__plan *plan, const struct ph__plan_dense *dense, ph__traffic_visit visit, void *context);

/* Fills bytes_out (PH_TRAFFIC_COUNT, world_size, world_size), [what][from][to], with the messages of all
 * tables; counts (num_tables). */
void ph__plan_traffic(const struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, double *bytes_out);

#endif
