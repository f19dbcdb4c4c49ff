/* A fingerprint of a split's files as a training found them, and of how far it has read them; a resumed
 * training compares it.
 *
 * A file is identified by its size and its ends (input_file.h) and by a checksum of its first bytes, as far
 * as they have been read: as they lie in the file, before decompression. Files are read one path after the
 * other, so only the files of one path, the front, have checksums that still grow; a later pass over the same
 * bytes adds nothing. Prepared data is identified by its manifest, whose seal stands for all parts; an .npz
 * by its ends, since its directory, with a CRC of each array, is the last part.
 *
 * The reading thread changes the fingerprint. Another thread may look at the files before a place that it was
 * given. */
#ifndef PH_DATA_FINGERPRINT_H
#define PH_DATA_FINGERPRINT_H

#include <stdbool.h>

#include "base/format/json.h"
#include "base/memory/arena.h"
#include "base/sum/checksum.h"
#include "base/thread/stop.h"
#include "data/source/input_file.h"

/* The first bytes of a file and their checksum. */
struct ph__read_prefix {
    uint64_t num_bytes, checksum;
};

struct ph__read_file {
    struct ph__input_file file;
    struct ph__read_prefix read;          /* final once the front has passed */
    struct ph__running_checksum checksum; /* at the front only */
};

struct ph__fingerprint { /* zero-initialised has no files */
    struct ph__arena arena;
    struct ph__read_file *files;
    size_t num_files;
    size_t *first; /* (num_paths + 1) into files: path p has files first[p] to first[p + 1] - 1 */
    size_t num_paths;
    size_t front; /* path whose files are being read */
    bool has_front;
};

/* State of the reading: the front, and the bytes read of its files. */
struct ph__read_place {
    size_t front;
    struct ph__read_prefix prefixes[PH_INPUT_MAX_FILES];
};

/* Records the files of a path (source.h): of prepared data the manifest, of a pipe none, else those that are
 * read for it. Free the fingerprint also on failure. PH_ERROR_DATA, PH_ERROR_MEMORY. */
ph_status ph__fingerprint_look(
    struct ph__fingerprint *fingerprint, const char *path, const struct ph__input_beside *beside);
void ph__fingerprint_fini(struct ph__fingerprint *fingerprint);

/* ---- while rows are read ---- */

/* Moves the front on to the path, if that is the next one; a path that the front has reached or passed
 * changes nothing. A path further on is not recorded: a reader begins there when no record tells of the paths
 * before. PH_ERROR_MEMORY. */
ph_status ph__fingerprint_begin(struct ph__fingerprint *fingerprint, size_t path);
/* Returns the checksum that takes in the bytes of one of the path's files, by the file's name; NULL: none. */
struct ph__running_checksum *ph__fingerprint_checksum(
    struct ph__fingerprint *fingerprint, size_t path, const char *name);
void ph__fingerprint_tell(struct ph__fingerprint *fingerprint, struct ph__read_place *place_out);

/* ---- while a training is saved and resumed ---- */

/* Returns the fingerprint at a place, as an array that the caller owns. */
struct ph__json *ph__fingerprint_json(
    const struct ph__fingerprint *fingerprint, const struct ph__read_place *place);

/* Compares the files with those of `saved`, and takes over how far they had been read. PH_ERROR_DATA naming
 * the file that has changed, PH_ERROR_CHECKPOINT when `saved` is not a fingerprint. */
ph_status ph__fingerprint_compare(
    struct ph__fingerprint *fingerprint, const struct ph__json *saved, const char *path);
/* Reads again the bytes that had been read, and compares their checksums. PH_ERROR_DATA naming the file whose
 * bytes have changed; the error of `meanwhile`, which is called every MiB. */
ph_status ph__fingerprint_check(struct ph__fingerprint *fingerprint, const struct ph__meanwhile *meanwhile);

#endif
