/* What ranks send each other in a step because of tables: bytes from rank to rank, exact where the batch's ids are counted.
 *
 * B_r the samples of rank r, F a table's features, c the columns of a shard, v(c) the bytes of c numbers on their wire; own
 * messages cost nothing.
 *
 *   lengths     r -> each owner of a shard        4 F B_r
 *   ids         r -> each owner of a shard        4 for each of r's ids that names a row of the shard; weights likewise
 *   pooled      table_wise, row_wise, column_wise, table_column_wise:
 *               owner -> r                        F B_r v(c): of rows, the partial sum, which r adds in the order of ranks
 *               table_row_wise and each column run of a grid, on host h:
 *               owner -> (h, j), j each place     F v(c) sum over hosts g of B_(g,j): partial sums, added there in rank order
 *               (h, j) -> (g, j), g other hosts   F v(c) B_(g,j)
 *   gradients   the same messages the other way, in their own wire
 *   squares     where columns are cut and the optimizer has one number a row (its sum of squares):
 *               owner -> owners of the same rows  4 ceil(c / PH_SHARD_COLUMNS) for each row that the batch names
 *   replicas    data_parallel: r -> each rank     4 + v(D) for each row that r's samples name
 *
 * Dense layers are none of this. Where there is one host, table_row_wise is row_wise among its ranks. */
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
    X(PH_TRAFFIC_REPLICAS, "replicas")

#define PH_TRAFFIC_ENUM(name, text) name,
enum ph_traffic { PH_TRAFFIC_LIST(PH_TRAFFIC_ENUM) PH_TRAFFIC_COUNT };
#undef PH_TRAFFIC_ENUM

const char *ph__traffic_name(enum ph_traffic what);

/* Whether the pooled vectors of a shard are added up inside its host before they cross to others. */
bool ph__shard_is_summed_on_host(
    const struct ph_plan *plan, const struct ph_plan_table *table, const struct ph_table_shard *shard);

/* What a batch's ids are, to a table; a planner puts what it expects (plan_cost.h). */
struct ph_table_counts {
    const double *ids; /* (world_size, num_shards) of a rank's samples, that name a row of a shard */
    const double *distinct_rows; /* (num_shards) rows of a shard that the batch names */
    const double *rank_rows;     /* (world_size) rows that a rank's samples name; of data_parallel alone */
};

/* Samples of the batch that a rank has: those from batch_size rank / world_size on. */
size_t ph__plan_samples(const struct ph_topology *topology, size_t batch_size, size_t rank);

/* Calls visit for every message of one table between two ranks; bytes may be 0. */
typedef void (*ph_traffic_visit)(void *context, enum ph_traffic what, size_t from, size_t to, double bytes);
void ph__table_traffic(const struct ph_plan *plan, size_t table, const struct ph_table_facts *facts,
    const struct ph_plan_step *step, const struct ph_table_counts *counts, ph_traffic_visit visit,
    void *context);

/* Of all tables: bytes_out (PH_TRAFFIC_COUNT, world_size, world_size), [what][from][to]. tables and counts (num_tables). */
void ph__plan_traffic(const struct ph_plan *plan, const struct ph_table_facts *tables,
    const struct ph_plan_step *step, const struct ph_table_counts *counts, double *bytes_out);

#endif
