/* Plans: which rank holds which rows and columns of which table.
 *
 * A planner makes a plan from facts of the tables and of the machine; or a plan is read from a file that a
 * person can edit. A plan gives each table's kind and place. The shards follow from these alone, so that
 * every rank works out the same ones.
 *
 *   kind               place   distribution
 *   table_wise         rank    the whole table on one rank
 *   row_wise           ranks   rows over the ranks, in equal runs: the first (rows % n) have one more
 *   column_wise        ranks   columns over the ranks, in equal runs of PH_SHARD_COLUMNS: the first have one
 *                              run more
 *   table_row_wise     host    the table on one host, its rows over that host's ranks
 *   table_column_wise  host    the table on one host, its columns over as many of its ranks as they allow
 *   grid               hosts   columns over the hosts, rows over each host's ranks
 *   data_parallel      -       the whole table on every rank
 *
 * A plan may also give towers of the model their hosts (shard/tower).
 *
 * A rank has one shard of a table at most. Ranks behind the last row have none.
 *
 * Sources: Mudigere et al. 2022 (arXiv 2104.05158, section 4.2) for the kinds. */
#ifndef PH_PLAN_PLAN_H
#define PH_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file/stream.h"
#include "base/memory/arena.h"
#include "base/text/name_index.h"
#include "phloem/status.h"

#define PH_PLAN_MAX_NAME 960 /* bytes of a table's name in a plan file; PH_YAML_PATH_MAX limits its key */

#define PH_SHARD_KIND_LIST(X)                          \
    X(PH_SHARD_TABLE_WISE, "table_wise")               \
    X(PH_SHARD_ROW_WISE, "row_wise")                   \
    X(PH_SHARD_COLUMN_WISE, "column_wise")             \
    X(PH_SHARD_TABLE_ROW_WISE, "table_row_wise")       \
    X(PH_SHARD_TABLE_COLUMN_WISE, "table_column_wise") \
    X(PH_SHARD_GRID, "grid")                           \
    X(PH_SHARD_DATA_PARALLEL, "data_parallel")

#define PH_SHARD_KIND_ENUM(name, text) name,
enum ph__shard_kind { PH_SHARD_KIND_LIST(PH_SHARD_KIND_ENUM) PH_SHARD_KIND_COUNT };
#undef PH_SHARD_KIND_ENUM

const char *ph__shard_kind_name(enum ph__shard_kind kind);

/* Columns whose squares are summed together (kernel/kernel.h): shards' columns are cut there. */
#define PH_SHARD_COLUMNS 4

/* Ranks are numbered host by host. */
struct ph__topology {
    size_t world_size;
    size_t ranks_per_host; /* divides world_size */
};

/* A lookup's read of a table. */
struct ph__table_read {
    uint32_t feature; /* index in the batch of the feature whose ids are looked up */
    bool is_of_items; /* each id's vector is wanted, not their sum */
};

/* A tower of the model: layers over its tables' pooled vectors, which give num_vectors vectors of dim numbers
 * for each sample. */
struct ph__tower_facts {
    const char *name; /* "user" */
    size_t num_vectors, dim;
    size_t num_numbers; /* of its layers' parameters */
};

/* Bins by how often a batch reads a row: (0,1], (1,2], (2,4] ... (16384,32768], and more. */
enum { PH_ACCESS_BINS = 17 };

/* A planner's facts of one logical table. */
struct ph__table_facts {
    const char *name;        /* "embedding.user" */
    uint64_t num_rows;       /* at least 1 */
    size_t dim;              /* at least 1 */
    size_t num_features;     /* features that read the table, each as often as a lookup reads it */
    double ids_per_sample;   /* of all features together */
    uint64_t weight_bytes;   /* of one row, as stored */
    uint64_t slot_bytes;     /* of one row, all its optimizer's slots */
    uint64_t row_slot_bytes; /* part of slot_bytes: one number a row, which each column shard has */
    uint32_t parameter;      /* parameter of the model, which may hold many tables */
    /* (num_features); NULL: pooled reads of features that no other lookup reads */
    const struct ph__table_read *reads;
    bool has_whole_rows; /* columns are not cut: the optimizer sums over all whole rows at every step */
    const struct ph__tower_facts *tower; /* whose layers alone read the table; NULL: none */
    /* (PH_ACCESS_BINS) share of the rows that a batch reads so often, of those that it reads; NULL: not
     * known */
    const double *accesses;
};

