/* Plans: which rank holds which rows and columns of which table.
 *
 * A plan is made from facts of the tables and of the machine by a planner, or read from a file that a person can edit; it
 * says a table's kind and where it goes, and the shards follow from these alone, so that every rank works out the same ones.
 *
 *   table_wise        the whole table on one rank
 *   row_wise          rows over all ranks, or those named, in equal runs: the first (rows % n) ranks have one more
 *   column_wise       columns over the ranks named, in equal runs of multiples of PH_SHARD_COLUMNS where there are as many
 *   table_row_wise    the table on one host, its rows over that host's ranks
 *   table_column_wise the table on one host, its columns over that host's ranks
 *   grid              columns over hosts, rows over each host's ranks
 *   data_parallel     all of it on every rank
 *
 * Sources: Mudigere et al. 2022 (arXiv 2104.05158, section 4.2) for the kinds. */
#ifndef PH_PLAN_PLAN_H
#define PH_PLAN_PLAN_H

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "phloem/status.h"

#define PH_SHARD_KIND_LIST(X)                          \
    X(PH_SHARD_TABLE_WISE, "table_wise")               \
    X(PH_SHARD_ROW_WISE, "row_wise")                   \
    X(PH_SHARD_COLUMN_WISE, "column_wise")             \
    X(PH_SHARD_TABLE_ROW_WISE, "table_row_wise")       \
    X(PH_SHARD_TABLE_COLUMN_WISE, "table_column_wise") \
    X(PH_SHARD_GRID, "grid")                           \
    X(PH_SHARD_DATA_PARALLEL, "data_parallel")

#define PH_SHARD_KIND_ENUM(name, text) name,
enum ph_shard_kind { PH_SHARD_KIND_LIST(PH_SHARD_KIND_ENUM) PH_SHARD_KIND_COUNT };
#undef PH_SHARD_KIND_ENUM

#define PH_SHARD_COLUMNS \
    4 /* what squares of a gradient row are summed in (kernel/kernel.h): shards' columns are cut there */

/* Ranks are numbered host by host. */
struct ph_topology {
    size_t world_size;
    size_t ranks_per_host; /* divides world_size */
};

/* What a planner knows of one logical table. */
struct ph_table_facts {
    const char *name; /* "embedding.user" */
    uint64_t num_rows;
    size_t dim;
    size_t num_features;   /* that read it */
    double ids_per_sample; /* of all of them together */
    uint64_t weight_bytes; /* of one row, as it is held */
    uint64_t slot_bytes;   /* of one row, all its optimizer's slots */
};

/* A part of a table on one rank. */
struct ph_table_shard {
    uint32_t table; /* index into the plan's tables */
    uint32_t rank;
    uint64_t first_row, num_rows;
    uint32_t first_column, num_columns;
};

struct ph_plan_table {
    const char *name;
    enum ph_shard_kind kind;
    uint64_t num_rows;
    uint32_t dim;
    size_t first_shard,
        num_shards; /* of the plan's shards: by first column, then first row; none where data_parallel */
};

struct ph_plan {
    struct ph_arena arena;
    struct ph_topology topology;
    struct ph_plan_table *tables; /* as the facts are ordered */
    size_t num_tables;
    struct ph_table_shard *shards;
    size_t num_shards;
};

void ph__plan_fini(struct ph_plan *plan);

/* Reads a plan file (docs/PARALLEL.md) for these tables and this topology. Every error is PH_ERROR_CONFIG with file and
 * line: an unknown or missing table, another world size, a rank or host that is not there, a kind that does not fit. */
ph_status ph__plan_read(const char *path, const struct ph_topology *topology,
    const struct ph_table_facts *tables, size_t num_tables, struct ph_plan *plan_out);
/* Writes one that ph__plan_read reads back to the same plan. PH_ERROR_DISK. */
ph_status ph__plan_write(const struct ph_plan *plan, const char *path);

/* Where a step's time goes on this machine, measured (plan_machine.h) or stated. */
struct ph_plan_machine {
    double memory_bytes_per_s;  /* of one rank, rows read at random */
    double host_bytes_per_s;    /* between two ranks of a host, each way */
    double network_bytes_per_s; /* between two hosts, each way, of all ranks of a host together */
    uint64_t rank_bytes;        /* that a rank may spend on tables and slots; 0: no limit */
};

/* The greedy planner: tables by falling cost, each to where the busiest rank stays least busy, with the kinds that fit.
 * PH_ERROR_MEMORY when nothing fits: which table, and how much is missing. */
ph_status ph__plan_greedy(const struct ph_plan_machine *machine, const struct ph_topology *topology,
    size_t batch_size, const struct ph_table_facts *tables, size_t num_tables, struct ph_plan *plan_out);

/* What a plan asks of each rank, by the planner's own cost. */
struct ph_plan_load {
    uint64_t bytes;    /* of tables and slots */
    double seconds;    /* a step */
    double sent_bytes; /* a step, to other ranks: ids, vectors, gradients */
};
/* loads_out (world_size). */
void ph__plan_loads(const struct ph_plan *plan, const struct ph_plan_machine *machine, size_t batch_size,
    const struct ph_table_facts *tables, struct ph_plan_load *loads_out);
/* A table for people: tables with their kinds and ranks, and ranks with their loads. */
ph_status ph__plan_print(const struct ph_plan *plan, const struct ph_plan_load *loads, FILE *file);

#endif
