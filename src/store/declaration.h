/* What programs say they need, against what a store has. */
#ifndef PH_STORE_DECLARATION_H
#define PH_STORE_DECLARATION_H

#include "base/memory/arena.h"
#include "store/store.h"

/* PH_ERROR_CONFIG unless the parameter, which has the declaration's name, is what it declares. */
ph_status ph__declaration_check_same(
    const struct ph_declaration *declaration, const struct ph_parameter *parameter);
/* PH_ERROR_CONFIG where a name is taken or there are too many rows; PH_ERROR_BUG where slices or parts do not fit. */
ph_status ph__declaration_check_new(const struct ph_declaration *declaration, const struct ph_store *store);

/* Gives the rows that the slices of a table begin at, ascending, and then the number of all rows: (num_slices + 1) numbers in
 * the arena. NULL: out of memory. */
uint64_t *ph__declaration_first_rows(const struct ph_declaration *table, struct ph_arena *arena);
/* Finds the slice that has the row, which lies below the last of first_rows. */
size_t ph__declaration_slice_at(const struct ph_declaration *table, const uint64_t *first_rows, uint64_t row);

/* A parameter without memory for its values, owned by the arena. NULL: out of memory. */
struct ph_parameter *ph__declaration_copy(struct ph_arena *arena, const struct ph_declaration *declaration);

#endif