/* A shard of a table, on one rank. */
struct ph__table_shard {
    uint32_t table; /* index into the plan's tables */
    uint32_t rank;
    uint64_t first_row, num_rows;
    uint32_t first_column, num_columns;
};

/* A tower whose layers run on one host, for the samples of all ranks. */
struct ph__plan_tower {
    struct ph__tower_facts of;
    uint32_t host;
};

struct ph__plan_table {
    const char *name;
    enum ph__shard_kind kind;
    uint64_t num_rows;
    uint32_t dim;
    const uint32_t *places; /* the kind's ranks or hosts, all different */
    size_t num_places;      /* 0 for data_parallel */
    /* Place of its shards among the plan's: by first column, then first row; none for data_parallel. */
    size_t first_shard, num_shards;
    uint64_t bytes;                     /* of all its shards, or of one copy, with slots */
    const struct ph__plan_tower *tower; /* on whose host the table lies; NULL: none */
};

/* ---- dense parameters ----
 *
 * How ranks hold the dense parameters, which every rank needs in every step:
 *
 *   mode                parameters           optimizer slots and summed gradients
 *   replicated          whole                whole
 *   zero1               whole, and a shard   a shard
 *   keep_after_forward  a shard; whole from forward to backward, unit by unit     a shard
 *   full                a shard; whole while a unit computes                      a shard
 *   hybrid              as full, within groups of ranks, each of which has all shards
 *
 * A *unit* is a few parameters that are gathered and reduced together. Its parameters, one behind the other,
 * are cut between blocks of rows (base/sizes.h) into shards as equal as whole blocks allow.
 *
 * Sources: Zhao et al. 2023 (arXiv 2304.11277, sections 3 and 4); Rajbhandari et al. 2020 (arXiv 1910.02054)
 * for zero1. */
#define PH_DENSE_MODE_LIST(X)                            \
    X(PH_DENSE_REPLICATED, "replicated")                 \
    X(PH_DENSE_ZERO1, "zero1")                           \
    X(PH_DENSE_KEEP_AFTER_FORWARD, "keep_after_forward") \
    X(PH_DENSE_FULL, "full")                             \
    X(PH_DENSE_HYBRID, "hybrid")

#define PH_DENSE_MODE_ENUM(name, text) name,
enum ph__dense_mode { PH_DENSE_MODE_LIST(PH_DENSE_MODE_ENUM) PH_DENSE_MODE_COUNT };
#undef PH_DENSE_MODE_ENUM

const char *ph__dense_mode_name(enum ph__dense_mode mode);

enum { PH_UNIT_MOST_PARAMETERS = 30 }; /* a node takes their shards and whole values, and a few numbers */

/* A planner's facts of one dense parameter, seen as a matrix: a vector is rows of one column. */
struct ph__dense_facts {
    const char *name;      /* "top.0.weight" */
    size_t rows, columns;  /* at least 1 */
    size_t num_slots;      /* numbers that the optimizer keeps for each weight */
    bool is_element_wise;  /* the optimizer treats each weight by itself */
    bool is_read_backward; /* backward reads the weights, not only forward */
    size_t first_use;      /* place in forward of the first operator that reads it; SIZE_MAX: none does */
    bool is_of_tower;      /* a tower's layers have it; where these have a host, it is in no unit */
};

/* Number formats in which a unit's parameters and gradients travel. OF_JOB: fp32 and, for gradients, what
 * parallel.dense says. The others are named as the wire formats of comm/wire. */
enum ph__unit_wire { PH_UNIT_WIRE_OF_JOB, PH_UNIT_WIRE_FP32, PH_UNIT_WIRE_FP16, PH_UNIT_WIRE_BF16 };

/* A unit of a plan file that is named by a pattern. */
struct ph__unit_rule {
    const char *pattern;
    enum ph__unit_wire wire; /* OF_JOB: as the settings say */
};

/* A plan's settings for dense parameters; the units follow from these and the facts alone. */
struct ph__dense_settings { /* zero-initialised: replicated */
    enum ph__dense_mode mode;
    size_t group_size;       /* divides the world size; 0: ranks of a host for hybrid, else all */
    uint64_t unit_bytes;     /* parameters without a rule are joined up to as many bytes; 0: PH_UNIT_BYTES */
    size_t prefetch;         /* units that are gathered ahead: 0 or 1 */
    enum ph__unit_wire wire; /* of units without a rule of their own */
    bool reduces_often;      /* gradients are reduced in each micro-batch, not once a step */
    const struct ph__unit_rule *rules;
    size_t num_rules;
};

