/* Chooses whole tables for fast memory: a knapsack, by branch and bound.
 *
 * Source: Kolesar 1967 (Management Science 13(9)) for the branches; Dantzig 1957 (Operations Research 5(2))
 * for the bound. */
#include <math.h>
#include <stdlib.h>

#include "base/memory/arena.h"
#include "plan/search/plan_tiers.h"

/* A table's rows, all in fast memory. */
struct item {
    struct ph__tier_cut all;
    double reads_a_byte;
    size_t table;
};

static int by_falling_gain(const void *a, const void *b)
{
    const struct item *left = a, *right = b;
    if (left->reads_a_byte != right->reads_a_byte)
        return left->reads_a_byte > right->reads_a_byte ? -1 : 1;
    return left->table < right->table ? -1 : left->table > right->table;
}

static struct item item_of(const struct ph__tier_table *table, size_t index)
{
    struct item item = {.table = index};
    double rows = 0;
    for (size_t i = 0; i < table->num_steps; i++) {
        rows += table->steps[i].rows;
        item.all.fast_reads += table->steps[i].reads;
    }
    item.all.fast_rows = (uint64_t)llround(rows);
    item.all.fast_bytes = item.all.fast_rows * table->row_bytes;
    item.reads_a_byte = item.all.fast_reads / (double)item.all.fast_bytes;
    return item;
}

struct choosing {
    const struct item *items; /* (count) by falling gain */
    size_t count;
    double most_reads; /* of the best choice so far */
    uint32_t best;     /* a bit for each item */
};

/* Bounds the reads that items from the first one on can add in the bytes left: the last of them is cut. */
static double bound(const struct choosing *choosing, size_t first, uint64_t left)
{
    double reads = 0;
    for (size_t i = first; i < choosing->count; i++) {
        const struct item *item = &choosing->items[i];
        if (item->all.fast_bytes > left)
            return reads + item->reads_a_byte * (double)left;
        reads += item->all.fast_reads;
        left -= item->all.fast_bytes;
    }
    return reads;
}

static bool is_alike(const struct item *left, const struct item *right)
{
    return left->all.fast_bytes == right->all.fast_bytes && left->all.fast_reads == right->all.fast_reads;
}

/* Tries the choices of items from the first one on, the greedy one first. */
static void branch(struct choosing *choosing, size_t first, uint64_t left, double reads, uint32_t taken)
{
    const struct item *items = choosing->items;
    if (reads > choosing->most_reads) {
        choosing->most_reads = reads;
        choosing->best = taken;
    }
    if (first == choosing->count || reads + bound(choosing, first, left) <= choosing->most_reads)
        return;
    if (items[first].all.fast_bytes <= left)
        branch(choosing, first + 1, left - items[first].all.fast_bytes, reads + items[first].all.fast_reads,
            taken | UINT32_C(1) << first);
    while (first + 1 < choosing->count && is_alike(&items[first], &items[first + 1]))
        first++; /* one of them is as good as another */
    branch(choosing, first + 1, left, reads, taken);
}

ph_status ph__tiers_choose_whole(const struct ph__tier_table *tables, size_t num_tables, uint64_t fast_bytes,
    struct ph__tier_cut *cuts_out)
{
    const bool is_exact = num_tables <= PH_TIERS_MOST_EXACT;
    struct ph__arena arena = {0};
    struct item *items = ph__arena_alloc_array(&arena, num_tables, sizeof *items);
    struct choosing choosing = {.items = items, .count = num_tables};
    if (items == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables; i++)
        items[i] = item_of(&tables[i], i);
    qsort(items, num_tables, sizeof *items, by_falling_gain);
    if (is_exact)
        branch(&choosing, 0, fast_bytes, 0, 0);
    for (size_t i = 0; i < num_tables; i++) {
        const struct ph__tier_cut *all = &items[i].all;
        const bool is_fast = is_exact ? choosing.best >> i & 1 : all->fast_bytes <= fast_bytes;
        fast_bytes -= is_fast ? all->fast_bytes : 0;
        cuts_out[items[i].table] = is_fast ? *all : (struct ph__tier_cut){.slow_reads = all->fast_reads};
    }
    ph__arena_fini(&arena);
    return PH_OK;
}
