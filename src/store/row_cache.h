/* A cache of rows by key, in a fixed number of bytes: sets of eight ways, of which the oldest gives way. Each
 * row has its time of birth, and readers say how old one may be. Keys are hashes already, compared whole.
 *
 * One thread writes at a time, while any number read: a row has a version that is odd while it is written,
 * and a reader that sees it change finds nothing. */
#ifndef PH_STORE_ROW_CACHE_H
#define PH_STORE_ROW_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph__row_cache;

/* Rows of row_bytes bytes. PH_ERROR_USAGE: num_bytes has no room for a set; PH_ERROR_MEMORY: more than is
 * free, saying both. */
ph_status ph__row_cache_create(uint64_t num_bytes, size_t row_bytes, struct ph__row_cache **cache_out);
void ph__row_cache_destroy(struct ph__row_cache *cache);

/* Looks up keys (count), as many at once as the memory answers: rows_out (count, row_bytes), births_out
 * (count) in the unit of the writer. A row that is missing, or born before `oldest`, has birth 0, and its
 * bytes stay as they were. Returns how many were found. */
size_t ph__row_cache_get(struct ph__row_cache *cache, size_t count, const uint64_t *keys, uint32_t oldest,
    void *rows_out, uint32_t *births_out);

/* Copies a key's row, of any age, to row_out (NULL: not wanted), and returns its birth, 0: it is not there.
 * No reading is counted. Writer alone. */
uint32_t ph__row_cache_peek(const struct ph__row_cache *cache, uint64_t key, void *row_out);

/* Writes a row that was born now, or since the last row: birth > 0. */
void ph__row_cache_put(struct ph__row_cache *cache, uint64_t key, uint32_t birth, const void *row);
/* Removes the rows that `is_meant` tells, and overwrites their bytes by zeros. Looks at every row. */
void ph__row_cache_remove_if(
    struct ph__row_cache *cache, bool (*is_meant)(void *context, const void *row), void *context);

struct ph__row_cache_counts {
    uint64_t num_rows, capacity;
    uint64_t num_written, num_replaced; /* replaced: rows that gave way to others, or to themselves */
    uint64_t num_never_read;            /* of those replaced */
    uint64_t num_stale;                 /* rows that were looked up and too old */
};
struct ph__row_cache_counts ph__row_cache_counts(const struct ph__row_cache *cache);

#endif