#define PH_UNIT_BYTES ((uint64_t)32 << 20)

struct ph__unit_parameter {
    const char *name;
    size_t rows, columns;
    size_t num_slots;
    bool is_read_backward;
    size_t first_use;
    const size_t *bounds; /* (group_size + 1) member m has the rows [bounds[m], bounds[m + 1]) */
};

struct ph__plan_unit {
    const char *name; /* of its first parameter, or the rule's pattern */
    enum ph__unit_wire wire;
    const struct ph__unit_parameter *parameters; /* in the order of their declaration */
    size_t num_parameters;
};

struct ph__plan_units {
    struct ph__dense_settings settings; /* complete: no default is left out */
    struct ph__plan_unit *units;        /* none where replicated */
    size_t num_units;
};

struct ph__plan { /* zero-initialised: no plan */
    struct ph__arena arena;
    struct ph__topology topology;
    struct ph__plan_units units;
    struct ph__plan_table *tables; /* in the order of the facts */
    size_t num_tables;
    struct ph__table_shard *shards;
    size_t num_shards;
    struct ph__name_index names; /* of the tables, in their order */
    struct ph__plan_tower *towers;
    size_t num_towers; /* towers of the model that it does not name run on every rank */
    /* Seconds of a step's busiest rank with towers on every rank, and on hosts; 0 unless a planner has
     * weighed both. */
    double flat_seconds, tower_seconds;
};

/* Returns the plan's table of that name, or NULL. */
const struct ph__plan_table *ph__plan_find(const struct ph__plan *plan, const char *name);
/* Returns the plan's tower of that name, or NULL. */
const struct ph__plan_tower *ph__plan_find_tower(const struct ph__plan *plan, const char *name);
void ph__plan_fini(struct ph__plan *plan);

/* ---- plans as files ---- */

/* Reads a plan file for these tables and this topology:
 *
 *   version: 1
 *   world_size: 4
 *   ranks_per_host: 2                                    # may be left out
 *   tables:
 *     embedding.user: {kind: row_wise, ranks: [0, 1, 3]}
 *     embedding.item: {kind: table_wise, rank: 2}
 *     "linear.*": {kind: data_parallel}                  # any number of characters; the first that matches
 *   default: {kind: table_wise}                          # tables that no line above names
 *   towers: {user: 0, item: 1}                           # hosts of towers; those left out run on every rank
 *
 * The tables of a tower lie on its host, table_wise or table_row_wise; there they get their place.
 * A name goes before a pattern. A kind without its place gets one: all ranks or all hosts for rows or a grid;
 * else one rank, one host, or as many ranks as the columns suffice for, with the fewest bytes so far: after
 * all tables that are placed otherwise, the largest first. Every error is PH_ERROR_CONFIG with file and line:
 * an unknown or missing table, another world size, a rank or host that does not exist or is named twice, a
 * kind that does not fit, a tower whose tables lie on other hosts. */
ph_status ph__plan_read(const char *path, const struct ph__topology *topology,
    const struct ph__table_facts *tables, size_t num_tables, struct ph__plan *plan_out);
/* Writes a plan file, which ph__plan_read reads back to the same plan, with its names and places.
 * PH_ERROR_CONFIG: a table's name is longer than PH_PLAN_MAX_NAME bytes. PH_ERROR_DISK. */
ph_status ph__plan_write(const struct ph__plan *plan, struct ph__writer *writer);
/* Writes a plan file in place of `path`, atomically. Errors of ph__plan_write. */
ph_status ph__plan_save(const struct ph__plan *plan, const char *path);

/* ---- planners ---- */

/* Bytes of numbers on the wire (comm/wire/wire_format.h): a vector of c numbers takes c number_bytes +
 * vector_bytes. */
struct ph__plan_wire {
    size_t number_bytes; /* fp32 4, fp16 and bf16 2, int8 1 */
    size_t vector_bytes; /* int8: 4, its scale */
};

/* The parts of a training step that concern tables. */
struct ph__plan_step {
    size_t batch_size;                /* samples, of all ranks together */
    bool has_id_weights;              /* a weight travels with each id */
    struct ph__plan_wire pooled_wire; /* pooled vectors, forward */
    struct ph__plan_wire gradient_wire;
};

