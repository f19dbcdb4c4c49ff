/* The store: all learnt values. Dense parameters, embedding tables and their optimizer slots, by name,
 * shareable by several programs (the training program and the evaluation program of one model share one
 * store).
 *
 * A table is a physical matrix (rows, dim) made of logical slices, one a feature: "embedding" holds
 * "embedding.user" in rows [0, n), "embedding.item" in the next, and so on. Checkpoints hold the logical
 * slices, so that a later layout (sharded, tiered) can read them all the same. A store may hold parts of
 * slices, but has no notion of ranks. Used by one thread at a time. */
#ifndef PHLOEM_STORE_H
#define PHLOEM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ph_init_kind {
    PH_INIT_CONSTANT,       /* scale */
    PH_INIT_NORMAL,         /* N(0, scale^2) */
    PH_INIT_UNIFORM,        /* U(-scale, scale) */
    PH_INIT_XAVIER_NORMAL,  /* N(0, 2 / (rows + columns)) of an (out, in) matrix; scale multiplies the
                               deviation */
    PH_INIT_XAVIER_UNIFORM, /* U(-a, a), a = sqrt(6 / (rows + columns)), times scale */
};

/* Initial values depend on seed, the logical name, row and column alone. */
struct ph_init {
    enum ph_init_kind kind;
    double scale;
};

struct ph_table_slice {
    const char *name; /* full logical name, "embedding.user" */
    size_t num_rows;
};

struct ph_store;
struct ph_state;

PH_MUST_CHECK ph_status ph_store_create(uint64_t seed, struct ph_store **store_out);
void ph_store_destroy(struct ph_store *store);

/* Logical tensors in order of creation: dense parameters and table slices. Borrowed until the store is
 * destroyed. dtype is the type in a checkpoint: PH_BF16 for bf16 rows, PH_F16 for fp16 rows, otherwise
 * PH_REAL. */
struct ph_tensor {
    const char *name;
    enum ph_dtype dtype;
    struct ph_shape shape;
    void *data;
    enum ph_row_format row_format; /* format of data: fp32, unless a table is held in fewer bytes */
    uint16_t *low;                 /* low words of bf16_split, in data's order; otherwise NULL */
    /* First row and column of the whole matrix that this store holds: it may hold only a part (training on
     * many ranks). */
    size_t first_row, first_column;
    struct ph_shape whole; /* no dims: this store holds all of it */
};
size_t ph_store_num_tensors(const struct ph_store *store);
struct ph_tensor ph_store_tensor(const struct ph_store *store, size_t index); /* index < the number of them */
/* Finds a tensor by name; the first of several parts of one name. PH_ERROR_USAGE: no such tensor. */
PH_MUST_CHECK ph_status ph_store_find(
    const struct ph_store *store, const char *name, struct ph_tensor *tensor_out);

/* Call it after writing through ph_tensor.data: tells programs to renew their packed copies of weights. */
void ph_store_touch(struct ph_store *store);

uint64_t ph_store_parameter_count(const struct ph_store *store); /* learnt elements, without slots */
uint64_t ph_store_parameter_bytes(
    const struct ph_store *store); /* bytes in their row formats: ph_tensor.row_format */
uint64_t ph_store_slot_bytes(const struct ph_store *store);

/* Creates a state: values that entries carry from step to step (batch-norm statistics), by name; saved with
 * the model. */
PH_MUST_CHECK ph_status ph_state_create(struct ph_state **state_out);
void ph_state_destroy(struct ph_state *state);
size_t ph_state_num_tensors(const struct ph_state *state);
struct ph_tensor ph_state_tensor(const struct ph_state *state, size_t index);
/* Does the same as ph_store_touch: call it after writing through ph_tensor.data of a state's tensor. */
void ph_state_touch(struct ph_state *state);

/* Save and load checkpoints: safetensors, with text metadata (keys and values alternating, NULL-terminated;
 * NULL: none). state may be NULL.
 *
 * Saving is atomic and seals the file: metadata key "sha256" holds the sum of the whole file with these
 * digits as zeros. Weights that are learnt in 16 bits are written so, bf16_split as fp32 numbers. Errors:
 * PH_ERROR_DISK, PH_ERROR_MEMORY, and PH_ERROR_USAGE for a store whose rows were rounded for scoring, or that
 * holds only a part of a tensor.
 *
 * Loading fills the store's and the state's existing tensors, from fp32, fp16 or bf16, rows in the store's
 * format. The path may also be a folder that many ranks wrote (an index and files, named as Hugging Face
 * names them; docs/PARALLEL.md). PH_ERROR_CHECKPOINT, naming file and tensor, for a file without a seal or
 * with a wrong one, and for a missing, foreign, misshapen or surplus tensor: nothing has been changed then.
 * Only if the disk fails after the whole file was verified, the model is loaded in part, and the error says
 * so. */
PH_MUST_CHECK ph_status ph_checkpoint_save(const char *path, const struct ph_store *store,
    const struct ph_state *state, const char *const *metadata);
PH_MUST_CHECK ph_status ph_checkpoint_load(const char *path, struct ph_store *store, struct ph_state *state);

/* Computes SHA-256 over the logical tensors sorted by name (name, dtype, shape, bytes), independent of paths
 * and layout. PH_ERROR_USAGE as for saving. */
PH_MUST_CHECK ph_status ph_checkpoint_digest(
    const struct ph_store *store, const struct ph_state *state, char hex_out[65]);

#ifdef __cplusplus
}
#endif
#endif
