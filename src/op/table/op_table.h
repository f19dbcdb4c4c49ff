/* Declarations shared by the operators of embedding tables.
 *
 * A lookup is slots -> embedding_bag or embedding_rows. Its gradient is merge and entries ->
 * embedding_gradient, a sparse_rows value. That value flows into update_table, or becomes one sweep with it:
 * embedding_update. */
#ifndef PH_OP_OP_TABLE_H
#define PH_OP_OP_TABLE_H

#include "op/attributes.h"
#include "op/operator.h"

/* ---- from ids to merged slots ---- */

/* Returns the declaration of `table`, for looking up jagged i64 `ids`; NULL after failure, which names the
 * operator. */
const struct ph__declaration *ph__lookup_table(
    struct ph_builder *builder, const char *operator_name, ph_value ids, ph_value table);

/* Adds a slots node, or finds an equal one: two tables with equal rows per slice share slots and merge.
 * Feature f of the ids is the table's feature features[f]; NULL: feature f. */
ph_value ph__slots(
    struct ph_builder *builder, ph_value ids, const struct ph__declaration *table, const size_t *features);
/* Adds, or finds, a merge node: distinct slots (U) u32, ascending, and the positions of each: jagged u32, U
 * bags of N items. */
void ph__merge(struct ph_builder *builder, ph_value slots, ph_value *unique_out, ph_value *order_out);
/* Adds, or finds, the merge of slots that lie, feature by feature, in these ranges (F). */
void ph__merge_ranges(struct ph_builder *builder, ph_value slots, const struct ph__slot_range *ranges,
    ph_value *unique_out, ph_value *order_out);

/* Output of a lookup: a bag's rows as one row, or each row by itself. */
enum ph__lookup_shape { PH_LOOKUP_SUMS, PH_LOOKUP_MEANS, PH_LOOKUP_ITEMS };
/* Lists for each merged position its row of the lookup's gradient and its coefficient (0: all are one).
 * weights may be 0. */
void ph__entries(struct ph_builder *builder, ph_value slots, ph_value order, ph_value weights,
    enum ph__lookup_shape shape, ph_value *rows_out, ph_value *coefficients_out);
/* Inputs and shape of the lookup that a node added by ph__entries lists. */
struct ph__lookup_entries {
    ph_value slots, weights;
    enum ph__lookup_shape shape;
};
struct ph__lookup_entries ph__lookup_entries(const struct ph__node *node);

/* Returns the positions of a worker's part of a scratch of N positions, which the worker reuses for all of
 * its tasks so that it stays in a cache. Returns 0 where the largest task needs more: each task then uses the
 * part at its own positions. */
size_t ph__worker_positions(const struct ph_backend *backend, size_t num_positions, size_t largest);

/* ---- lookups ---- */

/* The features that jagged ids belong to. */
struct ph__feature_list {
    size_t num_features;    /* of the batch */
    const size_t *selected; /* chosen by ph_select_features, ascending, the program's; NULL: all */
};
struct ph__feature_list ph__feature_list(const struct ph_builder *builder, ph_value ids);
/* Returns the weights of these ids, which may be selected, out of the batch's weights; 0 stays 0. */
ph_value ph__selected_weights(struct ph_builder *builder, ph_value ids, ph_value weights);
/* Returns the ids or weights that `value` was selected from; `value` itself, if unselected or 0. */
ph_value ph__unselected(const struct ph_builder *builder, ph_value value);

/* Inputs and attributes of embedding_bag and embedding_rows. The table's rows may be in any row format
 * (tensor/row_format.h). Of bf16_split a training program reads the high words alone, an inference program
 * whole numbers: measurements during training are then of what the saved model scores. */
enum { PH_EMBEDDING_SLOTS, PH_EMBEDDING_TABLE, PH_EMBEDDING_WEIGHTS, PH_EMBEDDING_INPUTS };
ph_status ph__embedding_check(const struct ph__infer *infer);
struct ph__embedding_bag_args ph__embedding_args(const struct ph__call *call); /* without bags and output */
void ph__embedding_cost(const struct ph__call *call, struct ph__cost *cost_out);

