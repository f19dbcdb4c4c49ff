/* Balanced partition: items of given sizes into bins whose loads are as alike as can be had quickly.
 *
 * Largest first: items in descending order of size, each into the bin with the least load so far (Graham, Bounds on
 * multiprocessing timing anomalies, 1969). The largest load is then
 *   - at most 4/3 - 1/(3 bins) times the least that is possible, and
 *   - above the mean by less than the last item that came to that bin: where n or more items of the largest size go into a
 *     bin on average, max/mean < 1 + 1/n.
 * The hub composes it: chunks to servers, a server's chunks to core threads (placement.h leads on to interfaces). */
#ifndef PH_HUB_PARTITION_H
#define PH_HUB_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_PARTITION_ITEM_BYTES (2 * sizeof(size_t)) /* of memory, for each item while they are sorted */

/* sizes: (num_items), in any unit. bins_out: (num_items) the bin of each. loads_out: (num_bins) the sum of the sizes in each.
 * The same sizes always give the same bins: among equal items the first comes first, among equal loads the first bin is
 * taken. O(num_items (log num_items + log num_bins)). num_bins is in 1 .. UINT32_MAX.
 * PH_ERROR_USAGE when the sizes add up to more than a size_t; PH_ERROR_MEMORY. */
ph_status ph__partition(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

#endif
