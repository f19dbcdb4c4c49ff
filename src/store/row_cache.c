#include "store/row_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/text/number.h"

enum { WAYS = 8, LINE_BYTES = 64, AT_ONCE = 32 };

typedef _Atomic uint64_t word;

/* Births are 0 where a way is empty. A set takes two lines of the processor's cache, so that a look-up waits
 * for these and for the row. */
struct set {
    _Alignas(LINE_BYTES) word keys[WAYS];
    _Atomic uint32_t births[WAYS];
    _Atomic uint16_t versions[WAYS];
    _Atomic uint8_t are_read; /* a bit a way: its row was read */
};
_Static_assert(sizeof(struct set) == (size_t)2 * LINE_BYTES, "a set takes two lines");

struct ph__row_cache {
    struct set *sets; /* (num_sets) */
    word *rows;       /* (num_sets, WAYS, row_words) */
    size_t num_sets, row_words, row_bytes;
    _Atomic uint64_t num_rows, num_written, num_replaced, num_never_read, num_stale;
};

static void add(_Atomic uint64_t *count, uint64_t number)
{
    atomic_fetch_add_explicit(count, number, memory_order_relaxed);
}

static struct set *set_of(const struct ph__row_cache *cache, uint64_t key)
{
    __extension__ typedef unsigned __int128 wide;
    return &cache->sets[(size_t)((wide)key * cache->num_sets >> 64)];
}

static word *row_of(const struct ph__row_cache *cache, const struct set *set, size_t way)
{
    return cache->rows + ((size_t)(set - cache->sets) * WAYS + way) * cache->row_words;
}

/* Returns the way that holds the key, WAYS: none does. */
static size_t find_way(const struct set *set, uint64_t key)
{
    size_t way = 0;
    while (way < WAYS && (atomic_load_explicit(&set->keys[way], memory_order_relaxed) != key ||
                             atomic_load_explicit(&set->births[way], memory_order_relaxed) == 0))
        way++;
    return way;
}

static bool is_read(const struct set *set, size_t way)
{
    return (atomic_load_explicit(&set->are_read, memory_order_relaxed) >> way & 1) != 0;
}

/* ---- reading ---- */

/* Loads with acquire, so that the version that is read behind is not older than the row. */
static void copy_out(const word *from, size_t num_bytes, unsigned char *to)
{
    for (; num_bytes > 0; from++) {
        const uint64_t bits = atomic_load_explicit(from, memory_order_acquire);
        const size_t size = ph__min(num_bytes, sizeof bits);
        memcpy(to, &bits, size);
        to += size;
        num_bytes -= size;
    }
}

/* Returns the birth of the row in this way, 0: it is too old, or is being written. */
static uint32_t read_way(struct ph__row_cache *cache, struct set *set, size_t way, uint64_t key,
    uint32_t oldest, unsigned char *row_out)
{
    unsigned char row[cache->row_bytes];
    const uint16_t version = atomic_load_explicit(&set->versions[way], memory_order_acquire);
    const uint32_t birth = atomic_load_explicit(&set->births[way], memory_order_acquire);
    copy_out(row_of(cache, set, way), cache->row_bytes, row);
    if (version % 2 == 1 || birth == 0 ||
        atomic_load_explicit(&set->keys[way], memory_order_acquire) != key ||
        atomic_load_explicit(&set->versions[way], memory_order_relaxed) != version)
        return 0;
    if (birth < oldest) {
        add(&cache->num_stale, 1);
        return 0;
    }
    if (!is_read(set, way)) /* most were: the line stays as it is */
        atomic_fetch_or_explicit(&set->are_read, (uint8_t)(1 << way), memory_order_relaxed);
    memcpy(row_out, row, cache->row_bytes);
    return birth;
}

