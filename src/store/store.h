/* Inside of the store: parameters with their slots, for programs and update operators. */
#ifndef PH_STORE_STORE_H
#define PH_STORE_STORE_H

#include "base/thread/parallel.h"
#include "store/declaration.h"

/* Scope of the parameters that help training alone: they are resumed with it, and models have none of them.
 */
#define PH_TRAINING_SCOPE "distill"

/* Makes tables that are added from now on hold their rows in this format, as far as that makes them smaller,
 * and begin as zeros: for values that are loaded. ph_executor_create rejects operators that do not read row
 * formats, and operators that learn. */
void ph__store_set_row_format(struct ph_store *store, enum ph_row_format format);
/* Does the same for a format that is learnt: tables begin with their initial values, each rounded to the
 * nearest. */
void ph__store_learn_rows(struct ph_store *store, enum ph_row_format format);
/* Makes parameters that are added from now on begin as zeros: a checkpoint fills them all. */
void ph__store_will_be_loaded(struct ph_store *store);
/* Makes adding end with the signal's status once *stop_signal is not 0; borrowed. */
void ph__store_stop_by(struct ph_store *store, const volatile int *stop_signal);
/* Parameters in order of creation. Borrowed until the store is destroyed. */
size_t ph__store_num_parameters(const struct ph_store *store);
const struct ph_parameter *ph__store_parameter(const struct ph_store *store, size_t index);
/* Finds the parameter or adds it, initialised. PH_ERROR_CONFIG when the name has another shape, kind, slices
 * or shards, or when a slice's name is taken, unless both are disjoint shards of one whole. team may be NULL
 * (serial initialisation); the values do not depend on it. */
ph_status ph__store_add(struct ph_store *store, const struct ph__declaration *declaration,
    struct ph__team *team, struct ph_parameter **parameter_out);
/* Lets a table have the memory of another store's table of the same name, when slices, shape and row format
 * are the same and neither is a part of a table; both must only be read from then on. Either store may be
 * destroyed first. Returns false, with nothing changed, for other tables and without memory. Nothing may
 * point into the table yet. */
bool ph__store_share(struct ph_store *store, const struct ph_parameter *table);
/* Tells whether another store has the parameter's memory, too. */
bool ph__parameter_is_shared(const struct ph_parameter *parameter);
/* Notes the checksum of a parameter's values in the checkpoint that has just filled them. */
void ph__store_set_checksum(struct ph_store *store, size_t index, uint64_t checksum);
/* Fills store and state as ph_checkpoint_load does. Tables of `donor` (NULL: none), a store that this
 * function has filled, are shared where the file's checksums are theirs, and not read. */
ph_status ph__checkpoint_load_beside(
    const char *path, struct ph_store *store, struct ph_state *state, const struct ph_store *donor);
/* Finds the slot or adds it, zeroed. */
ph_status ph__store_add_slot(struct ph_store *store, struct ph_parameter *parameter, const char *name,
    bool is_per_row, struct ph__slot **slot_out);
/* Returns the bytes that adding the declaration would take, in the format of its table (0 when the parameter
 * exists). */
uint64_t ph__store_missing_bytes(const struct ph_store *store, const struct ph__declaration *declaration);

/* Numbers of one name that entries carry from step to step. */
struct ph__state_array {
    ph_real *data;
    uint64_t version; /* grows with every change, like a parameter's */
};

/* Finds or adds a state of n reals, each `initial` when new. The same name with another n is PH_ERROR_CONFIG.
 * Borrowed until destroy. */
ph_status ph__state_add(
    struct ph_state *state, const char *name, size_t n, ph_real initial, struct ph__state_array **array_out);

#endif
