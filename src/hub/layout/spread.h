/* Which chunk lives where: chunks to hubs, and a hub's chunks to its core threads. Worker and hub work it out alike. */
#ifndef PH_HUB_SPREAD_H
#define PH_HUB_SPREAD_H

#include <stdint.h>

#include "hub/layout/layout.h"

/* Which of the hubs that share a job's keys one is. */
struct ph_hub_share {
    uint16_t hub, num_hubs; /* hub < num_hubs */
};

/* Spreads chunks over num_bins < PH_ELSEWHERE so that all have about as many bytes (partition.h). Where `group` is not NULL,
 * only those with group[chunk] == member are spread, and the others get PH_ELSEWHERE. bins_out: (num_chunks).
 * PH_ERROR_MEMORY. */
ph_status ph__spread_chunks(const struct ph_layout *layout, const uint16_t *group, uint16_t member,
    uint16_t num_bins, uint16_t *bins_out);

/* Spreads the chunks over the hubs, and those of the share's hub over its num_cores core threads. bins_out: as above. */
ph_status ph__spread_share(
    const struct ph_layout *layout, const struct ph_hub_share *share, uint16_t num_cores, uint16_t *bins_out);

/* Memory that either takes while it is at work, at most. */
size_t ph__spread_bytes(size_t num_chunks);

/* The other way round: bin b has the chunks[first[b] .. first[b + 1]), ascending. */
struct ph_chunk_lists {
    uint32_t *chunks; /* (first[num_bins]); those elsewhere are in none */
    size_t *first;    /* (num_bins + 1) */
};

/* PH_ERROR_MEMORY: nothing is there then. */
ph_status ph__chunk_lists_init(
    struct ph_chunk_lists *lists, const uint16_t *bin_of_chunk, size_t num_chunks, uint16_t num_bins);
void ph__chunk_lists_fini(struct ph_chunk_lists *lists); /* zeros are fine */

#endif
