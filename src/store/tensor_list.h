/* Logical tensors that are saved, loaded or summed up together: of a store, of its optimizer slots, of a
 * state, and whatever else a caller adds. Zero-initialised is an empty list. */
#ifndef PH_STORE_TENSOR_LIST_H
#define PH_STORE_TENSOR_LIST_H

#include "base/memory/arena.h"
#include "base/sum/digest.h"
#include "store/safetensors.h"
#include "store/store.h"

struct ph__tensor_list {
    struct ph__arena arena; /* names that no store and no state owns */
    struct ph_tensor *tensors;
    size_t count, capacity;
};

/* What is added stays the property of its owner and must outlive the list. */
ph_status ph__tensor_list_add(struct ph__tensor_list *list, const struct ph_tensor *tensor);
ph_status ph__tensor_list_add_store(struct ph__tensor_list *list, const struct ph_store *store);
ph_status ph__tensor_list_add_state(struct ph__tensor_list *list, const struct ph_state *state);
/* Of the slot "m" of each logical tensor: "slot.m:embedding.user", shaped as the tensor, or (rows) where the
 * slot holds one number a row. The slot of a shard is the shard of a slot; of one number a row, a shard of
 * columns has what the shard that begins with column 0 has: first_column says which one it is. */
ph_status ph__tensor_list_add_slots(struct ph__tensor_list *list, const struct ph_store *store);
void ph__tensor_list_fini(struct ph__tensor_list *list);

/* PH_ERROR_DATA naming the first tensor that holds a number that is not finite. */
ph_status ph__tensor_list_check_finite(const struct ph__tensor_list *list);

/* SHA-256 over the tensors sorted by name, as ph_checkpoint_digest gives it. Sorts the list. */
ph_status ph__tensor_list_digest(struct ph__tensor_list *list, char hex_out[65]);
/* What stands before a tensor's bytes in that sum: its name, dtype and shape. */
ph_status ph__digest_tensor_head(struct ph__digest *digest, const struct ph_tensor *tensor);

/* Fills all tensors from a file or a folder (store/checkpoint_folder.h) that has them and no others, each of
 * the list's shape and of a dtype that converts, and whose seals fit: PH_ERROR_CHECKPOINT otherwise, and
 * nothing has been changed then. Should the disk fail after all this has been verified, the error says that
 * the tensors must not be used. Parts are filled from what is there of them; where the list is not of a whole
 * model, use ph__folder_load. */
ph_status ph__tensor_list_load(const struct ph__tensor_list *list, const char *path);

/* ---- bytes ---- */

/* A logical tensor as a checkpoint has it: an array of its dtype, whatever way the store holds it. Rows of
 * bf16_split are joined into the fp32 numbers that they are, piece by piece, so that no copy of a table is
 * ever in memory. */

/* Calls visit with the tensor's bytes, in order, in one piece or more; what it returns but PH_OK ends the
 * walk. */
typedef ph_status (*ph__bytes_visit)(void *context, const void *bytes, size_t size);
ph_status ph__tensor_visit_bytes(const struct ph_tensor *tensor, ph__bytes_visit visit, void *context);

/* Whether numbers of one dtype are read as those of the other. */
bool ph__dtype_converts(enum ph_dtype from, enum ph_dtype to);

/* Gives rows of a matrix, as its dtype has them: num_rows from first_row on into bytes. */
typedef ph_status (*ph__rows_read)(const void *context, size_t first_row, size_t num_rows, void *bytes);

/* Fills the tensor, seen as a matrix (store/tensor_shard.h), from rows of its shape whose dtype converts. */
ph_status ph__tensor_fill(
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph__rows_read read, const void *context);

#endif
