/* Aggregation over neighbours as its operators share it: the call's view of the neighbours, and lists of the
 * chosen ones, block by block of nodes. */
#ifndef PH_OP_SEQUENCE_AGGREGATION_H
#define PH_OP_SEQUENCE_AGGREGATION_H

#include "kernel/neighbour_list.h"
#include "op/operator.h"

enum { PH_BLOCK_NODES = 512 }; /* nodes of a block at most */

/* The neighbours of a call, and its scratch, from which blocks get their lists. */
struct ph__aggregation {
    const struct ph_backend *backend;
    struct ph__neighbours neighbours;
    size_t block;            /* nodes; depends on the batch alone */
    size_t worker_positions; /* see ph__worker_positions */
    ph_real *weights;
    uint32_t *slots;
};

/* One block's list: memory for what is counted by nodes. */
struct ph__block_list {
    uint32_t offsets[PH_BLOCK_NODES + 1];
    ph_real scales[PH_BLOCK_NODES];
    struct ph__neighbour_list list;
};

size_t ph__aggregation_scratch_bytes(const struct ph__operand *neighbours);
/* Describes an aggregation over these operands; weights may be absent. Fills the roots of the degrees. */
struct ph__aggregation ph__aggregation(const struct ph__call *call, const struct ph__operand *neighbours,
    const struct ph__operand *weights, const struct ph_aggregate_options *options);
/* Lists a block; returns false when an id is not a node's. */
bool ph__aggregation_list(const struct ph__aggregation *aggregation, size_t first, size_t last, size_t worker,
    struct ph__block_list *block);
/* Fails with PH_ERROR_DATA, naming the first neighbour that is not a node. */
ph_status ph__report_bad_neighbour(const struct ph__call *call, const struct ph__operand *neighbours);
/* Returns the nodes of a block that reads about items_per_node each. */
size_t ph__aggregation_block(size_t num_items, size_t num_nodes);

/* Adds, or finds, the chosen neighbours the other way round: for each node those that read its row, in
 * ascending order, jagged u32 (B bags), and their coefficients, an array or 0 where all are one. */
void ph__transpose_neighbours(struct ph_builder *builder, ph_value neighbours, ph_value weights,
    const struct ph_aggregate_options *options, ph_value outputs_out[2]);

#endif
