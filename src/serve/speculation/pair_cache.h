/* The ladder: numbers of pairs, means of a user's pairs, and means of similar users, in one cache of rows.
 *
 * A row has the user, the item and its numbers as halves. Its key names the teacher's version, the rung, the
 * user and the item. What is older than its life is not found. One thread writes, any thread looks up; times
 * are seconds from 0 on. */
#ifndef PH_SERVE_PAIR_CACHE_H
#define PH_SERVE_PAIR_CACHE_H

#include <stdatomic.h>

#include "store/row_cache.h"

#define PH_MAX_PAIR_NUMBERS 256
#define PH_EXTRA_FEATURES 4 /* behind the numbers: pair, user, near, age */

/* Steps of the ladder. */
#define PH_RUNGS(X) X(none) X(pair) X(user) X(near)
enum ph__rung {
#define X(name) PH_RUNG_##name,
    PH_RUNGS(X)
#undef X
        PH_NUM_RUNGS
};

const char *ph__rung_name(enum ph__rung rung);

struct ph__pair_cache { /* zero-initialised is closed */
    struct ph__row_cache *rows;
    size_t dim;
    double seconds;                       /* that a row lives */
    _Atomic uint64_t version;             /* of the teacher */
    _Atomic uint64_t found[PH_NUM_RUNGS]; /* rows that were looked up, by where they were found */
};

/* Opens a cache of rows of dim numbers, at most PH_MAX_PAIR_NUMBERS. Errors of ph__row_cache_create. */
ph_status ph__pair_cache_open(
    struct ph__pair_cache *cache, uint64_t num_bytes, size_t dim, double seconds, uint64_t version);
void ph__pair_cache_close(struct ph__pair_cache *cache);

/* Looks up rows (count) of users and items: features (count, dim + PH_EXTRA_FEATURES); rungs (count), NULL:
 * not wanted. Any thread. */
void ph__pair_cache_look_up(struct ph__pair_cache *cache, double now, size_t count, const uint64_t *users,
    const uint64_t *items, float *features, uint8_t *rungs);

/* Returns the end of the rows from `first` on that have its user. */
size_t ph__pair_cache_end_of_user(const uint64_t *users, size_t first, size_t count);

/* ---- the writer ---- */

/* Returns the birth of rows that are computed now, and the oldest birth that is still found. */
uint32_t ph__pair_cache_birth(double now);
uint32_t ph__pair_cache_oldest(const struct ph__pair_cache *cache, double now);

/* Puts a row: numbers (dim). item: of a pair alone. */
void ph__pair_cache_put(struct ph__pair_cache *cache, enum ph__rung rung, uint64_t user, uint64_t item,
    uint32_t birth, const float *numbers);
/* Reads the numbers (dim; NULL: not wanted) of a pair that is found; returns its birth, 0: it is not. */
uint32_t ph__pair_cache_read(
    const struct ph__pair_cache *cache, double now, uint64_t user, uint64_t item, float *numbers);

/* Removes the rows of a user, or of an item: pairs, and means that may have part of them. */
void ph__pair_cache_forget_user(struct ph__pair_cache *cache, uint64_t user);
void ph__pair_cache_forget_item(struct ph__pair_cache *cache, uint64_t item);

#endif