/* ---- the gradient of a lookup ---- */

/* Inputs of embedding_gradient, and of embedding_update after those that every update has. */
enum {
    PH_LOOKUP_UNIQUE,
    PH_LOOKUP_ORDER,
    PH_LOOKUP_ROWS,
    PH_LOOKUP_COEFFICIENTS, /* 0: all are one */
    PH_LOOKUP_GRADIENT,     /* (B,F,D) or, of items, (N,D): by the lookup's output */
    PH_LOOKUP_INPUTS
};

/* Adds the gradient of either lookup by the table, sparse_rows. */
void ph__embedding_gradient(struct ph__gradient *gradient, enum ph__lookup_shape shape);

/* Returns the kernel's view of these inputs. */
struct ph__embedding_gradient_source ph__gradient_source(const struct ph__operand *lookup);

/* Runs task over the distinct slots in blocks of about equally many positions: task(argument, first, last,
 * worker) covers [first, last) of unique. The blocks depend on the batch alone. */
void ph__for_merged(
    const struct ph_backend *backend, const struct ph__operand *order, ph__range_task task, void *argument);

/* ---- rows whose format the store chose ---- */

/* Returns the kernels' view of a parameter's rows, with the seed and step for this call's rounding. */
struct ph__table_rows ph__table_rows(const struct ph__call *call, const struct ph_parameter *parameter);
/* Returns the numbers of the rows from `row` on where they are stored as reals; NULL elsewhere. */
ph_real *ph__table_numbers(const struct ph__table_rows *table, size_t row);
/* Return the bytes of scratch for the numbers of one block of rows (ph__block_rows) per thread, each on cache
 * lines of its own: of all threads, and of one. Reserved for every format, since the format is unknown while
 * memory is planned. */
size_t ph__table_scratch_bytes(const struct ph__call *call, size_t columns);
size_t ph__table_block_bytes(size_t columns);

/* ---- rows and their gradients ---- */

/* Returns the first of count ascending items that is not less than key; count: there is none. */
size_t ph__lower_bound(const uint32_t *items, size_t count, size_t key);

/* Calls visit for all rows [first, last) of a table in order: rows with a gradient one by one, runs of rows
 * without one at once (gradient NULL). gradient: a sparse_rows operand; without data no row has one. */
typedef void (*ph__row_visit)(void *argument, size_t row, size_t num_rows, const ph_real *gradient);
void ph__visit_rows(
    const struct ph__operand *gradient, size_t first, size_t last, ph__row_visit visit, void *argument);

/* ---- histories ---- */

/* Helpers of the operators over histories: B bags, one per sample, with I items. */

bool ph__type_is_bags(const struct ph_type *type); /* jagged, one bag per sample */
/* Returns the bags whose items are the rows of values of this type: the first such value of the graph; 0:
 * there is none. */
ph_value ph__bags_of(const struct ph_builder *builder, const struct ph_type *type);

/* Returns true for weights of these bags' items, (I,1), or none. */
bool ph__are_item_weights(const struct ph_type *weights, const struct ph_type *bags);

/* Runs task over the samples in blocks of about PH_BLOCK_ELEMENTS, where an item has row_elements:
 * task(argument, first, last, worker) covers the bags [first, last). The blocks depend on the batch alone. */
void ph__for_bags(const struct ph_backend *backend, const struct ph__operand *bags, size_t row_elements,
    ph__range_task task, void *argument);

/* x (B,K), factors (I,1) or 0: (I,K), row i = factor_i * the row of item i's sample. */
ph_value ph__repeat_rows(struct ph_builder *builder, ph_value x, ph_value bags, ph_value factors);
/* items (I,K), x (B,K): (I,1), the dot product of each item's row with its sample's. */
ph_value ph__item_dots(struct ph_builder *builder, ph_value items, ph_value x, ph_value bags);

#endif
