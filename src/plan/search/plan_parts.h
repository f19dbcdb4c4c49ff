/* Tables as a search places them: units of tables that stay together, cut into parts that are alike. Private
 * to plan/search. */
#ifndef PH_PLAN_SEARCH_PLAN_PARTS_H
#define PH_PLAN_SEARCH_PLAN_PARTS_H

#include "base/memory/arena.h"
#include "plan/search/plan_price.h"

/* Tables that lie on one rank, whole; or of which no two lie on one rank. */
struct ph__table_group {
    const uint32_t *tables;
    size_t num_tables;
    bool is_apart;
};

/* Limits of a plan; zero-initialised: none but those of the machine. All is borrowed. */
struct ph__plan_limits {
    const uint64_t *rank_bytes; /* (world_size); NULL: the machine's, for each rank */
    uint64_t host_bytes;        /* of a host's ranks together; 0: no limit */
    const struct ph__table_group *groups;
    size_t num_groups;
};

/* A search's task; all is borrowed. */
struct ph__placing {
    const struct ph__pricing *pricing;
    struct ph__plan_limits limits;
    const struct ph__plan *from; /* plan to start from; NULL: none */
    double ms_per_moved_gb;      /* price on bytes that lie elsewhere than in `from` */
};

/* A table's cut: table_wise, column_wise or row_wise into num_parts, or data_parallel. */
struct ph__table_cut {
    enum ph__shard_kind kind;
    uint32_t num_parts;
};

/* Tables that are placed together: those of a group, or one; and one part of them. */
struct ph__unit {
    const uint32_t *tables;
    size_t num_tables;
    struct ph__table_cut cut; /* that the part was made for; no parts: none yet */
    float description[PH_COST_MOST_WIDTH];
    double columns, ms; /* ms: alone on a rank */
    uint64_t bytes;
};

struct ph__units {
    const struct ph__placing *placing; /* borrowed */
    struct ph__arena arena;
    struct ph__unit *units; /* (num_units) */
    uint32_t *singles;      /* (num_tables) 0, 1, ...: the tables of units of one */
    size_t num_units;
};

/* Makes a unit of each group that lies together, and of each other table. Call fini also after a failure. */
ph_status ph__units_init(const struct ph__placing *placing, struct ph__units *units);
void ph__units_fini(struct ph__units *units);
/* Makes the parts of tables that are cut so (num_tables). Tables that lie together are never cut. Errors of
 * the model. */
ph_status ph__units_cut(struct ph__units *units, const struct ph__table_cut *cuts);
/* Gives each table's milliseconds, whole on a rank of its own (num_tables). Errors of the model. */
ph_status ph__units_weigh(const struct ph__units *units, double *table_ms_out);
/* Returns the bytes of a table's largest part. */
uint64_t ph__cut_bytes(const struct ph__table_facts *table, const struct ph__table_cut *cut);

#endif
