/* Declarations shared by the update operators: their first inputs, slots, and the kernel's view of a step.
 *
 * Attributes of every update are a struct ph_optimizer; is_whole_table: every row is visited. */
#ifndef PH_OP_OP_UPDATE_H
#define PH_OP_OP_UPDATE_H

#include "op/table/op_table.h"

/* embedding_update has the lookup's inputs (op_table.h) in place of the gradient. */
enum {
    PH_UPDATE_PARAMETER,
    PH_UPDATE_LEARNING_RATE,
    PH_UPDATE_STEP,
    PH_UPDATE_CLIP,
    PH_UPDATE_SQUARE_SUMS, /* (U), row-wise Adagrad on a table that holds some columns alone: the squares of
                              all columns of each row of the gradient; 0: the table holds all columns */
    PH_UPDATE_GRADIENT,
    PH_EMBEDDING_UPDATE_INPUTS = PH_UPDATE_GRADIENT + PH_LOOKUP_INPUTS
};

ph_status ph__update_prepare(
    const struct ph__node *node, struct ph_store *store, struct ph_parameter *const *parameters);
uint64_t ph__update_slot_bytes(const struct ph__node *node, const struct ph__declaration *parameter);

/* The weights of a parameter as a matrix, its slots, and the step's numbers. */
struct ph__update_target {
    struct ph__optimizer_step step;
    size_t rows, columns;
    size_t whole_columns;        /* of the logical tables whose shards it holds */
    struct ph__table_rows table; /* the weights, columns a row */
    ph_real *m, *s;              /* NULL where the optimizer has none */
};
struct ph__update_target ph__update_target(const struct ph__call *call);

/* FLOPs and bytes of a step on this many weights, gradient read included. */
void ph__update_cost(const struct ph__call *call, double weights, struct ph__cost *cost_out);

/* ---- gradients that are summed and used at once ---- */

/* Fills inputs_out with embedding_update's inputs, made of update_table's, whose gradient the
 * embedding_gradient `producer` makes. */
void ph__embedding_update_inputs(const struct ph__node *update, const struct ph__node *producer,
    ph_value inputs_out[PH_EMBEDDING_UPDATE_INPUTS]);

/* ---- rows whose other columns are elsewhere ---- */

/* Adds the row sums that an update_table by row-wise Adagrad needs, as far as its table holds the columns:
 * block sums of squares (U, ph__square_blocks(D)) of its gradient, see kernel/kernel.h. Where the update is
 * the only reader of a lookup's gradient, that gradient is not made for it. slots_out: the rows, sparse_rows
 * or (U) u32, ascending. */
ph_value ph__row_squares(
    struct ph_builder *builder, ph_value update, bool is_only_reader, ph_value *slots_out);

/* ---- clipping ---- */

/* The two operators of clipping: squared_norm for each gradient, chained, then clip_factor. */

enum { PH_NORM_PARAMETER, PH_NORM_GRADIENT, PH_NORM_SUM, PH_NORM_INPUTS };

struct ph__norm_attributes {
    double l2;
    bool is_table;
    bool is_every_row; /* set for a table whose l2 acts on rows without a gradient too */
};

#endif
