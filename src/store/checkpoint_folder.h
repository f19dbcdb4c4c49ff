/* Checkpoints in a folder: written by many at once, each its own tensors or shards of tensors, and read by
 * any number of others that want other shards.
 *
 *   part-00001-of-00004.safetensors   what one writer has; a shard under a name that says which,
 * "embedding.user[0:500,0:32]" model.safetensors.index.json      a sealed JSON document (base/format/seal.h),
 * written last: "metadata"    texts, and "total_size": the tensors' bytes "weight_map"  for each name in the
 * files, its file "parts"       for each tensor that is cut: {"dtype", "shape", "pieces": [{"file", "name",
 * "first_row", "num_rows", "first_column", "num_columns"}]}; of a vector rows alone are cut, and columns are
 * 0 and 1 "files"       for each file {"bytes", "sha256": its seal}
 *
 * "metadata" and "weight_map" are what Hugging Face's tools read. Without an index there is no checkpoint,
 * and an index knows its files by their seals: so a writer may end at any moment, and what it leaves is no
 * checkpoint, or a whole one.
 *
 * Who writes and reads knows of no ranks here: whoever calls gathers descriptions and shares the work. One
 * thread at a time uses a folder. */
#ifndef PH_STORE_CHECKPOINT_FOLDER_H
#define PH_STORE_CHECKPOINT_FOLDER_H

#include "base/format/json.h"
#include "base/thread/stop.h"
#include "phloem/store.h"

/* ---- writing ---- */

/* By one, before all others: makes the folder and removes what stands in it of a checkpoint, its index first.
 * PH_ERROR_DISK. */
ph_status ph__folder_begin(const char *path);

/* By each writer, writer < num_writers, at the same time as the others: its file, which is on disk on return.
 * Each tensor is written by one writer; only what has one number a row is held by several, and is written
 * where first_column is 0 (ph__tensor_list_add_slots). description_out: text for ph__folder_commit,
 * malloc'ed. PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__folder_write_part(const char *path, size_t writer, size_t num_writers, size_t num_tensors,
    const struct ph_tensor *tensors, char **description_out);

/* By one, after all have written: the index. descriptions (num_writers), in their order; metadata as
 * ph_checkpoint_save's, none of them "total_size". PH_ERROR_BUG, naming tensor and range, unless every
 * element of every tensor has been written exactly once. */
ph_status ph__folder_commit(
    const char *path, size_t num_writers, const char *const *descriptions, const char *const *metadata);

/* ---- reading ---- */

struct ph__folder;

/* Opens a folder, or a single safetensors file as if it were one. Index, headers and sizes of all files have
 * been checked on return, and that they belong together; but not the tensors' bytes. PH_ERROR_CHECKPOINT,
 * naming file and tensor; PH_ERROR_MEMORY. Each file takes a descriptor until the folder is closed. */
ph_status ph__folder_open(const char *path, struct ph__folder **folder_out);
/* Opens it for its metadata alone, as if it had no tensor: of a folder the index is read, of a sealed file
 * the start of the header. What has 100,000 tables takes milliseconds then, not seconds. */
ph_status ph__folder_open_metadata(const char *path, struct ph__folder **folder_out);
void ph__folder_close(struct ph__folder *folder);
/* From now on what reads tensors' bytes, which are seals, loading and the digest, calls it every few
 * megabytes. NULL: nobody waits any more. */
void ph__folder_set_meanwhile(struct ph__folder *folder, const struct ph__meanwhile *meanwhile);

size_t ph__folder_num_files(const struct ph__folder *folder);
/* Reads the files first, first + step, first + 2 step .. (below ph__folder_num_files) and compares them with
 * their seals: PH_ERROR_CHECKPOINT naming the one that does not fit, or has none. */
ph_status ph__folder_check_seals(const struct ph__folder *folder, size_t first, size_t step);

/* Logical tensors by name, ascending. data is NULL; the name is borrowed until close. */
size_t ph__folder_num_tensors(const struct ph__folder *folder);
struct ph_tensor ph__folder_tensor(const struct ph__folder *folder, size_t index);
/* Index of a name, or the number of tensors when there is none. */
size_t ph__folder_find(const struct ph__folder *folder, const char *name);
/* Text of a metadata key, NULL when it is missing; borrowed until close. */
const char *ph__folder_metadata(const struct ph__folder *folder, const char *key);
/* Sets the key after this one, which may have no text, as ph__json_next_member does; false at the end. */
bool ph__folder_next_metadata(const struct ph__folder *folder, struct ph__json_member *member);
/* Of all tensors. */
uint64_t ph__folder_tensor_bytes(const struct ph__folder *folder);

/* PH_ERROR_CHECKPOINT unless each of the tensors, or the whole one that it is a shard of, is there with its
 * shape and a dtype that converts (store/tensor_list.h). */
ph_status ph__folder_check_tensors(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors);
/* PH_ERROR_CHECKPOINT naming a tensor of the folder that has none of these names. */
ph_status ph__folder_check_no_others(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors);

/* Fills the tensors after checking them, reading what lies in their rows and no other; nothing has been
 * changed unless the disk fails, and then the error says that the tensors must not be used. */
ph_status ph__folder_load(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors);

/* The sum that ph_checkpoint_digest gives for the same tensors in one store; of those for which is_counted
 * (NULL: all) says so. Reads them all, in rows, and keeps no more than some of a tensor in memory. */
ph_status ph__folder_digest(
    const struct ph__folder *folder, bool (*is_counted)(const char *name), char hex_out[65]);

#endif
