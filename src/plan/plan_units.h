/* Units of dense parameters: how settings and facts make them, what they cost, and their lines in a plan
 * file. Errors of files are PH_ERROR_CONFIG with file and line. */
#ifndef PH_PLAN_PLAN_UNITS_H
#define PH_PLAN_PLAN_UNITS_H

#include "plan/plan_traffic.h"

/* ---- making: plan_units.c ---- */

/* Returns true for a mode whose shards may be cut over groups of ranks. */
bool ph__dense_mode_groups(enum ph__dense_mode mode);

/* Gives a plan, which has a topology, the units that the settings make of the parameters (num_dense). Texts
 * and rules are copied. PH_ERROR_CONFIG with the reason alone: group_size does not divide the world size; a
 * rule fits no parameter, or more than PH_UNIT_MOST_PARAMETERS; an optimizer that is not element-wise.
 * PH_ERROR_MEMORY. */
ph_status ph__plan_units_make(struct ph__plan *plan, const struct ph__dense_settings *settings,
    const struct ph__dense_facts *dense, size_t num_dense);

/* Returns the unit's parameter of that name, with the unit; NULL: no unit has it. */
const struct ph__unit_parameter *ph__plan_units_find(
    const struct ph__plan_units *units, const char *name, const struct ph__plan_unit **unit_out);

/* Counts the numbers that a member has of a unit, and those of all members. */
size_t ph__unit_own_numbers(const struct ph__plan_unit *unit, size_t member);
size_t ph__unit_numbers(const struct ph__plan_unit *unit);

/* ---- the plan file: plan_units_text.c ----
 *
 *   dense:
 *     mode: hybrid
 *     group: 4                      # of hybrid and keep_after_forward; may be left out, like all below
 *     unit_bytes: 33554432
 *     prefetch: 1
 *     wire: bf16                    # fp32, fp16 or bf16
 *     reduce: once                  # or: every
 *     units:                        # the first that matches counts
 *       "bottom.*": {}
 *       "top.0.*": {wire: fp16} */

/* Reads the section `dense` of a plan file, whose other sections ph__plan_read has read, and makes the units.
 * mode: goes before the file's; NULL: the file's. */
ph_status ph__plan_units_read(const char *path, const enum ph__dense_mode *mode,
    const struct ph__dense_facts *dense, size_t num_dense, struct ph__plan *plan);
/* Prints a table of units for people; nothing where parameters are replicated. */
ph_status ph__plan_units_print(const struct ph__plan_units *units, struct ph__writer *writer);
/* Prints, for people, a rank's bytes of dense parameters in each mode. Errors of ph__plan_units_make. */
ph_status ph__dense_modes_print(const struct ph__plan *plan, const struct ph__dense_facts *dense,
    size_t num_dense, size_t num_micro_batches, struct ph__writer *writer);
/* Writes the section; nothing where parameters are replicated. */
ph_status ph__plan_units_write(const struct ph__plan_units *units, struct ph__writer *writer);

/* ---- cost: plan_units_cost.c ---- */

/* A rank's bytes for dense parameters, at most over all ranks and, of gathered parameters and gradients, over
 * the moments of a step. */
struct ph__dense_bytes {
    uint64_t parameters; /* held from step to step */
    uint64_t slots;
    uint64_t gradients; /* summed ones, until the update, and those on their way */
    uint64_t gathered;  /* whole parameters of units beside the shards, packed for products included */
};
uint64_t ph__dense_bytes_sum(const struct ph__dense_bytes *bytes);
/* Gives the bytes that the plan's dense parameters would need in another mode, or in its own, with the rest
 * of its settings. Errors of ph__plan_units_make. */
ph_status ph__dense_bytes_in_mode(const struct ph__plan *plan, enum ph__dense_mode mode,
    const struct ph__dense_facts *dense, size_t num_dense, size_t num_micro_batches,
    struct ph__dense_bytes *bytes_out);
/* Returns false where an optimizer is not element-wise: parameters are replicated then. */
bool ph__dense_may_be_cut(const struct ph__dense_facts *dense, size_t num_dense);

/* Visits the messages of all units in a step. Sums of shards over groups (hybrid) are cut as if a member's
 * numbers filled one bucket after the other; their parts may differ by a number where buckets end earlier. */
void ph__units_traffic(
    const struct ph__plan *plan, const struct ph__plan_dense *dense, ph__traffic_visit visit, void *context);

/* Chooses the mode of a plan whose tables are placed: the first of replicated, zero1, hybrid and full with
 * which every rank keeps to rank_bytes; full where none does, or replicated where an optimizer is not
 * element-wise. (keep_after_forward takes the memory of zero1, and gathers more.) tables: as of
 * ph__plan_loads. PH_ERROR_MEMORY. */
ph_status ph__dense_mode_choose(const struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__dense_facts *dense, size_t num_dense, size_t num_micro_batches, uint64_t rank_bytes,
    enum ph__dense_mode *mode_out);

#endif
