/* See spread.h. */
#include "hub/layout/spread.h"

#include <stdlib.h>

#include "hub/layout/partition.h"

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
        return ph_fail(PH_ERROR_MEMORY, "no memory to spread %zu chunks", num_chunks);
    return PH_OK;
}

static ph_status spread(const struct ph_layout *layout, const uint16_t *group, uint16_t member,
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

/* Into the one bin that there is. */
static void take_all(
    const struct ph_layout *layout, const uint16_t *group, uint16_t member, uint16_t *bins_out)
{
    for (uint32_t chunk = 0; chunk < layout->sizes.num_chunks; chunk++)
        bins_out[chunk] = group == NULL || group[chunk] == member ? 0 : PH_ELSEWHERE;
}

ph_status ph__spread_chunks(const struct ph_layout *layout, const uint16_t *group, uint16_t member,
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

ph_status ph__spread_share(
    const struct ph_layout *layout, const struct ph_hub_share *share, uint16_t num_cores, uint16_t *bins_out)
{
    const size_t num_chunks = layout->sizes.num_chunks;
    uint16_t *hubs = calloc(num_chunks, sizeof *hubs);
    if (hubs == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to spread %zu chunks", num_chunks);
    ph_status status = ph__spread_chunks(layout, NULL, 0, share->num_hubs, hubs);
    if (status == PH_OK)
        status = ph__spread_chunks(layout, hubs, share->hub, num_cores, bins_out);
    free(hubs);
    return status;
}

size_t ph__spread_bytes(size_t num_chunks)
{
    const struct scratch *scratch = NULL; /* for sizes alone */
    return num_chunks * (sizeof(uint16_t) + sizeof *scratch->sizes + sizeof *scratch->chunks +
                            sizeof *scratch->bins + PH_PARTITION_ITEM_BYTES);
}

/* ---- lists ---- */

/* first[b + 1] is where the next chunk of bin b goes, and so in the end where its list ends. */
static void fill_lists(struct ph_chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks)
{
    for (size_t chunk = 0; chunk < num_chunks; chunk++) {
        if (bin_of_chunk[chunk] != PH_ELSEWHERE)
            lists->chunks[lists->first[bin_of_chunk[chunk] + 1]++] = (uint32_t)chunk;
    }
}

ph_status ph__chunk_lists_init(
    struct ph_chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks, uint16_t num_bins)
{
    *lists = (struct ph_chunk_lists){.chunks = calloc(num_chunks, sizeof *lists->chunks),
        .first = calloc((size_t)num_bins + 2, sizeof *lists->first)};
    if (lists->chunks == NULL || lists->first == NULL) {
        ph__chunk_lists_fini(lists);
        return ph_fail(PH_ERROR_MEMORY, "no memory for lists of %zu chunks", num_chunks);
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

void ph__chunk_lists_fini(struct ph_chunk_lists *lists)
{
    free(lists->chunks);
    free(lists->first);
    *lists = (struct ph_chunk_lists){0};
}
