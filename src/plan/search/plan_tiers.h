/* Cuts of tables between two tiers of memory. Each table's rows are ordered by how often they are read: the
 * most-read rows lie in fast memory, of which a rank has a number of bytes, and the others in slow memory.
 *
 * Rows of all tables of a rank compete for its fast bytes by their reads a byte. Beside each cut stands the
 * best choice of *whole* tables for the same bytes, which is what a cut has to beat. The same inputs give the
 * same cuts, to the bit.
 *
 * Source: Sethi et al. 2022 (arXiv 2201.10095, RecShard) for the cut by access counts. Theirs chooses the
 * ranks as well, by a mixed integer program; here a plan has chosen them. */
#ifndef PH_PLAN_SEARCH_PLAN_TIERS_H
#define PH_PLAN_SEARCH_PLAN_TIERS_H

#include "plan/search/plan_accesses.h"

/* ---- tables of one rank ---- */

/* A table, or a shard, on a rank; all is borrowed. */
struct ph__tier_table {
    const char *name;
    uint64_t row_bytes; /* with the optimizer's slots */
    /* (num_steps) by falling reads a row; their rows add up to the table's */
    const struct ph__access_step *steps;
    size_t num_steps;
};

struct ph__tier_cut {
    uint64_t fast_rows, fast_bytes;
    double fast_reads, slow_reads; /* a step */
};

/* Cuts a rank's tables so that slow memory is read as little as possible: cuts_out (num_tables). Takes rows
 * by falling reads a byte, so that the best cut has less than the reads of one row more. PH_ERROR_MEMORY. */
ph_status ph__tiers_cut(const struct ph__tier_table *tables, size_t num_tables, uint64_t fast_bytes,
    struct ph__tier_cut *cuts_out);

enum { PH_TIERS_MOST_EXACT = 20 };

/* Chooses whole tables for fast memory: the best choice of up to PH_TIERS_MOST_EXACT tables, by branch and
 * bound; of more, tables by falling reads a byte as long as they fit. PH_ERROR_MEMORY. */
ph_status ph__tiers_choose_whole(const struct ph__tier_table *tables, size_t num_tables, uint64_t fast_bytes,
    struct ph__tier_cut *cuts_out);

/* ---- all ranks of a plan ---- */

struct ph__tier_rank {
    struct ph__tier_table *tables;      /* (num_tables) its shards and copies, in the order of the plan */
    struct ph__tier_cut *cuts, *wholes; /* (num_tables) */
    size_t num_tables;
    struct ph__tier_cut cut, whole; /* sums over the tables */
};

struct ph__tiers {
    struct ph__tier_rank *ranks;    /* (world_size) */
    struct ph__tier_cut cut, whole; /* sums over the ranks */
};

/* Cuts the tables that each rank has under a plan, for fast_bytes on each. Rows of a table are taken to be
 * read equally often in all its row shards. A column shard is read as often as its table. Each rank has a
 * copy of a data_parallel table, and reads it for its own samples. The result lives in the arena.
 * PH_ERROR_MEMORY. */
ph_status ph__tiers_find(const struct ph__plan *plan, const struct ph__plan_step *step,
    const struct ph__table_facts *tables, uint64_t fast_bytes, struct ph__arena *arena,
    struct ph__tiers *tiers_out);

#endif
