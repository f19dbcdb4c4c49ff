/* Collectives, and how the ranks divide the work of one: of the whole world as the choice says; other groups
 * exchange.
 *
 *   exchange      each member sends each other one its part: two rounds of n - 1 messages
 *   hierarchical  the members are in groups of one size, each with a place in its group. Sums are made within
 *                 each group, then across groups among the ranks of one place; all members get them the same
 *                 way back. Between groups go 1 / (size of a group) of exchange's bytes.
 *   ring          each member sends the next one alone: 2 (n - 1) rounds, of a part each
 *
 * A member sends 2 (n - 1) / n of the data by each of them. Their sums differ in the order of additions, and
 * each has the same bits in every run and on all members. w: on the wire and back. Ranks are those of the
 * members in their order, x their numbers; member m owns the number:
 *
 *   exchange      s = w(x[0]) + w(x[1]) + ... + w(x[n - 1])
 *   hierarchical  s[g] = w(x[g, 0]) + w(x[g, 1]) + ... of each group g; s = w(s[0]) + w(s[1]) + ...
 *   ring          s = x[m + 1]; s = w(s) + x[m + 2]; ...; s = w(s) + x[m], numbers modulo n
 *
 * All reduce then gives all members w(s), reduce scatter gives the owner s. The parts of all reduce are runs
 * of numbers (int8: of rows), which hierarchical gives to the ranks of the first place in each group, then to
 * those of the second, and so on. Where all members are in one group, or each has its own, hierarchical is
 * exchange.
 *
 * A gathering changes no bits. Groups go by their first ranks, and the ranks of a group ascend. */
#ifndef PH_COMM_COMM_COLLECTIVES_H
#define PH_COMM_COMM_COLLECTIVES_H

#include "comm/collective/comm.h"

/* Operations of at least from_bytes on the wire, of all members together, up to the next choice. */
struct ph__collective_choice {
    uint64_t from_bytes;
    enum ph_collective kind; /* not auto */
};
enum { PH_COLLECTIVE_MOST_CHOICES = 24 };

/* Sets the choices of all ranks alike, with nothing in flight, before any memory is planned for operations
 * (default: exchange). choices: ascending, the first from 0 bytes. groups (world): the number of each rank's
 * group, below the world size; groups are equal in size; NULL: as before, or where no choice is hierarchical.
 * PH_ERROR_MEMORY. */
ph_status ph__comm_set_collectives(struct ph_comm *comm, const struct ph__collective_choice *choices,
    size_t num_choices, const uint32_t *groups);
/* Lets choices be set again between steps. Staging sizes that are asked for from now on suffice for each
 * kind. */
void ph__comm_vary_collectives(struct ph_comm *comm);
/* Returns the way in which the members of a group carry out an operation of as many bytes, for now. */
enum ph_collective ph__comm_collective(
    const struct ph_comm *comm, const struct ph__group *group, uint64_t bytes);
/* Returns true where they exchange now and will do so. */
bool ph__comm_always_exchanges(const struct ph_comm *comm, const struct ph__group *group, uint64_t bytes);

/* Rows that the members own: member m those from bounds[m] to bounds[m + 1]. bounds: borrowed while in
 * flight. */
struct ph__array {
    void *data;
    size_t row_bytes;
    const size_t *bounds; /* (members + 1) from 0 */
};

/* Fills the arrays with the other members' rows; the own rows are there. The list is read during the call
 * alone. */
ph_status ph__comm_gather_arrays_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, size_t num_arrays, const struct ph__array *arrays, uint64_t *ticket_out);
/* Sets sum_out to the sums of the own rows of arrays of numbers, array by array. wire: not int8. staging:
 * ph__comm_array_staging_bytes of memory, aligned to PH_ALIGNMENT and in use until the sum is there. */
ph_status ph__comm_reduce_arrays_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, size_t num_arrays,
    const struct ph__array *arrays, void *staging, ph_real *sum_out, uint64_t *ticket_out);
size_t ph__comm_array_staging_bytes(const struct ph_comm *comm, const struct ph__group *group,
    enum ph_wire_format wire, size_t num_arrays, const struct ph__array *arrays);

#endif
