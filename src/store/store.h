/* Inside of the store: parameters with their slots, for programs and update operators. */
#ifndef PH_STORE_STORE_H
#define PH_STORE_STORE_H

#include "base/thread/parallel.h"
#include "store/declaration.h"

/* Tables that are added from now on hold their rows in this format, as far as that makes them smaller, and
 * begin as zeros: they are for values that are loaded. Operators that do not read row formats, and those that
 * learn, are refused (ph_executor_create). */
void ph__store_set_row_format(struct ph_store *store, enum ph_row_format format);
/* The same for a format that is learnt: they begin with the initial values, each rounded to the nearest. */
void ph__store_learn_rows(struct ph_store *store, enum ph_row_format format);
/* From now on adding ends with the signal's status once *stop_signal, which is borrowed, is not 0. */
void ph__store_stop_by(struct ph_store *store, const volatile int *stop_signal);
/* Parameters in order of creation. Borrowed until the store is destroyed. */
size_t ph__store_num_parameters(const struct ph_store *store);
const struct ph_parameter *ph__store_parameter(const struct ph_store *store, size_t index);
/* Finds the parameter or adds it, initialised. The same name with another shape, kind, slices or shards is
 * PH_ERROR_CONFIG, and so is a slice whose name is taken, unless both are shards of one whole that do not
 * overlap. team may be NULL (serial initialisation); the values do not depend on it. */
ph_status ph__store_add(struct ph_store *store, const struct ph__declaration *declaration,
    struct ph__team *team, struct ph_parameter **parameter_out);
/* Finds the slot or adds it, zeroed. */
ph_status ph__store_add_slot(struct ph_store *store, struct ph_parameter *parameter, const char *name,
    bool is_per_row, struct ph__slot **slot_out);
/* Bytes that adding the declaration would take, in the format that a table would be held in (0 when it is
 * there already). */
uint64_t ph__store_missing_bytes(const struct ph_store *store, const struct ph__declaration *declaration);

/* What entries carry from step to step under one name. */
struct ph__state_array {
    ph_real *data;
    uint64_t version; /* grows with every change, as a parameter's does */
};

/* n reals, each `initial` when new; the same name with another n is PH_ERROR_CONFIG. Borrowed until destroy.
 */
ph_status ph__state_add(
    struct ph_state *state, const char *name, size_t n, ph_real initial, struct ph__state_array **array_out);

#endif
