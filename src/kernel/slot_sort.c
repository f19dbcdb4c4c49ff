/* Stable sort of slots: radix sort, least significant digit first, on exactly the bits that the range needs.
 *
 * A slot and its position travel as one 64-bit item, slot in the high half. Few slots are sorted by
 * insertion. A range that is narrow, measured by the second cache and by the number of slots, is counted and
 * scattered straight into the output. Serial; any thread may call it. */
#include <assert.h>
#include <string.h>

#include "kernel/kernel.h"

enum { MAX_DIGIT_BITS = 11, MAX_DIGITS = 3, BUCKETS = 1 << MAX_DIGIT_BITS, FEW = 48 };
enum { LINE_WORDS = 64 / sizeof(uint32_t) };
enum { MAX_COUNTED = 1 << 17, COUNTED_A_SLOT = 3 /* at most: the counters lie in the scratch */ };

static uint64_t item_of(const uint32_t *slots, size_t i, uint32_t base, uint32_t first_position)
{
    return (uint64_t)(slots[i] - base) << 32 | (first_position + (uint32_t)i);
}

/* Writes sorted items to order, unique and starts; returns the number of distinct slots. Writes every item as
 * if it began a run, and overwrites those that do not: a branch would be mispredicted about half the time. */
static size_t emit_runs(
    const uint64_t *items, size_t count, uint32_t base, uint32_t *order, uint32_t *unique, uint32_t *starts)
{
    size_t runs = 0;
    uint64_t previous = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = items[i] >> 32;
        order[i] = (uint32_t)items[i];
        unique[runs] = base + (uint32_t)slot;
        starts[runs] = (uint32_t)i;
        runs += slot != previous;
        previous = slot;
    }
    return runs;
}

/* Sorts items by insertion. Positions grow, so comparing whole items keeps ties in order. */
static void insertion_sort(uint64_t *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint64_t item = items[i];
        size_t j = i;
        for (; j > 0 && items[j - 1] > item; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

/* Sorts by counting. next (range) holds the histogram, which list_runs turns into the list of runs. */
static size_t counting_sort(const struct ph__kernels *kernels, const uint32_t *slots, size_t count,
    uint32_t base, uint32_t range, uint32_t first_position, uint32_t *order, uint32_t *unique,
    uint32_t *starts, uint32_t *next)
{
    memset(next, 0, range * sizeof *next);
    for (size_t i = 0; i < count; i++) {
        if (i % LINE_WORDS == 0)
            __builtin_prefetch(order + i, 1); /* written in no order */
        next[slots[i] - base]++;
    }
    const size_t runs = kernels->list_runs(range, count, base, next, unique, starts);
    for (size_t i = 0; i < count; i++)
        order[next[slots[i] - base]++] = first_position + (uint32_t)i;
    return runs;
}

/* Turns the lengths of buckets into their starts. */
static void sum_lengths(uint32_t *lengths, uint32_t buckets)
{
    uint32_t start = 0;
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        const uint32_t length = lengths[bucket];
        lengths[bucket] = start;
        start += length;
    }
}

/* Counts how often each value of each digit occurs. The number of digits is a constant: otherwise counting
 * would take as long as the passes. */
static inline void count_digits(const uint32_t *slots, size_t count, uint32_t base, unsigned digits,
    unsigned digit_bits, uint32_t lengths[MAX_DIGITS][BUCKETS])
{
    const uint32_t mask = ((uint32_t)1 << digit_bits) - 1;
    for (unsigned digit = 0; digit < digits; digit++)
        memset(lengths[digit], 0, (mask + 1) * sizeof lengths[digit][0]);
    for (size_t i = 0; i < count; i++) {
        const uint32_t slot = slots[i] - base;
        lengths[0][slot & mask]++;
        lengths[1][slot >> digit_bits & mask]++;
        if (digits == MAX_DIGITS)
            lengths[2][slot >> 2 * digit_bits]++;
    }
}

/* Sorts by the low `bits` bits of slot - base; returns the array, items or spare, that holds the result. The
 * first pass makes the items. */
static uint64_t *radix_sort(const uint32_t *slots, size_t count, uint32_t base, uint32_t first_position,
    unsigned bits, uint64_t *items, uint64_t *spare)
{
    uint32_t next[MAX_DIGITS][BUCKETS];
    const unsigned digits = (bits + MAX_DIGIT_BITS - 1) / MAX_DIGIT_BITS;
    const unsigned digit_bits = (bits + digits - 1) / digits;
    const uint32_t buckets = (uint32_t)1 << digit_bits, mask = buckets - 1;

    if (digits == 2)
        count_digits(slots, count, base, 2, digit_bits, next);
    else
        count_digits(slots, count, base, MAX_DIGITS, digit_bits, next);
    for (unsigned digit = 0; digit < digits; digit++)
        sum_lengths(next[digit], buckets);

    for (size_t i = 0; i < count; i++)
        items[next[0][(slots[i] - base) & mask]++] = item_of(slots, i, base, first_position);
    for (unsigned digit = 1; digit < digits; digit++) {
        const unsigned shift = 32 + digit * digit_bits;
        for (size_t i = 0; i < count; i++)
            spare[next[digit][items[i] >> shift & mask]++] = items[i];
        uint64_t *sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

size_t ph__slot_sort(const struct ph__kernels *kernels, const uint32_t *slots, size_t count, uint32_t base,
    uint32_t range, uint32_t first_position, uint32_t *order, uint32_t *unique, uint32_t *starts,
    void *scratch)
{
    assert(count <= UINT32_MAX && (uintptr_t)scratch % sizeof(uint64_t) == 0);
    if (range <= BUCKETS && count > FEW) {
        uint32_t next[BUCKETS];
        return counting_sort(kernels, slots, count, base, range, first_position, order, unique, starts, next);
    }
    if (range <= MAX_COUNTED && range <= COUNTED_A_SLOT * count)
        return counting_sort(
            kernels, slots, count, base, range, first_position, order, unique, starts, scratch);

    uint64_t *items = scratch;
    if (count <= FEW) {
        for (size_t i = 0; i < count; i++)
            items[i] = item_of(slots, i, base, first_position);
        insertion_sort(items, count);
    } else {
        const unsigned bits = 32 - (unsigned)__builtin_clz(range - 1);
        items = radix_sort(slots, count, base, first_position, bits, items, items + count);
    }
    return emit_runs(items, count, base, order, unique, starts);
}

size_t ph__slot_sort_scratch_bytes(size_t count)
{
    return 2 * count * sizeof(uint64_t);
}
