#include "serve/speculation/pair_cache.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/rng.h"
#include "base/sizes.h"
#include "tensor/float16.h"

enum { AT_ONCE = 62 }; /* rows of a user that are looked up together, with the user's two */
#define MOST_HALF 65504.f

struct row {
    uint64_t user, item, rung;
    uint16_t numbers[PH_MAX_PAIR_NUMBERS]; /* (dim) */
};

static size_t bytes_of(size_t dim)
{
    return ph__round_up(offsetof(struct row, numbers) + dim * sizeof(uint16_t), sizeof(uint64_t));
}

static uint64_t key_of(uint64_t version, enum ph__rung rung, uint64_t user, uint64_t item)
{
    return ph__hash_mix(ph__hash_mix(ph__hash_mix(version ^ rung) ^ user) ^ item);
}

/* Widens halves that are finite: the exponents' biases differ by 112. */
static void widen(size_t count, const uint16_t *halves, float *to)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)(halves[i] & 0x7fff) << 13;
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        to[i] = copysignf(magnitude * 0x1p112f, (halves[i] & 0x8000) != 0 ? -1.f : 1.f);
    }
}

const char *ph__rung_name(enum ph__rung rung)
{
    static const char *const names[] = {
#define X(name) #name,
        PH_RUNGS(X)
#undef X
    };
    return names[rung];
}

/* ---- births ---- */

uint32_t ph__pair_cache_birth(double now)
{
    return (uint32_t)now + 1;
}

uint32_t ph__pair_cache_oldest(const struct ph__pair_cache *cache, double now)
{
    const double oldest = floor(now) - cache->seconds;
    return oldest > 0 ? (uint32_t)oldest + 1 : 1;
}

/* ---- looking up ---- */

static void write_features(const struct ph__pair_cache *cache, double now, enum ph__rung rung,
    const struct row *row, uint32_t birth, float *features)
{
    const size_t dim = cache->dim;
    memset(features, 0, (dim + PH_EXTRA_FEATURES) * sizeof *features);
    if (rung == PH_RUNG_none)
        return;
    widen(dim, row->numbers, features);
    features[dim + rung - 1] = 1;
    features[dim + PH_EXTRA_FEATURES - 1] = (float)fmin(fmax((now - (birth - 1)) / cache->seconds, 0), 1);
}

/* Looks up rows (count <= AT_ONCE) of one user. */
static void look_up_user(struct ph__pair_cache *cache, double now, size_t count, uint64_t user,
    const uint64_t *items, float *features, uint8_t *rungs)
{
    const uint64_t version = atomic_load_explicit(&cache->version, memory_order_relaxed);
    const size_t width = cache->dim + PH_EXTRA_FEATURES, row_bytes = bytes_of(cache->dim);
    struct row space[AT_ONCE + 2];
    const char *rows = (const char *)space;
    uint64_t keys[AT_ONCE + 2], found[PH_NUM_RUNGS] = {0};
    uint32_t births[AT_ONCE + 2];
    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(version, PH_RUNG_pair, user, items[i]);
    keys[count] = key_of(version, PH_RUNG_user, user, 0);
    keys[count + 1] = key_of(version, PH_RUNG_near, user, 0);
    (void)ph__row_cache_get(cache->rows, count + 2, keys, ph__pair_cache_oldest(cache, now), space, births);
    const size_t fallback = births[count] > 0 ? count : count + 1;
    const enum ph__rung fallback_rung = births[count] > 0       ? PH_RUNG_user
                                        : births[count + 1] > 0 ? PH_RUNG_near
                                                                : PH_RUNG_none;
    for (size_t i = 0; i < count; i++) {
        const size_t at = births[i] > 0 ? i : fallback;
        const enum ph__rung rung = births[i] > 0 ? PH_RUNG_pair : fallback_rung;
        const struct row *row = (const struct row *)(const void *)(rows + at * row_bytes);
        write_features(cache, now, rung, row, births[at], features + i * width);
        found[rung]++;
        if (rungs != NULL)
            rungs[i] = (uint8_t)rung;
    }
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        atomic_fetch_add_explicit(&cache->found[rung], found[rung], memory_order_relaxed);
}

size_t ph__pair_cache_end_of_user(const uint64_t *users, size_t first, size_t count)
{
    size_t end = first + 1;
    while (end < count && users[end] == users[first])
        end++;
    return end;
}

void ph__pair_cache_look_up(struct ph__pair_cache *cache, double now, size_t count, const uint64_t *users,
    const uint64_t *items, float *features, uint8_t *rungs)
{
    const size_t width = cache->dim + PH_EXTRA_FEATURES;
    for (size_t first = 0, end; first < count; first = end) {
        end = ph__min(ph__pair_cache_end_of_user(users, first, count), first + AT_ONCE);
        look_up_user(cache, now, end - first, users[first], items + first, features + first * width,
            rungs != NULL ? rungs + first : NULL);
    }
}

/* ---- writing ---- */

void ph__pair_cache_put(struct ph__pair_cache *cache, enum ph__rung rung, uint64_t user, uint64_t item,
    uint32_t birth, const float *numbers)
{
    struct row row = {.user = user, .item = item, .rung = rung};
    for (size_t i = 0; i < cache->dim; i++)
        row.numbers[i] = ph__half_from_float(fminf(fmaxf(numbers[i], -MOST_HALF), MOST_HALF));
    ph__row_cache_put(cache->rows, key_of(atomic_load(&cache->version), rung, user, item), birth, &row);
}

uint32_t ph__pair_cache_read(
    const struct ph__pair_cache *cache, double now, uint64_t user, uint64_t item, float *numbers)
{
    struct row row;
    const uint64_t key = key_of(atomic_load(&cache->version), PH_RUNG_pair, user, item);
    const uint32_t birth = ph__row_cache_peek(cache->rows, key, numbers != NULL ? &row : NULL);
    if (birth < ph__pair_cache_oldest(cache, now))
        return 0;
    if (numbers != NULL)
        widen(cache->dim, row.numbers, numbers);
    return birth;
}

struct forgotten {
    uint64_t user, item;
    bool is_item;
};

/* Tells whether a row may hold something of what is forgotten. Means of similar users hold that of all. */
static bool is_forgotten(void *context, const void *bytes)
{
    const struct forgotten *forgotten = context;
    struct row head;
    memcpy(&head, bytes, offsetof(struct row, numbers));
    if (head.rung == PH_RUNG_near)
        return true;
    if (forgotten->is_item)
        return head.rung == PH_RUNG_user || head.item == forgotten->item;
    return head.user == forgotten->user;
}

void ph__pair_cache_forget_user(struct ph__pair_cache *cache, uint64_t user)
{
    ph__row_cache_remove_if(cache->rows, is_forgotten, &(struct forgotten){.user = user});
}

void ph__pair_cache_forget_item(struct ph__pair_cache *cache, uint64_t item)
{
    ph__row_cache_remove_if(cache->rows, is_forgotten, &(struct forgotten){.item = item, .is_item = true});
}

/* ---- life ---- */

ph_status ph__pair_cache_open(
    struct ph__pair_cache *cache, uint64_t num_bytes, size_t dim, double seconds, uint64_t version)
{
    *cache = (struct ph__pair_cache){.dim = dim, .seconds = seconds, .version = version};
    return ph__row_cache_create(num_bytes, bytes_of(dim), &cache->rows);
}

void ph__pair_cache_close(struct ph__pair_cache *cache)
{
    ph__row_cache_destroy(cache->rows);
    *cache = (struct ph__pair_cache){0};
}
