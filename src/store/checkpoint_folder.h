/* Checkpoints in a folder. Many writers write at once, each its own tensors or shards of tensors. Any number
 * of readers read the shards that they need, however the writers' are cut.
 *
 *     part-00001-of-00004.safetensors  tensors of one writer; a shard under a name that says which,
 *                                      "embedding.user[0:500,0:32]"
 *     model.safetensors.index.json     a sealed JSON document (base/format/seal.h), written last:
 *       "metadata"    texts, and "total_size": the tensors' bytes
 *       "weight_map"  for each name in the files, its file
 *       "parts"       for each tensor that is cut: {"dtype", "shape", "pieces": [{"file", "name",
 *                     "first_row", "num_rows", "first_column", "num_columns"}]}; a vector is cut by rows
 *                     alone, and its columns are 0 and 1
 *       "files"       for each file {"bytes", "sha256": its seal}
 *
 * Hugging Face's tools read "metadata" and "weight_map". Without an index there is no checkpoint, and the
 * index names its files' seals. So a writer may end at any moment: it leaves no checkpoint, or a whole one.
 *
 * The functions here have no ranks: the caller gathers descriptions and shares the work. One thread at a time
 * uses a folder. */
#ifndef PH_STORE_CHECKPOINT_FOLDER_H
#define PH_STORE_CHECKPOINT_FOLDER_H

#include "base/format/json.h"
#include "base/thread/stop.h"
#include "phloem/store.h"

/* ---- writing ---- */

/* Makes the folder and removes an old checkpoint's files from it, the index first. One process calls it
 * before all others write. PH_ERROR_DISK. */
ph_status ph__folder_begin(const char *path);

/* Writes the file of a writer, writer < num_writers, durably; all writers may call it at the same time. Each
 * tensor is written by one writer. Only tensors of one number a row are held by several writers, and are
 * written where first_column is 0 (ph__tensor_list_add_slots). description_out: text for ph__folder_commit,
 * malloc'ed. PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__folder_write_part(const char *path, size_t writer, size_t num_writers, size_t num_tensors,
    const struct ph_tensor *tensors, char **description_out);

/* Writes the index. One process calls it after all have written. descriptions (num_writers), in their order;
 * metadata as for ph_checkpoint_save, without the key "total_size". PH_ERROR_BUG, naming tensor and range,
 * unless every element of every tensor has been written exactly once. */
ph_status ph__folder_commit(
    const char *path, size_t num_writers, const char *const *descriptions, const char *const *metadata);

/* ---- reading ---- */

struct ph__folder;

/* Opens a folder, or a single safetensors file as if it were one. Checks index, headers and sizes of all
 * files and that they belong together, but not the tensors' bytes. PH_ERROR_CHECKPOINT, naming file and
 * tensor; PH_ERROR_MEMORY. Each file takes a descriptor until the folder is closed. */
ph_status ph__folder_open(const char *path, struct ph__folder **folder_out);
/* Opens a checkpoint for its metadata alone, as if it had no tensor: reads a folder's index, or the start of
 * a sealed file's header. With 100,000 tables this takes milliseconds, not seconds. */
ph_status ph__folder_open_metadata(const char *path, struct ph__folder **folder_out);
void ph__folder_close(struct ph__folder *folder);
/* Sets a function that seal checks, loading and the digest call every few megabytes. NULL: none. */
void ph__folder_set_meanwhile(struct ph__folder *folder, const struct ph__meanwhile *meanwhile);

size_t ph__folder_num_files(const struct ph__folder *folder);
/* Reads the files first, first + step, first + 2 step .. (below ph__folder_num_files) and compares them with
 * their seals: PH_ERROR_CHECKPOINT naming a file that does not match, or has no seal. */
ph_status ph__folder_check_seals(const struct ph__folder *folder, size_t first, size_t step);

/* Logical tensors by name, ascending. data is NULL; the name is borrowed until close. */
size_t ph__folder_num_tensors(const struct ph__folder *folder);
struct ph_tensor ph__folder_tensor(const struct ph__folder *folder, size_t index);
/* Returns the index of a name, or the number of tensors when there is none. */
size_t ph__folder_find(const struct ph__folder *folder, const char *name);
/* Gives the checksum of a tensor's bytes; false when it is cut, or its file has none. */
bool ph__folder_checksum(const struct ph__folder *folder, size_t index, uint64_t *checksum_out);
/* Returns the text of a metadata key, NULL when it is missing; borrowed until close. */
const char *ph__folder_metadata(const struct ph__folder *folder, const char *key);
/* Moves to the next key, which may have no text, as ph__json_next_member does; false at the end. */
bool ph__folder_next_metadata(const struct ph__folder *folder, struct ph__json_member *member);
/* Returns the bytes of all tensors. */
uint64_t ph__folder_tensor_bytes(const struct ph__folder *folder);

/* Fails with PH_ERROR_CHECKPOINT unless the folder has each of the tensors, or the whole one of a shard, with
 * its shape and a dtype that converts (store/tensor_list.h). */
ph_status ph__folder_check_tensors(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors);
/* Fails with PH_ERROR_CHECKPOINT naming a tensor of the folder that has none of these names. */
ph_status ph__folder_check_no_others(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors);

/* Fills the tensors after checking them; reads only the bytes of their rows. A failed check changes nothing.
 * Whole tensors are compared with their checksums, where the file has them. When they differ, and after a
 * disk failure, the error says that the tensors must not be used. */
ph_status ph__folder_load(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors);

/* Sums the tensors for which is_counted (NULL: all) returns true, as ph_checkpoint_digest does for the same
 * tensors in one store. Reads them by rows and keeps no more than a part of a tensor in memory. */
ph_status ph__folder_digest(
    const struct ph__folder *folder, bool (*is_counted)(const char *name), char hex_out[65]);

#endif