/* Rates of a machine that decide a step's time: nominal (plan_cost.h), a topology file's, or measured. */
struct ph__plan_machine {
    double memory_bytes_per_s;  /* one rank, rows read at random */
    double host_bytes_per_s;    /* between two ranks of a host, each way */
    double network_bytes_per_s; /* between two hosts, each way, all ranks of a host together */
    uint64_t rank_bytes;        /* limit of a rank's tables and slots; 0: no limit */
};

/* Plans all tables on every rank. PH_ERROR_MEMORY. */
ph_status ph__plan_replicate(const struct ph__topology *topology, const struct ph__table_facts *tables,
    size_t num_tables, struct ph__plan *plan_out);

/* Plans greedily: takes tables by falling cost (plan_cost.h), and places each where the busiest rank stays
 * least busy, with the kinds that fit. Tries several thresholds of when a table is worth cutting, and keeps
 * the best plan. Finds a plan whenever all tables fit when each is cut by rows over all ranks. Towers get
 * hosts where that plan is better (plan_towers.c).
 * PH_ERROR_MEMORY when nothing fits: which table, and how much is missing. */
ph_status ph__plan_greedy(const struct ph__plan_machine *machine, const struct ph__topology *topology,
    const struct ph__plan_step *step, const struct ph__table_facts *tables, size_t num_tables,
    struct ph__plan *plan_out);

/* ---- loads of ranks ---- */

/* A rank's load under a plan, by the planner's own cost. */
struct ph__plan_load {
    uint64_t bytes;         /* tables and slots */
    double seconds;         /* a step */
    double compute_seconds; /* part of seconds: in memory; the rest is communication */
    double sent_bytes; /* a step, to other ranks, for tables: ids, vectors, gradients; no dense gradients */
};
/* Fills loads_out (world_size). PH_ERROR_MEMORY. */
ph_status ph__plan_loads(const struct ph__plan *plan, const struct ph__plan_machine *machine,
    const struct ph__plan_step *step, const struct ph__table_facts *tables, struct ph__plan_load *loads_out);
/* Finds the rank with the most bytes of tables and slots. PH_ERROR_MEMORY. */
ph_status ph__plan_fullest(
    const struct ph__plan *plan, const struct ph__table_facts *tables, size_t *rank_out, uint64_t *bytes_out);
/* Returns PH_ERROR_MEMORY when a rank has more than rank_bytes (0: no limit) of tables and slots: which rank,
 * how much is missing, and which table takes most of it there. */
ph_status ph__plan_check_bytes(
    const struct ph__plan *plan, const struct ph__table_facts *tables, uint64_t rank_bytes);
/* Prints two tables for people: tables with their kinds and places, and ranks with their loads. */
ph_status ph__plan_print(
    const struct ph__plan *plan, const struct ph__plan_load *loads, struct ph__writer *writer);

/* ---- traffic of each link in a step, expected for ids uniform over the rows (plan_cost.h) ---- */

/* The ways in which all ranks sum dense gradients, as comm/ does (comm_collectives.h). Zeros: they exchange.
 */
enum ph__plan_sum { PH_PLAN_EXCHANGE, PH_PLAN_HIERARCHICAL, PH_PLAN_RING };
struct ph__plan_sums {
    size_t world_size, num_ranges, num_groups;
    struct ph__plan_sum_range {
        uint64_t from_bytes; /* of a bucket on the wire; ascending */
        enum ph__plan_sum kind;
    } ranges[24];
    const uint32_t *positions; /* (world_size) place in its group x num_groups + number of the group */
};

/* Gradients of dense parameters. num_numbers counts those of towers as well, which only the ranks of a host
 * sum up; 0: ranks send no others to each other. */
struct ph__plan_dense {
    size_t num_numbers, bucket_numbers;
    struct ph__plan_wire wire;
    size_t num_micro_batches;
    struct ph__plan_sums sums;
};

/* Bytes between any two ranks or, where a table has no room for all ranks, any two hosts. */
struct ph__plan_links {
    bool are_hosts;
    size_t count;
    double *bytes; /* (count, count), [from][to], in the arena */
};

/* Finds the links' bytes. most: the ranks, or hosts, that a table has room for; count is 0 where there are
 * more of both. PH_ERROR_MEMORY. */
ph_status ph__plan_links_find(const struct ph__plan *plan, const struct ph__plan_step *step,
    const struct ph__plan_dense *dense, const struct ph__table_facts *tables, size_t most,
    struct ph__arena *arena, struct ph__plan_links *links_out);
/* Prints a table for people: a row for each sender. */
ph_status ph__plan_links_print(const struct ph__plan_links *links, struct ph__writer *writer);

#endif
