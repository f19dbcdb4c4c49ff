/* Sharded dense parameters: each rank holds rows of them, as units of the plan say (plan/plan.h), and the
 * program gathers whole parameters where it needs them and reduces their gradients to shards.
 *
 * The pass works in three places of a program:
 *
 *   forward    gather start(u+1) behind wait(u), so that one unit is in flight while another computes
 *   backward   the same in the order of backward, for modes that free parameters in between; a unit's
 *              gradients are reduced as soon as the last one is made, and waited for before the next unit
 *              makes its first
 *   clip       sums of squares of all shards' blocks, added in the order of the whole parameters
 *
 * The memory plan frees a unit's whole parameters behind their last reader by itself. Weights are packed for
 * products as soon as they have come, so that two units' worth of memory is enough.
 *
 * Source: Zhao et al. 2023 (arXiv 2304.11277), sections 3.2, 3.3 and 4. */
#ifndef PH_SHARD_UNITS_UNITS_H
#define PH_SHARD_UNITS_UNITS_H

#include "comm/collective/comm_collectives.h"
#include "op/operator.h"
#include "shard/sharding.h"

/* A unit of one program. */
struct ph__unit {
    struct ph__sharding *sharding;
    const struct ph__plan_unit *plan;
    enum ph_wire_format wire, gradient_wire;
    size_t turn;           /* among the units, in the order of their first use in forward */
    bool is_last;          /* no unit is used later */
    struct ph_type *types; /* (num_parameters) of the whole parameters */
    ph_value *shards;      /* (num_parameters) parameters of the program; 0: it has none of that name */
    ph_value *wholes;      /* (num_parameters) as forward reads them; 0: it does not */
};

/* Attributes of all nodes of a unit: the parameters that they are about. */
struct ph__unit_attributes {
    const struct ph__unit *unit;
    uint32_t channel, count;
    uint32_t parameters[PH_UNIT_MOST_PARAMETERS];
};

static inline const struct ph__unit_attributes *ph__unit_of(const struct ph__call *call)
{
    return call->attributes;
}

/* Rows of one parameter that a member has, as numbers of the whole parameter. */
struct ph__unit_piece {
    size_t first, count;
};

static inline struct ph__unit_piece ph__unit_piece(
    const struct ph__unit *unit, size_t parameter, size_t member)
{
    const struct ph__unit_parameter *plan = &unit->plan->parameters[parameter];
    return (struct ph__unit_piece){plan->bounds[member] * plan->columns,
        (plan->bounds[member + 1] - plan->bounds[member]) * plan->columns};
}

/* Counts the numbers of a node's whole parameters before its parameter i; of all of them for i = count. */
static inline size_t ph__unit_numbers_before(const struct ph__unit_attributes *attributes, size_t i)
{
    size_t count = 0;
    for (size_t k = 0; k < i; k++)
        count += ph__type_elements_from(&attributes->unit->types[attributes->parameters[k]], 0);
    return count;
}

/* Returns a type with room for so many bytes that travel. */
static inline struct ph_type ph__unit_bytes_type(size_t bytes)
{
    return ph__dense_type(1, &(struct ph_dim){.extent = ph__divide_up(bytes, sizeof(ph_real))});
}

static inline const struct ph__group *ph__unit_group(const struct ph__unit *unit)
{
    return unit->sharding->unit_group;
}

/* Returns the rows of a node's parameter i, in a wire format, for the communicator. */
static inline struct ph__array ph__unit_array(
    const struct ph__unit_attributes *attributes, size_t i, enum ph_wire_format wire, void *data)
{
    const struct ph__unit_parameter *plan = &attributes->unit->plan->parameters[attributes->parameters[i]];
    return (struct ph__array){data, ph__wire_bytes(wire, 1, plan->columns), plan->bounds};
}

/* ---- unit_gather.c ----
 *
 * start: shards (count) -> ticket, stamp, and then whole parameters (count) in flight or, where they travel
 * in fewer bytes, their packed numbers. wait: start's outputs, shards (count) -> whole parameters (count).
 *
 * stamp: the sum of the shards' versions when they were sent. A wait that finds another sum fails with
 * PH_ERROR_BUG: whole parameters that an update has overtaken are never used. */

/* Outputs of start; inputs of wait begin with them. */
enum { PH_GATHER_TICKET, PH_GATHER_STAMP, PH_GATHER_NUMBERS };

extern const struct ph__op ph__op_gather_unit_start, ph__op_gather_unit_wait;
/* Gathers again only when a shard has changed: whole parameters stay from step to step. */
extern const struct ph__op ph__op_gather_unit_start_kept;

/* Adds both nodes; wholes_out (count). */
void ph__unit_gather(struct ph_builder *builder, const struct ph__unit_attributes *attributes, bool is_kept,
    ph_value *wholes_out);

/* ---- unit_reduce.c ----
 *
 * start: gradients (count) of whole parameters -> ticket, other members' contributions to the own shards,
 * own numbers packed (none in fp32). wait: start's outputs, gradients (count) -> gradients of the shards
 * (count), added in the order of the members.
 *
 * Where the members do not exchange (comm_collectives.h), the communicator adds: start's second output is
 * then its staging memory, and the third one the sums. */

extern const struct ph__op ph__op_reduce_unit_start, ph__op_reduce_unit_wait;

/* Adds both nodes; gradients: (count), replaced. */
void ph__unit_reduce(
    struct ph_builder *builder, const struct ph__unit_attributes *attributes, ph_value *gradients);

/* ---- unit_squares.c ---- */

extern const struct ph__op ph__op_add_squares; /* in the place of a shard's squared norm */

/* Gives each squared norm of a shard (op/update/op_squared_norm.c) the sums of all members' blocks: a norm of
 * sharded parameters has the bits of one of whole parameters. */
void ph__units_share_squares(struct ph__sharding *sharding, struct ph_builder *builder);

/* ---- unit_pass.c: the pass, called by plan_distribution.c ---- */

/* Turns the plan's dense parameters into shards, and gathers them before their readers. */
void ph__units_spread(struct ph__sharding *sharding, struct ph_builder *builder);
/* Returns what forward reads in place of a parameter: gradients are those of that value. */
ph_value ph__units_whole(const struct ph__sharding *sharding, ph_value parameter);
/* Gathers before the readers in backward, the current entry, which has just been differentiated. */
void ph__units_gather_again(struct ph__sharding *sharding, struct ph_builder *builder);
/* Reduces the gradients (count) of whole parameters to gradients of the shards of parameters (count), in the
 * current entry. Other gradients are left alone. */
void ph__units_reduce(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients);

#endif
