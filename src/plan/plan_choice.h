/* Choices of a table's kind and place, from which its shards are worked out. Private to the plan room and its
 * tests. */
#ifndef PH_PLAN_PLAN_CHOICE_H
#define PH_PLAN_PLAN_CHOICE_H

#include "plan/plan.h"

/* Places of a kind; their names are also the keys of a plan file. */
enum ph__place { PH_PLACE_NONE, PH_PLACE_RANK, PH_PLACE_RANKS, PH_PLACE_HOST, PH_PLACE_HOSTS };
enum ph__place ph__shard_kind_place(enum ph__shard_kind kind);
const char *ph__place_name(enum ph__place place); /* "ranks" */
/* Returns true when the kind's places are hosts, not ranks. */
bool ph__shard_kind_is_of_hosts(enum ph__shard_kind kind);
size_t ph__num_hosts(const struct ph__topology *topology);

struct ph__plan_choice {
    enum ph__shard_kind kind;
    const uint32_t *places; /* ranks or hosts; borrowed */
    size_t num_places;      /* 0: ph__plan_places fills them */
    const uint32_t *host;   /* on which it chooses places; NULL: on any */
};

/* Adds towers, of which names and hosts are known, to a plan of these tables. PH_ERROR_CONFIG naming a tower
 * that has a table elsewhere than on its host, or of another kind than table_wise and table_row_wise.
 * PH_ERROR_MEMORY. */
ph_status ph__plan_add_towers(struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__plan_tower *towers, size_t num_towers);

/* Replaces a planner's plan by one with the model's towers on hosts, where that is better and fits.
 * PH_ERROR_MEMORY. */
ph_status ph__plan_towers_on_hosts(const struct ph__plan_machine *machine, const struct ph__plan_step *step,
    const struct ph__table_facts *tables, struct ph__plan *plan);

/* Counts the shards that a table's columns can be cut into: one for each PH_SHARD_COLUMNS of them, or one
 * where rows stay whole. */
size_t ph__most_column_shards(const struct ph__table_facts *table);

/* Checks a choice. PH_ERROR_CONFIG with the reason alone: a place that does not exist or is named twice, more
 * places than ph__most_column_shards of the table, or a kind that cuts columns which stay together. */
ph_status ph__choice_check(const struct ph__topology *topology, const struct ph__table_facts *table,
    const struct ph__plan_choice *choice);

/* Returns the bytes of a shard, num_rows rows and num_columns columns of the table, with slots. */
uint64_t ph__table_shard_bytes(const struct ph__table_facts *table, uint64_t num_rows, size_t num_columns);

/* Builds the plan of these choices (num_tables); it copies what they point to. PH_ERROR_MEMORY. */
ph_status ph__plan_build(const struct ph__topology *topology, const struct ph__table_facts *tables,
    size_t num_tables, const struct ph__plan_choice *choices, struct ph__plan *plan_out);

/* Gives places, from the arena, to the choices (num_tables) that have none. */
ph_status ph__plan_places(const struct ph__topology *topology, const struct ph__table_facts *tables,
    size_t num_tables, struct ph__plan_choice *choices, struct ph__arena *arena);

#endif
