/* A file of rows as it is now, to be compared with what it was.
 *
 * A file is known by its size and by a checksum of its first and its last 64 KiB; not by the time of its last change, which a
 * copy does not share. So another file, and one that has grown, is noticed wherever it differs; bytes that are exchanged in
 * the middle of a larger file, without a change of its size, are not. */
#ifndef PH_DATA_INPUT_FILE_H
#define PH_DATA_INPUT_FILE_H

#include <stdint.h>

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

#endif