/* Asks for all tags, then for all rows, so that their misses overlap. */
static size_t get_some(struct ph__row_cache *cache, size_t count, const uint64_t *keys, uint32_t oldest,
    unsigned char *rows_out, uint32_t *births_out)
{
    size_t ways[AT_ONCE], num_found = 0;
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(set_of(cache, keys[i]));
        __builtin_prefetch((const char *)set_of(cache, keys[i]) + LINE_BYTES);
    }
    for (size_t i = 0; i < count; i++) {
        const struct set *set = set_of(cache, keys[i]);
        ways[i] = find_way(set, keys[i]);
        for (size_t byte = 0; ways[i] < WAYS && byte < cache->row_bytes; byte += LINE_BYTES)
            __builtin_prefetch((const char *)row_of(cache, set, ways[i]) + byte);
    }
    for (size_t i = 0; i < count; i++) {
        births_out[i] = ways[i] < WAYS ? read_way(cache, set_of(cache, keys[i]), ways[i], keys[i], oldest,
                                             rows_out + i * cache->row_bytes)
                                       : 0;
        num_found += births_out[i] > 0;
    }
    return num_found;
}

size_t ph__row_cache_get(struct ph__row_cache *cache, size_t count, const uint64_t *keys, uint32_t oldest,
    void *rows_out, uint32_t *births_out)
{
    size_t num_found = 0;
    for (size_t first = 0; first < count; first += AT_ONCE)
        num_found += get_some(cache, ph__min(count - first, (size_t)AT_ONCE), keys + first, oldest,
            (unsigned char *)rows_out + first * cache->row_bytes, births_out + first);
    return num_found;
}

/* ---- writing ---- */

/* Returns the way of the key, an empty one, or the oldest. */
static size_t choose_way(const struct set *set, uint64_t key)
{
    const size_t own = find_way(set, key);
    size_t way = 0;
    if (own < WAYS)
        return own;
    for (size_t other = 1; other < WAYS; other++)
        if (atomic_load_explicit(&set->births[other], memory_order_relaxed) <
            atomic_load_explicit(&set->births[way], memory_order_relaxed))
            way = other;
    return way;
}

static bool is_full(const struct set *set, size_t way)
{
    return atomic_load_explicit(&set->births[way], memory_order_relaxed) > 0;
}

/* Makes the version odd. What is written until it is even again is stored with release, so that no reader
 * sees it and the former version. */
static void begin_way(struct set *set, size_t way)
{
    const uint16_t version = atomic_load_explicit(&set->versions[way], memory_order_relaxed);
    atomic_store_explicit(&set->versions[way], (uint16_t)(version + 1), memory_order_relaxed);
}

static void end_way(struct set *set, size_t way)
{
    const uint16_t version = atomic_load_explicit(&set->versions[way], memory_order_relaxed);
    atomic_store_explicit(&set->versions[way], (uint16_t)(version + 1), memory_order_release);
}

static void write_row(const struct ph__row_cache *cache, word *to, const unsigned char *row)
{
    for (size_t byte = 0; byte < cache->row_bytes; byte += sizeof(uint64_t)) {
        uint64_t bits = 0;
        memcpy(&bits, row + byte, ph__min(cache->row_bytes - byte, sizeof bits));
        atomic_store_explicit(to++, bits, memory_order_release);
    }
}

void ph__row_cache_put(struct ph__row_cache *cache, uint64_t key, uint32_t birth, const void *row)
{
    struct set *set = set_of(cache, key);
    const size_t way = choose_way(set, key);
    word *to = row_of(cache, set, way);
    if (is_full(set, way)) {
        add(&cache->num_replaced, 1);
        add(&cache->num_never_read, !is_read(set, way));
    } else {
        add(&cache->num_rows, 1);
    }
    begin_way(set, way);
    atomic_store_explicit(&set->keys[way], key, memory_order_release);
    atomic_store_explicit(&set->births[way], birth, memory_order_release);
    atomic_fetch_and_explicit(&set->are_read, (uint8_t) ~(1 << way), memory_order_relaxed);
    write_row(cache, to, row);
    end_way(set, way);
    add(&cache->num_written, 1);
}

