/* A fingerprint of a split's files as a training found them, and of how far it has read them: a resumed
 * training compares it.
 *
 * A file is known by its size and its ends (input_file.h) and by a checksum of its first bytes, as far as
 * they have been read: as they lie in the file, before decompression. Files are read one path after the
 * other, so only those of one path, the front, have checksums that still grow; a later pass over the same
 * bytes adds nothing. Prepared data is known by its manifest, whose seal stands for all parts; an .npz by its
 * ends, since its directory, with a CRC of each array, is the last part.
 *
 * The thread that reads changes the fingerprint. Another one may look at what lies behind a place that it has
 * been told. */
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
    struct ph__read_prefix read;          /* settled once the front has passed */
    struct ph__running_checksum checksum; /* at the front alone */
};

struct ph__fingerprint { /* zero-initialised knows no files */
    struct ph__arena arena;
    struct ph__read_file *files;
    size_t num_files;
    size_t *first; /* (num_paths + 1) into files: those of a path, several where it stands for arrays */
    size_t num_paths;
    size_t front; /* the path */
    bool has_front;
};

/* How far the reading had come: the front, and what had been read of its files. */
struct ph__read_place {
    size_t front;
    struct ph__read_prefix prefixes[PH_INPUT_MAX_FILES];
};

/* Looks at the files of a path (source.h), prepared or not; a pipe has none. To be fini'ed also on failure.
 * PH_ERROR_DATA, PH_ERROR_MEMORY. */
ph_status ph__fingerprint_look(struct ph__fingerprint *fingerprint, const char *path, bool is_arrays);
void ph__fingerprint_fini(struct ph__fingerprint *fingerprint);

/* ---- while rows are read ---- */

/* Moves the front on to the path, unless it is there or behind it. A path that lies further on, which a
 * reader begins with when no record tells of those before, is not recorded. PH_ERROR_MEMORY. */
ph_status ph__fingerprint_begin(struct ph__fingerprint *fingerprint, size_t path);
/* Gives the checksum that takes in the bytes of one of the path's files, by the file's name; NULL: none does.
 */
struct ph__running_checksum *ph__fingerprint_checksum(
    struct ph__fingerprint *fingerprint, size_t path, const char *name);
void ph__fingerprint_tell(struct ph__fingerprint *fingerprint, struct ph__read_place *place_out);

/* ---- while a training is saved and resumed ---- */

/* The fingerprint at that place, as an array, the caller's. */
struct ph__json *ph__fingerprint_json(
    const struct ph__fingerprint *fingerprint, const struct ph__read_place *place);

/* Compares the files as they are with those of `saved`, and takes over how far they had been read.
 * PH_ERROR_DATA naming the file that has changed, PH_ERROR_CHECKPOINT for what is no fingerprint. */
ph_status ph__fingerprint_compare(
    struct ph__fingerprint *fingerprint, const struct ph__json *saved, const char *path);
/* Reads as far as had been read once more. PH_ERROR_DATA naming the file whose bytes are others; what
 * `meanwhile`, called every MiB, fails with. */
ph_status ph__fingerprint_check(struct ph__fingerprint *fingerprint, const struct ph__meanwhile *meanwhile);

#endif
