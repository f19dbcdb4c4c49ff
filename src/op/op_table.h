/* What the operators of embedding tables share.
 *
 * A lookup is slots -> embedding_bag; its gradient is merge and entries -> embedding_gradient, a sparse_rows value; and
 * that value flows into update_table, or becomes one sweep with it: embedding_update. */
#ifndef PH_OP_OP_TABLE_H
#define PH_OP_OP_TABLE_H

#include "op/operator.h"

/* ---- from ids to merged slots ----------------------------------------------------------------------------- */

/* Row bases of the table's slices, num_slices + 1, in the program's memory; NULL after failure. */
const uint64_t *ph__table_bases(struct ph_builder *builder, const struct ph_declaration *table);

/* Each adds its node unless an equal one is there: two tables with equal rows a slice share slots and merge. */
ph_value ph__slots(struct ph_builder *builder, ph_value ids, const struct ph_declaration *table);
/* Distinct slots (U) u32, ascending, and the positions of each: jagged u32, U bags of N items. */
void ph__merge(struct ph_builder *builder, ph_value slots, const struct ph_declaration *table,
    ph_value *unique_out, ph_value *order_out);
/* Of each merged position: its row of the lookup's gradient, and its coefficient (0: all are one). weights may be 0. */
void ph__entries(struct ph_builder *builder, ph_value slots, ph_value order, ph_value weights,
    enum ph_pooling pooling, ph_value *rows_out, ph_value *coefficients_out);

/* Workers that handle every feature in the same part of a scratch of N positions find it in a cache. So many positions each
 * part has; 0 where the largest feature needs more: then each feature has the part where its positions are. */
size_t ph__worker_positions(const struct ph_backend *backend, const struct ph_operand *slots);

/* ---- the gradient of a lookup ----------------------------------------------------------------------------- */

/* Inputs of embedding_gradient, and of embedding_update behind those that every update has. */
enum {
    PH_LOOKUP_UNIQUE,
    PH_LOOKUP_ORDER,
    PH_LOOKUP_ROWS,
    PH_LOOKUP_COEFFICIENTS, /* 0: all are one */
    PH_LOOKUP_GRADIENT,     /* (B,F,D), of the lookup's output */
    PH_LOOKUP_INPUTS
};

/* The kernel's view of these inputs. */
struct ph_embedding_gradient_source ph__gradient_source(const struct ph_operand *lookup);

/* Runs task over the distinct slots in blocks that hold about equally many positions: task(argument, first, last,
 * worker) covers [first, last) of unique. The blocks depend on the batch alone. */
void ph__for_merged(
    const struct ph_backend *backend, const struct ph_operand *order, ph_range_task task, void *argument);

/* ---- rows whose format the store chose --------------------------------------------------------------------- */

/* The kernels' view of a parameter's rows, as this call rounds them. */
struct ph_table_rows ph__table_rows(const struct ph_call *call, const struct ph_parameter *parameter);
/* The numbers of the rows from `row` on where they are held as such; NULL elsewhere. */
ph_real *ph__table_numbers(const struct ph_table_rows *table, size_t row);
/* Room for the numbers of one block of rows (ph__block_rows) a thread, each on cache lines of its own: bytes of all, and of
 * one. It is there whatever the format, which nobody knows while memory is planned. */
size_t ph__table_scratch_bytes(const struct ph_call *call, size_t columns);
size_t ph__table_block_bytes(size_t columns);

/* ---- rows and their gradients ----------------------------------------------------------------------------- */

/* Calls visit for all rows [first, last) of a table in order: rows with a gradient one by one, runs of rows without at
 * once (gradient NULL). gradient: a sparse_rows operand; without data all rows are without. */
typedef void (*ph_row_visit)(void *argument, size_t row, size_t num_rows, const ph_real *gradient);
void ph__visit_rows(
    const struct ph_operand *gradient, size_t first, size_t last, ph_row_visit visit, void *argument);

#endif