static void empty_way(struct ph__row_cache *cache, struct set *set, size_t way)
{
    word *row = row_of(cache, set, way);
    begin_way(set, way);
    atomic_store_explicit(&set->births[way], 0, memory_order_release);
    for (size_t i = 0; i < cache->row_words; i++)
        atomic_store_explicit(&row[i], 0, memory_order_release);
    end_way(set, way);
    add(&cache->num_rows, UINT64_MAX);
}

void ph__row_cache_remove_if(
    struct ph__row_cache *cache, bool (*is_meant)(void *context, const void *row), void *context)
{
    unsigned char row[cache->row_bytes];
    for (size_t i = 0; i < cache->num_sets; i++)
        for (size_t way = 0; way < WAYS; way++) {
            if (!is_full(&cache->sets[i], way))
                continue;
            copy_out(row_of(cache, &cache->sets[i], way), cache->row_bytes, row);
            if (is_meant(context, row))
                empty_way(cache, &cache->sets[i], way);
        }
}

uint32_t ph__row_cache_peek(const struct ph__row_cache *cache, uint64_t key, void *row_out)
{
    const struct set *set = set_of(cache, key);
    const size_t way = find_way(set, key);
    if (way == WAYS)
        return 0;
    if (row_out != NULL)
        copy_out(row_of(cache, set, way), cache->row_bytes, row_out);
    return atomic_load_explicit(&set->births[way], memory_order_relaxed);
}

struct ph__row_cache_counts ph__row_cache_counts(const struct ph__row_cache *cache)
{
    return (struct ph__row_cache_counts){.num_rows = atomic_load(&cache->num_rows),
        .capacity = cache->num_sets * WAYS,
        .num_written = atomic_load(&cache->num_written),
        .num_replaced = atomic_load(&cache->num_replaced),
        .num_never_read = atomic_load(&cache->num_never_read),
        .num_stale = atomic_load(&cache->num_stale)};
}

/* ---- creation ---- */

static ph_status allocate(struct ph__row_cache *cache, uint64_t num_bytes)
{
    const size_t set_bytes = sizeof(struct set) + WAYS * cache->row_words * sizeof(word);
    char wanted[PH_NUMBER_TEXT_BYTES], free_text[PH_NUMBER_TEXT_BYTES];
    uint64_t available;
    PH_TRY(ph__memory_available_bytes(&available));
    if (num_bytes > available)
        return ph_fail(PH_ERROR_MEMORY, "a cache of %s does not fit: %s are free",
            ph__bytes_text(num_bytes, wanted), ph__bytes_text(available, free_text));
    if (num_bytes < set_bytes)
        return ph_fail(PH_ERROR_USAGE, "a cache of %s has no room for %d rows of %zu bytes",
            ph__bytes_text(num_bytes, wanted), WAYS, cache->row_bytes);
    cache->num_sets = (size_t)(num_bytes / set_bytes);
    cache->sets = aligned_alloc(LINE_BYTES, cache->num_sets * sizeof *cache->sets);
    cache->rows = calloc(cache->num_sets * WAYS * cache->row_words, sizeof *cache->rows);
    if (cache->sets == NULL || cache->rows == NULL)
        return ph__out_of_memory("a cache of %s", ph__bytes_text(num_bytes, wanted));
    memset(cache->sets, 0, cache->num_sets * sizeof *cache->sets);
    return PH_OK;
}

ph_status ph__row_cache_create(uint64_t num_bytes, size_t row_bytes, struct ph__row_cache **cache_out)
{
    struct ph__row_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return ph__out_of_memory("a cache of rows");
    cache->row_bytes = row_bytes;
    cache->row_words = ph__divide_up(row_bytes, sizeof(word));
    const ph_status status = allocate(cache, num_bytes);
    if (status == PH_OK)
        *cache_out = cache;
    else
        ph__row_cache_destroy(cache);
    return status;
}

void ph__row_cache_destroy(struct ph__row_cache *cache)
{
    if (cache == NULL)
        return;
    free(cache->sets);
    free(cache->rows);
    free(cache);
}
