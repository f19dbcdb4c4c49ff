/* Declarations: the parameters that programs need, checked against those of a store. */
#ifndef PH_STORE_DECLARATION_H
#define PH_STORE_DECLARATION_H

#include "base/memory/arena.h"
#include "kernel/kernel.h"
#include "store/tensor_shard.h"

#define PH_MAX_SLOTS 2

/* A parameter that a program needs; borrowed during ph__store_add. */
struct ph__declaration {
    const char *name;
    const char *family; /* name in optimizer settings and groups; NULL: the name */
    bool is_table;
    struct ph_shape shape; /* (rows, dim) for a table, rows = sum over slices */
    size_t first_row;      /* of a shard: see whole */
    struct ph_shape whole; /* of a dense parameter that is a shard of whole rows, as of struct ph_tensor; it
                              may have none */
    struct ph_init init;
    size_t num_slices; /* tables only */
    const struct ph_table_slice *slices;
    const struct ph__slice_shard *shards; /* (num_slices); NULL: the slices are whole */
    size_t num_features;                  /* features with rows in the table */
    const size_t *feature_slices; /* (num_features) the slice of each feature; several may share one */
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
    size_t first_row; /* first_row, whole: as declared */
    struct ph_shape whole;
    size_t elements;
    enum ph_row_format row_format; /* of a table's rows; PH_ROWS_FP32 for other parameters */
    bool is_for_scoring; /* rows were rounded when loaded: they are read, never learnt, never saved */
    void *memory;        /* (bytes) the values in their format */
    size_t bytes;
    ph_real *data; /* the values as numbers; NULL unless row_format is PH_ROWS_FP32 */
    uint16_t *low; /* (elements) the low words of PH_ROWS_BF16_SPLIT, behind the rows; otherwise NULL */
    struct ph_init init;
    size_t num_slices;
    struct ph_table_slice *slices;
    const struct ph__slice_shard *shards; /* (num_slices) */
    struct ph__row_slice *row_slices;     /* (num_slices) the slices' rows, for rounding */
    uint64_t version;                     /* grows with every update; packed copies compare it */
    uint64_t checksum; /* of a table in its checkpoint, when it had checksum_version; 0: not known */
    uint64_t checksum_version;
    size_t *owners; /* number of stores with this memory; NULL: one (ph__store_share) */
    size_t num_slots;
    struct ph__slot slots[PH_MAX_SLOTS];
};

/* Fails with PH_ERROR_CONFIG unless the parameter, which has the declaration's name, is as declared. */
ph_status ph__declaration_check_same(
    const struct ph__declaration *declaration, const struct ph_parameter *parameter);
/* Returns the logical tensor, or the shard of one, that a slice of the table is, without its values. */
struct ph_tensor ph__declaration_tensor(const struct ph__declaration *table, size_t slice);
/* Fails with PH_ERROR_BUG when a slice or its shard is invalid, PH_ERROR_CONFIG when it has too many rows. */
ph_status ph__declaration_check_slices(const struct ph__declaration *table);

/* Returns a dense parameter as a logical tensor or a shard of one, without its values. */
struct ph_tensor ph__dense_tensor(const struct ph_parameter *parameter);
/* Returns the first rows of a table's slices, ascending, and then the number of all rows: (num_slices + 1)
 * numbers in the arena. NULL when out of memory. */
uint64_t *ph__declaration_first_rows(const struct ph__declaration *table, struct ph__arena *arena);
/* Returns the slice that has the row, which lies below the last of first_rows. */
size_t ph__declaration_slice_at(
    const struct ph__declaration *table, const uint64_t *first_rows, uint64_t row);

/* Creates a parameter without memory for its values, owned by the arena. Returns NULL when out of memory. */
struct ph_parameter *ph__declaration_copy(struct ph__arena *arena, const struct ph__declaration *declaration);

#endif
