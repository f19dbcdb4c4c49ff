/* The files that a path of rows stands for, and a file as it is now, to be compared with what it was.
 *
 * A file is known by its size and by a checksum of its first and its last 64 KiB; not by the time of its last
 * change, which a copy does not share. So another file, and one that has grown, is noticed wherever it
 * differs; bytes that are exchanged in the middle of a larger file, without a change of its size, are not. */
#ifndef PH_DATA_INPUT_FILE_H
#define PH_DATA_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

struct ph__input_file {
    const char *path; /* borrowed */
    uint64_t num_bytes;
    char checksum[17]; /* 16 hexadecimal digits */
};

/* PH_ERROR_DATA naming `now` when it differs from `before`; `since` says in the error when that was: "the
 * training was begun". The path of `before` is not looked at. */
ph_status ph__input_file_compare(
    const struct ph__input_file *now, const struct ph__input_file *before, const char *since);

#define PH_MANIFEST_NAME "manifest.json" /* makes a folder one of prepared data (prepared_manifest.h) */
bool ph__input_is_prepared(const char *path);

/* A set of arrays, MLPerf's layout of Criteo (array_set.h), is called P or P_labels.npy. */
#define PH_LABELS_ENDING "_labels.npy"
/* The files of MLPerf's layout; of the last two one is read, the first that is there. */
enum ph__set_file { PH_SET_LABELS, PH_SET_DENSE, PH_SET_MULTI_HOT, PH_SET_ONE_HOT, PH_NUM_SET_FILES };

/* Names these files for P or P_labels.npy, whether they are there or not; the names are the arena's.
 * PH_ERROR_MEMORY. */
ph_status ph__array_set_name(
    struct ph__arena *arena, const char *path, const char *paths_out[PH_NUM_SET_FILES]);

/* Lists the files that a path stands for, in the arena: those of a pattern, or for P, where there is no such
 * file, P_labels.npy if that is one. PH_ERROR_DATA when a pattern matches none. */
ph_status ph__input_list(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

/* Lists the same with the arrays that are named after each, whether they are there or not. */
ph_status ph__input_list_around(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

/* Lists all files that a path may stand for, some of which are not there: of prepared data the manifest,
 * which knows all parts and is written last; none for a pattern that matches none. In the arena. */
ph_status ph__input_list_all(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

/* The files that are read for one path of ph__input_list: itself, or those of a set of arrays. */
#define PH_INPUT_MAX_FILES 3
struct ph__input_files {
    struct ph__input_file items[PH_INPUT_MAX_FILES];
    size_t count;
};

/* Looks at the files; the paths are the arena's or the caller's. PH_ERROR_DATA for a file that is missing. */
ph_status ph__input_files_look(
    struct ph__arena *arena, const char *path, bool is_arrays, struct ph__input_files *files_out);

#endif
