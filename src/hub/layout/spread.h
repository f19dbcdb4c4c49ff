/* Which chunk lives where: chunks to hubs, and a hub's chunks to its core threads (placement.h leads on to
 * interfaces). Worker and hub work it out alike. */
#ifndef PH_HUB_SPREAD_H
#define PH_HUB_SPREAD_H

#include <stdint.h>

#include "hub/layout/layout.h"

/* Balanced partition: items of given sizes into bins whose loads are as alike as can be had quickly.
 *
 * Largest first: items in descending order of size, each into the bin with the least load so far (Graham,
 * Bounds on multiprocessing timing anomalies, 1969). The largest load is then
 *   - at most 4/3 - 1/(3 bins) times the least that is possible, and
 *   - above the mean by less than the last item that came to that bin: where n or more items of the largest
 * size go into a bin on average, max/mean < 1 + 1/n.
 *
 * sizes: (num_items), in any unit. bins_out: (num_items) the bin of each. loads_out: (num_bins) the sum of
 * the sizes in each. The same sizes always give the same bins: among equal items the first comes first, among
 * equal loads the first bin is taken. O(num_items (log num_items + log num_bins)). num_bins is in 1 ..
 * UINT32_MAX. PH_ERROR_USAGE when the sizes add up to more than a size_t; PH_ERROR_MEMORY. */
ph_status ph__partition(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

/* Which of the hubs that share a job's keys one is. */
struct ph__hub_share {
    uint16_t hub, num_hubs; /* hub < num_hubs */
};

/* Spreads chunks over num_bins < PH_ELSEWHERE so that all have about as many bytes. Where `group` is not
 * NULL, only those with group[chunk] == member are spread, and the others get PH_ELSEWHERE. bins_out:
 * (num_chunks). PH_ERROR_MEMORY. */
ph_status ph__spread_chunks(const struct ph__layout *layout, const uint16_t *group, uint16_t member,
    uint16_t num_bins, uint16_t *bins_out);

/* Spreads the chunks over the hubs, and those of the share's hub over its num_cores core threads. bins_out:
 * as above. */
ph_status ph__spread_share(const struct ph__layout *layout, const struct ph__hub_share *share,
    uint16_t num_cores, uint16_t *bins_out);

/* Memory that either takes while it is at work, at most. */
size_t ph__spread_bytes(size_t num_chunks);

/* The other way round: bin b has the chunks[first[b] .. first[b + 1]), ascending. */
struct ph__chunk_lists {
    uint32_t *chunks; /* (first[num_bins]); those elsewhere are in none */
    size_t *first;    /* (num_bins + 1) */
};

/* PH_ERROR_MEMORY: nothing is there then. */
ph_status ph__chunk_lists_init(
    struct ph__chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks, uint16_t num_bins);
void ph__chunk_lists_fini(struct ph__chunk_lists *lists); /* zeros are fine */

#endif
