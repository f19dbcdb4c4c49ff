/* Lists of logical tensors that are saved, loaded or summed together: those of a store, of its optimizer
 * slots, of a state, and others that a caller adds. Zero-initialised: an empty list. */
#ifndef PH_STORE_TENSOR_LIST_H
#define PH_STORE_TENSOR_LIST_H

#include "base/memory/arena.h"
#include "base/sum/digest.h"
#include "store/safetensors.h"
#include "store/store.h"

struct ph__folder;

struct ph__tensor_list {
    struct ph__arena arena; /* names that no store or state owns */
    struct ph_tensor *tensors;
    size_t count, capacity;
};

/* Adds tensors. Their owner keeps them, and they must outlive the list. */
ph_status ph__tensor_list_add(struct ph__tensor_list *list, const struct ph_tensor *tensor);
ph_status ph__tensor_list_add_store(struct ph__tensor_list *list, const struct ph_store *store);
ph_status ph__tensor_list_add_state(struct ph__tensor_list *list, const struct ph_state *state);
/* Adds the tensors of a model: all of a store and of a state (NULL: none) but those that help training alone
 * (PH_TRAINING_SCOPE). */
ph_status ph__tensor_list_add_model(
    struct ph__tensor_list *list, const struct ph_store *store, const struct ph_state *state);
/* Adds the slots of a store: the slot "m" of a logical tensor as "slot.m:embedding.user", shaped as the
 * tensor, or (rows) when the slot holds one number a row. The slot of a shard is a shard of the slot. With
 * one number a row, a shard of columns has the same numbers as the shard that begins with column 0;
 * first_column tells them apart. */
ph_status ph__tensor_list_add_slots(struct ph__tensor_list *list, const struct ph_store *store);
void ph__tensor_list_fini(struct ph__tensor_list *list);

/* Fails with PH_ERROR_DATA naming the first tensor that holds a number that is not finite. */
ph_status ph__tensor_list_check_finite(const struct ph__tensor_list *list);

/* Sorts the list by name and gives its SHA-256, as ph_checkpoint_digest does. */
ph_status ph__tensor_list_digest(struct ph__tensor_list *list, char hex_out[65]);
/* Adds a tensor's head to that sum, before its bytes: its name, dtype and shape. */
ph_status ph__digest_tensor_head(struct ph__digest *digest, const struct ph_tensor *tensor);

/* Fills all tensors from a file or a folder (store/checkpoint_folder.h). PH_ERROR_CHECKPOINT, with nothing
 * changed, unless the checkpoint has exactly these tensors, each of the list's shape and of a dtype that
 * converts, and its seals are right. If the disk fails after these checks, the error says that the tensors
 * must not be used. Parts are filled from the whole tensors; when the list is not a whole model, use
 * ph__folder_load. */
ph_status ph__tensor_list_load(const struct ph__tensor_list *list, const char *path);
ph_status ph__tensor_list_load_from(const struct ph__tensor_list *list, const struct ph__folder *folder);
/* Makes the checks of tensors alone. */
ph_status ph__tensor_list_check(const struct ph__tensor_list *list, const struct ph__folder *folder);

/* ---- bytes ---- */

/* A logical tensor as a checkpoint has it: an array of its dtype, whatever the store's format. Rows of
 * bf16_split are joined into their fp32 numbers piece by piece, so that memory never holds a copy of a
 * table. */

/* Calls visit with the tensor's bytes, in order, in one piece or more; an error of visit ends the walk. */
typedef ph_status (*ph__bytes_visit)(void *context, const void *bytes, size_t size);
ph_status ph__tensor_visit_bytes(const struct ph_tensor *tensor, ph__bytes_visit visit, void *context);

/* Tells whether numbers of one dtype can be read as numbers of the other. */
bool ph__dtype_converts(enum ph_dtype from, enum ph_dtype to);

/* Reads rows of a matrix in its dtype: num_rows from first_row on into bytes. */
typedef ph_status (*ph__rows_read)(const void *context, size_t first_row, size_t num_rows, void *bytes);

/* Fills the tensor, seen as a matrix (store/tensor_shard.h), from rows of its shape and of a dtype that
 * converts. */
ph_status ph__tensor_fill(
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph__rows_read read, const void *context);

#endif
