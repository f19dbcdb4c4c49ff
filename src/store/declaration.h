/* What programs say they need, against what a store has. */
#ifndef PH_STORE_DECLARATION_H
#define PH_STORE_DECLARATION_H

#include "base/memory/arena.h"
#include "kernel/kernel.h"
#include "store/tensor_shard.h"

#define PH_MAX_SLOTS 2

/* What a program says it needs; borrowed during ph__store_add. */
struct ph__declaration {
    const char *name;
    const char *family; /* by which optimizer settings and groups know it; NULL: the name */
    bool is_table;
    struct ph_shape shape; /* (rows, dim) for a table, rows = sum over slices */
    struct ph_init init;
    size_t num_slices; /* tables only */
    const struct ph_table_slice *slices;
    const struct ph__slice_shard *shards; /* (num_slices); NULL: the slices are whole */
    size_t num_features;                  /* that have their rows in a table */
    const size_t *feature_slices;         /* (num_features) the slice of each: several may have the same */
};

/* Optimizer memory of a parameter. */
struct ph__slot {
    const char *name; /* "m", "s" */
    bool is_per_row;  /* one number a row instead of one a weight */
    size_t elements;
    ph_real *data; /* zeros at first */
};

struct ph_parameter {
    const char *name, *family;
    bool is_table;
    struct ph_shape shape;
    size_t elements;
    enum ph_row_format row_format; /* of a table's rows; PH_ROWS_FP32 for all else */
    bool is_for_scoring; /* rows were rounded when they were loaded: read, never learnt, never saved */
    void *memory;        /* (bytes) the values as they are held */
    size_t bytes;
    ph_real *data; /* the same as numbers; NULL where row_format is not PH_ROWS_FP32 */
    uint16_t *low; /* (elements) the low words of PH_ROWS_BF16_SPLIT, behind the rows; NULL else */
    struct ph_init init;
    size_t num_slices;
    struct ph_table_slice *slices;
    const struct ph__slice_shard *shards; /* (num_slices) */
    struct ph__row_slice *row_slices;     /* (num_slices) whose rows are whose, for what rounds them */
    uint64_t version;                     /* grows with every update; packed copies compare it */
    size_t num_slots;
    struct ph__slot slots[PH_MAX_SLOTS];
};

/* PH_ERROR_CONFIG unless the parameter, which has the declaration's name, is what it declares. */
ph_status ph__declaration_check_same(
    const struct ph__declaration *declaration, const struct ph_parameter *parameter);
/* The logical tensor that a slice of the table is, or a shard of: all but its values. */
struct ph_tensor ph__declaration_tensor(const struct ph__declaration *table, size_t slice);
/* PH_ERROR_BUG where a slice or its shard does not fit, PH_ERROR_CONFIG where it has too many rows. */
ph_status ph__declaration_check_slices(const struct ph__declaration *table);

/* Gives the rows that the slices of a table begin at, ascending, and then the number of all rows: (num_slices
 * + 1) numbers in the arena. NULL: out of memory. */
uint64_t *ph__declaration_first_rows(const struct ph__declaration *table, struct ph__arena *arena);
/* Finds the slice that has the row, which lies below the last of first_rows. */
size_t ph__declaration_slice_at(
    const struct ph__declaration *table, const uint64_t *first_rows, uint64_t row);

/* A parameter without memory for its values, owned by the arena. NULL: out of memory. */
struct ph_parameter *ph__declaration_copy(struct ph__arena *arena, const struct ph__declaration *declaration);

#endif
