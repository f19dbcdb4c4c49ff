/* The safetensors file format: 8 bytes of little-endian header length, a JSON header, the tensors' bytes.
 *
 * The header maps each name to {"dtype", "shape", "data_offsets": [begin, end)}, offsets counting from the
 * end of the header; "__metadata__" maps text to text. Tensors lie without holes or overlap. Spaces pad the
 * header so that the tensors start on a multiple of 8 bytes. Files written here are sealed
 * (base/format/seal.h): "__metadata__" is the first key of the header, and "sha256" the first key of the
 * metadata. Other programs' files are read, too, but have no seal. Errors are PH_ERROR_CHECKPOINT (reading)
 * or PH_ERROR_DISK (writing), naming the file and the tensor. A reader is used by one thread at a time. */
#ifndef PH_STORE_SAFETENSORS_H
#define PH_STORE_SAFETENSORS_H

#include "base/format/json.h"
#include "base/format/seal.h"
#include "phloem/store.h"

/* Key of the metadata with the tensors' checksums (base/sum/checksum.h): 16 digits a tensor, in the order of
 * the file. Written here; other programs' files go without. */
#define PH_SAFETENSORS_CHECKSUMS "tensor_checksums"

/* Start of a sealed header, up to the digits. */
#define PH_SAFETENSORS_METADATA_START "{\"__metadata__\":"
#define PH_SAFETENSORS_SEAL_START PH_SAFETENSORS_METADATA_START "{\"" PH_SEAL_KEY "\":\""

struct ph__safetensors;

/* Finds the dtype of this name ("F32"); false when there is none. */
bool ph__safetensors_dtype(const char *name, enum ph_dtype *dtype_out);

/* Writes the file with its seal and checksums, atomically. metadata: keys (none is "sha256" or
 * "tensor_checksums") and values alternating, NULL-terminated; NULL: none. Tensors are ordered by size of the
 * element, largest first, then by name, whatever the order of the array. */
ph_status ph__safetensors_write(
    const char *path, size_t num_tensors, const struct ph_tensor *tensors, const char *const *metadata);

/* Opens and validates the whole header against the format and the file's size; reads no tensor. */
ph_status ph__safetensors_open(const char *path, struct ph__safetensors **file_out);
/* Opens a sealed file for its metadata alone, as if it had no tensor; reads no tensor's entry. */
ph_status ph__safetensors_open_metadata(const char *path, struct ph__safetensors **file_out);
void ph__safetensors_close(struct ph__safetensors *file);
uint64_t ph__safetensors_bytes(const struct ph__safetensors *file); /* of the whole file */

bool ph__safetensors_is_sealed(const struct ph__safetensors *file); /* carries a seal, right or wrong */
/* Reads the whole file, with a call of `meanwhile` every few kilobytes, and compares it with its seal; a file
 * without a seal fails. Before this check, any byte of the file may be damaged. */
ph_status ph__safetensors_check_seal(
    const struct ph__safetensors *file, const struct ph__meanwhile *meanwhile);
/* Reads the seal of a file, its digits and a NUL, without checking the rest. PH_ERROR_CHECKPOINT when there
 * is none. */
ph_status ph__safetensors_read_seal(const char *path, char seal_out[PH_SEAL_DIGITS + 1]);

/* Tensors by name, ascending. data is NULL; the name is borrowed until close. */
size_t ph__safetensors_num_tensors(const struct ph__safetensors *file);
struct ph_tensor ph__safetensors_tensor(const struct ph__safetensors *file, size_t index);
/* Returns the index of a name, or the number of tensors when there is none. */
size_t ph__safetensors_find(const struct ph__safetensors *file, const char *name);
/* Gives the checksum of a tensor's bytes; false when the file has none. */
bool ph__safetensors_checksum(const struct ph__safetensors *file, size_t index, uint64_t *checksum_out);
/* Reads a tensor's bytes into data, which has room for them. */
ph_status ph__safetensors_read(const struct ph__safetensors *file, size_t index, void *data);
/* Reads `size` bytes from the tensor's byte `first` on; the range lies in the tensor. */
ph_status ph__safetensors_read_range(
    const struct ph__safetensors *file, size_t index, uint64_t first, size_t size, void *data);

/* Returns the text of a metadata key, NULL when it is missing; borrowed until close. */
const char *ph__safetensors_metadata(const struct ph__safetensors *file, const char *key);
/* Moves to the next key and its text, as ph__json_next_member does; false at the end. */
bool ph__safetensors_next_metadata(const struct ph__safetensors *file, struct ph__json_member *member);

#endif
