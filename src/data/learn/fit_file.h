/* A fit (encode/fit.h) as a file: lets a first pass stay within its memory and go on after a crash.
 *
 * A fit is written when it has grown to its bound, or when its part of the data has ended; the files of all
 * parts, in their order, merge to the same as one fit over all rows. Merging maps the files and walks through
 * them side by side, word by word: its memory holds only words that are kept.
 *
 * Layout, little-endian: arrays one after another, each on a multiple of 8 bytes: for each column its words
 * in the order of (hash, length, bytes) as hash u64, count u32, index of first appearance u32, end of text
 * u64, text; then its sample; then a directory with the place and the checksum of each column's arrays; then
 * a footer. A file is scratch: a file of another version, encoder or machine is ignored, without an error. */
#ifndef PH_DATA_FIT_FILE_H
#define PH_DATA_FIT_FILE_H

#include <string.h>

#include "base/sum/checksum.h"
#include "data/encode/fit.h"

/* ---- layout, as learn.c writes it ---- */

#define PH_FIT_MAGIC "phloem fit 1"
#define PH_FIT_ALIGNMENT 8

/* Places of a column's arrays, and the column's totals. */
struct ph__fit_entry {
    uint64_t num_words, text_bytes;
    uint64_t hashes_at, counts_at, indices_at, ends_at, text_at; /* bytes from the start of the file */
    uint64_t num_sampled, sample_at;
    uint64_t checksum; /* checksum of the arrays' checksums */
    struct ph__fit_totals totals;
};

struct ph__fit_footer {
    char magic[16];
    uint64_t num_columns;
    uint64_t num_rows, num_bad_rows;
    uint64_t is_last; /* 1: last file of its part */
    uint64_t directory_at, directory_checksum;
    uint64_t checksum; /* checksum of the members before this one */
};

/* Compares words by their order in a file. */
static inline int ph__fit_compare_words(
    uint64_t a_hash, size_t a_length, const char *a, uint64_t b_hash, size_t b_length, const char *b)
{
    if (a_hash != b_hash)
        return a_hash < b_hash ? -1 : 1;
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    return memcmp(a, b, a_length);
}

/* Returns true when `count` items of `size` bytes at `at` lie within the first `end` bytes. */
static inline bool ph__fit_lies_within(uint64_t at, uint64_t count, uint64_t size, uint64_t end)
{
    return at % PH_FIT_ALIGNMENT == 0 && at <= end && count <= (end - at) / size;
}

/* Returns true when all arrays of a column do. */
static inline bool ph__fit_entry_lies_within(const struct ph__fit_entry *entry, uint64_t end)
{
    return ph__fit_lies_within(entry->hashes_at, entry->num_words, sizeof(uint64_t), end) &&
           ph__fit_lies_within(entry->counts_at, entry->num_words, sizeof(uint32_t), end) &&
           ph__fit_lies_within(entry->indices_at, entry->num_words, sizeof(uint32_t), end) &&
           ph__fit_lies_within(entry->ends_at, entry->num_words, sizeof(uint64_t), end) &&
           ph__fit_lies_within(entry->text_at, entry->text_bytes, 1, end) &&
           ph__fit_lies_within(entry->sample_at, entry->num_sampled, sizeof(struct ph__sampled), end);
}

static inline uint64_t ph__fit_entry_checksum(const struct ph__fit_entry *entry, const uint64_t *hashes,
    const uint32_t *counts, const uint32_t *indices, const uint64_t *ends, const char *text,
    const void *sample)
{
    const uint64_t sums[] = {ph__checksum(hashes, entry->num_words * sizeof *hashes),
        ph__checksum(counts, entry->num_words * sizeof *counts),
        ph__checksum(indices, entry->num_words * sizeof *indices),
        ph__checksum(ends, entry->num_words * sizeof *ends), ph__checksum(text, entry->text_bytes),
        ph__checksum(sample, entry->num_sampled * sizeof(struct ph__sampled))};
    return ph__checksum(sums, sizeof sums);
}

/* ---- reading and merging ---- */

/* Rows of a file, and its place in its part. */
struct ph__fit_summary {
    uint64_t num_rows;
    uint64_t num_bad_rows; /* rows left out in the part so far */
    bool is_last;          /* last file of its part */
};

/* Return true when there is a file for this encoder, written to its end; and when the file is undamaged, too,
 * which takes reading all of it. */
bool ph__fit_file_is_ended(
    const char *path, const struct ph_encoder *encoder, struct ph__fit_summary *summary_out);
bool ph__fit_file_is_whole(
    const char *path, const struct ph_encoder *encoder, struct ph__fit_summary *summary_out);

/* Merges files, in the order of their rows, into the encoder's vocabularies, statistics and boundaries.
 * Checks all files first; PH_ERROR_DATA naming a damaged one. PH_ERROR_MEMORY when the kept words take more
 * than max_bytes, naming the column that was being merged. */
ph_status ph__fit_files_finish(
    const char *const *paths, size_t num_paths, uint64_t max_bytes, struct ph_encoder *encoder);

#endif
