#include "hub/layout/partition.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

struct item {
    size_t size, index;
};

_Static_assert(sizeof(struct item) == PH_PARTITION_ITEM_BYTES, "partition.h tells what an item takes");

static int largest_first(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Bins as a binary heap: the one with the least load on top, the first of those with equal loads. */
struct heap {
    uint32_t *bins; /* (count) */
    size_t count;
    const size_t *loads; /* by bin */
};

static bool comes_before(const struct heap *heap, size_t left, size_t right)
{
    const uint32_t a = heap->bins[left], b = heap->bins[right];
    return heap->loads[a] != heap->loads[b] ? heap->loads[a] < heap->loads[b] : a < b;
}

/* The load of the bin on top has grown: moves it down to where it belongs. */
static void sink_top(struct heap *heap)
{
    for (size_t at = 0, child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && comes_before(heap, child + 1, child))
            child++;
        if (!comes_before(heap, child, at))
            return;
        const uint32_t moved = heap->bins[at];
        heap->bins[at] = heap->bins[child];
        heap->bins[child] = moved;
        at = child;
    }
}

static void fill_bins(
    const struct item *items, size_t num_items, struct heap *heap, uint32_t *bins_out, size_t *loads_out)
{
    memset(loads_out, 0, heap->count * sizeof *loads_out);
    for (size_t b = 0; b < heap->count; b++)
        heap->bins[b] = (uint32_t)b; /* a heap, as long as all loads are 0 */
    for (size_t i = 0; i < num_items; i++) {
        const uint32_t bin = heap->bins[0];
        bins_out[items[i].index] = bin;
        loads_out[bin] += items[i].size;
        sink_top(heap);
    }
}

static ph_status sort_items(size_t num_items, const size_t *sizes, struct item *items)
{
    size_t sum = 0;
    for (size_t i = 0; i < num_items; i++) {
        if (!ph__size_add(sum, sizes[i], &sum))
            return ph_fail(
                PH_ERROR_USAGE, "the sizes of %zu items add up to more than a size can be", num_items);
        items[i] = (struct item){sizes[i], i};
    }
    qsort(items, num_items, sizeof *items, largest_first);
    return PH_OK;
}

ph_status ph__partition(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out)
{
    assert(num_bins > 0 && num_bins <= UINT32_MAX);
    struct item *items = calloc(num_items + 1, sizeof *items);
    struct heap heap = {.bins = calloc(num_bins, sizeof *heap.bins), .count = num_bins, .loads = loads_out};
    ph_status status = PH_OK;
    if (items == NULL || heap.bins == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory to partition %zu items", num_items);
    else
        status = sort_items(num_items, sizes, items);
    if (status == PH_OK)
        fill_bins(items, num_items, &heap, bins_out, loads_out);
    free(heap.bins);
    free(items);
    return status;
}
