/* Spreads chunks over hubs, and a hub's chunks over its core threads (placement.h goes on to interfaces).
 * Worker and hub compute the same spread. */
#ifndef PH_HUB_SPREAD_H
#define PH_HUB_SPREAD_H

#include <stdint.h>

#include "hub/layout/layout.h"

/* Partitions items of given sizes into bins of balanced loads, quickly.
 *
 * Largest first: takes items in descending order of size, each into the bin with the least load so far
 * (Graham, Bounds on multiprocessing timing anomalies, 1969). The largest load is then
 *   - at most 4/3 - 1/(3 bins) times the least possible, and
 *   - above the mean by less than the last item of that bin: where n or more items of the largest size go
 * into a bin on average, max/mean < 1 + 1/n.
 *
 * sizes: (num_items), in any unit. bins_out: (num_items) the bin of each item. loads_out: (num_bins) the sum
 * of the sizes in each bin. The same sizes always give the same bins: among equal items the first comes
 * first, among equal loads the first bin is taken. O(num_items (log num_items + log num_bins)). num_bins is
 * in 1 .. UINT32_MAX. PH_ERROR_USAGE when the sizes add up to more than a size_t; PH_ERROR_MEMORY. */
ph_status ph__partition(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

/* Position of a hub among those that share a job's keys. */
struct ph__hub_share {
    uint16_t hub, num_hubs; /* hub < num_hubs */
};

/* Spreads chunks over num_bins < PH_ELSEWHERE bins of about equal bytes. If `group` is not NULL, spreads only
 * chunks with group[chunk] == member; the others get PH_ELSEWHERE. bins_out: (num_chunks).
 * PH_ERROR_MEMORY. */
ph_status ph__spread_chunks(const struct ph__layout *layout, const uint16_t *group, uint16_t member,
    uint16_t num_bins, uint16_t *bins_out);

/* Spreads chunks over the hubs, and those of the share's hub over its num_cores core threads. bins_out,
 * errors: as above. */
ph_status ph__spread_share(const struct ph__layout *layout, const struct ph__hub_share *share,
    uint16_t num_cores, uint16_t *bins_out);

/* Returns the most bytes that either takes while it works. */
size_t ph__spread_bytes(size_t num_chunks);

/* Chunks by bin: bin b has the chunks[first[b] .. first[b + 1]), ascending. */
struct ph__chunk_lists {
    uint32_t *chunks; /* (first[num_bins]), without those elsewhere */
    size_t *first;    /* (num_bins + 1) */
};

/* Initialises the lists. PH_ERROR_MEMORY, and then the lists are zeros. */
ph_status ph__chunk_lists_init(
    struct ph__chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks, uint16_t num_bins);
void ph__chunk_lists_fini(struct ph__chunk_lists *lists); /* zeros are fine */

#endif
