/* Partitions items and spreads chunks; see spread.h. */
#include "hub/layout/spread.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

/* ---- balanced partition ---- */

struct item { /* sorted by size */
    size_t size, index;
};

static int largest_first(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Binary heap of bins: on top the least load, and the first bin of equal loads. */
struct heap {
    uint32_t *bins; /* (count) */
    size_t count;
    const size_t *loads; /* indexed by bin */
};

static bool comes_before(const struct heap *heap, size_t left, size_t right)
{
    const uint32_t a = heap->bins[left], b = heap->bins[right];
    return heap->loads[a] != heap->loads[b] ? heap->loads[a] < heap->loads[b] : a < b;
}

/* Moves the top bin, whose load has grown, down to its place. */
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
        heap->bins[b] = (uint32_t)b; /* any order is a heap while all loads are 0 */
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
            return ph_fail(PH_ERROR_USAGE, "the sizes of %zu items overflow when added", num_items);
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
        status = ph__out_of_memory("cannot partition %zu items", num_items);
    else
        status = sort_items(num_items, sizes, items);
    if (status == PH_OK)
        fill_bins(items, num_items, &heap, bins_out, loads_out);
    free(heap.bins);
    free(items);
    return status;
}

/* ---- chunks to bins ---- */

struct scratch {
    size_t *sizes, *loads;
    uint32_t *chunks, *bins;
};

static void free_scratch(struct scratch *scratch)
{
    free(scratch->sizes);
    free(scratch->loads);
    free(scratch->chunks);
    free(scratch->bins);
}

static ph_status allocate_scratch(size_t num_chunks, size_t num_bins, struct scratch *scratch)
{
    scratch->sizes = calloc(num_chunks, sizeof *scratch->sizes);
    scratch->loads = calloc(num_bins, sizeof *scratch->loads);
    scratch->chunks = calloc(num_chunks, sizeof *scratch->chunks);
    scratch->bins = calloc(num_chunks, sizeof *scratch->bins);
    if (scratch->sizes == NULL || scratch->loads == NULL || scratch->chunks == NULL || scratch->bins == NULL)
        return ph__out_of_memory("cannot spread %zu chunks", num_chunks);
    return PH_OK;
}

static ph_status spread(const struct ph__layout *layout, const uint16_t *group, uint16_t member,
    uint16_t num_bins, struct scratch *scratch, uint16_t *bins_out)
{
    size_t count = 0;
    for (uint32_t chunk = 0; chunk < layout->sizes.num_chunks; chunk++) {
        bins_out[chunk] = PH_ELSEWHERE;
        if (group != NULL && group[chunk] != member)
            continue;
        scratch->sizes[count] = layout->chunks[chunk].gradient_bytes;
        scratch->chunks[count++] = chunk;
    }
    PH_TRY(ph__partition(count, scratch->sizes, num_bins, scratch->bins, scratch->loads));
    for (size_t i = 0; i < count; i++)
        bins_out[scratch->chunks[i]] = (uint16_t)scratch->bins[i];
    return PH_OK;
}

/* Puts all chunks of the member into bin 0. */
static void take_all(
    const struct ph__layout *layout, const uint16_t *group, uint16_t member, uint16_t *bins_out)
{
    for (uint32_t chunk = 0; chunk < layout->sizes.num_chunks; chunk++)
        bins_out[chunk] = group == NULL || group[chunk] == member ? 0 : PH_ELSEWHERE;
}

ph_status ph__spread_chunks(const struct ph__layout *layout, const uint16_t *group, uint16_t member,
    uint16_t num_bins, uint16_t *bins_out)
{
    struct scratch scratch = {0};
    if (num_bins == 1) {
        take_all(layout, group, member, bins_out);
        return PH_OK;
    }
    ph_status status = allocate_scratch(layout->sizes.num_chunks, num_bins, &scratch);
    if (status == PH_OK)
        status = spread(layout, group, member, num_bins, &scratch, bins_out);
    free_scratch(&scratch);
    return status;
}

ph_status ph__spread_share(const struct ph__layout *layout, const struct ph__hub_share *share,
    uint16_t num_cores, uint16_t *bins_out)
{
    const size_t num_chunks = layout->sizes.num_chunks;
    uint16_t *hubs = calloc(num_chunks, sizeof *hubs);
    if (hubs == NULL)
        return ph__out_of_memory("cannot spread %zu chunks", num_chunks);
    ph_status status = ph__spread_chunks(layout, NULL, 0, share->num_hubs, hubs);
    if (status == PH_OK)
        status = ph__spread_chunks(layout, hubs, share->hub, num_cores, bins_out);
    free(hubs);
    return status;
}

size_t ph__spread_bytes(size_t num_chunks)
{
    const struct scratch *scratch = NULL; /* only for sizeof */
    return num_chunks * (sizeof(uint16_t) + sizeof *scratch->sizes + sizeof *scratch->chunks +
                            sizeof *scratch->bins + sizeof(struct item));
}

/* ---- lists ---- */

/* Fills the lists. first[b + 1] is the place of bin b's next chunk, and at the end the end of its list. */
static void fill_lists(struct ph__chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks)
{
    for (size_t chunk = 0; chunk < num_chunks; chunk++) {
        if (bin_of_chunk[chunk] != PH_ELSEWHERE)
            lists->chunks[lists->first[bin_of_chunk[chunk] + 1]++] = (uint32_t)chunk;
    }
}

ph_status ph__chunk_lists_init(
    struct ph__chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks, uint16_t num_bins)
{
    *lists = (struct ph__chunk_lists){.chunks = calloc(num_chunks, sizeof *lists->chunks),
        .first = calloc((size_t)num_bins + 2, sizeof *lists->first)};
    if (lists->chunks == NULL || lists->first == NULL) {
        ph__chunk_lists_fini(lists);
        return ph__out_of_memory("lists of %zu chunks", num_chunks);
    }
    for (size_t chunk = 0; chunk < num_chunks; chunk++) {
        if (bin_of_chunk[chunk] != PH_ELSEWHERE)
            lists->first[bin_of_chunk[chunk] + 2]++;
    }
    for (size_t bin = 1; bin <= num_bins; bin++)
        lists->first[bin] += lists->first[bin - 1];
    fill_lists(lists, bin_of_chunk, num_chunks);
    return PH_OK;
}

void ph__chunk_lists_fini(struct ph__chunk_lists *lists)
{
    free(lists->chunks);
    free(lists->first);
    *lists = (struct ph__chunk_lists){0};
}
