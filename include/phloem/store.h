/* The store: what is learnt. Dense parameters, embedding tables and their optimizer slots, by name, shareable
 * by several programs (the training program and the evaluation program of one model share one store).
 *
 * A table is a physical matrix (rows, dim) made of logical slices, one a feature: "embedding" holds
 * "embedding.user" in rows [0, n), "embedding.item" in the next, and so on. Checkpoints hold the logical
 * slices, so that a later layout (sharded, tiered) reads them all the same. A store may hold parts of slices,
 * but knows nothing of ranks. One thread at a time. */
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
 * destroyed. dtype is that of a checkpoint: of rows in bf16 PH_BF16, in fp16 PH_F16, of all else PH_REAL. */
struct ph_tensor {
    const char *name;
    enum ph_dtype dtype;
    struct ph_shape shape;
    void *data;
    enum ph_row_format row_format; /* of data: fp32, unless it is of a table that is held in fewer bytes */
    uint16_t *low;                 /* the low words of bf16_split, in data's order; NULL else */
    /* Of a matrix, a store may hold a part alone (training on many ranks): these rows and columns of the
     * whole. */
    size_t first_row, first_column;
    struct ph_shape whole; /* no dims: this is all of it */
};
size_t ph_store_num_tensors(const struct ph_store *store);
struct ph_tensor ph_store_tensor(const struct ph_store *store, size_t index); /* index < the number of them */
/* PH_ERROR_USAGE: there is none of this name. Of several parts under one name the first. */
PH_MUST_CHECK ph_status ph_store_find(
    const struct ph_store *store, const char *name, struct ph_tensor *tensor_out);

/* Call after writing through ph_tensor.data: programs' packed copies of weights are made anew. */
void ph_store_touch(struct ph_store *store);

uint64_t ph_store_parameter_count(const struct ph_store *store); /* elements learnt, slots not counted */
uint64_t ph_store_parameter_bytes(
    const struct ph_store *store); /* as they are held: see ph_tensor.row_format */
uint64_t ph_store_slot_bytes(const struct ph_store *store);

/* State that entries carry from step to step (batch-norm statistics), by name; saved with the model. */
PH_MUST_CHECK ph_status ph_state_create(struct ph_state **state_out);
void ph_state_destroy(struct ph_state *state);
size_t ph_state_num_tensors(const struct ph_state *state);
struct ph_tensor ph_state_tensor(const struct ph_state *state, size_t index);
/* As ph_store_touch: call after writing through ph_tensor.data of a state's tensor. */
void ph_state_touch(struct ph_state *state);

/* Checkpoints: safetensors, with text metadata (keys and values alternating, NULL-terminated; NULL: none).
 * A state of NULL: none. Saving is atomic and seals the file: metadata key "sha256", the sum of the whole
 * file with these digits as zeros; PH_ERROR_DISK, PH_ERROR_MEMORY, and PH_ERROR_USAGE for a store whose rows
 * were rounded for scoring, or that holds a part of a tensor alone. What is learnt in 16 bits is written so,
 * bf16_split as the fp32 numbers that it is. Loading fills the store's and the state's existing tensors,
 * whether the file has them in fp32, fp16 or bf16, rows in the format that the store holds them in. The path
 * may be a folder that many ranks wrote (an index and files, named as Hugging Face names them;
 * docs/PARALLEL.md), too. A file without a seal or with one that does not fit, a missing, foreign, misshapen
 * or surplus tensor is PH_ERROR_CHECKPOINT naming file and tensor, and nothing has been changed then; only
 * should the disk fail after the whole file has been verified, the model is loaded in part, and the error
 * says so. */
PH_MUST_CHECK ph_status ph_checkpoint_save(const char *path, const struct ph_store *store,
    const struct ph_state *state, const char *const *metadata);
PH_MUST_CHECK ph_status ph_checkpoint_load(const char *path, struct ph_store *store, struct ph_state *state);

/* SHA-256 over the logical tensors sorted by name (name, dtype, shape, bytes): not over paths or layout.
 * PH_ERROR_USAGE as for saving. */
PH_MUST_CHECK ph_status ph_checkpoint_digest(
    const struct ph_store *store, const struct ph_state *state, char hex_out[65]);

#ifdef __cplusplus
}
#endif
#endif
