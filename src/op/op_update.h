/* What the update operators share: their first inputs, slots, and the kernel's view of a step.
 *
 * Attributes of every update are a struct ph_optimizer whose is_whole_table says whether every row is visited. */
#ifndef PH_OP_OP_UPDATE_H
#define PH_OP_OP_UPDATE_H

#include "op/op_table.h"

/* embedding_update has the lookup's inputs (op_table.h) in place of the gradient. */
enum { PH_UPDATE_PARAMETER, PH_UPDATE_LEARNING_RATE, PH_UPDATE_STEP, PH_UPDATE_CLIP, PH_UPDATE_GRADIENT };

/* Whether rows without a gradient change too: whole-table mode, unless the optimizer leaves such rows alone. */
bool ph__optimizer_visits_every_row(const struct ph_optimizer *optimizer);

ph_status ph__update_prepare(
    const struct ph_node *node, struct ph_store *store, struct ph_parameter *const *parameters);
uint64_t ph__update_slot_bytes(const struct ph_node *node, const struct ph_declaration *parameter);

/* The weights of a parameter as a matrix, its slots, and the step's numbers. */
struct ph_update_target {
    struct ph_optimizer_step step;
    size_t rows, columns;
    struct ph_table_rows table; /* the weights, columns a row */
    ph_real *m, *s;             /* NULL where the optimizer has none */
};
struct ph_update_target ph__update_target(const struct ph_call *call);

/* One step on `rows` rows from `row` on; gradient NULL: zeros. numbers: room for the rows' own where they are not held as
 * such. */
void ph__update_rows(const struct ph_kernels *kernels, const struct ph_update_target *target, size_t row,
    size_t rows, const ph_real *gradient, ph_real *numbers);

/* FLOPs and bytes of a step on this many weights, gradient read included. */
void ph__update_cost(const struct ph_call *call, double weights, struct ph_cost *cost_out);

#endif
