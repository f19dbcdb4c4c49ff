/* Choices of collectives, parts of arrays that the members of an operation own, and how they divide its work.
 * For the files of the communicator, and predictions of its traffic.
 *
 * Members have positions: those of inner groups and of outer ones, which join the ranks of one place in each
 * inner group, follow each other: place * (number of inner groups) + group. So the parts that an inner
 * member hands on to its outer group have positions in a row. Where the members exchange, or form a ring, all
 * of them are in one inner group. */
#ifndef PH_COMM_COMM_PARTS_H
#define PH_COMM_COMM_PARTS_H

#include "comm/collective/comm_collectives.h"

struct ph__comm_choices { /* zero-initialised: exchange */
    struct ph__collective_choice list[PH_COLLECTIVE_MOST_CHOICES];
    size_t count, world_size;
    bool may_change;               /* between steps: memory must do for each kind */
    struct ph__group inner, outer; /* of this rank; sizes of 0: there are none */
    uint32_t *order;               /* (world) by position; behind it the inner group's ranks */
};

/* Set, free, and look up choices, as ph__comm_set_collectives and ph__comm_collective do. */
ph_status ph__choices_set(struct ph__comm_choices *choices, const struct ph__group *world,
    const struct ph__collective_choice *list, size_t count, const uint32_t *groups);
void ph__choices_fini(struct ph__comm_choices *choices);
enum ph_collective ph__choices_of(
    const struct ph__comm_choices *choices, const struct ph__group *group, uint64_t bytes);

/* Returns the same with one kind for all sizes, if choices may change. */
struct ph__comm_choices ph__choices_to_come(const struct ph__comm_choices *choices, enum ph_collective kind);

struct ph__parts {
    bool is_ring;
    struct ph__group inner, outer;
    const uint32_t *order;    /* by position: the member; NULL: they are alike */
    size_t size, own;         /* members; own: this rank's position */
    enum ph_wire_format wire; /* of the rows; fp32 also for bytes as they are */
    size_t num_arrays;
    const struct ph__array *arrays;
    size_t rows;       /* of an array without bounds, which is cut as evenly as can be */
    size_t slot_bytes; /* of sums: bytes of a contribution, aligned */
};

/* Divides the members as the choice says for as many bytes. is_ordered: parts are those of
 * members; else of positions. */
void ph__parts_divide(const struct ph__comm_choices *choices, const struct ph__group *group, bool is_ordered,
    uint64_t bytes, struct ph__parts *parts);

/* Rows of an array that lie together and travel as one message; runs without bytes are left out. Runs go by
 * their positions, and then by the arrays. */
struct ph__runs {
    const struct ph__parts *parts;
    size_t position, end, next_array;
    size_t array, row, rows, bytes; /* the run; bytes: on the wire */
};
struct ph__runs ph__runs_of(const struct ph__parts *parts, size_t position, size_t count);
bool ph__runs_next(struct ph__runs *runs); /* false: there is none */

static inline size_t ph__runs_columns(const struct ph__runs *runs)
{
    return runs->parts->arrays[runs->array].row_bytes / sizeof(ph_real);
}

/* Returns into how many requests a message is cut: at least one. */
static inline size_t ph__num_cuts(size_t cut_bytes, uint64_t bytes)
{
    return bytes == 0 ? 1 : (size_t)((bytes - 1) / cut_bytes) + 1;
}

/* Returns the bytes on the wire, and the numbers in memory, of positions in a row. */
size_t ph__parts_bytes(const struct ph__parts *parts, size_t position, size_t count);
size_t ph__parts_numbers(const struct ph__parts *parts, size_t position, size_t count);

/* Return how many requests a round has, at most, in which each member of a group gets from, or gives to, each
 * other one the `span` positions from first + member * span on; and a round of the ring. Messages are cut at
 * cut_bytes. */
size_t ph__parts_round_requests(size_t cut_bytes, const struct ph__parts *parts,
    const struct ph__group *group, size_t first, size_t span);
size_t ph__parts_ring_requests(size_t cut_bytes, const struct ph__parts *parts);

#endif
