/* What a fit has gathered, as a file: how a first pass stays within its memory, and is taken up again after a crash.
 *
 * A fit is written when it has grown to its bound, or when its part of the data has ended; the files of all parts, in
 * their order, merge to what one fit over all rows gives. Merging maps the files and walks through them side by side,
 * word by word: it takes memory for the words that stay alone.
 *
 * Layout, little-endian: arrays one after another, each on a multiple of 8 bytes: for each column its words in the order
 * of (hash, length, bytes) as hash u64, count u32, index of first appearance u32, end of text u64, text; then its sample;
 * then a directory that says where each lies and what its checksum is; then a footer. Scratch: a file of another version,
 * encoder or machine is no error but not used. */
#ifndef PH_DATA_FIT_FILE_H
#define PH_DATA_FIT_FILE_H

#include "data/encode/fit.h"

/* What a file says of itself. */
struct ph__fit_summary {
    uint64_t num_rows;
    uint64_t num_bad_rows; /* left out in the part so far */
    bool is_last;          /* of its part */
};

/* Writes and empties the fit, atomically; num_rows of the summary is the fit's own. */
ph_status ph__fit_file_write(const char *path, struct ph__fit *fit, const struct ph__fit_summary *summary);

/* Whether there is such a file for such an encoder, written to its end; and whether it is also undamaged, which takes
 * reading it. */
bool ph__fit_file_is_ended(
    const char *path, const struct ph_encoder *encoder, struct ph__fit_summary *summary_out);
bool ph__fit_file_is_whole(
    const char *path, const struct ph_encoder *encoder, struct ph__fit_summary *summary_out);

/* Merges the files, in the order of their rows, into the encoder: its vocabularies, statistics and boundaries. All of
 * them are checked before; PH_ERROR_DATA naming the one that is damaged.
 * PH_ERROR_MEMORY when the words that stay take more than max_bytes, naming the column whose turn it was. */
ph_status ph__fit_files_finish(
    const char *const *paths, size_t num_paths, uint64_t max_bytes, struct ph_encoder *encoder);

#endif
