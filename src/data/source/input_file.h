/* The files that a path of rows stands for, and a file as it is now, to be compared with what it was.
 *
 * A file is known by its size and by a checksum of its first and its last 64 KiB; not by the time of its last change, which a
 * copy does not share. So another file, and one that has grown, is noticed wherever it differs; bytes that are exchanged in
 * the middle of a larger file, without a change of its size, are not. */
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

/* PH_ERROR_DATA for a file that is missing. */
ph_status ph__input_file_look(const char *path, struct ph__input_file *file_out);

/* PH_ERROR_DATA naming `now` when it differs from `before`; `since` says in the error when that was: "the training was
 * begun". The path of `before` is not looked at. */
ph_status ph__input_file_compare(
    const struct ph__input_file *now, const struct ph__input_file *before, const char *since);

#define PH_MANIFEST_NAME "manifest.json" /* makes a folder one of prepared data (prepared_manifest.h) */
bool ph__input_is_prepared(const char *path);

/* The files that a path stands for, in the arena: those of a pattern, or for P, where there is no such file, P_labels.npy
 * if that is one (array_set.h). PH_ERROR_DATA when a pattern matches none. */
ph_status ph__input_list(
    struct ph_arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out);

#endif
