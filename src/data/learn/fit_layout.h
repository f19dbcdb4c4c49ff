/* The layout of fit files, shared by who writes and who merges them. */
#ifndef PH_DATA_FIT_LAYOUT_H
#define PH_DATA_FIT_LAYOUT_H

#include <string.h>

#include "base/sum/checksum.h"
#include "data/encode/fit.h"

#define PH_FIT_MAGIC "phloem fit 1"
#define PH_FIT_ALIGNMENT 8

/* Where the arrays of a column lie, and what is small enough to lie here. */
struct ph__fit_entry {
    uint64_t num_words, text_bytes;
    uint64_t hashes_at, counts_at, indices_at, ends_at, text_at; /* bytes from the start of the file */
    uint64_t num_sampled, sample_at;
    uint64_t checksum; /* of the arrays' checksums */
    uint64_t num_values, num_blanks;
    double min, max;
    struct ph__exact_sum sum, sum_of_squares;
};

struct ph__fit_footer {
    char magic[16];
    uint64_t num_columns;
    uint64_t num_rows, num_bad_rows;
    uint64_t is_last; /* of its part */
    uint64_t directory_at, directory_checksum;
    uint64_t checksum; /* of what stands before it here */
};

/* The order of words in a file. */
static inline int ph__fit_compare_words(
    uint64_t a_hash, size_t a_length, const char *a, uint64_t b_hash, size_t b_length, const char *b)
{
    if (a_hash != b_hash)
        return a_hash < b_hash ? -1 : 1;
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    return memcmp(a, b, a_length);
}

/* `count` items of `size` bytes at `at`, within the first `end` bytes. */
static inline bool ph__fit_lies_within(uint64_t at, uint64_t count, uint64_t size, uint64_t end)
{
    return at % PH_FIT_ALIGNMENT == 0 && at <= end && count <= (end - at) / size;
}

/* The same for all arrays of a column. */
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

#endif
