/* The files that a path of rows stands for, and the state of a file, for comparing it later.
 *
 * A file is identified by its size and by a checksum of its first and its last 64 KiB; not by the time of its
 * last change, which a copy does not share. So a file that was replaced or has grown is noticed wherever size
 * or ends differ; bytes exchanged in the middle of a larger file, without a change of its size, are not. */
#ifndef PH_DATA_INPUT_FILE_H
#define PH_DATA_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "phloem/status.h"

struct ph__input_file {
    const char *path; /* borrowed */
    uint64_t num_bytes;
    char checksum[17]; /* 16 hexadecimal digits */
};

/* PH_ERROR_DATA naming `now` when it differs from `before`; `since` is the time of `before` in the error:
 * "the training was begun". Does not compare the paths. */
ph_status ph__input_file_compare(
    const struct ph__input_file *now, const struct ph__input_file *before, const char *since);

#define PH_MANIFEST_NAME "manifest.json" /* marks a folder of prepared data (prepared_manifest.h) */
bool ph__input_is_prepared(const char *path);

/* A set of arrays, in MLPerf's layout of Criteo (array_set.h), is named P or P_labels.npy. */
#define PH_LABELS_ENDING "_labels.npy"
/* Files of MLPerf's layout; only the first of the last two that is there is read. */
enum ph__set_file { PH_SET_LABELS, PH_SET_DENSE, PH_SET_MULTI_HOT, PH_SET_ONE_HOT, PH_NUM_SET_FILES };

/* Names these files for P or P_labels.npy, whether they exist or not; the arena owns the names.
 * PH_ERROR_MEMORY. */
ph_status ph__array_set_name(
    struct ph__arena *arena, const char *path, const char *paths_out[PH_NUM_SET_FILES]);

/* Returns the split that a path "FILE#split" names, borrowed from the path; NULL: none. */
const char *ph__input_split(const char *path);

/* Lists the files that a path stands for, without its split, in the arena: the matches of a pattern; for P,
 * where no file P exists, P_labels.npy if that exists; else the path. PH_ERROR_DATA when a pattern matches
 * none. */
ph_status ph__input_list(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

/* Lists the same files, each with the arrays that are named after it, whether they exist or not. */
ph_status ph__input_list_around(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

/* Lists all files that a path may stand for, existing or not, in the arena: for prepared data the manifest,
 * which lists all parts and is written last; none for a pattern that matches none. */
ph_status ph__input_list_all(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

/* Files that are read for one path of ph__input_list: the path itself with those beside it, or the files of a
 * set of arrays. */
#define PH_INPUT_MAX_FILES 3
struct ph__input_beside {
    bool are_arrays;
    const char *names[PH_INPUT_MAX_FILES - 1]; /* see ph__input_beside_path; "" or NULL: none */
};

/* Tells what a format reads for a path; names are the settings'. graph: of format graph. */
struct ph__input_beside ph__input_beside(enum ph__data_format format, const struct ph__graph_settings *graph);

/* Gives the path of a file beside another one: its name, taken from that one's folder. PH_ERROR_MEMORY. */
ph_status ph__input_beside_path(
    struct ph__arena *arena, const char *path, const char *name, const char **path_out);

struct ph__input_files {
    struct ph__input_file items[PH_INPUT_MAX_FILES];
    size_t count;
};

/* Records the state of the files; their paths belong to the arena or the caller. PH_ERROR_DATA for a file
 * that is missing. */
ph_status ph__input_files_look(struct ph__arena *arena, const char *path,
    const struct ph__input_beside *beside, struct ph__input_files *files_out);

#endif
